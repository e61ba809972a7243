"""From logs to a new version of a twin: align, look, fit, believe, and check on held-back ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from sim2real.arrays import Floats
from sim2real.data import ChannelMap, Logs
from sim2real.errors import Sim2RealError
from sim2real.files import write_json
from sim2real.identification.cma_es import CmaSearch
from sim2real.identification.contact_parameters import Contact, identify_contact
from sim2real.identification.held_back import HeldBack, HeldBackCheck, split
from sim2real.identification.identifiability import (
    Identifiability,
    from_information,
    identifiability,
)
from sim2real.identification.inputs import another_robot, refuse_poor
from sim2real.identification.learned_remainder import LearnedRemainder, learn_remainder
from sim2real.identification.least_squares import LeastSquares
from sim2real.identification.most_probable import Fit, fit
from sim2real.identification.parameter_scatter import scatter_of
from sim2real.identification.posterior import Posterior, discrepancy_of, posterior_of
from sim2real.identification.recorded_starts import seen_states
from sim2real.identification.thresholds import IDENTIFY_THRESHOLDS, IdentifyThresholds
from sim2real.identification.whole_recordings import WholeRecordings
from sim2real.logs import ControlLog, aligned_logs
from sim2real.policy import open_twin
from sim2real.tasks import STARTS_FILE
from sim2real.twin import Twin

Report: TypeAlias = Callable[[int, int], None]

_ALIKE = 1.1
"""Errors on what was held back, against the smallest, that are called alike."""


@dataclass(frozen=True, kw_only=True)
class Identification:
    """What came of it."""

    twin: Twin
    """The new version; the old one where it was not promoted."""
    promoted: bool
    why: str
    """Why it was not promoted; '' if it was."""
    problem: LeastSquares | WholeRecordings
    fit: Fit | CmaSearch
    posterior: Posterior
    told: Identifiability
    """What the logs could tell, looked at before the fit."""
    check: HeldBackCheck
    logs: tuple[ControlLog, ...]
    """What it was identified from."""
    held_back: tuple[ControlLog, ...]
    """The recordings that the check was made with, whole; some may be among `logs`."""
    notes: tuple[str, ...] = ()
    learned: LearnedRemainder | None = None
    """What parameters cannot explain, where that was asked for."""

    @property
    def values(self) -> dict[str, float]:
        """Estimates by parameter."""
        return dict(zip(self.posterior.names, self.posterior.mean.tolist(), strict=True))

    @cached_property
    def scatter(self) -> Floats:
        """(fitted, fitted) covariance of the parameters from one stretch of motion to the next.

        Nothing where contacts were fitted: a search knows no stretches.
        """
        if not isinstance(self.fit, Fit) or not isinstance(self.problem, LeastSquares):
            return np.zeros((len(self.posterior.names),) * 2)
        scales = self.problem.scales
        return scatter_of(self.fit) * np.outer(scales, scales)

    def to_dict(self) -> dict[str, object]:
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
    thresholds: IdentifyThresholds = IDENTIFY_THRESHOLDS,
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
        check_posterior=check_posterior, thresholds=thresholds, threads=threads, report=report,
    )  # fmt: skip
    if not remainder or not found.promoted:
        return found
    learned = learn_remainder(
        found.twin, mine, thresholds=thresholds, seed=seed, threads=threads, report=report
    )
    new = replace(found.twin, remainder=learned.remainder)
    return replace(found, twin=new, learned=learned)


def _refuse_both(logs: list[ControlLog], held_back: list[ControlLog]) -> None:
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
    logs: list[ControlLog],
    held_back: list[ControlLog],
    fitted: tuple[str, ...],
    *,
    starts: int,
    seed: int,
    check_posterior: bool,
    thresholds: IdentifyThresholds,
    threads: int,
    report: Report,
) -> Identification:
    """Fit, believe, and check on what was held back."""
    train, test, by_time = split(logs, held_back, share=thresholds.held_back)
    for mine in (train, test) if held_back else (train,):
        refuse_poor(mine, shortest_s=thresholds.shortest_s)
    notes: list[str] = []
    contact = identify_contact(
        twin, train, fitted=fitted, seed=seed, threads=threads, report=report
    )
    make = partial(_problem, twin, fitted=fitted, most=thresholds.segments, threads=threads)
    found: Contact | _Fitted
    if contact is not None:
        held, found = HeldBack(twin, test), contact
    else:
        held = HeldBack(twin, test, thresholds.horizons_s)
        fits = partial(fit, starts=starts, seed=seed, exact=False, report=report)
        found = _descended(partial(make, train), fits, held, thresholds.horizons_s, notes)
    check = held.check(found.problem.whole(found.fit.x), by_time=by_time)
    why = ""
    if not check.ratio <= thresholds.worse:
        why = (
            f"it predicts recordings that were held back worse than before, by a factor of"
            f" {check.ratio:.2f}: the fit does not carry over"
        )
    if isinstance(found, _Fitted):
        # What was held back has done its duty: it is data like any other.
        problem = found.problem if why or held_back else make(logs, found.problem.horizon_s)
        problem.noise[:] = found.problem.noise
        found = _believed(problem, found.fit, check=check_posterior, seed=seed, report=report)
    new = twin.with_posterior(found.posterior.distribution)
    why = why or another_robot(new, test)
    if stuck := found.fit.at_bounds:
        notes.append(f"on a bound: {', '.join(stuck)}; widen it, or the model is wrong")
    by_name = {log.episode: log for log in [*logs, *held_back]}
    return Identification(
        twin=twin if why else new,
        promoted=not why,
        why=why,
        problem=found.problem,
        fit=found.fit,
        posterior=found.posterior,
        told=found.told,
        check=check,
        logs=tuple(logs),
        held_back=tuple(by_name[name] for name in check.recordings),
        notes=tuple(notes),
    )


@dataclass(frozen=True)
class _Fitted:
    """A fit of logs."""

    problem: LeastSquares
    fit: Fit


@dataclass(frozen=True)
class _Believed(_Fitted):
    """A fit of all logs, and what is known by it."""

    posterior: Posterior
    told: Identifiability


def _problem(
    twin: Twin,
    logs: list[ControlLog],
    horizon_s: float,
    *,
    fitted: tuple[str, ...],
    most: int,
    threads: int,
) -> LeastSquares:
    """The logs in segments of `horizon_s`, at most so many."""
    return LeastSquares(twin, logs, horizon_s, fitted=fitted, threads=threads).part(most)


def _descended(
    make: Callable[[float], LeastSquares],
    fits: Callable[..., Fit],
    held: HeldBack,
    horizons_s: Sequence[float],
    notes: list[str],
) -> _Fitted:
    """Fits over one horizon after the other; the one that predicts best what was held back.

    `make` gives the problem of a horizon, and `fits` fits it.
    """
    problem = make(horizons_s[0])
    told = identifiability(problem)
    if not told.identifiable and not told.together:
        raise Sim2RealError(
            "these logs tell none of the parameters: the robot hardly moves in them; record"
            f" motions with `sim2real record` (they would tell {', '.join(told.names[:3])}, …)"
        )
    found = [_Fitted(problem, fits(problem))]
    for horizon_s in horizons_s[1:]:
        try:
            problem = make(horizon_s)
        except Sim2RealError:
            notes.append(f"no stretch of {horizon_s:g} s without gaps: not fitted over that")
            break
        problem.noise[:] = found[-1].problem.noise
        found.append(_Fitted(problem, fits(problem, begin=found[-1].fit.x)))
    # Of those that predict alike, the one that bounds had to stop least.
    ratios = [held.ratio(one.problem.whole(one.fit.x)) for one in found]
    rated = list(zip(ratios, found, strict=True))
    alike = [(ratio, one) for ratio, one in rated if ratio <= _ALIKE * min(ratios)] or rated
    return min(alike, key=lambda pair: (len(pair[1].fit.at_bounds), pair[0]))[1]


def _believed(
    problem: LeastSquares, begun: Fit, *, check: bool, seed: int, report: Report
) -> _Believed:
    """A fit of all logs, and what it tells."""
    # What the data cannot tell, such as the scale of all forces, the prior decides.
    result = fit(problem, begin=begun.x, prior=discrepancy_of(begun), report=report)
    return _Believed(
        problem,
        result,
        posterior_of(problem, result, check=check, seed=seed, report=report),
        from_information(problem.names, result.information()),
    )


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
