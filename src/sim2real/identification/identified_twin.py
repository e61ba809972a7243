"""From logs to a new version of a twin: align, fit, find the posterior, check on held-back logs."""

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
from sim2real.identification.contact_parameters import identify_contact
from sim2real.identification.held_back import HeldBack, HeldBackCheck, split
from sim2real.identification.identifiability import Identifiability, from_information
from sim2real.identification.inputs import another_robot, refuse_poor
from sim2real.identification.learned_remainder import LearnedRemainder, learn_remainder
from sim2real.identification.most_probable import Fit, fit
from sim2real.identification.parameter_scatter import scatter_of
from sim2real.identification.posterior import Posterior, discrepancy_of, posterior_of
from sim2real.identification.recorded_starts import seen_states
from sim2real.identification.thresholds import IDENTIFY_THRESHOLDS, IdentifyThresholds
from sim2real.identification.whole_recordings import WholeRecordings
from sim2real.logs import ControlLog, aligned_logs
from sim2real.phases import Report, phase
from sim2real.plain import PlainData
from sim2real.policy import open_twin
from sim2real.replay import LeastSquares
from sim2real.tasks import STARTS_FILE
from sim2real.twin import Twin

_Believed: TypeAlias = tuple[Fit | CmaSearch, Posterior, Identifiability]
"""A fit of all logs, and what is known from it."""

_EQUAL_WITHIN = 1.1
"""Held-back errors up to this factor above the smallest count as equal."""


@dataclass(frozen=True, kw_only=True)
class IdentifiedParameter:
    """What is known of a parameter."""

    value: float
    std: float
    scatter: float
    """Standard deviation from segment to segment."""
    unit: str
    shrinkage: float
    """Standard deviation after the data, relative to before."""
    at_bound: bool


@dataclass(frozen=True, kw_only=True)
class Identification(
    PlainData,
    also=(
        "twin=twin.name", "twin.version", "parent=problem.twin.version", "parameters",
        "scatter=scatter_table", "posterior.discrepancy", "effective_draws=posterior.effective",
        "problem.horizon_s", "problem.segments", "fit.evaluations", "held_back=check",
        "remainder?=learned",
    ),
    without=("fit", "posterior", "check", "logs", "learned"),
):  # fmt: skip
    """The result of an identification."""

    twin: Twin
    """The new version; the old one if it was not promoted."""
    promoted: bool
    why: str
    """Why it was not promoted; '' if it was."""
    fit: Fit | CmaSearch
    posterior: Posterior
    identifiability: Identifiability
    check: HeldBackCheck
    logs: tuple[ControlLog, ...]
    """The logs that it was identified from."""
    held_back: tuple[ControlLog, ...]
    """The recordings of the check, whole; some may be among `logs`."""
    notes: tuple[str, ...] = ()
    learned: LearnedRemainder | None = None
    """The remainder, if one was to be learned."""

    @property
    def problem(self) -> LeastSquares | WholeRecordings:
        """What was fitted."""
        return self.fit.problem

    @property
    def values(self) -> dict[str, float]:
        """Estimates by parameter."""
        return dict(zip(self.posterior.names, self.posterior.mean.tolist(), strict=True))

    @cached_property
    def scatter(self) -> Floats:
        """(fitted, fitted) covariance of the parameters from segment to segment.

        Zero for contact parameters, which are fitted to whole recordings.
        """
        if not isinstance(self.fit, Fit):
            return np.zeros((len(self.posterior.names),) * 2)
        scales = self.fit.problem.scales
        return scatter_of(self.fit) * np.outer(scales, scales)

    @property
    def scatter_table(self) -> dict[str, object]:
        """The scatter, with the names of its rows and columns."""
        return {"names": self.posterior.names, "covariance": self.scatter}

    @property
    def parameters(self) -> dict[str, IdentifiedParameter]:
        """The fitted parameters by name."""
        scatter, std = np.sqrt(np.diag(self.scatter)), self.posterior.std
        return {
            parameter.name: IdentifiedParameter(
                value=float(value),
                std=float(std[k]),
                scatter=float(scatter[k]),
                unit=parameter.unit,
                shrinkage=float(self.identifiability.shrinkage[k]),
                at_bound=parameter.name in self.fit.at_bounds,
            )
            for k, (parameter, value) in enumerate(
                zip(self.problem.parameters, self.posterior.mean, strict=True)
            )
        }

    def save(self, folder: Path | str) -> None:
        """Write `result.json` into a folder and, if it was promoted, the new twin with the states
        that its robot was recorded in."""
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
    recordings that the fit does not see; by default a quarter of the logs, or the last quarter of
    each if they are few. With `remainder`, a remainder is learned too, if it improves the
    prediction of held-back recordings. The old twin is never changed.
    """
    twin = open_twin(twin)
    mine = aligned_logs(twin, logs, purpose="training", channels=channels, rate_hz=rate_hz)
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
        found.twin,
        mine,
        thresholds=thresholds,
        seed=seed,
        threads=threads,
        report=phase(report, "remainder"),
    )
    new = replace(found.twin, remainder=learned.remainder, identified_on=_ids(mine))
    return replace(found, twin=new, learned=learned)


def _refuse_both(logs: list[ControlLog], held_back: list[ControlLog]) -> None:
    """Refuse a recording that is in both sets."""
    both = {log.episode for log in logs} & {log.episode for log in held_back}
    if both:
        raise Sim2RealError(
            f"{len(both)} of {len(held_back)} held-back recordings are also among the logs"
            f" ({min(both)[:12]}, …): a check on fitted recordings proves nothing; remove them from"
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
    """Fit, compute the posterior, and check on held-back recordings."""
    train, test, by_time = split(logs, held_back, share=thresholds.held_back)
    for mine in (train, test) if held_back else (train,):
        refuse_poor(mine, thresholds)
    notes: list[str] = []
    contact = identify_contact(
        twin, train, fitted=fitted, seed=seed, threads=threads, report=report
    )

    def make(logs: list[ControlLog], horizon_s: float) -> LeastSquares:
        whole = LeastSquares(twin, logs, horizon_s, fitted=fitted, threads=threads)
        return whole.part(thresholds.segments)

    if contact is not None:
        check = HeldBack(twin, test).check(contact[0].whole, by_time=by_time)
    else:
        held = HeldBack(twin, test, thresholds.horizons_s)
        fits = partial(fit, starts=starts, seed=seed, exact=False)
        begun = _descended(
            partial(make, train), fits, held, thresholds.horizons_s, notes, report=report
        )
        check = held.check(begun.whole, by_time=by_time)
    why = ""
    if not check.ratio <= thresholds.worse:
        why = (
            "it predicts held-back recordings worse than the old twin, by a factor of"
            f" {check.ratio:.2f}: the fit does not generalise"
        )
    believed: _Believed
    if contact is not None:
        believed = contact
    else:
        # After the check, the held-back recordings are data like the others.
        problem = begun.problem
        if not why and not held_back:
            problem = make(logs, problem.horizon_s).with_noise(problem.noise)
        believed = _believed(problem, begun, check=check_posterior, seed=seed, report=report)
    found, posterior, known = believed
    used = train if contact is not None or held_back else logs
    new = _next_version(twin, posterior, used, test)
    why = why or another_robot(new, test)
    if stuck := found.at_bounds:
        notes.append(f"at a bound: {', '.join(stuck)}; widen it, or the model is wrong")
    by_name = {log.episode: log for log in [*logs, *held_back]}
    return Identification(
        twin=twin if why else new,
        promoted=not why,
        why=why,
        fit=found,
        posterior=posterior,
        identifiability=known,
        check=check,
        logs=tuple(logs),
        held_back=tuple(by_name[name] for name in check.recordings),
        notes=tuple(notes),
    )


def _next_version(
    twin: Twin, posterior: Posterior, used: Sequence[ControlLog], test: Sequence[ControlLog]
) -> Twin:
    """The twin with a posterior, and with the episodes that it was fitted to and checked on."""
    known = twin.with_posterior(posterior.distribution)
    return replace(known, identified_on=_ids(used), checked_on=_ids(test))


def _descended(
    make: Callable[[float], LeastSquares],
    fits: Callable[..., Fit],
    held: HeldBack,
    horizons_s: Sequence[float],
    notes: list[str],
    *,
    report: Report,
) -> Fit:
    """Fit over one horizon after the other; the fit that predicts held-back recordings best.

    `make` gives the problem of a horizon, and `fits` fits it.
    """
    problem = make(horizons_s[0])
    center = np.clip(np.zeros(len(problem.names)), *problem.bounds)
    problem = problem.prepared(center)
    known = from_information(problem.names, problem.information(center))
    if not known.identifiable and not known.together:
        raise Sim2RealError(
            f"these logs determine none of the parameters ({', '.join(known.names[:3])}, …): the"
            " robot hardly moves; record motions with `sim2real record`"
        )
    found = [fits(problem, report=_fit_phase(report, horizons_s[0]))]
    for horizon_s in horizons_s[1:]:
        try:
            problem = make(horizon_s)
        except Sim2RealError:
            notes.append(f"no segment of {horizon_s:g} s without gaps: not fitted over that time")
            break
        before = found[-1]
        problem = problem.with_noise(before.problem.noise)
        found.append(fits(problem, begin=before.x, report=_fit_phase(report, horizon_s)))
    # Of those that predict equally well, the one with the fewest parameters at a bound.
    ratios = [held.ratio(one.whole) for one in found]
    rated = list(zip(ratios, found, strict=True))
    alike = [(ratio, one) for ratio, one in rated if ratio <= _EQUAL_WITHIN * min(ratios)] or rated
    return min(alike, key=lambda pair: (len(pair[1].at_bounds), pair[0]))[1]


def _fit_phase(report: Report, horizon_s: float) -> Report:
    return phase(report, f"fit over {horizon_s:g} s")


def _believed(
    problem: LeastSquares, begun: Fit, *, check: bool, seed: int, report: Report
) -> _Believed:
    """The fit of all logs, its posterior and identifiability."""
    # What the data cannot determine, such as the scale of all forces, is left to the prior.
    fitting = phase(report, "fit of all logs")
    result = fit(problem, begin=begun.x, prior=discrepancy_of(begun), report=fitting)
    posterior = posterior_of(result, check=check, seed=seed, report=phase(report, "posterior"))
    return result, posterior, from_information(problem.names, result.information())


def _ids(logs: Sequence[ControlLog]) -> tuple[str, ...]:
    """Episodes of some logs, each once."""
    return tuple(sorted({log.episode for log in logs if log.episode}))
