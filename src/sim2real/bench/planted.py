"""Gaps that are planted in twins: values of a world, its recordings, what is believed of it, and
what comes out of that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sim2real.attribute.attribution import Attribution, Share, dimensions_of
from sim2real.bench.config import BenchAttribute
from sim2real.bench.identify.known_truth import recordings
from sim2real.bench.run import Report, commit
from sim2real.bench.workers import Workers
from sim2real.data import Episode
from sim2real.evaluate.trials import run_trials
from sim2real.gap.log import Log
from sim2real.gap.unknowns import open_parameters
from sim2real.identify.fit import fit
from sim2real.identify.posterior import posterior_of
from sim2real.identify.problem import Problem
from sim2real.loop import KeptResult, KeptStep, Store
from sim2real.params import Empirical
from sim2real.policy import Bundle, Runtime, twin_contract
from sim2real.tasks import find_task
from sim2real.twin import Twin

HORIZON_S = 0.5
_FITTED = 24
"""Segments that a fit looks at."""
_EPISODES = 2
"""Episodes of the bundled policy that are recorded beside a multisine."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """Shares of one planted gap, as they are and as they were found."""

    truth: Attribution
    """With the planted values themselves."""
    found: Attribution
    right: tuple[str, ...]
    """Dimensions that do not differ."""
    drawn: int
    """Plants that were drawn until one was clear."""

    @property
    def zeros(self) -> list[Share]:
        """Shares that were found of what is right."""
        return [share for share in self.found.shares if share.name in self.right]

    @property
    def hit(self) -> bool:
        """Whether the largest was found."""
        return self.found.top.name == self.truth.top.name

    @property
    def told(self) -> str:
        """Shares that were found, with the true ones."""
        truth = {share.name: share.value for share in self.truth.shares}
        return ", ".join(
            f"{share.name} {share.value:.0f} [{share.low:.0f}, {share.high:.0f}]"
            f" ({truth[share.name]:.0f})"
            for share in self.found.shares
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "truth": self.truth.to_dict(),
            "found": self.found.to_dict(),
            "right": list(self.right),
            "drawn": self.drawn,
        }

    @staticmethod
    def of_dict(data: dict[str, Any]) -> Case:
        """What `to_dict` gave."""
        return Case(
            truth=Attribution.of_dict(data["truth"]),
            found=Attribution.of_dict(data["found"]),
            right=tuple(data["right"]),
            drawn=data["drawn"],
        )


Study = Callable[[BenchAttribute, str, int], Case]
"""Plants a gap in a task's twin with a seed, and attributes it, on one thread."""


def cases(
    config: BenchAttribute, study: Study, tasks: Sequence[str], report: Report
) -> Iterator[Case]:
    """A case a task, several at a time; those that this code has studied before are kept."""
    seeds = range(config.seed, config.seed + len(tasks))
    with Workers(config.workers) as workers:
        found = workers.map(partial(_case, config, study, commit()), tasks, seeds)
        for number, (task, case) in enumerate(zip(tasks, found, strict=True)):
            report(f"{number + 1} of {len(tasks)}: {task}: {case.told}")
            yield case


def _case(config: BenchAttribute, study: Study, made_by: str, task: str, seed: int) -> Case:
    def work(folder: Path, done: tuple[KeptResult, ...]) -> dict[str, Any]:
        return study(config, task, seed).to_dict()

    inputs = {
        "task": task,
        "bundle": Bundle.open(config.bundles / task).id,
        "seconds": config.seconds,
        "seed": seed,
        "commit": made_by,
    }
    step = KeptStep(kind=study.__name__, inputs=inputs, work=work)
    return Case.of_dict(Store(config.store).run(step).result)


def plant(
    twin: Twin, rng: np.random.Generator
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """(values, dimensions that are off, dimensions that are right); at least one of each."""
    who = dimensions_of(twin, [p.name for p in open_parameters(twin)])
    count = int(rng.integers(1, len(who.names)))
    off = set(rng.choice(len(who.names), size=count, replace=False).tolist())
    values = np.array([p.nominal for p in twin.parameters])
    for dimension in off:
        for column in who.columns[dimension]:
            chance = torch.tensor([rng.uniform()], dtype=torch.float64)
            values[column] = float(twin.parameters[column].prior.quantile(chance)[0])
    return (
        values,
        tuple(name for k, name in enumerate(who.names) if k in off),
        tuple(name for k, name in enumerate(who.names) if k not in off),
    )


def planted_twin(twin: Twin, values: np.ndarray) -> Twin:
    """The twin as one would know it who knows the world's values."""
    names = [parameter.name for parameter in twin.parameters]
    open_ = [parameter.name for parameter in open_parameters(twin)]
    samples = (tuple(float(values[names.index(name)]) for name in open_),)
    return twin.with_posterior(Empirical(names=tuple(open_), samples=samples))


def recorded(
    bundle: Bundle, twin: Twin, values: np.ndarray, *, seconds: float, seed: int
) -> list[Log]:
    """A multisine and a few episodes of the policy in the world with those values, with noise."""
    task = find_task(bundle.contract.task)
    runtime = Runtime(bundle)
    episodes: list[Episode] = []
    run_trials(
        task,
        lambda seen: torch.from_numpy(runtime.policy(seen.numpy())),
        episodes=_EPISODES,
        each=_EPISODES,
        seed=seed,
        source="nominal",
        rows=values[None],
        twin=twin,
        threads=1,
        keep=episodes.extend,
    )
    contract = twin_contract(twin, task.rate_hz)
    return [
        *recordings(twin, values[None], seconds=seconds, rate_hz=task.rate_hz, seed=seed),
        *(Log.of(episode, contract, twin.channels) for episode in episodes),
    ]


def believed(twin: Twin, logs: Sequence[Log], *, seed: int) -> Twin:
    """The twin after an identification that knows nothing of what was planted."""
    problem = Problem(twin, logs, HORIZON_S, threads=1).part(_FITTED)
    return twin.with_posterior(
        posterior_of(problem, fit(problem, seed=seed), seed=seed).distribution
    )
