"""A policy of any kind, opened for use: the one place that looks at what it was given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import numpy as np

from sim2real.contract import Contract, Limits
from sim2real.data import Lake
from sim2real.errors import Sim2RealError
from sim2real.learn import Run, TrainedPolicy, TrainResult
from sim2real.named import is_named, named_object
from sim2real.policy import (
    Bundle,
    BundlePolicy,
    DrivenWorlds,
    ObjectPolicy,
    OnnxPolicy,
    Policy,
    PolicyObject,
    PolicyRuntime,
    TaskRuntime,
    WrittenContract,
)
from sim2real.tasks import Task, TaskEnv, find_task
from sim2real.twin import Twin, model_limits

_PRIOR = "prior"


@dataclass(frozen=True, kw_only=True)
class OpenedPolicy:
    """A policy, the worlds that it is for, and what a robot needs to run it."""

    policy: Policy
    twin: Twin
    source: str
    """Source of its worlds' parameters, as for `make_sampler`."""
    remainder: bool
    """Whether the twin's learned remainder acts."""
    records: Path
    """Folder for results about this policy."""
    place: Path | None
    """Where it is kept; None for an object."""
    seal: str
    """Names everything that it is made of: what its records on the ladder of trust are about."""
    own_limits: Limits | None = None
    own_runtime: Callable[[], PolicyRuntime] | None = None
    """Makes the policy with the interface that it brings; None if it brings none."""
    own_origin: Callable[[Lake], None] | None = None
    """Tells a lake which of its episodes the policy comes from; None if it does not say."""
    network: bytes | None = None
    """ONNX graph from its whole observation to its action; None if it has none."""

    @property
    def id(self) -> str:
        """What the policy is called in trials and episodes."""
        return self.policy.id

    @property
    def contract(self) -> Contract:
        """What it sees and returns."""
        return self.policy.contract

    @property
    def task(self) -> type[Task]:
        """Its task; one that is not installed here is a `Sim2RealError`."""
        return find_task(self.contract.task)

    @cached_property
    def limits(self) -> Limits:
        """Its own limits, or else those of the twin's model, which know no observation."""
        if self.own_limits is not None:
            return self.own_limits
        width = self.contract.frame_width
        return replace(
            model_limits(self.twin, self.contract),
            observation_low=(-np.inf,) * width,
            observation_high=(np.inf,) * width,
        )

    def runtime(self) -> PolicyRuntime:
        """The policy as a robot runs it; without an interface of its own, with its task's."""
        if self.own_runtime is not None:
            return self.own_runtime()
        return TaskRuntime(TaskEnv(self.task, worlds=1, twin=self.twin, threads=1), self.policy)

    def keep_origin(self, lake: Lake) -> None:
        """Let a lake know which of its episodes the policy comes from, as far as it says."""
        if self.own_origin is not None:
            self.own_origin(lake)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the policy does not say about its worlds, and what is taken instead."""
        return tuple(self.missing_for("provenance"))

    def missing_for(self, *needed: str) -> Iterator[str]:
        """A line for each of the abilities that is needed and that the policy lacks."""
        return self.policy.abilities.missing_for(*needed)


PolicySource: TypeAlias = OpenedPolicy | Bundle | TrainResult | PolicyObject | Path | str
"""A policy; or the folder of a training run or a bundle, an ONNX file with a contract beside it, or
the name of a Python class, `package.module:Class`."""


def open_policy(
    source: PolicySource, *, params: str | None = None, remainder: bool = False
) -> OpenedPolicy:
    """A policy of any kind; one that does not fit its task or twin is a `Sim2RealError`.

    `params` is where its worlds' parameters come from, by default what the policy was trained with,
    or the prior where it does not say. With `remainder` the learned remainder acts even if the
    policy was trained without.
    """
    if isinstance(source, OpenedPolicy):
        return source
    found = _opened(source)
    wanted = params or found.source
    return replace(
        found,
        source=_PRIOR if wanted == "adr" else wanted,  # the widest an automatic range may become
        remainder=remainder or found.remainder,
    )


def _opened(source: Bundle | TrainResult | PolicyObject | Path | str) -> OpenedPolicy:
    if isinstance(source, TrainResult):
        return _of_run(source.run)
    if isinstance(source, Bundle) or (isinstance(source, Path | str) and Bundle.is_bundle(source)):
        return _of_bundle(Bundle.open(source))
    if not isinstance(source, Path | str):
        return _of_object(_checked_object(source, f"a {type(source).__name__}"))
    if Path(source).suffix == ".onnx":
        return _of_onnx(Path(source))
    if is_named(str(source)) and not Path(source).exists():
        return _of_object(_checked_object(named_object(str(source), "policy"), str(source)))
    if not Run.is_run(Path(source)):
        raise Sim2RealError(
            f"there is no policy at {source}: give the folder of a training run or a bundle, an"
            " ONNX file with a contract beside it, or package.module:Class"
        )
    return _of_run(Path(source))


def _of_bundle(bundle: Bundle) -> OpenedPolicy:
    policy = BundlePolicy(bundle)
    return OpenedPolicy(
        policy=policy,
        twin=Twin.load(bundle.twin),
        source=bundle.provenance["source"],
        remainder=bool(bundle.provenance.get("remainder")),
        records=bundle.records,
        place=bundle.folder,
        seal=bundle.id,
        own_limits=bundle.limits,
        own_runtime=lambda: policy.runtime,
        own_origin=bundle.keep_origin,
        network=bundle.graph("policy"),
    )


def _of_run(folder: Path) -> OpenedPolicy:
    policy = TrainedPolicy.open(folder)
    run = policy.run
    return OpenedPolicy(
        policy=policy,
        twin=Twin.load(run.twin or find_task(run.task).twin),
        source=run.source,
        remainder=run.remainder,
        records=folder,
        place=folder,
        seal=policy.id,
    )


def _of_onnx(file: Path) -> OpenedPolicy:
    if not file.is_file():
        raise Sim2RealError(f"there is no file {file}")
    written = WrittenContract.beside(file)
    env = _first_worlds(written)
    policy = OnnxPolicy(file, written.completed(env))
    network = policy.graph if policy.abilities.repeatable else None
    return _fitting(policy, env, file.with_suffix(""), file, network=network)


def _of_object(given: PolicyObject) -> OpenedPolicy:
    told = given.contract
    values = told.to_dict() if isinstance(told, Contract) else told
    written = WrittenContract(values=values, where=f"the contract of policy {given.id}")
    env = _first_worlds(written)
    policy = ObjectPolicy(given, written.completed(env))
    return _fitting(policy, env, Path("runs") / "policies" / policy.id, None)


def _first_worlds(written: WrittenContract) -> TaskEnv:
    """One world of the policy's task and twin."""
    return TaskEnv(written.task, worlds=1, twin=written.twin, threads=1, source="nominal")


def _fitting(
    policy: Policy, env: TaskEnv, records: Path, place: Path | None, *, network: bytes | None = None
) -> OpenedPolicy:
    """A policy that somebody else made, once it has acted in a world of its task."""
    if not (policy.contract.images or policy.contract.texts):
        DrivenWorlds(env, policy).actions()  # before anything is written
    return OpenedPolicy(
        policy=policy,
        twin=env.twin,
        source=_PRIOR,
        remainder=False,
        records=records,
        place=place,
        seal=policy.id,
        network=network,
    )


def _checked_object(given: object, where: str) -> PolicyObject:
    """A Python object, if it is a policy; else a `Sim2RealError` that says what it lacks."""
    missing = [name for name in ("id", "contract", "start", "act") if not hasattr(given, name)]
    if missing:
        raise Sim2RealError(
            f"{where} is no policy: it has no {', '.join(missing)}; a policy is the folder of a"
            " training run or a bundle, an ONNX file with a contract beside it, or a Python object"
            " with id, contract, start and act"
        )
    found: PolicyObject = given  # type: ignore[assignment]
    return found
