"""How often a policy succeeds, and at which parameter values it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from sim2real.arrays import Bools, Floats
from sim2real.data import Lake
from sim2real.errors import Sim2RealError
from sim2real.evaluation.opened import PolicySource, open_policy
from sim2real.evaluation.simulated_trials import SimulatedTrials, run_trials
from sim2real.evaluation.trial_files import save_worlds
from sim2real.files import write_json
from sim2real.intervals import Rate, check_confidence, clustered, wilson
from sim2real.plain import PlainData
from sim2real.policy import open_twin
from sim2real.twin import Twin

_SEEDS = 2**62
"""Seeds, a few in a row, that files of trials can hold."""
_BINS = 5


@dataclass(frozen=True)
class ParameterEffect(PlainData):
    """Success along one parameter's range."""

    name: str
    edges: tuple[float, ...]
    """Borders of the bins: fifths of the trials, or the values of a choice."""
    rates: tuple[Rate, ...]
    """Success in each bin."""
    p_value: float
    """Chance of so uneven a split between failed and successful draws if it did not matter
    (two-sided Mann-Whitney, Holm-corrected over the parameters)."""


@dataclass(frozen=True)
class Evaluation:
    """A policy's success with what it depends on."""

    trials: SimulatedTrials
    source: str
    success: Rate
    effects: tuple[ParameterEffect, ...]
    """One for each parameter that varied, the most telling first."""
    policy: str = ""
    """Id of the policy."""

    def save(self, folder: Path | str) -> None:
        """Write `evaluation.json`, and every trial with its draw to `trials.npz`, into a folder."""
        write_json(Path(folder) / "evaluation.json", self.to_dict())
        save_worlds(Path(folder) / "trials.npz", self.trials, policy=self.policy)

    def to_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {
            "task": self.trials.task,
            "twin": self.trials.twin,
            "seed": self.trials.seed,
            "source": self.source,
            "success": self.success.to_dict(),
            "diverged": int(self.trials.diverged.sum()),
            "mean_reward": float(self.trials.reward.mean()),
            "parameters": [effect.to_dict() for effect in self.effects],
        }


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
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Evaluation:
    """Try a policy in randomised worlds it has never seen: how often it succeeds, and where not.

    The worlds are those it was trained for, or of another `twin`, with parameters from `params`;
    `each` episodes in a row share them. `seed` is unlike those of training. Every episode is also
    kept in `lake`, if one is named.
    """
    if episodes < 1:
        raise Sim2RealError(f"--episodes must be at least 1, got {episodes}")
    if not 0 <= seed < _SEEDS:
        raise Sim2RealError(f"a seed of {seed} is none: it is from 0 to {_SEEDS - 1}")
    if threads < 0:
        raise Sim2RealError("--threads is not negative")
    check_confidence(confidence)
    opened = open_policy(policy, params=params, remainder=remainder)
    if lake is not None and not isinstance(lake, Lake):
        lake = Lake.create(lake)
    trials = run_trials(
        opened.task,
        opened.policy,
        episodes=episodes,
        seed=seed,
        source=opened.source,
        twin=opened.twin if twin is None else open_twin(twin),
        threads=threads,
        remainder=opened.remainder,
        keep=None if lake is None else lake.append,
        policy_id=opened.id,
        each=each,
        report=report,
    )
    return summarise(trials, source=opened.source, confidence=confidence, policy=opened.id)


def summarise(
    trials: SimulatedTrials, *, source: str, confidence: float = 0.95, policy: str = ""
) -> Evaluation:
    """Rates and tests from trials.

    Trials that share a draw are not independent: the interval knows, and of each draw only the
    first trial tells what success depends on.
    """
    check_confidence(confidence)
    n = len(trials.success)
    draw = np.arange(n) // trials.each
    effects = []
    first = trials.success[:: trials.each]
    for column, name in enumerate(trials.names):
        values = trials.values[:: trials.each, column]
        if np.ptp(values) > 0 and len(first) >= 2 * _BINS:
            effects.append(_effect(name, values, first, confidence))
    effects = _holm(effects)
    return Evaluation(
        trials=trials,
        source=source,
        success=clustered(
            np.bincount(draw, trials.success), np.bincount(draw), confidence=confidence
        )
        if trials.each > 1
        else wilson(int(trials.success.sum()), n, confidence=confidence),
        effects=tuple(sorted(effects, key=lambda effect: effect.p_value)),
        policy=policy,
    )


def _effect(name: str, values: Floats, success: Bools, confidence: float) -> ParameterEffect:
    distinct = np.unique(values)
    if len(distinct) <= _BINS:  # a choice: one bin a value
        edges = np.append(distinct, distinct[-1])
        which = np.searchsorted(distinct, values)
    else:
        edges = np.unique(np.quantile(values, np.linspace(0, 1, _BINS + 1)))
        which = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
        # Among equal values a bin may stay empty: the one below it takes its range.
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


def _holm(effects: list[ParameterEffect]) -> list[ParameterEffect]:
    """Holm's correction: among many parameters, some look telling by chance."""
    order = sorted(range(len(effects)), key=lambda k: effects[k].p_value)
    corrected = list(effects)
    largest = 0.0
    for rank, k in enumerate(order):
        effect = effects[k]
        largest = max(largest, min(1.0, effect.p_value * (len(effects) - rank)))
        corrected[k] = ParameterEffect(effect.name, effect.edges, effect.rates, largest)
    return corrected
