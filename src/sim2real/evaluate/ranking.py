"""Does simulation rank policies as reality does?

Success in simulation need not be success in reality: what counts for choosing a policy is their
order, and how much is lost where the order is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import stats

from sim2real.errors import Sim2RealError

_RESAMPLES = 2_000
_PERMUTATIONS = 5_000
_ENOUGH = 5
"""Policies from which on resampling them says something."""
MEASURES = ("pearson", "spearman", "kendall", "mmrv")


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A policy's success, or score, in simulation and in reality."""

    policy: str
    sim: float
    real: float
    """Mean over its real trials."""
    group: str = ""
    """Task, robot or edition: only policies of one group are compared."""
    real_trials: tuple[float, ...] = ()
    """Each real trial's score, where they are known."""
    n_real: int = 0
    """Number of real trials behind a success rate; 0 where it is not known."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One number with its bootstrap interval; None where too little is known for one."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """How simulation's order of policies compares to reality's."""

    group: str
    """'' for all groups together: then policies are compared within their groups."""
    policies: int
    measures: dict[str, Measure]
    """Pearson, Spearman, Kendall (tau-b) and the mean maximum rank violation."""
    over: str
    """What the intervals are over: 'policies', 'trials' of these policies, or '' for none."""
    right: int
    """Pairs of policies that differ in both, in the same order."""
    wrong: int
    """And in the opposite order."""
    p_value: float
    """Chance of so good an order, pairs weighted by how far they are apart in reality, if
    simulation said nothing: permutation test, one-sided."""
    loss: float
    """Real score given away by taking simulation's best policies instead of reality's, the mean
    over groups."""
    pooled_pearson: float | None = None
    """Pearson over all groups as if they were one; for scores of one scale only."""

    @property
    def verdict(self) -> str:
        """In plain words."""
        tau, r = self.measures["kendall"].value, self.measures["pearson"].value
        which = f"{self.right} of {self.right + self.wrong} pairs in the right order"
        if self.right + self.wrong == 0:
            return "nothing to rank: no two policies differ in both"
        if tau <= 0 or r <= 0:
            return f"simulation does not rank these policies ({which})"
        if self.p_value <= 0.05:
            return f"simulation ranks these policies ({which}, p {self.p_value:.2g})"
        return f"not shown that simulation ranks these policies ({which}, p {self.p_value:.2g})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "verdict": self.verdict}


def rank(scored: Sequence[Scored], *, confidence: float = 0.95, seed: int = 0) -> list[Ranking]:
    """A ranking for each group of two policies or more; of several, all together come first."""
    groups: dict[str, list[Scored]] = {}
    for entry in scored:
        groups.setdefault(entry.group, []).append(entry)
    compared = {name: rows for name, rows in groups.items() if len(rows) > 1}
    if not compared:
        raise Sim2RealError("a ranking needs at least two policies of one group")
    found = [_rank(rows, name, confidence, seed) for name, rows in compared.items()]
    if len(found) > 1:
        rows = [row for rows in compared.values() for row in rows]
        found.insert(0, _rank(rows, "", confidence, seed))
    return found


def mmrv(sim: np.ndarray, real: np.ndarray, alike: np.ndarray | None = None) -> np.ndarray:
    """(...) mean maximum rank violation of scores (..., policies).

    A policy's violation by another is how far they are apart in reality if simulation has them
    in another order; the worst of each policy is averaged. `alike` (policies, policies) says which
    may be compared.
    """
    found: np.ndarray = _worst_violations(sim, real, alike).mean(axis=-1)
    return found


def _worst_violations(sim: np.ndarray, real: np.ndarray, alike: np.ndarray | None) -> np.ndarray:
    behind_sim = sim[..., :, None] < sim[..., None, :]
    behind_real = real[..., :, None] < real[..., None, :]
    violation = np.abs(real[..., :, None] - real[..., None, :]) * (behind_sim != behind_real)
    if alike is not None:
        violation = violation * alike
    worst: np.ndarray = violation.max(axis=-1)
    return worst


def _measures(sim: np.ndarray, real: np.ndarray, groups: np.ndarray) -> dict[str, np.ndarray]:
    """Each measure of scores (..., policies), within groups; nan where one does not exist."""
    alike = groups[:, None] == groups[None, :]
    member = alike / alike.sum(axis=1)
    ranks = [np.empty_like(sim), np.empty_like(real)]
    for group in np.unique(groups):
        inside = groups == group
        for rank_, values in zip(ranks, (sim, real), strict=True):
            rank_[..., inside] = stats.rankdata(values[..., inside], axis=-1)
    signs = [np.sign(values[..., :, None] - values[..., None, :]) * alike for values in (sim, real)]
    return {
        "pearson": _correlation(sim - sim @ member, real - real @ member),
        "spearman": _correlation(ranks[0] - ranks[0] @ member, ranks[1] - ranks[1] @ member),
        "kendall": _correlation(*(sign.reshape(*sim.shape[:-1], -1) for sign in signs)),
        "mmrv": mmrv(sim, real, alike),
    }


def _correlation(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(...) correlation of centred values (..., n); nan where one of them does not vary."""
    scale = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    none = scale < 1e-12
    found: np.ndarray = (x * y).sum(axis=-1) / np.where(none, np.nan, scale)
    return found


def _rank(rows: Sequence[Scored], name: str, confidence: float, seed: int) -> Ranking:
    sim, real = np.array([r.sim for r in rows]), np.array([r.real for r in rows])
    names = [row.group for row in rows]
    _, groups = np.unique(names, return_inverse=True)
    values = _measures(sim, real, groups)
    rng = np.random.default_rng(seed)
    drawn, over = _resampled(rows, sim, real, groups, rng)
    signs = np.sign(sim[:, None] - sim[None, :]) * np.sign(real[:, None] - real[None, :])
    signs = np.triu(signs * (groups[:, None] == groups[None, :]))
    chosen = [
        float(real[groups == g].max() - real[groups == g][sim[groups == g].argmax()])
        for g in np.unique(groups)
    ]
    several = len(set(names)) > 1
    return Ranking(
        group=name,
        policies=len(rows),
        measures={
            key: _measure(float(values[key]), drawn.get(key), confidence) for key in MEASURES
        },
        over=over,
        right=int((signs > 0).sum()),
        wrong=int((signs < 0).sum()),
        p_value=_by_chance(sim, real, groups, rng),
        loss=float(np.mean(chosen)),
        pooled_pearson=float(stats.pearsonr(sim, real).statistic) if several else None,
    )


def _measure(value: float, drawn: np.ndarray | None, confidence: float) -> Measure:
    value = 0.0 if math.isnan(value) else value  # what does not vary ranks nothing
    kept = np.empty(0) if drawn is None else drawn[np.isfinite(drawn)]
    if len(kept) < _RESAMPLES / 2:
        return Measure(value=value)
    low, high = np.quantile(kept, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return Measure(value=value, low=float(low), high=float(high))


def _resampled(
    rows: Sequence[Scored],
    sim: np.ndarray,
    real: np.ndarray,
    groups: np.ndarray,
    rng: np.random.Generator,
) -> tuple[dict[str, np.ndarray], str]:
    """Measures over resampled policies, which hold the scatter of their trials too; for a few
    policies only that of the trials, where it is known."""
    if len(rows) >= _ENOUGH:
        picks = np.empty((_RESAMPLES, len(rows)), dtype=int)
        for group in np.unique(groups):
            inside = np.flatnonzero(groups == group)
            picks[:, inside] = rng.choice(inside, size=(_RESAMPLES, len(inside)))
        drawn = _measures(sim[picks], real[picks], groups)
        # A policy that is not drawn can still be another's worst: else violations seem smaller.
        worst = _worst_violations(sim, real, groups[:, None] == groups[None, :])
        return {**drawn, "mmrv": worst[picks].mean(axis=1)}, "policies"
    if all(len(row.real_trials) > 1 or row.n_real for row in rows):
        again = np.stack([_retried(row, rng) for row in rows], axis=1)
        return _measures(np.broadcast_to(sim, again.shape).copy(), again, groups), "trials"
    return {}, ""


def _retried(row: Scored, rng: np.random.Generator) -> np.ndarray:
    """(resamples,) real scores that as many trials might have given."""
    if len(row.real_trials) > 1:
        size = (_RESAMPLES, len(row.real_trials))
        found: np.ndarray = rng.choice(np.array(row.real_trials), size=size).mean(axis=1)
        return found
    chance = (row.real * row.n_real + 0.5) / (row.n_real + 1)  # no rate is known to be 0 or 1
    return rng.binomial(row.n_real, chance, size=_RESAMPLES) / row.n_real


def _by_chance(
    sim: np.ndarray, real: np.ndarray, groups: np.ndarray, rng: np.random.Generator
) -> float:
    """Chance that shuffling reality within groups gives an order at least as good.

    A pair counts by how far it is apart in reality: mistaking equals for each other is harmless.
    """
    shuffled = np.broadcast_to(real, (_PERMUTATIONS, len(real))).copy()
    for group in np.unique(groups):
        inside = np.flatnonzero(groups == group)
        shuffled[:, inside] = rng.permuted(shuffled[:, inside], axis=1)
    ahead = np.sign(sim[:, None] - sim[None, :]) * (groups[:, None] == groups[None, :])
    # The sum over pairs of sign(sim_i - sim_j) (real_i - real_j), as one product.
    lead = ahead.sum(axis=1)
    as_good = shuffled @ lead >= real @ lead - 1e-9
    return float((as_good.sum() + 1) / (_PERMUTATIONS + 1))
