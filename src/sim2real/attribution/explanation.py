"""Why trials of a policy on its robot failed, found by comparison with simulated trials.

Failed trials are grouped into kinds by how they went. For each kind: did training contain anything
like it, and which parameter values make the twin fail in the same way? Both answers may be
"unknown": a trial counts as similar to others only if it lies as near to them as they lie to each
other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ks_2samp

from sim2real.arrays import Floats, Ints
from sim2real.attribution.advice import advise
from sim2real.attribution.attempt_behaviour import (
    Behaviours,
    distances,
    kinds,
    nearest_distance,
    scale_of,
)
from sim2real.attribution.complaints import Attempt, complaints
from sim2real.attribution.failures import (
    ExplainingValue,
    Explanation,
    FailureKind,
    Failures,
)
from sim2real.attribution.thresholds import FAILURE_THRESHOLDS, FailureThresholds
from sim2real.contract import Contract
from sim2real.data import Episode, Logs, select
from sim2real.errors import Sim2RealError
from sim2real.evaluation import PolicySource, SimulatedTrials, open_policy, run_trials
from sim2real.logs import ControlLog
from sim2real.policy import open_twin
from sim2real.randomize import drawn
from sim2real.twin import Twin, twin_contract

_NEAREST_SHARE = 0.05
"""Share of the simulated trials that count as most similar to a failure."""
_MIN_NEAREST = 20
"""Least number of those trials."""
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?")
"""What differs between two stops for one reason."""
_MIN_TRIALS = 8
"""Fewest simulated trials to judge similarity by."""
_VALUE_QUANTILES = (0.05, 0.5, 0.95)
"""Quantiles of the parameter values that explain a failure."""


def explain_failures(
    policy: PolicySource,
    logs: Logs,
    *,
    identified: Twin | Path | str | None = None,
    worlds: int = 512,
    thresholds: FailureThresholds = FAILURE_THRESHOLDS,
    seed: int = 0,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Explanation:
    """Say why trials of a policy failed, by kind of failure, and what reproduces them in the twin.

    The logs state how each trial ended. They are compared with `worlds` simulated trials in the
    worlds of training, and with as many over all values that the prior allows or that were
    `identified`.
    """
    if worlds < 1 or seed < 0:
        raise Sim2RealError("--worlds must be at least 1, and --seed must not be negative")
    opened = open_policy(policy)
    task, twin = opened.task, opened.twin
    chosen = select(logs, twin=twin.name)
    judged = [episode for episode in chosen if chosen.verdict(episode) in ("success", "failure")]
    if not judged:
        raise Sim2RealError(
            "none of these recordings states how its trial ended: record trials with `sim2real"
            " deploy`, or label them with `sim2real data label`"
        )
    contract = twin_contract(twin, task.rate_hz)
    behaviours = Behaviours(twin.compile().model, task.episode_s)
    turning = frozenset(f"{s.name} at the start" for s in contract.sensors if behaviours.turns(s))
    attempts = [
        replace(
            Attempt.of(episode, ControlLog.of(episode, contract, twin.channels), task),
            won=chosen.verdict(episode) == "success",
            turning=turning,
        )
        for episode in judged
    ]
    run = partial(
        run_trials, task, opened.policy, episodes=worlds, seed=seed, twin=twin,
        remainder=opened.remainder, threads=threads,
    )  # fmt: skip
    tried = partial(_tried, run, behaviours, contract)
    trained = tried(source=opened.source, report=lambda k, of: report(k, 2 * of))
    failed = [attempt for attempt in attempts if not attempt.won]
    explained: list[FailureKind] = []
    if failed:
        known = None if identified is None else open_twin(identified)
        rows = allowed_draws(twin, known, worlds, seed)
        allowed = tried(source="prior", rows=rows, report=lambda k, of: report(of + k, 2 * of))
        real = behaviours.of([attempt.log for attempt in failed])
        scale = scale_of(allowed[0])
        between = distances(real, real, scale)
        explained = [
            explained_kind(
                [failed[k] for k in group], real[group], between[np.ix_(group, group)], behaviours,
                trained, allowed, scale, twin, thresholds,
            )
            for group in _groups(failed, between)
        ]  # fmt: skip
    success = trained[1].success
    failures = Failures(
        tried=len(attempts),
        failed=len(failed),
        kinds=tuple(explained),
        diagnoses=complaints(
            attempts, simulated=(int(success.sum()), len(success)), thresholds=thresholds
        ),
    )
    advice = tuple(advise(twin, failures=failures))
    return Explanation(failures=failures, advice=advice, notes=opened.notes)


def allowed_draws(twin: Twin, identified: Twin | None, count: int, seed: int) -> Floats:
    """(count, parameters) uniform draws over the range of all priors and of what was identified."""
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


def _groups(failed: Sequence[Attempt], between: Floats) -> list[Ints]:
    """Failures of one kind, the largest first: those stopped for one reason, the others by how they
    went."""
    reasons = [_NUMBER.sub("#", attempt.stopped) for attempt in failed]
    found: list[Ints] = []
    for reason in dict.fromkeys(reasons):
        mine = np.flatnonzero([other == reason for other in reasons])
        apart = [np.arange(len(mine))] if reason else kinds(between[np.ix_(mine, mine)])
        found += [mine[group] for group in apart]
    return sorted(found, key=len, reverse=True)


def _tried(
    run: Callable[..., SimulatedTrials], behaviours: Behaviours, contract: Contract, **options: Any
) -> tuple[Floats, SimulatedTrials]:
    """Simulated trials of the policy, and their behaviour (trials, windows, numbers)."""
    kept: list[Floats] = []

    def keep(episodes: list[Episode]) -> None:
        kept.append(behaviours.of([ControlLog.of(e, contract) for e in episodes]))

    trials = run(keep=keep, **options)
    return np.concatenate(kept), trials


def explained_kind(
    failed: Sequence[Attempt],
    real: Floats,
    between: Floats,
    behaviours: Behaviours,
    training: tuple[Floats, SimulatedTrials],
    allowed: tuple[Floats, SimulatedTrials],
    scale: Floats,
    twin: Twin,
    thresholds: FailureThresholds = FAILURE_THRESHOLDS,
) -> FailureKind:
    """One kind of failure against simulated trials in training and over all allowed values."""
    typical = int(np.argmin(between.sum(axis=1)))
    order = [typical, *(k for k in range(len(failed)) if k != typical)]
    to_trained = distances(real, training[0], scale)
    to_allowed = distances(real, allowed[0], scale)
    lost = ~allowed[1].success
    alike = np.argsort(to_trained.mean(axis=0))[:_MIN_NEAREST]
    return FailureKind(
        episodes=tuple(failed[k].log.episode for k in order),
        phases=behaviours.phases(failed[typical].log),
        in_training=_as_isolated(to_trained, training[0], scale),
        failed_alike=float(1.0 - training[1].success[alike].mean()),
        reproduced=_as_isolated(to_allowed[:, lost], allowed[0][lost], scale),
        values=_values(to_allowed, allowed[1], twin, thresholds.value_level),
        stopped=failed[typical].stopped,
    )


def _as_isolated(between: Floats, simulated: Floats, scale: Floats) -> float:
    """Share of simulated trials at least as far from their nearest as the median failure is."""
    if len(simulated) < _MIN_TRIALS:
        return 0.0  # too few to compare with
    among = nearest_distance(distances(simulated, simulated, scale), itself=True)
    mine = float(np.median(nearest_distance(between)))
    return float((1 + (among >= mine).sum()) / (1 + len(among)))


def _values(
    between: Floats, trials: SimulatedTrials, twin: Twin, level: float
) -> tuple[ExplainingValue, ...]:
    """Parameters whose values differ between the trials most similar to the failures and others."""
    failures = np.flatnonzero(~trials.success)
    if len(failures) < _MIN_TRIALS:
        return ()
    count = max(_MIN_NEAREST, round(_NEAREST_SHARE * len(trials.success)))
    count = min(count, max(_MIN_TRIALS, len(failures) // 2))
    order = failures[np.argsort(between[:, failures].mean(axis=0))]
    known = twin.best_guess()
    chosen = np.zeros(len(trials.success), dtype=bool)
    chosen[order[:count]] = True
    moving = [k for k in range(len(trials.names)) if np.ptp(trials.values[:, k]) > 0]
    found = []
    for k in moving:
        like, other = trials.values[chosen, k], trials.values[~chosen, k]
        p_value = min(1.0, float(ks_2samp(like, other).pvalue) * len(moving))
        if p_value < level:
            parameter = twin.parameters[k]
            low, middle, high = np.quantile(like, _VALUE_QUANTILES)
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
