"""How often a policy succeeds, and at which parameter values it fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats

from sim2real.arrays import Bools, Floats
from sim2real.data import Lake
from sim2real.errors import Sim2RealError
from sim2real.evaluation.evaluation import Evaluation, ParameterEffect, SimulatedTrials
from sim2real.evaluation.opened import OpenedPolicy, PolicySource, open_policy
from sim2real.evaluation.parts import Elsewhere
from sim2real.evaluation.simulated_trials import run_trials
from sim2real.intervals import check_confidence, clustered, holm, wilson
from sim2real.policy import open_twin
from sim2real.twin import Twin
from sim2real.worlds import Engine

_SEEDS = 2**62
"""Largest seed plus one: runs with more trials use the next seeds too, which must fit 64 bits."""
_BINS = 5
"""Bins along a parameter."""


def evaluate(
    policy: PolicySource,
    *,
    twin: Twin | Path | str | None = None,
    episodes: int = 500,
    each: int = 1,
    params: str | None = None,
    remainder: bool = False,
    seed: int = 1_000_000,
    confidence: float = 0.95,
    lake: Lake | Path | str | None = None,
    threads: int = 0,
    engine: Engine | str = "cpu",
    executor: str = "",
    workers: int = 0,
    store: str = "",
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Evaluation:
    """Try a policy in randomised worlds it has never seen: how often it succeeds, and where not.

    The worlds are of the twin it was trained for, or of another `twin`, with parameters from
    `params`; `each` consecutive episodes share them. `seed` differs from training's. Every episode
    is also kept in `lake`, if there is one. With an `executor`, a bundle is tried in parts of about
    a thousand episodes side by side, and what comes out is the same.
    """
    if episodes < 1:
        raise Sim2RealError(f"--episodes must be at least 1, got {episodes}")
    if not 0 <= seed < _SEEDS:
        raise Sim2RealError(f"--seed must be from 0 to {_SEEDS - 1}, got {seed}")
    if threads < 0:
        raise Sim2RealError(f"--threads must not be negative, got {threads}")
    if engine != "cpu" and (executor or store):
        raise Sim2RealError(f"--executor runs on the engine 'cpu', not {engine!r}")
    if lake is not None and (executor or store):
        raise Sim2RealError("--lake keeps episodes of one process; leave --executor out")
    check_confidence(confidence)
    opened = open_policy(policy, params=params, remainder=remainder)
    notes = () if params else opened.notes
    if lake is not None and not isinstance(lake, Lake):
        lake = Lake.create(lake)
    if executor or store:
        where = Elsewhere(executor=executor or "local", workers=workers, store=store)
        trials = where.trials(
            opened, episodes=episodes, seed=seed, each=each,
            twin=opened.twin if twin is None else open_twin(twin), report=report,
        )  # fmt: skip
        return _found(trials, opened, confidence, notes)
    trials = run_trials(
        opened.task,
        opened.policy,
        episodes=episodes,
        seed=seed,
        source=opened.source,
        twin=opened.twin if twin is None else open_twin(twin),
        threads=threads,
        engine=engine,
        remainder=opened.remainder,
        keep=None if lake is None else lake.append,
        policy_id=opened.id,
        each=each,
        report=report,
    )
    return _found(trials, opened, confidence, notes)


def _found(
    trials: SimulatedTrials, opened: OpenedPolicy, confidence: float, notes: tuple[str, ...]
) -> Evaluation:
    found = summarise(trials, source=opened.source, confidence=confidence)
    return replace(found, policy=opened.id, folder=opened.records / "evaluate", notes=notes)


def summarise(trials: SimulatedTrials, *, source: str, confidence: float = 0.95) -> Evaluation:
    """Rates and tests from trials.

    Trials that share a draw are not independent: the interval takes that into account, and the
    tests use only the first trial of each draw.
    """
    check_confidence(confidence)
    draw = np.arange(len(trials.success)) // trials.each
    effects = []
    first = trials.success[:: trials.each]
    for column, name in enumerate(trials.names):
        values = trials.values[:: trials.each, column]
        if np.ptp(values) > 0 and len(first) >= 2 * _BINS:
            effects.append(_effect(name, values, first, confidence))
    corrected = holm([effect.p_value for effect in effects])
    effects = [replace(one, p_value=p) for one, p in zip(effects, corrected, strict=True)]
    return Evaluation(
        trials=trials,
        source=source,
        success=clustered(
            np.bincount(draw, trials.success), np.bincount(draw), confidence=confidence
        ),
        effects=tuple(sorted(effects, key=lambda effect: effect.p_value)),
    )


def _effect(name: str, values: Floats, success: Bools, confidence: float) -> ParameterEffect:
    distinct = np.unique(values)
    if len(distinct) <= _BINS:  # a choice: one bin a value
        edges = np.append(distinct, distinct[-1])
        which = np.searchsorted(distinct, values)
    else:
        edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)))
        which = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
        # With equal values a bin may stay empty: the one below takes its range.
        filled, which = np.unique(which, return_inverse=True)
        edges = np.append(edges[filled], edges[-1])
    rates = [
        wilson(int(success[which == k].sum()), int((which == k).sum()), confidence=confidence)
        for k in range(len(edges) - 1)
    ]
    failed, won = values[~success], values[success]
    p_value = 1.0
    if len(failed) and len(won):
        p_value = float(stats.mannwhitneyu(failed, won).pvalue)
    return ParameterEffect(name, tuple(float(e) for e in edges), tuple(rates), p_value)
