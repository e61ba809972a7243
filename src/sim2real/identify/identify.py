"""From logs to a new version of a twin: align, look, fit, believe, and check on held-back ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sim2real.data import Episode
from sim2real.errors import Sim2RealError
from sim2real.gap.log import Log
from sim2real.gap.replay import Replayer
from sim2real.gap.sensitivity import best_guess
from sim2real.identify.align import aligned
from sim2real.identify.fit import Fit, fit
from sim2real.identify.identifiability import Identifiability, from_information, identifiability
from sim2real.identify.posterior import Posterior, posterior_of
from sim2real.identify.problem import Problem
from sim2real.twin import Twin

HORIZONS_S = (0.5, 2.0)
"""Lengths of the segments, one fit after the other; the one that predicts best is kept."""
_HELD_BACK = 0.25
"""Share of the recordings that the fit does not see."""
_WORSE = 1.02
"""A twin whose held-back error grows by more than this is not promoted."""
_SHORTEST_S = 1.0
"""Time of logs below which nothing is fitted."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """Error of predictions on recordings that were held back, before and after."""

    horizon_s: float
    recordings: tuple[str, ...]
    """Ids of the episodes that were held back."""
    by_time: bool
    """Whether the end of a recording was held back, for want of a second one."""
    sensors: tuple[str, ...]
    before: np.ndarray
    """(sensors,) root mean square error of the old twin, in the sensor's unit."""
    after: np.ndarray
    """(sensors,) of the new one."""

    @property
    def ratio(self) -> float:
        """Error after against before, over all sensors; below one is better."""
        return _ratio(self.after, self.before)


@dataclass(frozen=True, kw_only=True)
class Identification:
    """What came of it."""

    twin: Twin
    """The new version; the old one where it was not promoted."""
    promoted: bool
    why: str
    """Why it was not promoted; '' if it was."""
    problem: Problem
    fit: Fit
    posterior: Posterior
    told: Identifiability
    """What the logs could tell, looked at before the fit."""
    check: Check
    notes: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, float]:
        """Estimates by parameter."""
        return dict(zip(self.posterior.names, self.posterior.mean.tolist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        units = {p.name: p.unit for p in self.problem.parameters}
        std = dict(zip(self.posterior.names, self.posterior.std.tolist(), strict=True))
        check = self.check
        return {
            "twin": self.twin.name,
            "version": self.twin.version,
            "parent": self.problem.twin.version,
            "promoted": self.promoted,
            "why": self.why,
            "parameters": {
                name: {
                    "value": value,
                    "std": std[name],
                    "unit": units[name],
                    "shrinkage": float(self.told.shrinkage[k]),
                    "at_bound": name in self.fit.at_bounds,
                }
                for k, (name, value) in enumerate(self.values.items())
            },
            "identifiability": self.told.to_dict(),
            "discrepancy": self.posterior.discrepancy,
            "effective_draws": _finite(self.posterior.effective),
            "horizon_s": self.problem.horizon_s,
            "segments": self.problem.segments,
            "evaluations": self.fit.evaluations,
            "held_back": {
                "episodes": list(check.recordings),
                "by_time": check.by_time,
                "horizon_s": check.horizon_s,
                "ratio": _finite(check.ratio),
                "sensors": {
                    name: {"before": _finite(b), "after": _finite(a)}
                    for name, b, a in zip(check.sensors, check.before, check.after, strict=True)
                },
            },
            "notes": list(self.notes),
        }


def identify(
    twin: Twin,
    episodes: Sequence[Episode],
    *,
    fitted: Sequence[str] = (),
    held_back: Sequence[Episode] = (),
    rate_hz: float = 0.0,
    starts: int = 8,
    seed: int = 0,
    check_posterior: bool = True,
    threads: int = 0,
    report: Callable[[str, int, int], None] = lambda stage, done, of: None,
) -> Identification:
    """Identify a twin from recordings of its robot.

    `held_back` are recordings the fit must not see; without them a quarter of the episodes are held
    back, or the last quarter of a single one. The old twin is never changed.
    """
    if not episodes:
        raise Sim2RealError("there is nothing to identify from: name some recordings")
    logs = [aligned(episode, twin, rate_hz=rate_hz) for episode in episodes]
    train, test, by_time = _split(logs, [aligned(e, twin, rate_hz=rate_hz) for e in held_back])
    _refuse_poor(train)
    notes: list[str] = []
    first = Problem(twin, train, HORIZONS_S[0], fitted=tuple(fitted), threads=threads)
    told = identifiability(first)
    if not told.identifiable and not told.together:
        raise Sim2RealError(
            "these logs tell none of the parameters: the robot hardly moves in them; record"
            f" motions with `sim2real record` (they would tell {', '.join(told.names[:3])}, …)"
        )
    found: list[tuple[float, Problem, Fit]] = []
    longest = _longest(twin, test, HORIZONS_S)
    before = _rms(twin, test, longest, best_guess(twin))
    for number, horizon_s in enumerate(h for h in HORIZONS_S if h <= longest):
        problem = first
        if number:
            try:
                problem = Problem(twin, train, horizon_s, fitted=tuple(fitted), threads=threads)
            except Sim2RealError:
                notes.append(f"no stretch of {horizon_s:g} s without gaps: not fitted over that")
                continue
            problem.noise[:] = found[-1][1].noise
        result = fit(
            problem,
            starts=starts,
            begin=found[-1][2].x if found else None,
            seed=seed,
            exact=False,
            report=partial(report, f"fit over {horizon_s:g} s"),
        )
        error = _errors(twin, test, longest, problem, result)
        found.append((_ratio(error, before), problem, result))
    _, problem, result = min(found, key=lambda entry: entry[0])
    check = Check(
        horizon_s=longest,
        recordings=tuple(log.episode for log in test),
        by_time=by_time,
        sensors=tuple(spec.name for spec in test[0].contract.sensors),
        before=before,
        after=_errors(twin, test, longest, problem, result),
    )
    why = ""
    if not check.ratio <= _WORSE:
        why = (
            f"it predicts recordings that were held back worse than before, by a factor of"
            f" {check.ratio:.2f}: the fit does not carry over"
        )
    # What was held back has done its duty: it is data like any other.
    noise = problem.noise
    if not why and not held_back:
        problem = Problem(twin, logs, problem.horizon_s, fitted=tuple(fitted), threads=threads)
        problem.noise[:] = noise
    result = fit(problem, begin=result.x, report=partial(report, "fit to all"))
    posterior = posterior_of(
        problem,
        result,
        check=check_posterior,
        seed=seed,
        report=partial(report, "posterior"),
    )
    new = twin.with_posterior(posterior.distribution)
    if result.at_bounds:
        notes.append(f"on a bound: {', '.join(result.at_bounds)}; widen it, or the model is wrong")
    return Identification(
        twin=twin if why else new,
        promoted=not why,
        why=why,
        problem=problem,
        fit=result,
        posterior=posterior,
        told=from_information(problem.names, result.information()),
        check=check,
        notes=tuple(notes),
    )


def _split(logs: list[Log], held_back: list[Log]) -> tuple[list[Log], list[Log], bool]:
    """(train, test, whether by time)."""
    if held_back:
        return logs, held_back, False
    if len(logs) > 1:
        every = max(2, round(1 / _HELD_BACK))
        test = [log for k, log in enumerate(logs) if k % every == every - 1] or logs[-1:]
        return [log for log in logs if log not in test], test, False
    (log,) = logs
    cut = int((1 - _HELD_BACK) * len(log.times))
    return [_part(log, slice(None, cut))], [_part(log, slice(cut, None))], True


def _part(log: Log, rows: slice) -> Log:
    return replace(
        log,
        times=log.times[rows],
        readings=log.readings[rows],
        fresh=log.fresh[rows],
        command=log.command[rows],
        wanted=None,
        action=None,
        observation=None,
        goals=None,
        enabled=None if log.enabled is None else log.enabled[rows],
        known={name: values[rows] for name, values in log.known.items()},
    )


def _refuse_poor(logs: list[Log]) -> None:
    seconds = sum(float(np.ptp(log.times)) for log in logs if len(log.times) > 1)
    if seconds < _SHORTEST_S:
        raise Sim2RealError(
            f"the logs hold {seconds:.2g} s in all; at least {_SHORTEST_S:g} s are needed, and 20 s"
            " of motion is a good begin: `sim2real record` makes them"
        )


def _longest(twin: Twin, logs: list[Log], horizons: Sequence[float]) -> float:
    """The longest horizon that the held-back logs have room for."""
    for horizon_s in sorted(horizons, reverse=True):
        try:
            Replayer(twin, Log.join(logs), horizon_s=horizon_s)
        except Sim2RealError:
            continue
        return horizon_s
    return min(horizons)


def _rms(twin: Twin, logs: list[Log], horizon_s: float, values: np.ndarray) -> np.ndarray:
    """(sensors,) root mean square error of predictions over the horizon."""
    replay = Replayer(twin, Log.join(logs), horizon_s=horizon_s, values=values[None])(values[None])
    squares = replay.errors[0] ** 2
    found = []
    for spec in logs[0].contract.sensors:
        mine = squares[..., replay.column(spec.name)]
        seen = replay.valid[..., replay.column(spec.name)]
        broken = (seen & ~np.isfinite(mine)).any()
        total = float(np.sqrt(mine[seen].mean())) if seen.any() else float("nan")
        found.append(float("inf") if broken else total)
    return np.array(found)


def _errors(
    twin: Twin, logs: list[Log], horizon_s: float, problem: Problem, result: Fit
) -> np.ndarray:
    values = best_guess(twin)
    names = [p.name for p in twin.parameters]
    for name, value in zip(problem.names, result.values, strict=True):
        values[names.index(name)] = value
    return _rms(twin, logs, horizon_s, values)


def _ratio(after: np.ndarray, before: np.ndarray) -> float:
    """Error after against before, over all sensors; below one is better."""
    known = np.isfinite(before) & (before > 0)
    if not known.any():
        return float("nan")
    return float(np.sqrt(np.mean((after[known] / before[known]) ** 2)))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
