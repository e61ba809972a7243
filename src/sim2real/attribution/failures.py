"""Why attempts on a robot failed.

Failed attempts are grouped into kinds by how they went. For each kind: did the policy meet anything
like it in training, and which parameter values make the twin fail in the same way? Both are answers
by comparison with simulated attempts of the same policy, and both may be "unknown": an attempt is
called like others only if it lies as near to them as they do to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import ks_2samp
from torch import Tensor

from sim2real.arrays import Floats
from sim2real.attribution.attempt_behaviour import (
    Behaviours,
    Phase,
    distances,
    kinds,
    nearest_distance,
    scale_of,
    together,
)
from sim2real.attribution.complaints import Attempt, Complaint, complaints
from sim2real.data import Episode
from sim2real.errors import Sim2RealError
from sim2real.evaluation import SimulatedTrials, run_trials
from sim2real.logs import ControlLog
from sim2real.plain import PlainData
from sim2real.randomize import drawn
from sim2real.replay import best_guess
from sim2real.tasks import Task
from sim2real.twin import Twin, twin_contract

UNKNOWN = "unknown"
_UNLIKE = 0.02
"""Share of simulated attempts as lonely, below which an attempt is like none of them."""
_NEAREST = 0.05
"""Share of simulated attempts that count as most like a failure."""
_LEAST_NEAREST = 20
_LEAST = 8
"""Simulated attempts that likeness is judged by, at least."""
_TELLING = 0.01
"""Corrected p-value below which a parameter's values tell like attempts from others."""
_RANGE = (0.05, 0.5, 0.95)


@dataclass(frozen=True, kw_only=True)
class ExplainingValue:
    """Values of a parameter with which the twin fails in the same way."""

    parameter: str
    dimension: str
    unit: str
    low: float
    middle: float
    high: float
    """90 % interval, and middle, among the simulated attempts most like the failures."""
    before: float
    """Value in the twin as it is."""
    p_value: float
    """That those values are as any others, corrected for the number of parameters."""

    def __str__(self) -> str:
        unit = f" {self.unit}" if self.unit else ""
        return (
            f"{self.parameter} {self.low:.3g} to {self.high:.3g}{unit}"
            f" (the twin has {self.before:.3g})"
        )


@dataclass(frozen=True, kw_only=True)
class FailureKind(PlainData, also=("dimension", "met_in_training", "sentences")):
    """Failures that went alike, and what explains them."""

    episodes: tuple[str, ...]
    """Ids; the first is the most typical."""
    phases: tuple[Phase, ...]
    """Of the most typical."""
    in_training: float
    """Share of attempts in training at least as lonely among them: small if nothing was like it."""
    failed_alike: float
    """Share of failures among the attempts in training that are most like it."""
    reproduced: float
    """The same share as `in_training`, among attempts over all values that the twin allows."""
    values: tuple[ExplainingValue, ...]
    """What makes the twin fail in this way, the most telling first."""

    @property
    def met_in_training(self) -> bool:
        """Whether training had cases like it."""
        return self.in_training >= _UNLIKE

    @property
    def reproducible(self) -> bool:
        """Whether the twin fails in the same way at some values."""
        return self.reproduced >= _UNLIKE

    @property
    def dimension(self) -> str:
        """The dimension that explains it, or 'unknown'."""
        if not self.reproducible or not self.values:
            return UNKNOWN
        return self.values[0].dimension

    def sentences(self) -> list[str]:
        """What is known of it, in plain words."""
        count = f"{len(self.episodes)} failure{'s' if len(self.episodes) > 1 else ''}"
        found = [f"{count} like {self.episodes[0][:8]}"]
        if not self.met_in_training:
            found.append("nothing in training went like it")
        else:
            found.append(f"training had such cases, of which {self.failed_alike:.0%} failed")
        if not self.reproducible:
            found.append("no values that the twin allows reproduce it: its cause is unknown")
        elif not self.values:
            found.append("the twin fails so at any values: chance, or the policy itself")
        else:
            found.append(
                f"the twin fails so ({self.dimension}) with "
                + "; ".join(str(value) for value in self.values[:3])
            )
        return found


@dataclass(frozen=True, kw_only=True)
class Failures(PlainData, also=("sentences",)):
    """All failures of one policy on a robot, explained."""

    tried: int
    failed: int
    kinds: tuple[FailureKind, ...]
    diagnoses: tuple[Complaint, ...]

    def sentences(self) -> list[str]:
        """What is known, in plain words."""
        found = [f"{self.failed} of {self.tried} attempts failed"]
        found += [one.words for one in self.diagnoses]
        return found + [", ".join(kind.sentences()) for kind in self.kinds]


def failures_of(
    twin: Twin,
    task: type[Task],
    policy: Callable[[Tensor], Tensor],
    episodes: Sequence[Episode],
    *,
    source: str = "prior",
    remainder: bool = False,
    identified: Twin | None = None,
    worlds: int = 512,
    seed: int = 0,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Failures:
    """Explain those of `episodes`, attempts of `policy` at `task` on a robot, that failed.

    The policy was trained in `twin` with parameters from `source`, and with its learned
    `remainder` or without; it is tried there in so many `worlds`, and in as many over all values
    that the prior allows, or that were `identified`.
    """
    if worlds < 1 or seed < 0:
        raise Sim2RealError("--worlds is at least 1, and --seed not negative")
    judged = [episode for episode in episodes if episode.outcome in ("success", "failure")]
    if not judged:
        raise Sim2RealError(
            "none of these recordings says how its attempt ended: deploy judges trials, or label"
            " them with `sim2real data label`"
        )
    contract = twin_contract(twin, task.rate_hz)
    attempts = [Attempt.of(e, ControlLog.of(e, contract, twin.channels), task) for e in judged]
    failed = [attempt for attempt in attempts if not attempt.won]
    behaviours = Behaviours(twin.compile().model, task.episode_s)
    simulated = _Simulated(
        twin, task, policy, remainder=remainder, worlds=worlds, seed=seed, threads=threads
    )
    trained, outcomes = simulated(behaviours, source, None, lambda k, of: report(k, 2 * of))
    won = int(outcomes.success.sum())
    found = complaints(attempts, simulated=(won, len(outcomes.success)))
    if not failed:
        return Failures(tried=len(attempts), failed=0, kinds=(), diagnoses=found)
    rows = allowed_draws(twin, identified, worlds, seed)
    wide, draws = simulated(behaviours, "prior", rows, lambda k, of: report(of + k, 2 * of))
    real = together(behaviours, [attempt.log for attempt in failed])
    scale = scale_of(wide)
    between = distances(real, real, scale)
    explained = [
        explained_kind(
            [failed[k] for k in group], real[group], between[np.ix_(group, group)], behaviours,
            (trained, outcomes), (wide, draws), scale, twin,
        )
        for group in kinds(between)
    ]  # fmt: skip
    return Failures(
        tried=len(attempts), failed=len(failed), kinds=tuple(explained), diagnoses=found
    )


def allowed_draws(twin: Twin, identified: Twin | None, count: int, seed: int) -> Floats:
    """(count, parameters) even draws between the ends of all priors and of what was identified."""
    found = drawn(twin, "prior", count=count, seed=seed).numpy().copy()
    if identified is None or identified.posterior is None:
        return found
    known = drawn(identified, "posterior", count=count, seed=seed).numpy()
    columns = {parameter.name: k for k, parameter in enumerate(identified.parameters)}
    rng = np.random.default_rng(seed)
    for k, parameter in enumerate(twin.parameters):
        if parameter.name in identified.posterior.names:
            both = np.concatenate([found[:, k], known[:, columns[parameter.name]]])
            found[:, k] = rng.uniform(both.min(), both.max(), count)
    return found


class _Simulated:
    """Attempts of a policy in worlds of the twin, as behaviours with their draws."""

    def __init__(
        self,
        twin: Twin,
        task: type[Task],
        policy: Callable[[Tensor], Tensor],
        *,
        remainder: bool,
        worlds: int,
        seed: int,
        threads: int,
    ) -> None:
        self._twin, self._task, self._policy = twin, task, policy
        self._remainder = remainder
        self._worlds, self._seed, self._threads = worlds, seed, threads

    def __call__(
        self,
        behaviours: Behaviours,
        source: str,
        rows: Floats | None,
        report: Callable[[int, int], None],
    ) -> tuple[Floats, SimulatedTrials]:
        contract = twin_contract(self._twin, self._task.rate_hz)
        kept: list[Floats] = []

        def keep(episodes: list[Episode]) -> None:
            kept.append(together(behaviours, [ControlLog.of(e, contract) for e in episodes]))

        trials = run_trials(
            self._task,
            self._policy,
            episodes=self._worlds,
            seed=self._seed,
            source="prior" if source == "adr" else source,
            rows=rows,
            twin=self._twin,
            remainder=self._remainder,
            threads=self._threads,
            keep=keep,
            report=report,
        )
        return np.concatenate(kept), trials


def explained_kind(
    failed: list[Attempt],
    real: Floats,
    between: Floats,
    behaviours: Behaviours,
    training: tuple[Floats, SimulatedTrials],
    allowed: tuple[Floats, SimulatedTrials],
    scale: Floats,
    twin: Twin,
) -> FailureKind:
    """One kind of failures against simulated attempts in training, and over all allowed values."""
    typical = int(np.argmin(between.sum(axis=1)))
    order = [typical, *(k for k in range(len(failed)) if k != typical)]
    to_trained = distances(real, training[0], scale)
    to_allowed = distances(real, allowed[0], scale)
    lost = ~allowed[1].success
    alike = np.argsort(to_trained.mean(axis=0))[:_LEAST_NEAREST]
    return FailureKind(
        episodes=tuple(failed[k].log.episode for k in order),
        phases=behaviours.phases(failed[typical].log),
        in_training=_lonely(to_trained, training[0], scale),
        failed_alike=float(1.0 - training[1].success[alike].mean()),
        reproduced=_lonely(to_allowed[:, lost], allowed[0][lost], scale),
        values=_values(to_allowed, allowed[1], twin),
    )


def _lonely(between: Floats, simulated: Floats, scale: Floats) -> float:
    """Share of simulated attempts at least as far from their nearest as the failures' median is."""
    if len(simulated) < _LEAST:
        return 0.0  # too few to be like any
    among = nearest_distance(distances(simulated, simulated, scale), itself=True)
    mine = float(np.median(nearest_distance(between)))
    return float((1 + (among >= mine).sum()) / (1 + len(among)))


def _values(between: Floats, trials: SimulatedTrials, twin: Twin) -> tuple[ExplainingValue, ...]:
    """Parameters whose values differ between the attempts most like failures, and all others."""
    failures = np.flatnonzero(~trials.success)
    if len(failures) < _LEAST:
        return ()
    count = max(_LEAST_NEAREST, round(_NEAREST * len(trials.success)))
    count = min(count, max(_LEAST, len(failures) // 2))
    order = failures[np.argsort(between[:, failures].mean(axis=0))]
    known = best_guess(twin)
    chosen = np.zeros(len(trials.success), dtype=bool)
    chosen[order[:count]] = True
    moving = [k for k in range(len(trials.names)) if np.ptp(trials.values[:, k]) > 0]
    found = []
    for k in moving:
        like, other = trials.values[chosen, k], trials.values[~chosen, k]
        p_value = min(1.0, float(ks_2samp(like, other).pvalue) * len(moving))
        if p_value < _TELLING:
            parameter = twin.parameters[k]
            low, middle, high = np.quantile(like, _RANGE)
            found.append(
                ExplainingValue(
                    parameter=parameter.name,
                    dimension=str(parameter.dimension),
                    unit=parameter.unit,
                    low=float(low),
                    middle=float(middle),
                    high=float(high),
                    before=float(known[k]),
                    p_value=p_value,
                )
            )
    return tuple(sorted(found, key=lambda value: value.p_value))
