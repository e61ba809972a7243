"""Does simulation rank policies as reality does?

Success rates in simulation may be wrong: to choose a policy, only their order matters, and how much
is lost where the order is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from sim2real.arrays import Bools, Floats, Ints
from sim2real.errors import Sim2RealError
from sim2real.intervals import check_confidence
from sim2real.plain import PlainData

RESAMPLES = 2_000
PERMUTATIONS = 5_000
_MIN_POLICIES = 5
"""Fewest policies to resample."""
_MIN_GROUPS = 3
"""Fewest groups for a jackknife over groups; with fewer it is over their policies."""
_DIGITS = 9
"""Significant digits of a score within its group's range; the rest is rounding."""
_MAX_SCORE = 1e100
"""Largest score, so that squares stay finite."""
AT_ONCE = 4_000_000
"""Pairs of policies, times resamples, per batch: a limit on memory."""
MEASURES = ("pearson", "spearman", "kendall", "mmrv")


@dataclass(frozen=True, kw_only=True)
class RankThresholds:
    """When simulation counts as ranking policies as reality does."""

    level: float = 0.05
    """Significance level."""
    useful_tau: float = 1 / 3
    """Least Kendall's tau for choosing by simulation: two thirds of the pairs in order."""


RANK_THRESHOLDS = RankThresholds()


@dataclass(frozen=True, kw_only=True)
class ScoredPolicy:
    """A policy's success, or score, in simulation and in reality."""

    policy: str
    sim: float
    real: float
    """Mean over its real trials."""
    group: str = ""
    """Task, robot or edition: only policies of one group are compared."""
    real_trials: tuple[float, ...] = ()
    """Each real trial's score, if they are known."""
    n_real: int = 0
    """Number of real trials behind a success rate; 0 if unknown."""


@dataclass(frozen=True, kw_only=True)
class RankMeasure:
    """One number with its interval."""

    value: float | None
    """None if it does not exist, as a correlation without variation."""
    low: float | None = None
    high: float | None = None
    """None if there is too little data for an interval."""

    @property
    def shown(self) -> str:
        """The value as text."""
        return "none" if self.value is None else f"{self.value:.3f}"

    def __str__(self) -> str:
        ends = "" if self.low is None else f" [{self.low:.2f}, {self.high:.2f}]"
        return self.shown + ends


@dataclass(frozen=True, kw_only=True)
class Ranking(PlainData, also=("verdict",), without=("thresholds",)):
    """How simulation's order of policies compares with reality's."""

    group: str
    """'' for all groups together: policies are still compared within their groups, and scores are
    scaled from 0, the worst of the group, to 1, the best."""
    policies: int
    measures: dict[str, RankMeasure]
    """Pearson, Spearman, Kendall (tau-b) and the mean maximum rank violation."""
    over: str
    """What the intervals are over: 'policies', 'trials' of these policies, or '' for none."""
    right: int
    """Pairs of policies that differ in both, in the same order."""
    wrong: int
    """And in the opposite order."""
    untold: int
    """Pairs that differ in reality but not in simulation."""
    tau_most: float | None
    """Upper bound of Kendall's tau: every pair counts as right that its trials do not show to be
    wrong; without known trials, the upper end over policies; None with neither."""
    p_value: float
    """Probability of an order this good, pairs weighted by their difference in reality, if
    simulation carried no information: permutation test, one-sided."""
    loss: float
    """Real score lost by choosing simulation's best policies instead of reality's: the mean over
    groups, and over policies that simulation rates equal."""
    pooled_pearson: float | None = None
    """Pearson over all groups as if they were one; only meaningful for scores of one scale."""
    thresholds: RankThresholds = RANK_THRESHOLDS

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        pairs, kendall = self.right + self.wrong, self.measures["kendall"]
        which = f"{self.right} of {pairs} pairs in the right order"
        chance = f"{which}, p {self.p_value:.2g}"
        if pairs == 0 and self.untold:
            return "simulation cannot tell these policies apart"
        if pairs == 0 or kendall.value is None:
            return "nothing to rank: these policies do equally well in reality"
        if self.tau_most is not None and self.tau_most < 0:
            return f"simulation does not rank these policies, it misleads ({which})"
        if self.p_value <= self.thresholds.level:
            surely = kendall.low is None or kendall.low > 0
            if surely and kendall.value >= self.thresholds.useful_tau:
                return f"simulation ranks these policies ({chance})"
            return (
                "simulation says something about the order of these policies, but not enough to"
                f" choose by ({chance})"
            )
        if self.tau_most is not None and self.tau_most < self.thresholds.useful_tau:
            return f"simulation does not rank these policies ({which})"
        return f"it is not shown that simulation ranks these policies ({chance})"


def rank(
    scored: Sequence[ScoredPolicy],
    *,
    confidence: float = 0.95,
    thresholds: RankThresholds = RANK_THRESHOLDS,
    seed: int = 0,
) -> list[Ranking]:
    """A ranking for each group of two or more policies; with several, all together come first.

    See `unranked` for the others.
    """
    check_confidence(confidence)
    if seed < 0:
        raise Sim2RealError(f"--seed must not be negative, got {seed}")
    for row in scored:
        if not max(abs(row.sim), abs(row.real)) < _MAX_SCORE:
            raise Sim2RealError(
                f"policy {row.policy!r} scores {row.sim:g} in simulation and {row.real:g} in"
                " reality: scores must be finite numbers"
            )
    compared = {name: rows for name, rows in _by_group(scored).items() if len(rows) > 1}
    if not compared:
        raise Sim2RealError("a ranking needs at least two policies of one group")
    found = [_rank(rows, name, confidence, seed) for name, rows in compared.items()]
    if len(found) > 1:
        rows = [row for rows in compared.values() for row in rows]
        found.insert(0, _rank(rows, "", confidence, seed))
    return [replace(one, thresholds=thresholds) for one in found]


def unranked(scored: Sequence[ScoredPolicy]) -> list[str]:
    """What `rank` leaves out, and why: groups of one policy."""
    return [
        f"{name} {rows[0].policy}: the only policy of its group".strip()
        for name, rows in _by_group(scored).items()
        if len(rows) == 1
    ]


def mmrv(sim: Floats, real: Floats, alike: Bools | None = None) -> Floats:
    """(...) mean maximum rank violation of scores (..., policies).

    Two policies that simulation puts in the wrong order violate by their difference in reality; the
    largest violation of each policy is averaged. `alike` (policies, policies) says which may be
    compared.
    """
    behind_sim = sim[..., :, None] < sim[..., None, :]
    behind_real = real[..., :, None] < real[..., None, :]
    violation = np.abs(real[..., :, None] - real[..., None, :]) * (behind_sim != behind_real)
    if alike is not None:
        violation = violation * alike
    return np.asarray(violation.max(axis=-1).mean(axis=-1))


def _by_group(scored: Sequence[ScoredPolicy]) -> dict[str, list[ScoredPolicy]]:
    groups: dict[str, list[ScoredPolicy]] = {}
    for entry in scored:
        groups.setdefault(entry.group, []).append(entry)
    return groups


def _scaled(scores: Floats, like: Floats, groups: Ints) -> Floats:
    """(..., policies) scores from 0, the worst of each policy's group in `like` (policies,), to 1,
    the best; 0 where all are equal. Rounding errors are removed."""
    found = np.empty_like(scores)
    for group in np.unique(groups):
        inside = groups == group
        low, high = like[inside].min(), like[inside].max()
        apart = high - low > 10.0**-_DIGITS * max(abs(low), abs(high))
        found[..., inside] = (scores[..., inside] - low) / (high - low if apart else np.inf)
    return np.round(found, _DIGITS)


def _measures(sim: Floats, real: Floats, groups: Ints) -> dict[str, Floats]:
    """Each measure of scaled scores (..., policies), within groups; nan where it does not exist."""
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


def _many_measures(sim: Floats, real: Floats, groups: Ints) -> dict[str, Floats]:
    """Each measure of scores (resamples, policies), in batches that fit into memory."""
    parts = math.ceil(sim.size * sim.shape[1] / AT_ONCE)
    split = zip(np.array_split(sim, parts), np.array_split(real, parts), strict=True)
    found = [_measures(*both, groups) for both in split]
    return {name: np.concatenate([part[name] for part in found]) for name in MEASURES}


def _correlation(x: Floats, y: Floats) -> Floats:
    """(...) correlation of centred values (..., n); nan where one of them does not vary."""
    scale = np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1))
    none = scale < 10.0**-_DIGITS  # scores are from 0 to 1 here
    return np.asarray(np.clip((x * y).sum(axis=-1) / np.where(none, np.nan, scale), -1.0, 1.0))


def _rank(rows: Sequence[ScoredPolicy], name: str, confidence: float, seed: int) -> Ranking:
    raw_sim, raw_real = np.array([r.sim for r in rows]), np.array([r.real for r in rows])
    _, groups = np.unique([row.group for row in rows], return_inverse=True)
    sim, real = (_scaled(scores, scores, groups) for scores in (raw_sim, raw_real))
    several = groups.max() > 0
    # A single group's violations and losses are in its own scores.
    unit = 1.0 if several or not real.any() else float(np.ptp(raw_real))
    rng = np.random.default_rng(seed)
    retried = _retried(rows, rng)
    retried = None if retried is None else _scaled(retried, raw_real, groups)
    found = _with_intervals(sim, real, groups, retried, confidence, unit, rng)
    alike = np.triu(groups[:, None] == groups[None, :], 1)
    order = np.sign(sim[:, None] - sim[None, :]) * alike
    signs = order * np.sign(real[:, None] - real[None, :])
    differ = alike & (real[:, None] != real[None, :])
    tau_most = found["kendall"].high
    if retried is not None:
        shown = _shown_wrong(order, retried, confidence).sum()
        tau_most = 1.0 - 2.0 * float(shown) / float(alike.sum())
    return Ranking(
        group=name,
        policies=len(rows),
        measures=found,
        over="policies" if len(rows) >= _MIN_POLICIES else "trials" if retried is not None else "",
        right=int((signs > 0).sum()),
        wrong=int((signs < 0).sum()),
        untold=int((differ & (order == 0)).sum()),
        tau_most=tau_most,
        p_value=_by_chance(sim, real, groups, rng),
        loss=unit * _loss(sim, real, groups),
        pooled_pearson=_pooled(raw_sim, raw_real) if several else None,
    )


def _pooled(sim: Floats, real: Floats) -> float | None:
    one = np.zeros(len(sim), dtype=int)
    sim, real = (_scaled(scores, scores, one) for scores in (sim, real))
    value = float(_measures(sim, real, one)["pearson"])
    return None if math.isnan(value) else value


def _loss(sim: Floats, real: Floats, groups: Ints) -> float:
    """Score lost by choosing simulation's best policies of each group; the mean of equal ones."""
    lost = []
    for group in np.unique(groups):
        mine, shown = real[groups == group], sim[groups == group]
        lost.append(mine.max() - mine[shown == shown.max()].mean())
    return float(np.mean(lost))


def _with_intervals(
    sim: Floats,
    real: Floats,
    groups: Ints,
    retried: Floats | None,
    confidence: float,
    unit: float,
    rng: np.random.Generator,
) -> dict[str, RankMeasure]:
    """Each measure with its interval; violations times `unit`.

    Over policies, whose scatter includes that of their trials; with few policies, over their trials
    if those are known.
    """
    values = _measures(sim, real, groups)
    drawn: dict[str, Floats] = {}
    if len(sim) >= _MIN_POLICIES:
        picks = np.empty((RESAMPLES, len(sim)), dtype=int)
        for group in np.unique(groups):
            inside = np.flatnonzero(groups == group)
            picks[:, inside] = rng.choice(inside, size=(RESAMPLES, len(inside)))
        drawn = _many_measures(sim[picks], real[picks], groups)
    elif retried is not None:
        drawn = _many_measures(np.broadcast_to(sim, retried.shape).copy(), retried, groups)
    found = {key: _measure(float(values[key]), drawn.get(key), confidence) for key in MEASURES}
    low, high = found["mmrv"].low, found["mmrv"].high
    if len(sim) >= _MIN_POLICIES:
        low, high = _violation_interval(sim, real, groups, confidence) or (None, None)
    found["mmrv"] = RankMeasure(
        value=unit * float(values["mmrv"]),
        low=None if low is None else unit * low,
        high=None if high is None else unit * high,
    )
    return found


def _measure(value: float, drawn: Floats | None, confidence: float) -> RankMeasure:
    if math.isnan(value):
        return RankMeasure(value=None)
    if drawn is None:
        return RankMeasure(value=value)
    # A correlation that does not exist in a resample could be anything.
    unknown = np.isnan(drawn)
    low = np.quantile(np.where(unknown, -1.0, drawn), 0.5 - confidence / 2)
    high = np.quantile(np.where(unknown, 1.0, drawn), 0.5 + confidence / 2)
    return RankMeasure(value=value, low=float(low), high=float(high))


def _violation_interval(
    sim: Floats, real: Floats, groups: Ints, confidence: float
) -> tuple[float, float] | None:
    """Interval of the mean maximum rank violation: a jackknife of its root, with Student's t.

    It leaves out one group at a time, or one policy if there are few groups. Resampling would bias
    it: the maximum over fewer distinct policies is smaller. None without any violation, or if a
    group has too few policies to leave one out.
    """

    def root(kept: Ints) -> float:
        alike = groups[kept, None] == groups[None, kept]
        return math.sqrt(float(mmrv(sim[kept], real[kept], alike)))

    everyone = np.arange(len(sim))
    value = root(everyone)
    if value == 0:
        return None
    by_group = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    if len(by_group) >= _MIN_GROUPS:
        strata = [by_group]
    elif min(len(inside) for inside in by_group) > 2:
        strata = [[np.array([one]) for one in inside] for inside in by_group]
    else:
        return None
    variance = 0.0
    for parts in strata:
        without = np.array([root(np.setdiff1d(everyone, part)) for part in parts])
        variance += (len(parts) - 1) * without.var()
    freedom = sum(len(parts) - 1 for parts in strata)
    half = float(stats.t.ppf(0.5 + confidence / 2, freedom)) * math.sqrt(variance)
    most = 1.0 if len(by_group) > 1 else math.inf  # other policies may be farther apart
    return max(value - half, 0.0) ** 2, min((value + half) ** 2, most)


def _retried(rows: Sequence[ScoredPolicy], rng: np.random.Generator) -> Floats | None:
    """(resamples, policies) possible real scores of these policies, by the scatter of their trials;
    None if that is unknown for some."""
    if any(len(row.real_trials) < 2 and not row.n_real for row in rows):
        return None
    return np.stack([_means(row, rng) for row in rows], axis=1)


def _means(row: ScoredPolicy, rng: np.random.Generator) -> Floats:
    """(resamples,) possible real scores of one policy."""
    trials, n = np.array(row.real_trials), row.n_real or len(row.real_trials)
    if np.isin(trials, (0.0, 1.0)).all():
        chance = (row.real * n + 0.5) / (n + 1)  # no rate is certain to be 0 or 1
        return rng.binomial(n, chance, size=RESAMPLES) / n
    error = float(trials.std(ddof=1)) / math.sqrt(n)
    return row.real + error * rng.standard_t(n - 1, size=RESAMPLES)


def _shown_wrong(order: Floats, retried: Floats, confidence: float) -> Bools:
    """(policies, policies) whether the trials show that simulation's order of two is wrong."""
    found = np.zeros(order.shape, dtype=bool)
    for k, mine in enumerate(order):
        wrong = mine * (retried[:, [k]] - retried) < 0
        found[k] = wrong.mean(axis=0) >= 0.5 + confidence / 2
    return found


def _by_chance(sim: Floats, real: Floats, groups: Ints, rng: np.random.Generator) -> float:
    """Probability that shuffling reality within groups gives an order at least as good.

    A pair counts by its difference in reality: mixing up near equals is harmless.
    """
    shuffled = np.broadcast_to(real, (PERMUTATIONS, len(real))).copy()
    for group in np.unique(groups):
        inside = np.flatnonzero(groups == group)
        shuffled[:, inside] = rng.permuted(shuffled[:, inside], axis=1)
    ahead = np.sign(sim[:, None] - sim[None, :]) * (groups[:, None] == groups[None, :])
    # The sum over pairs of sign(sim_i - sim_j) (real_i - real_j), as one product.
    lead = ahead.sum(axis=1)
    as_good = shuffled @ lead >= real @ lead - 1e-9
    return float((as_good.sum() + 1) / (PERMUTATIONS + 1))
