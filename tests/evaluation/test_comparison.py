"""Comparisons: known tests reproduced, error rates kept, plans that hold."""

import numpy as np
import pytest
from scipy import stats

from sim2real.errors import Sim2RealError
from sim2real.evaluation.comparison import compare
from sim2real.evaluation.paired_outcomes import (
    PairedOutcomes,
    matched,
    mcnemar,
    paired_difference,
    unpaired_p,
)
from sim2real.evaluation.sequential import SequentialTest, crossing_chance
from sim2real.evaluation.trial import Trial
from sim2real.evaluation.trial_plan import discordant, paired_power, plan_trials, unpaired_power


def trials(outcomes, conditions=None, policy="p", source="real", units=None):
    names = conditions if conditions is not None else [""] * len(outcomes)
    units = units if units is not None else [""] * len(outcomes)
    return [
        Trial(policy=policy, success=bool(s), condition=str(c), source=source, unit=str(u))
        for s, c, u in zip(outcomes, names, units, strict=True)
    ]


def of_draws(rates, each, rng, matching=True, first=0):
    """Trials of draws, numbered from `first`, that succeed at these rates, each tried so often."""
    count = len(rates) * each
    return trials(
        rng.random(count) < np.repeat(rates, each), range(count) if matching else None,
        source="sim", units=np.repeat(np.arange(first, first + len(rates)), each),
    )  # fmt: skip


def pairs_of(first, second):
    return PairedOutcomes(np.array(first, bool), np.array(second, bool), np.arange(len(first)))


def test_trials_are_paired_by_condition_whatever_their_order():
    a = trials([1, 0, 1, 1], ["x", "y", "z", "x"])
    b = trials([0, 1, 0, 1], ["y", "x", "x", "w"])
    found = matched(a, b)
    assert found.first.tolist() == [True, False, True]
    assert found.second.tolist() == [True, False, False]
    assert found.conditions.tolist() == [0, 1, 0]


def test_mcnemar_is_a_fair_coin_over_the_pairs_that_differ():
    pairs = pairs_of([1] * 2 + [0] * 10 + [1] * 30, [0] * 2 + [1] * 10 + [1] * 30)
    assert pairs.wins == (2, 10)
    assert mcnemar(pairs) == pytest.approx(2 * stats.binom.cdf(2, 12, 0.5))
    assert mcnemar(pairs_of([1, 1], [1, 1])) == 1.0


def test_without_a_difference_the_interval_is_not_a_point():
    found = paired_difference(pairs_of([1] * 20, [1] * 20))
    assert found.value == 0.0 and found.low < -0.03 and found.high > 0.03


def test_repeating_trials_of_the_same_conditions_does_not_make_the_difference_surer():
    rng = np.random.default_rng(0)
    first, second = rng.random(20) < 0.5, rng.random(20) < 0.8
    once = paired_difference(pairs_of(first, second))
    often = paired_difference(
        PairedOutcomes(np.tile(first, 10), np.tile(second, 10), np.tile(np.arange(20), 10))
    )
    assert often.high - often.low > 0.8 * (once.high - once.low)


@pytest.mark.parametrize("most", [20, 60, 200])
def test_the_exact_boundary_spends_the_error_rate_and_no_more(most):
    planned, endless = SequentialTest(most=most), SequentialTest()
    used = crossing_chance(planned.needed(most))
    assert 0.015 < used <= 0.025
    assert crossing_chance(endless.needed(most)) < used
    assert (planned.needed(most) <= endless.needed(most)).all()


def test_exact_operation_is_that_of_simulated_comparisons():
    test = SequentialTest(most=40)
    chances = discordant(0.6, 0.9)
    power, mean = test.operating(*chances)
    rng = np.random.default_rng(0)
    right, used = 0, 0
    for _ in range(2000):
        u = rng.random(40)
        found = test.decision(pairs_of(u < chances[0], (u >= chances[0]) & (u < sum(chances))))
        right += found is not None and found[0] == "B"
        used += found[1] if found else 40
    assert right / 2000 == pytest.approx(power, abs=0.035)
    assert used / 2000 == pytest.approx(mean, abs=0.8)


def test_looking_after_every_pair_fools_a_p_value_but_not_the_test():
    rng = np.random.default_rng(1)
    test, fooled, alarms = SequentialTest(), 0, 0
    for _ in range(200):
        won = rng.random(300) < 0.5
        alarms += test.decision(pairs_of(~won, won)) is not None
        counts, m = won.cumsum(), np.arange(1, 301)
        tails = stats.binom.cdf(np.minimum(counts, m - counts), m, 0.5)
        fooled += bool((2 * tails <= 0.05).any())
    assert fooled / 200 > 0.2
    assert alarms / 200 <= 0.05 + 0.03


def test_a_clear_difference_stops_early_and_says_who():
    a, b = trials([0] * 30, range(30)), trials([1] * 30, range(30))
    found = compare(a, b)
    assert found.paired and found.sequential.better == "B" and found.sequential.pairs < 12
    assert str(found.sequential).startswith("stop: B is better")
    assert compare(b, a).sequential.better == "A"


def test_an_unclear_difference_says_how_many_more():
    a, b = trials([0, 1, 0, 1, 1, 0] * 2, range(12)), trials([1, 1, 0, 1, 1, 1] * 2, range(12))
    found = compare(a, b)
    assert not found.sequential.done and 1 <= found.sequential.more <= 30
    assert "more trials" in str(found.sequential)
    assert compare(a, b, most=12).sequential.done


def test_trials_that_share_no_condition_are_compared_unpaired():
    found = compare(trials([1] * 10 + [0] * 10), trials([1] * 19 + [0]))
    assert not found.paired
    table = [[10, 19], [10, 1]]
    assert found.p_value == pytest.approx(stats.barnard_exact(table).pvalue)
    assert found.difference.low < 0.45 < found.difference.high
    assert compare(trials([1, 0]), trials([1, 1]), by_order=True).paired


@pytest.mark.slow
@pytest.mark.parametrize(("matching", "apart"), [(True, 0), (False, 0), (False, 100)])
def test_policies_that_are_equal_over_draws_are_rarely_told_apart(matching, apart):
    """Each policy is far better on half of the draws; ten trials a draw are not ten robots."""
    alarms, missed, astray = [0, 0], 0, 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        rates = rng.choice([0.1, 0.9], size=20)
        others = 1 - rates if not apart else rng.choice([0.1, 0.9], size=20)
        first = of_draws(rates, 10, rng, matching)
        second = of_draws(others, 10, rng, matching, first=apart)
        found = compare(first, second, seed=seed)
        assert found.by_unit == 20 and found.paired is not bool(apart)
        alarms[0] += found.p_value <= 0.05
        alarms[1] += found.sequential.better != ""
        missed += not found.difference.low <= 0.0 <= found.difference.high
        astray += not found.first.low <= 0.5 <= found.first.high
    assert max(alarms) / 150 <= 0.05 + 0.03
    assert missed / 150 <= 0.05 + 0.04 and astray / 150 <= 0.05 + 0.04


def test_a_difference_on_every_draw_is_found_by_draw():
    rng = np.random.default_rng(0)
    first, second = (of_draws(np.full(20, rate), 10, rng) for rate in (0.5, 0.9))
    found = compare(first, second)
    assert found.test == "sign test over draws" and found.p_value < 0.01
    assert found.sequential.better == "B" and "draws" in str(found.sequential)
    assert sum(found.unit_wins) <= 20 and "draws were compared" in found.notes[0]
    assert found.difference.high - found.difference.low < 0.3
    assert compare(first, second, most=400).sequential.better == "B"
    with pytest.raises(Sim2RealError, match="200 pairs are more than the 100 planned"):
        compare(first, second, most=100)


def test_robots_are_compared_with_themselves_in_whatever_order_they_come():
    """B succeeds once more in twenty on each of nineteen robots that differ much."""
    robots = np.arange(19)
    won = {robot: robot for robot in robots}

    def of(order, more):
        outcomes = [k < won[r] + more for r in order for k in range(20)]
        return trials(outcomes, units=np.repeat(order, 20))

    here, turned = robots, np.roll(robots, 2)
    found = [compare(of(here, 0), of(order, 1)) for order in (here, turned)]
    for one in found:
        assert one.by_unit == 19 and one.unit_wins == (0, 19)
        assert one.sequential.better == "B" and one.p_value < 1e-4
        assert one.difference.low > 0.0
        assert any("match by name" in note for note in one.notes)
    assert found[0].difference == found[1].difference


def test_trials_of_one_robot_count_by_themselves_and_of_three_are_about_those():
    a, b = [0, 1, 0] * 10, [1, 1, 0] * 10
    one = compare(trials(a, range(30), units=["r"] * 30), trials(b, range(30), units=["r"] * 30))
    assert one.by_unit == 0 and one.test == "McNemar" and one.notes == ()
    assert one.sequential.pairs <= 30 and one.p_value == pytest.approx(2 * 0.5**10)
    units = [k % 3 for k in range(30)]
    three = compare(trials(a, range(30), units=units), trials(b, range(30), units=units))
    assert three.by_unit == 0 and three.p_value == one.p_value
    assert three.notes == ("this is about the 3 robots that were tried, not about others",)


@pytest.mark.parametrize(
    ("successes", "n", "test"),
    [
        ((9990, 19), (10_000, 20), "Fisher"),
        ((500, 600), (1000, 1000), "chi-squared"),
        ((5, 9), (10, 10), "Barnard"),
        ((10_000, 20), (10_000, 20), "Barnard"),
    ],
)
def test_many_trials_against_few_are_tested_exactly(successes, n, test):
    p_value, used = unpaired_p(successes, n)
    table = [successes, (n[0] - successes[0], n[1] - successes[1])]
    assert used == test
    assert p_value == pytest.approx(stats.fisher_exact(table).pvalue, rel=0.5, abs=0.1)
    if test == "Fisher":
        assert p_value == pytest.approx(0.022, abs=0.001)


def test_trials_that_the_sequential_test_leaves_out_are_told():
    found = compare(trials([1, 0] * 20), trials([1] * 12))
    assert found.test == "Barnard" and found.sequential.pairs <= 12
    assert found.notes == ("the sequential test took 12 of A's 40 trials, in their order",)


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(Sim2RealError, match="B has no trial"):
        compare(trials([1]), [])
    with pytest.raises(Sim2RealError, match="simulated and real trials"):
        compare(trials([1]), trials([1], source="sim"))
    with pytest.raises(Sim2RealError, match="more than the 3 planned"):
        compare(trials([1] * 5), trials([1] * 5), most=3)


@pytest.mark.slow
def test_power_of_barnards_test_is_that_of_its_p_values():
    n, chance = 12, 0.0
    for x in range(n + 1):
        for y in range(n + 1):
            inside = 0 < x + y < 2 * n
            if inside and stats.barnard_exact([[x, y], [n - x, n - y]]).pvalue <= 0.05:
                chance += stats.binom.pmf(x, n, 0.4) * stats.binom.pmf(y, n, 0.9)
    assert unpaired_power(n, 0.4, 0.9) == pytest.approx(chance, abs=1e-9)


def test_power_of_many_trials_is_that_of_the_tests_that_are_used():
    n, rates = 220, (0.97, 1.0)
    chance = 0.0
    for x in range(190, n + 1):
        p_value, _ = unpaired_p((x, n), (n, n))
        chance += stats.binom.pmf(x, n, rates[0]) * (p_value <= 0.05)
    assert unpaired_power(n, *rates) == pytest.approx(chance, abs=1e-6)


@pytest.mark.slow
def test_a_plan_says_which_of_its_numbers_are_too_large():
    found = plan_trials(0.5, 0.55)
    assert 1500 < found.unpaired < 1700 and found.paired <= 2000
    assert found.sequential_most is None and found.sequential is None


def test_power_of_mcnemars_test_is_that_of_its_p_values():
    n, first, second = 15, *discordant(0.5, 0.9, 0.3)
    chance = sum(
        stats.multinomial.pmf([a, b, n - a - b], n, [first, second, 1 - first - second])
        for a in range(n + 1)
        for b in range(a + 1, n + 1 - a)
        if stats.binomtest(b, a + b).pvalue <= 0.05
    )
    assert paired_power(n, first, second) == pytest.approx(chance, abs=1e-9)


def test_a_plan_needs_fewer_trials_for_more_difference_and_for_shared_conditions():
    small, large = plan_trials(0.6, 0.8), plan_trials(0.6, 0.95)
    assert large.unpaired < small.unpaired and large.paired < small.paired
    assert plan_trials(0.6, 0.8, correlation=0.5).paired < small.paired
    assert small.sequential < small.paired < small.sequential_most
    assert plan_trials(0.8, 0.6) == small
    assert unpaired_power(small.unpaired, 0.6, 0.8) >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rates", "options", "words"),
    [
        ((0.5, 0.5), {}, "the same"),
        ((0.5, 1.2), {}, "not between 0 and 1"),
        ((0.5, 0.6), {"power": 1.0}, "power 1.0"),
        ((0.5, 0.6), {"correlation": 2.0}, "correlation"),
        ((0.5, 0.501), {}, "more than 2000 trials"),
    ],
)
def test_a_plan_without_an_answer_is_refused(rates, options, words):
    with pytest.raises(Sim2RealError, match=words):
        plan_trials(*rates, **options)
