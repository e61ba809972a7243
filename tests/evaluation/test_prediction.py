"""Real success from simulation: intervals that hold, and are narrower for a reason."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.evaluate import Plan, Robot, counted
from sim2real.errors import Sim2RealError
from sim2real.evaluation.paired_outcomes import unit_counts
from sim2real.evaluation.prediction import predict
from sim2real.evaluation.prediction_powered import of_trials, powered_rate
from sim2real.evaluation.trial import Trial
from sim2real.intervals import wilson

RNG = np.random.default_rng


def test_predictions_that_say_nothing_leave_wilsons_interval():
    real = [1] * 15 + [0] * 5
    found = powered_rate(real, [0.7] * 20, [0.7] * 100)
    alone = wilson(15, 20)
    assert (found.low, found.high) == pytest.approx((alone.low, alone.high))
    assert found.weight == 0.0 and found.worth == 20.0
    backwards = powered_rate(real, [0.0] * 15 + [1.0] * 5, [0.0, 1.0] * 50)
    assert backwards.weight == 0.0 and backwards.narrowing == pytest.approx(1.0)


def test_hard_conditions_by_chance_are_corrected():
    """Half of the tried conditions are hard, a fifth of all are; simulation knows which."""
    real, predicted = [1] * 10 + [0] * 10, [0.9] * 10 + [0.1] * 10
    found = powered_rate(real, predicted, [0.9] * 800 + [0.1] * 200)
    assert 0.7 < found.value < 0.85 and found.narrowing < 0.7
    assert found.alone.value == 0.5


def test_a_constant_bias_of_the_simulation_changes_nothing():
    rng = RNG(0)
    real, predicted = rng.random(20) < 0.7, rng.uniform(0, 0.6, 20)
    others = rng.uniform(0, 0.6, 500)
    plain = powered_rate(real, predicted, others)
    biased = powered_rate(real, predicted + 0.3, others + 0.3)
    assert (plain.low, plain.high) == pytest.approx((biased.low, biased.high))


@pytest.mark.parametrize("kind", [(0.6, 5.0, 1.0, 1), (0.9, 5.0, -1.0, 0), (0.8, 1.0, 0.5, 10)])
def test_intervals_cover_as_often_as_they_say(kind):
    rate, sharpness, bias, rollouts = kind
    robot = Robot(rate=rate, sharpness=sharpness, likeness=0.95, bias=bias, rollouts=rollouts)
    rng, covered, ratio = RNG(1), 0, []
    for _ in range(400):
        found = powered_rate(*robot.trials(20, 1000, rng))
        covered += found.low <= rate <= found.high
        ratio.append(found.narrowing)
    assert 0.91 <= covered / 400 <= 0.99
    assert np.mean(ratio) < 1.0


def test_trials_of_one_condition_are_not_counted_as_independent():
    """Conditions decide all: eight of them tried ten times say as much as eight trials."""
    rng, covered, alone = RNG(5), 0, 0
    for _ in range(200):
        hard = rng.random(508) < 0.4
        simulated = rng.random(508)  # a simulation that knows nothing
        won = 10 * ~hard[:8]
        found = powered_rate(won, simulated[:8], simulated[8:], tried=[10] * 8, confidence=0.9)
        covered += found.low <= 0.6 <= found.high
        alone += found.alone.low <= 0.6 <= found.alone.high
    assert covered / 200 >= 0.85 and alone / 200 >= 0.85
    real = [Trial(policy="p", success=k % 8 > 2, condition=f"c{k % 8}") for k in range(80)]
    sim = [Trial(policy="p", success=k % 3 > 0, condition=f"c{k}", source="sim") for k in range(99)]
    found = of_trials(real, sim)
    once = of_trials(real[:8], sim)
    assert (found.low, found.high) == pytest.approx((once.low, once.high), abs=0.02)
    assert found.alone.n == 80


def test_repeating_trials_that_conditions_do_not_decide_tells_more():
    rng = RNG(6)
    won, predicted = rng.binomial(10, 0.7, size=20), np.full(20, 0.7)
    found = powered_rate(won, predicted, [0.7] * 100, tried=[10] * 20)
    assert found.worth > 100 and found.high - found.low < 0.2


def test_real_trials_find_their_predictions_by_condition():
    simulated = [
        Trial(policy="p", success=k % 4 != 0, condition=f"c{k // 4}", source="sim")
        for k in range(200)
    ]
    real = [Trial(policy="p", success=k > 2, condition=f"c{k}") for k in range(10)]
    assert of_trials(real, simulated).n_simulated == 40
    with pytest.raises(Sim2RealError, match="1 of 11 real trials have conditions that were not"):
        of_trials([*real, Trial(policy="p", success=True)], simulated)
    deployed = [Trial(policy="p", success=True, condition="seed 0 on S1")] * 10
    with pytest.raises(
        Sim2RealError, match=r"'seed 0 on S1', simulated: 'c0'.*`condition` of both"
    ):
        of_trials(deployed, simulated)


@pytest.mark.parametrize(("real", "simulated"), [([1, 0], 50), ([1] * 10, 5)])
def test_too_few_conditions_are_refused(real, simulated):
    with pytest.raises(Sim2RealError, match="too few"):
        powered_rate(real, real, [1] * simulated)


def test_what_is_said_of_a_robot_lies_within_its_interval():
    # All draws succeeded; that the robot may be like none of them pulls the mean out of it.
    said = predict([16] * 64, [16] * 64, trials=10)
    assert said.mean < said.low <= said.median <= said.high
    assert str(said).startswith(f"{100 * said.median:.1f} % [")


def test_one_robot_is_less_certain_than_the_fleet():
    """Half of the robots always fail: a robot shows 0 or 100 %, never the mean."""
    found = predict([0, 20] * 30, [20] * 60, trials=20)
    assert found.mean == pytest.approx(0.5, abs=0.02)
    assert found.shown_low == 0.0 and found.shown_high == 1.0
    alike = predict([10] * 60, [20] * 60, trials=20)
    assert 0.4 < alike.low < 0.5 < alike.high < 0.6 and alike.spread < 0.1
    assert alike.shown_low < alike.low  # twenty trials scatter around the rate


@pytest.mark.slow
def test_what_robots_show_lies_in_the_prediction():
    rng, inside = RNG(2), 0
    for _ in range(300):
        robots = rng.beta(8.0, 2.0, size=61)
        found = predict(rng.binomial(10, robots[1:]), [10] * 60, trials=20)
        inside += found.shown_low <= rng.binomial(20, robots[0]) / 20 <= found.shown_high
    assert 0.86 <= inside / 300 <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("draws", [(20, 5), (64, 16)])
@pytest.mark.parametrize("rate", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("size", [3.0, 100.0])
def test_a_robots_rate_lies_in_the_prediction_as_often_as_said(rate, size, draws):
    rng, inside, width = RNG(3), 0, []
    count, each = draws
    for _ in range(250):
        robots = rng.beta(rate * size, (1 - rate) * size, size=count + 1)
        found = predict(rng.binomial(each, robots[1:]), [each] * count, trials=20)
        inside += found.low <= robots[0] <= found.high
        width.append(found.high - found.low)
    assert inside / 250 >= 0.88 - 0.03
    ideal = np.diff(stats.beta.ppf([0.05, 0.95], rate * size, (1 - rate) * size))[0]
    scatter = np.sqrt(rate * (1 - rate) / each)  # of a draw's own episodes
    assert np.mean(width) < 1.3 * ideal + 2.5 * scatter


def test_draws_that_all_succeeded_do_not_make_a_robot_certain():
    few, more = (predict([n] * 20, [n] * 20, trials=20) for n in (2, 10))
    assert 0.6 < few.low < 0.96 and few.low < more.low < 0.99
    assert few.high == more.high == 1.0 and few.shown_low < 1.0
    none = predict([0] * 20, [2] * 20, trials=20)
    assert none.low == 0.0 and none.high == pytest.approx(1 - few.low)


def test_a_prediction_is_about_a_few_trials_or_thousands_but_not_millions():
    shown = [predict([9] * 20, [10] * 20, trials=n).shown_low for n in (1000, 1030, 1100, 10_000)]
    assert shown == pytest.approx([shown[0]] * 4, abs=0.01) and 0.3 < shown[0] < 0.9
    for n in (0, 10_001, 10**9):
        with pytest.raises(Sim2RealError, match="--trials must be from 1 to 10,000"):
            predict([9] * 20, [10] * 20, trials=n)


def test_a_draw_that_was_tried_once_is_left_out():
    whole = predict([9] * 20, [10] * 20, trials=10)
    assert predict([9] * 20 + [0], [10] * 20 + [1], trials=10) == whole


def test_a_prediction_needs_several_episodes_a_draw():
    with pytest.raises(Sim2RealError, match="--each 10"):
        predict([1] * 20, [1] * 20, trials=10)
    with pytest.raises(Sim2RealError, match="too few"):
        predict([1] * 3, [2] * 3, trials=10)


def test_trials_are_counted_by_draw():
    rows = [("a", 1), ("b", 0), ("a", 0), ("b", 1), ("a", 1)]
    won, tried = unit_counts([Trial(policy="p", success=bool(s), unit=u) for u, s in rows])
    assert (won.tolist(), tried.tolist()) == ([2, 1], [3, 2])


@pytest.mark.slow
def test_the_benchmark_counts_intervals_over_robots_of_every_kind():
    names = [result.name for result in counted(Plan(repetitions=2))]
    assert "evaluate.ppi_coverage" in names and "evaluate.ppi_coverage_most" in names
    assert "evaluate.ppi_width_ratio" in names


def test_a_simulation_that_never_fails_makes_no_robot_better_than_its_attempts_show():
    """The lower end is as far down as thirty attempts leave it, with or without the twin."""
    all_won = [16] * 64, [16] * 64
    certain = predict(*all_won, trials=100)
    assert certain.low > 0.999
    for won in (30, 29, 26):
        found = predict(*all_won, trials=100, real=(won, 30))
        low = stats.beta.ppf(0.05, won + 0.5, 30 - won + 0.5)
        assert found.low == pytest.approx(low, abs=0.02) and found.real == (won, 30)
        assert found.low <= won / 30 <= found.high + 1e-3


@pytest.mark.slow
def test_robots_that_fail_for_reasons_no_twin_knows_are_predicted_once_they_tried():
    rng, inside, unaware = RNG(7), 0, 0
    for _ in range(200):
        robots = rng.beta(49.0, 1.0, size=65)
        rate = robots[0] * (1 - rng.choice([0.02, 0.1, 0.3]))
        draws, each = rng.binomial(16, robots[1:]), [16] * 64
        real = int(rng.binomial(30, rate)), 30
        found = predict(draws, each, trials=100, real=real)
        before = predict(draws, each, trials=100)
        shown = rng.binomial(100, rate) / 100
        inside += found.shown_low <= shown <= found.shown_high
        unaware += before.shown_low <= shown <= before.shown_high
    assert inside / 200 > 0.86 and unaware / 200 < 0.6


def test_what_ends_attempts_besides_lowers_a_prediction():
    plain = predict([15] * 64, [16] * 64, trials=100)
    ended = predict([15] * 64, [16] * 64, trials=100, ended=[0.1] * 5)
    assert ended.mean == pytest.approx(0.9 * plain.mean, abs=0.01)
    assert predict([15] * 64, [16] * 64, trials=100, ended=[0.0]) == plain


@pytest.mark.parametrize("wrong", [{"ended": [1.2]}, {"ended": []}, {"real": (3, 2)}])
def test_shares_and_attempts_that_are_none_are_refused(wrong):
    with pytest.raises(Sim2RealError, match=r"from 0 to 1|not a rate"):
        predict([15] * 64, [16] * 64, trials=100, **wrong)


def test_thousands_of_real_attempts_are_a_rate_too():
    found = predict([12] * 64, [16] * 64, trials=100, real=(3000, 4000))
    assert 0.72 < found.low < 0.75 < found.high < 0.78
