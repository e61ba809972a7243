"""From logs to a new version of a twin: align, fit, find the posterior, check on held-back logs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np

from sim2real.data import ChannelMap, Logs
from sim2real.errors import Sim2RealError
from sim2real.identification.cma_es import CmaSearch
from sim2real.identification.contact_parameters import identify_contact
from sim2real.identification.evidence import before_and_after, calibration, estimates
from sim2real.identification.held_back import HeldBack, split
from sim2real.identification.identifiability import Identifiability, from_information
from sim2real.identification.identification import Identification, IdentificationWork
from sim2real.identification.inputs import another_robot, refuse_poor
from sim2real.identification.learned_remainder import learn_remainder
from sim2real.identification.most_probable import Fit, fit
from sim2real.identification.parameter_scatter import scatter_of
from sim2real.identification.posterior import Posterior, discrepancy_of, posterior_of
from sim2real.identification.thresholds import IDENTIFY_THRESHOLDS, IdentifyThresholds
from sim2real.logs import ControlLog, aligned_logs
from sim2real.phases import Report, phase
from sim2real.policy import open_twin
from sim2real.replay import LeastSquares
from sim2real.twin import Twin

_Believed: TypeAlias = tuple[Fit | CmaSearch, Posterior, Identifiability]
"""A fit of all logs, and what is known from it."""

_EQUAL_WITHIN = 1.1
"""Held-back errors up to this factor above the smallest count as equal."""


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
    assert found.work is not None
    return replace(found, version=new.version, learned=learned, work=replace(found.work, twin=new))


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
    scatter = np.zeros((len(posterior.names),) * 2)
    if isinstance(found, Fit):
        scatter = scatter_of(found) * np.outer(found.problem.scales, found.problem.scales)
    by_name = {log.episode: log for log in [*logs, *held_back]}
    whole = [by_name[name] for name in check.recordings]
    checked, unchecked = calibration(new, whole, draws=thresholds.calibration_draws)
    return Identification(
        name=twin.name,
        version=(twin if why else new).version,
        parent=twin.version,
        promoted=not why,
        why=why,
        estimates=estimates(found, posterior, known, scatter),
        scatter=scatter,
        identifiability=known,
        discrepancy=posterior.discrepancy,
        effective_draws=posterior.effective,
        horizon_s=found.problem.horizon_s,
        segments=found.problem.segments,
        evaluations=found.evaluations,
        check=check,
        replays=before_and_after((twin, new), whole, check.horizon_s),
        calibration=checked,
        unchecked=unchecked,
        notes=tuple(notes),
        work=IdentificationWork(
            twin=twin if why else new,
            fit=found,
            posterior=posterior,
            logs=tuple(logs),
            held_back=tuple(whole),
        ),
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
