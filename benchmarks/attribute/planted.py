"""Gaps that are planted in twins: recordings of a world, what is believed of it, what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.machine import ROOT
from sim2real.attribution.attribution import Attribution
from sim2real.identification.most_probable import fit
from sim2real.identification.posterior import posterior_of
from sim2real.logs.control_log import ControlLog
from sim2real.policy import Bundle
from sim2real.replay.least_squares import LeastSquares
from sim2real.tasks import find_task
from sim2real.testing import PlantedGap, flown, recordings
from sim2real.twin import Twin, twin_contract

HORIZON_S = 0.5
BUNDLES = ROOT / "examples" / "bundles"
_FITTED = 24
"""Segments that a fit looks at, at most."""
_EPISODES = 2
"""Episodes of the bundled policy that are recorded beside a multisine."""
_CLEARLY = 1.5
"""Largest true share against the next, from which it is clear which is largest."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sizes of the measurement."""

    tasks: tuple[str, ...] = ("pendulum-swingup", "arm-reach", "arm-push")
    """Tasks whose twins gaps are planted in, in turn."""
    combinations: int = 20
    """Planted combinations of dimensions whose error is attributed."""
    losses: int = 10
    """Planted combinations in the pendulum whose lost success is attributed."""
    seconds: float = 10.0
    """Length of the multisine that each world is recorded with, beside its task [s]."""
    segments: int = 20
    """Segments that errors are attributed on."""
    draws: int = 32
    """Draws of the posterior, of the error."""
    trials: int = 256
    """Trials of a planted world that say what it costs."""
    robots: int = 16
    """Draws of the posterior, of lost success, and trials of each."""
    any_plant: bool = False
    """Take the first plant, clear or not."""
    seed: int = 0
    """Seed of plants, motions and noise."""


FULL = Plan()
QUICK = Plan(
    tasks=("pendulum-swingup",), combinations=1, losses=1, seconds=3.0, segments=3, draws=2,
    trials=4, robots=2, any_plant=True,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Part:
    """One dimension's share as it was found."""

    name: str
    value: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, kw_only=True)
class Case:
    """Shares of one planted gap, as they are and as they were found."""

    task: str
    truth: dict[str, float]
    """With the planted values themselves, the largest first."""
    found: tuple[Part, ...]
    """The largest first."""
    right: tuple[str, ...]
    """Dimensions that do not differ."""
    drawn: int
    """Plants that were drawn until one was clear."""

    @classmethod
    def of(
        cls, task: str, plant: PlantedGap, truth: Attribution, found: Attribution, *, drawn: int
    ) -> Case:
        """What two attributions of a plant say."""
        return cls(
            task=task,
            truth={share.name: share.value for share in truth.shares},
            found=tuple(
                Part(name=share.name, value=share.value, low=share.low, high=share.high)
                for share in found.shares
            ),
            right=plant.right,
            drawn=drawn,
        )

    @property
    def zeros(self) -> list[Part]:
        """Shares that were found of what is right."""
        return [part for part in self.found if part.name in self.right]

    @property
    def largest(self) -> str:
        """The dimension that is truly the largest."""
        return next(iter(self.truth))

    @property
    def hit(self) -> bool:
        """Whether the largest was found."""
        return self.found[0].name == self.largest

    def __str__(self) -> str:
        return ", ".join(
            f"{part.name} {part.value:.0f} [{part.low:.0f}, {part.high:.0f}]"
            f" ({self.truth[part.name]:.0f})"
            for part in self.found
        )


def clear(truth: Attribution) -> bool:
    """Whether one dimension is clearly the largest."""
    first, second = truth.shares[:2]
    return first.value >= _CLEARLY * max(second.value, 0.0)


def bundle_of(task: str) -> Bundle:
    """The example bundle of a task."""
    return Bundle.open(BUNDLES / task)


def recorded(
    bundle: Bundle, twin: Twin, values: np.ndarray, *, seconds: float, seed: int
) -> list[ControlLog]:
    """A multisine and a few episodes of the policy in the world with those values, with noise."""
    rate_hz = find_task(bundle.contract.task).rate_hz
    contract = twin_contract(twin, rate_hz)
    episodes = flown(bundle, twin, values, count=_EPISODES, seed=seed)
    return [
        *recordings(twin, values[None], seconds=seconds, rate_hz=rate_hz, seed=seed),
        *(ControlLog.of(episode, contract, twin.channels) for episode in episodes),
    ]


def believed(plan: Plan, twin: Twin, logs: Sequence[ControlLog], *, seed: int) -> Twin:
    """The twin after an identification that knows nothing of what was planted."""
    fitted = min(_FITTED, 2 * plan.segments)
    problem = LeastSquares(twin, logs, HORIZON_S, threads=1).part(fitted)
    return twin.with_posterior(posterior_of(fit(problem, seed=seed), seed=seed).distribution)
