"""From logs to a new version of a twin: align, look, fit, believe, and check on held-back ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from sim2real.data import Logs
from sim2real.data.formats.channelmap import ChannelMap
from sim2real.errors import Sim2RealError
from sim2real.files import write_json
from sim2real.gap.log import Log
from sim2real.gap.sensitivity import best_guess
from sim2real.identify.align import aligned_logs
from sim2real.identify.contact import identify_contact
from sim2real.identify.fit import Fit, fit
from sim2real.identify.held_back import Check, HeldBack, split
from sim2real.identify.identifiability import Identifiability, from_information, identifiability
from sim2real.identify.inputs import another_robot, refuse_poor
from sim2real.identify.posterior import Posterior, discrepancy_of, posterior_of
from sim2real.identify.problem import Problem
from sim2real.identify.remainder import Learned, learn_remainder
from sim2real.identify.scatter import scatter_of
from sim2real.identify.search import Search
from sim2real.identify.starts import seen_states
from sim2real.identify.trajectories import Trajectories
from sim2real.policy import open_twin
from sim2real.tasks.starts import STARTS_FILE
from sim2real.twin import Twin

Report: TypeAlias = Callable[[int, int], None]

HORIZONS_S = (0.5, 2.0)
"""Lengths of the segments, one fit after the other; see `_descended`."""
_MOST_SEGMENTS = 160
"""Segments that a fit looks at, spread over all there are; more hardly tell more."""
_ALIKE = 1.1
"""Errors on what was held back, against the smallest, that are called alike."""
_WORSE = 1.02
"""A twin whose held-back error grows by more than this is not promoted."""


@dataclass(frozen=True, kw_only=True)
class Identification:
    """What came of it."""

    twin: Twin
    """The new version; the old one where it was not promoted."""
    promoted: bool
    why: str
    """Why it was not promoted; '' if it was."""
    problem: Problem | Trajectories
    fit: Fit | Search
    posterior: Posterior
    told: Identifiability
    """What the logs could tell, looked at before the fit."""
    check: Check
    logs: tuple[Log, ...]
    """What it was identified from."""
    held_back: tuple[Log, ...]
    """The recordings that the check was made with, whole; some may be among `logs`."""
    notes: tuple[str, ...] = ()
    learned: Learned | None = None
    """What parameters cannot explain, where that was asked for."""

    @property
    def values(self) -> dict[str, float]:
        """Estimates by parameter."""
        return dict(zip(self.posterior.names, self.posterior.mean.tolist(), strict=True))

    @cached_property
    def scatter(self) -> np.ndarray:
        """(fitted, fitted) covariance of the parameters from one stretch of motion to the next.

        Nothing where contacts were fitted: a search knows no stretches.
        """
        if not isinstance(self.fit, Fit) or not isinstance(self.problem, Problem):
            return np.zeros((len(self.posterior.names),) * 2)
        scales = self.problem.scales
        found: np.ndarray = scatter_of(self.fit) * np.outer(scales, scales)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        units = {p.name: p.unit for p in self.problem.parameters}
        scatter = np.sqrt(np.diag(self.scatter)).tolist()
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
                    "scatter": scatter[k],
                    "unit": units[name],
                    "shrinkage": float(self.told.shrinkage[k]),
                    "at_bound": name in self.fit.at_bounds,
                }
                for k, (name, value) in enumerate(self.values.items())
            },
            "scatter": {"names": list(self.posterior.names), "covariance": self.scatter.tolist()},
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
        } | ({} if self.learned is None else {"remainder": self.learned.to_dict()})

    def save(self, folder: Path | str) -> None:
        """Write `result.json` into a folder, and the new twin if it was promoted, with the states
        that its robot was seen in."""
        folder = Path(folder)
        if self.promoted:
            self.twin.save(folder / "twin")
            if (seen := seen_states(self.twin, self.logs)) is not None:
                seen.save(folder / STARTS_FILE)
        write_json(folder / "result.json", self.to_dict())


def identify(
    twin: Twin | Path | str,
    logs: Logs,
    *,
    parameters: Sequence[str] = (),
    held_back: Logs = (),
    remainder: bool = False,
    channels: ChannelMap | Path | str | None = None,
    rate_hz: float = 0.0,
    starts: int = 8,
    seed: int = 0,
    check_posterior: bool = True,
    threads: int = 0,
    report: Report = lambda done, of: None,
) -> Identification:
    """Identify a twin from logs of its robot.

    `parameters` are those to fit, by default all whose prior leaves them open. `held_back` are
    recordings the fit must not see; without them a quarter of the logs is held back, or the last
    quarter of a single one. With `remainder`, what the new twin leaves unexplained is learned too,
    if that predicts held-back recordings better. The old twin is never changed.
    """
    twin = open_twin(twin)
    mine = aligned_logs(twin, logs, channels=channels, rate_hz=rate_hz)
    kept = []
    if held_back:
        kept = aligned_logs(twin, held_back, channels=channels, rate_hz=rate_hz)
        _refuse_both(mine, kept)
    found = _identified(
        twin, mine, kept, tuple(parameters), starts=starts, seed=seed,
        check_posterior=check_posterior, threads=threads, report=report,
    )  # fmt: skip
    if not remainder or not found.promoted:
        return found
    learned = learn_remainder(found.twin, mine, seed=seed, threads=threads, report=report)
    new = replace(found.twin, remainder=learned.remainder)
    return replace(found, twin=new, learned=learned)


def _refuse_both(logs: list[Log], held_back: list[Log]) -> None:
    """Refuse a recording that is among both."""
    both = {log.episode for log in logs} & {log.episode for log in held_back}
    if both:
        raise Sim2RealError(
            f"{len(both)} of {len(held_back)} held-back recordings are among the logs too"
            f" ({min(both)[:12]}, …): a check on what was fitted shows nothing; leave them out of"
            " one of the two"
        )


def _identified(
    twin: Twin,
    logs: list[Log],
    held_back: list[Log],
    fitted: tuple[str, ...],
    *,
    starts: int,
    seed: int,
    check_posterior: bool,
    threads: int,
    report: Report,
) -> Identification:
    """Fit, believe, and check on what was held back."""
    train, test, by_time = split(logs, held_back)
    refuse_poor(train)
    if held_back:
        refuse_poor(test)
    notes: list[str] = []
    contact = identify_contact(
        twin, train, fitted=fitted, seed=seed, threads=threads, report=report
    )
    if contact is not None:
        held = HeldBack(twin, test)
        ratio = held.ratio(_values(contact.problem, contact.fit))
        found = _Found(ratio, contact.problem, contact.fit)
    else:
        held = HeldBack(twin, test, HORIZONS_S)
        found = _descended(
            twin, train, held, fitted=fitted, starts=starts, seed=seed, threads=threads,
            notes=notes, report=report,
        )  # fmt: skip
    check = held.check(_values(found.problem, found.fit), found.ratio, by_time=by_time)
    why = "" if check.ratio <= _WORSE else _worse(check)
    problem, result = found.problem, found.fit
    if contact is not None:
        posterior, told = contact.posterior, contact.told
    else:
        # What was held back has done its duty: it is data like any other.
        if not why and not held_back:
            problem = Problem(twin, logs, problem.horizon_s, fitted=fitted, threads=threads)
            problem = problem.part(_MOST_SEGMENTS)
            problem.noise[:] = found.problem.noise
        # What the data cannot tell, such as the scale of all forces, the prior decides.
        result = fit(problem, begin=result.x, prior=discrepancy_of(result), report=report)
        told = from_information(problem.names, result.information())
        posterior = posterior_of(problem, result, check=check_posterior, seed=seed, report=report)
    new = twin.with_posterior(posterior.distribution)
    why = why or another_robot(new, test)
    if result.at_bounds:
        notes.append(f"on a bound: {', '.join(result.at_bounds)}; widen it, or the model is wrong")
    by_name = {log.episode: log for log in [*logs, *held_back]}
    return Identification(
        twin=twin if why else new,
        promoted=not why,
        why=why,
        problem=problem,
        fit=result,
        posterior=posterior,
        told=told,
        check=check,
        logs=tuple(logs),
        held_back=tuple(by_name[name] for name in check.recordings),
        notes=tuple(notes),
    )


def _worse(check: Check) -> str:
    return (
        "it predicts recordings that were held back worse than before, by a factor of"
        f" {check.ratio:.2f}: the fit does not carry over"
    )


@dataclass(frozen=True)
class _Found:
    """A fit, and its error on what was held back."""

    ratio: float
    problem: Any
    fit: Any


def _descended(
    twin: Twin,
    logs: list[Log],
    held: HeldBack,
    *,
    fitted: tuple[str, ...],
    starts: int,
    seed: int,
    threads: int,
    notes: list[str],
    report: Report,
) -> _Found:
    """Fits over one horizon after the other; the one that predicts best what was held back."""
    problem = Problem(twin, logs, HORIZONS_S[0], fitted=fitted, threads=threads)
    problem = problem.part(_MOST_SEGMENTS)
    told = identifiability(problem)
    if not told.identifiable and not told.together:
        raise Sim2RealError(
            "these logs tell none of the parameters: the robot hardly moves in them; record"
            f" motions with `sim2real record` (they would tell {', '.join(told.names[:3])}, …)"
        )
    found: list[_Found] = []
    for horizon_s in HORIZONS_S:
        if found:
            try:
                problem = Problem(twin, logs, horizon_s, fitted=fitted, threads=threads)
                problem = problem.part(_MOST_SEGMENTS)
            except Sim2RealError:
                notes.append(f"no stretch of {horizon_s:g} s without gaps: not fitted over that")
                break
            problem.noise[:] = found[-1].problem.noise
        result = fit(
            problem,
            starts=starts,
            begin=found[-1].fit.x if found else None,
            seed=seed,
            exact=False,
            report=report,
        )
        found.append(_Found(held.ratio(_values(problem, result)), problem, result))
    # Of those that predict alike, the one that bounds had to stop least.
    best = min(entry.ratio for entry in found)
    alike = [entry for entry in found if entry.ratio <= _ALIKE * best] or found
    return min(alike, key=lambda e: (len(e.fit.at_bounds), e.ratio))


def _values(problem: Problem | Trajectories, result: Fit | Search) -> np.ndarray:
    """(parameters,) of the twin with what was fitted."""
    values = best_guess(problem.twin)
    names = [p.name for p in problem.twin.parameters]
    for name, value in zip(problem.names, result.values, strict=True):
        values[names.index(name)] = value
    return values


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
