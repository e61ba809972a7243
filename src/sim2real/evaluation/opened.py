"""A policy of a training run or a bundle, opened for use in worlds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import torch
from torch import Tensor

from sim2real.learn import Policy, TrainResult
from sim2real.policy import Bundle, Runtime
from sim2real.tasks import Task, find_task
from sim2real.twin import Twin


@dataclass(frozen=True, kw_only=True)
class OpenedPolicy:
    """A policy, and the worlds that it was trained for."""

    task: type[Task]
    policy: Callable[[Tensor], Tensor]
    """(worlds, actions) actions for observations."""
    id: str
    source: str
    """Source of its worlds' parameters, as for `make_sampler`."""
    twin: Twin
    remainder: bool
    """Whether the twin's learned remainder acts."""
    records: Path
    """Folder for results about this policy."""


PolicySource: TypeAlias = OpenedPolicy | Bundle | TrainResult | Path | str
"""A policy, or the folder of a training run or a bundle."""


def open_policy(
    source: PolicySource, *, params: str | None = None, remainder: bool = False
) -> OpenedPolicy:
    """The policy of a training run or a bundle.

    `params` is the source of its worlds' parameters, by default what it was trained with. With
    `remainder` the learned remainder acts even if the policy was trained without it.
    """
    if isinstance(source, OpenedPolicy):
        return source
    if isinstance(source, TrainResult):
        source = source.run
    if isinstance(source, Bundle) or Bundle.is_bundle(source):
        bundle = Bundle.open(source)
        runtime = Runtime(bundle)
        return OpenedPolicy(
            task=find_task(bundle.contract.task),
            policy=lambda seen: torch.from_numpy(runtime.policy(seen.cpu().numpy())),
            id=bundle.id[:32],
            source=params or bundle.provenance["source"],
            twin=Twin.load(bundle.twin),
            remainder=remainder or bool(bundle.provenance.get("remainder")),
            records=bundle.records,
        )
    policy = Policy.open(source)
    run, task = policy.run, find_task(policy.run.task)
    wanted = params or run.source
    return OpenedPolicy(
        task=task,
        policy=policy,
        id=policy.id,
        source="prior" if wanted == "adr" else wanted,  # the widest an automatic range may become
        twin=Twin.load(run.twin or task.twin),
        remainder=remainder or run.remainder,
        records=Path(source),
    )
