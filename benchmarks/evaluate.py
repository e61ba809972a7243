"""`evaluate`: whether the statistics keep what they promise.

Coverage and error rates are counted over invented robots whose truth is known; rankings are
compared with what was published about the same tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy import optimize, special, stats

from benchmarks.benchmark import Options, Result, report, side_by_side
from sim2real.evaluation.comparison import compare
from sim2real.evaluation.paired_outcomes import PairedOutcomes, mcnemar, paired_difference
from sim2real.evaluation.prediction import predict
from sim2real.evaluation.prediction_powered import powered_rate
from sim2real.evaluation.ranking import Ranking, rank
from sim2real.evaluation.ranking_table import ScoreColumns, read_scored
from sim2real.evaluation.sequential import SequentialTest
from sim2real.evaluation.trial import Trial
from sim2real.evaluation.trial_plan import discordant
from sim2real.evaluation.trial_plan import plan_trials as planned_trials
from sim2real.intervals import clopper_pearson, wilson

_SIMPLER = {
    "google_robot_pick_coke_can": (0.031, 0.975),
    "google_robot_move_near": (0.111, 0.856),
    "google_robot_open_drawer": (0.0, 0.983),
    "google_robot_close_drawer": (0.123, 0.771),
    "google_robot_place_apple_in_closed_top_drawer": (0.0, 0.969),
    "widowx_spoon_on_towel": (0.0, 0.827),
    "widowx_carrot_on_plate": (0.111, 0.571),
    "widowx_stack_cube": (0.0, 1.0),
    "widowx_put_eggplant_in_basket": (0.0, 0.989),
}
"""MMRV and Pearson by task, from the tables of SimplerEnv (Li et al., arXiv 2405.05941)."""
_REALAIGYM = {
    "acrobot v2_iros2024": (0.326, -0.586),
    "pendubot v2_iros2024": (0.440, -0.247),
    "acrobot v3_icra2025": (0.281, 0.003),
    "pendubot v3_icra2025": (0.305, -0.062),
}
"""MMRV and Pearson by robot and edition, from the leaderboard of RealAIGym (Wiebe et al., arXiv
2503.15290)."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sizes of the measurement."""

    repetitions: int = 2_000
    """Repetitions that coverage and error rates are counted over."""
    seed: int = 0


_FULL, _QUICK = Plan(), Plan(repetitions=20)
_TABLES = {
    "simpler": ("simpler_table", "simpler_real_vs_sim.json"),
    "realaigym": ("realaigym_scores", "realaigym_paired_scores.csv"),
}
"""Folder and file of each published table."""


def _shards(options: Options) -> tuple[str, ...]:
    return ("counted", *_TABLES)


def _lacking(shard: str, options: Options) -> str:
    if shard not in _TABLES or (options.data and _table(shard, options).is_file()):
        return ""
    return f"{'/'.join(_TABLES[shard])} in the folder that --data names"


def _table(shard: str, options: Options) -> Path:
    folder, file = _TABLES[shard]
    return (options.data or Path()) / folder / "train" / file


def _run(shard: str, options: Options) -> Iterator[Result]:
    if shard == "simpler":
        return simpler(_table(shard, options))
    if shard == "realaigym":
        return realaigym(_table(shard, options))
    return counted(_QUICK if options.quick else _FULL)


def counted(plan: Plan) -> Iterator[Result]:
    """Coverage and error rates over robots whose truth is known."""
    rng = np.random.default_rng(plan.seed)
    report("intervals")
    yield _intervals()
    yield from _powered(plan.repetitions, rng)
    report("paired comparison")
    yield from _paired(plan.repetitions, rng)
    report("sequential test")
    yield from _sequential(plan.repetitions, rng)
    report("comparison by draw")
    yield _by_draw(plan.repetitions, rng)
    report("prediction")
    yield _prediction(plan.repetitions, rng)
    yield _prediction_sure(plan.repetitions, rng)
    yield _prediction_tried(plan.repetitions, rng)


def _intervals() -> Result:
    """Least coverage of Clopper-Pearson, which promises at least 95 % everywhere; exact."""
    least, other = 1.0, 1.0
    for n in (10, 20, 40):
        exact = [clopper_pearson(k, n) for k in range(n + 1)]
        score = [wilson(k, n) for k in range(n + 1)]
        for truth in np.linspace(0.5, 0.98, 97):
            mass = stats.binom.pmf(np.arange(n + 1), n, truth)
            least = min(least, float(mass @ [r.low <= truth <= r.high for r in exact]))
            other = min(other, float(mass @ [r.low <= truth <= r.high for r in score]))
    return Result(
        name="evaluate.clopper_pearson_least",
        value=least,
        unit="share",
        target=">= 0.95",
        note=f"least coverage at rates of 0.5 to 0.98 and 10 to 40 trials; Wilson's is {other:.3f}",
    )


@dataclass(frozen=True, kw_only=True)
class Robot:
    """An invented robot and its simulation: success depends on how hard a condition is."""

    rate: float
    sharpness: float
    """How much conditions decide: near 0 not at all, 20 nearly all."""
    likeness: float
    """Correlation of what is hard in simulation and in reality."""
    bias: float
    """How much easier simulation is, as a logit."""
    rollouts: int
    """Simulated episodes a condition behind a prediction; 0 for very many."""

    def trials(
        self, n: int, many: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Real outcomes (n,), their predictions (n,), and those of other conditions (many,)."""
        level = _level(self.rate, self.sharpness)
        hard = rng.normal(size=n + many)
        other = rng.normal(size=n + many)
        felt = self.likeness * hard + np.sqrt(1 - self.likeness**2) * other
        real = rng.random(n) < special.expit(level + self.sharpness * hard[:n])
        predicted = special.expit(level + self.bias + self.sharpness * felt)
        if self.rollouts:
            predicted = rng.binomial(self.rollouts, predicted) / self.rollouts
        return real, predicted[:n], predicted[n:]


@lru_cache(maxsize=4096)
def _level(rate: float, sharpness: float) -> float:
    """Logit at a condition of middle hardness that makes the mean over conditions `rate`."""
    x = np.linspace(-8.0, 8.0, 4001)
    weight = stats.norm.pdf(x) * (x[1] - x[0])
    found: float = optimize.brentq(
        lambda level: weight @ special.expit(level + sharpness * x) - rate, -100.0, 100.0
    )
    return found


_KINDS = (
    Robot(rate=0.5, sharpness=0.5, likeness=0.5, bias=0.0, rollouts=0),
    Robot(rate=0.5, sharpness=2.0, likeness=0.9, bias=1.0, rollouts=10),
    Robot(rate=0.5, sharpness=5.0, likeness=0.95, bias=-1.0, rollouts=0),
    Robot(rate=0.5, sharpness=5.0, likeness=0.95, bias=1.0, rollouts=1),
    Robot(rate=0.5, sharpness=20.0, likeness=0.98, bias=0.5, rollouts=1),
)
"""Simulations that know little, and ones that know nearly all; each is tried at several rates."""


def _powered(repetitions: int, rng: np.random.Generator) -> Iterator[Result]:
    """Coverage and width of prediction-powered intervals, over robots of every kind."""
    report("prediction-powered intervals")
    rows = []
    for _ in range(repetitions):
        robot = Robot(
            rate=float(rng.uniform(0.5, 0.98)),
            sharpness=float(np.exp(rng.uniform(np.log(0.5), np.log(20.0)))),
            likeness=float(rng.uniform(0.3, 0.99)),
            bias=float(rng.uniform(-1.5, 1.5)),
            rollouts=int(rng.choice([0, 1, 10])),
        )
        rows.append(_once(robot, int(rng.integers(10, 41)), int(rng.integers(1000, 5001)), rng))
    covered, alone, width, width_alone = np.mean(rows, axis=0)
    report("prediction-powered intervals, kind by kind")
    cells, strong = [], []
    for n in (10, 20, 40):
        for rate in (0.5, 0.7, 0.9, 0.98):
            for number, kind in enumerate(_KINDS):
                robot = replace(kind, rate=rate)
                found = np.mean([_once(robot, n, 1000, rng) for _ in range(repetitions)], axis=0)
                cells.append((float(found[0]), float(found[1]), f"{n} trials, rate {rate}"))
                if number == len(_KINDS) - 1:
                    strong.append(float(found[2] / found[3]))
    worst = min(cells)
    note = (
        f"{repetitions} random robots; Wilson's interval of the real trials alone {alone:.3f};"
        f" worst of {len(cells)} fixed kinds {worst[0]:.3f} ({worst[2]}; there Wilson's"
        f" {worst[1]:.3f}, and {min(cell[1] for cell in cells):.3f} at its own worst)"
    )
    for name, target in (("ppi_coverage", ">= 0.935"), ("ppi_coverage_most", "<= 0.965")):
        yield Result(
            name=f"evaluate.{name}", value=float(covered), unit="share", target=target, note=note
        )
    yield Result(
        name="evaluate.ppi_width_ratio",
        value=float(width / width_alone),
        unit="ratio",
        peer="Wilson's interval of the real trials alone",
        target="<= 1.0",
        note=f"mean over the same robots; {np.mean(strong):.2f} where simulation knows best",
    )


def _once(
    robot: Robot, n: int, many: int, rng: np.random.Generator
) -> tuple[bool, bool, float, float]:
    found = powered_rate(*robot.trials(n, many, rng))
    alone = found.alone
    return (
        found.low <= robot.rate <= found.high,
        alone.low <= robot.rate <= alone.high,
        found.high - found.low,
        alone.high - alone.low,
    )


def _pairs(
    n: int, only_first: float, only_second: float, rng: np.random.Generator
) -> PairedOutcomes:
    u = rng.random(n)
    first, second = u < only_first, (u >= only_first) & (u < only_first + only_second)
    both = ~first & ~second & (rng.random(n) < 0.5)  # which of the two says nothing
    return PairedOutcomes(first | both, second | both, np.arange(n))


def _paired(repetitions: int, rng: np.random.Generator) -> Iterator[Result]:
    alarms, covered = 0, 0
    for _ in range(repetitions):
        n, rate = int(rng.integers(10, 61)), rng.uniform(0.5, 0.98)
        same = discordant(rate, rate, rng.uniform(0, 0.8))
        alarms += mcnemar(_pairs(n, *same, rng)) <= 0.05
        first, second = rng.uniform(0.5, 0.98, size=2)
        chances = discordant(first, second, rng.uniform(0, 0.8))
        found = paired_difference(_pairs(n, *chances, rng))
        covered += bool(found.low <= chances[1] - chances[0] <= found.high)
    yield Result(
        name="evaluate.mcnemar_false_alarm",
        value=alarms / repetitions,
        unit="share",
        target="<= 0.05",
        note="two equal policies, 10 to 60 pairs, p of at most 0.05",
    )
    yield Result(
        name="evaluate.paired_coverage",
        value=covered / repetitions,
        unit="share",
        target=">= 0.935",
        note="95 % bootstrap interval of the difference, 10 to 60 pairs",
    )


def _sequential(repetitions: int, rng: np.random.Generator) -> Iterator[Result]:
    planned, endless = SequentialTest(most=60), SequentialTest()
    alarms = [0, 0]
    for _ in range(repetitions):
        rate = rng.uniform(0.5, 0.98)
        same = discordant(rate, rate, rng.uniform(0, 0.8))
        alarms[0] += planned.decision(_pairs(60, *same, rng)) is not None
        alarms[1] += endless.decision(_pairs(1000, *same, rng)) is not None
    yield Result(
        name="evaluate.sequential_false_alarm",
        value=max(alarms) / repetitions,
        unit="share",
        target="<= 0.05",
        note=f"two equal policies, looked at after every pair: {alarms[0]} of {repetitions} with"
        f" 60 pairs planned, {alarms[1]} within 1,000 pairs of a test without an end",
    )
    saved, told = [], []
    for first, second in ((0.6, 0.9), (0.5, 0.7), (0.8, 0.95)):
        found = planned_trials(first, second, power=0.9)
        assert found.sequential is not None and found.paired is not None
        saved.append(1 - found.sequential / found.paired)
        told.append(
            f"{first} against {second}: {found.sequential:.0f}, at most {found.sequential_most},"
            f" for {found.paired} ({found.unpaired} unpaired)"
        )
    yield Result(
        name="evaluate.sequential_saved",
        value=float(np.mean(saved)),
        unit="share",
        peer="McNemar's test of a fixed size with the same power of 0.9",
        target=">= 0.2",
        note="; ".join(told),
    )


def _prediction(repetitions: int, rng: np.random.Generator) -> Result:
    """Whether what a robot shows lies in what was predicted from draws that may be it."""
    inside, rates = 0, 0
    for _ in range(repetitions):
        mean, size = rng.uniform(0.4, 0.98), np.exp(rng.uniform(0.0, 4.0))
        spread = rng.uniform(0.0, 3.0)
        draws, each, trials = rng.integers((30, 5, 10), (150, 30, 50))
        if rng.random() < 0.5:
            robots = rng.beta(mean * size, (1 - mean) * size, size=draws + 1)
        else:
            robots = special.expit(special.logit(mean) + spread * rng.standard_t(4, draws + 1))
        found = predict(rng.binomial(each, robots[1:]), np.full(draws, each), trials=int(trials))
        shown = rng.binomial(trials, robots[0]) / trials
        inside += bool(found.shown_low <= shown <= found.shown_high)
        rates += bool(found.low <= robots[0] <= found.high)
    return Result(
        name="evaluate.prediction_coverage",
        value=inside / repetitions,
        unit="share",
        target=">= 0.885",
        note="90 % interval of the rate that trials of one robot show, from draws that may be it;"
        f" of the robot's own rate {rates / repetitions:.3f}",
    )


def _prediction_sure(repetitions: int, rng: np.random.Generator) -> Result:
    """Whether the rate of a robot that nearly always succeeds lies in what was predicted."""
    inside, width = 0, 0.0
    for _ in range(repetitions):
        mean, size = 1 - np.exp(rng.uniform(np.log(0.003), np.log(0.1))), np.exp(rng.uniform(1, 6))
        draws, each = ((20, 5), (64, 16))[int(rng.integers(2))]
        robots = rng.beta(mean * size, (1 - mean) * size, size=draws + 1)
        found = predict(rng.binomial(each, robots[1:]), np.full(draws, each), trials=20)
        inside += bool(found.low <= robots[0] <= found.high)
        width += found.high - found.low
    return Result(
        name="evaluate.prediction_coverage_sure",
        value=inside / repetitions,
        unit="share",
        target=">= 0.88",
        note="90 % interval of the rate of one robot, where robots succeed in 90 to 99.7 % of"
        f" trials; {width / repetitions:.3f} wide on average",
    )


def _prediction_tried(repetitions: int, rng: np.random.Generator) -> Result:
    """Whether predictions hold for robots that fail for reasons no twin knows, once they have made
    some attempts."""
    inside, alone = 0, 0
    for _ in range(repetitions):
        mean, size = rng.uniform(0.8, 0.999), np.exp(rng.uniform(1, 6))
        robots = rng.beta(mean * size, (1 - mean) * size, size=65)
        rate = robots[0] * (1 - rng.choice([0.0, 0.01, 0.03, 0.1, 0.3]))
        tried = int(rng.integers(10, 41))
        won = int(rng.binomial(tried, rate))
        drawn, each = rng.binomial(16, robots[1:]), np.full(64, 16)
        shown = rng.binomial(100, rate) / 100
        found = predict(drawn, each, trials=100, real=(won, tried))
        unaware = predict(drawn, each, trials=100)
        inside += bool(found.shown_low <= shown <= found.shown_high)
        alone += bool(unaware.shown_low <= shown <= unaware.shown_high)
    return Result(
        name="evaluate.prediction_coverage_tried",
        value=inside / repetitions,
        unit="share",
        target=">= 0.885",
        note="90 % interval of what 100 trials will show, after 10 to 40, of a robot that fails 0"
        f" to 30 % more often than its twins; without those {alone / repetitions:.3f}",
    )


def _by_draw(repetitions: int, rng: np.random.Generator) -> Result:
    """Two policies as good as each other on the whole, each better on some draws."""
    alarms, missed = [0, 0], 0
    for _ in range(repetitions):
        chance = np.repeat(rng.uniform(0.0, 1.0, size=20), 10)
        first, second = (
            [
                Trial(
                    policy="p", success=bool(won), condition=f"{k}", source="sim", unit=f"{k // 10}"
                )
                for k, won in enumerate(rng.random(200) < rate)
            ]
            for rate in (chance, 1 - chance)
        )
        found = compare(first, second)
        alarms[0] += found.p_value <= 0.05
        alarms[1] += bool(found.sequential.better)
        missed += not found.difference.low <= 0.0 <= found.difference.high
    return Result(
        name="evaluate.by_draw_false_alarm",
        value=max(alarms) / repetitions,
        unit="share",
        target="<= 0.05",
        note=f"two equal policies on 20 draws, 10 trials each: sign test {alarms[0]}, sequential"
        f" {alarms[1]} of {repetitions}; the 95 % interval of the difference misses {missed}",
    )


def simpler(table: Path) -> Iterator[Result]:
    """What SimplerEnv published of its policies, and what comes out of its table here."""
    scored, _ = read_scored(table, ScoreColumns(sim="simpler_visual_matching"))
    yield from _against("simpler", rank(scored), _SIMPLER)


def realaigym(table: Path) -> Iterator[Result]:
    """The same of RealAIGym's controllers, whose simulation ranks none of them right."""
    columns = ScoreColumns(
        policy="controller", sim="sim_score", real="real_score", group=("robot", "edition")
    )
    scored, _ = read_scored(table, columns)
    rankings = rank(scored)
    yield from _against("realaigym", rankings, _REALAIGYM)
    misled = [r for r in rankings if r.group in _REALAIGYM and "does not rank" in r.verdict]
    yield Result(
        name="evaluate.realaigym_misled",
        value=float(len(misled)),
        unit="groups",
        target=f">= {len(_REALAIGYM)}",
        note="groups of three or four controllers of which it says that simulation does not"
        f" rank them; all {rankings[0].policies}: {rankings[0].verdict}",
    )


def _against(
    name: str, rankings: list[Ranking], published: dict[str, tuple[float, float]]
) -> Iterator[Result]:
    """Largest differences of MMRV and Pearson from those published, to their rounding."""
    found = {ranking.group: ranking.measures for ranking in rankings}
    for column, measure in enumerate(("mmrv", "pearson")):
        errors = {
            group: abs((found[group][measure].value or 0.0) - values[column])
            for group, values in published.items()
        }
        yield Result(
            name=f"evaluate.{name}_{measure}_error",
            value=max(errors.values()),
            unit="",
            target="<= 0.0005",
            note=f"largest of {len(errors)} groups; published with three digits",
        )


MEASUREMENT = side_by_side(_shards, _run, plan=_FULL, lacking=_lacking)
