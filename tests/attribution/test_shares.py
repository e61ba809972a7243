"""Attribution without simulation: who plays, who is off, and what is said."""

import json
import shlex
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from sim2real.attribution.advice import advise
from sim2real.attribution.attribution import (
    Attribution,
    Cause,
    Share,
    dimensions_of,
    identified,
    interval_of,
)
from sim2real.attribution.complaints import Complaint
from sim2real.attribution.confounded import ConfoundedDimensions, confounded_dimensions
from sim2real.attribution.failures import Failures
from sim2real.attribution.shapley import game
from sim2real.attribution.sparse_causes import Likelihood, StateChain, plausible
from sim2real.attribution.trajectory_error import attribute_trajectory
from sim2real.cli.main import parse
from sim2real.errors import Sim2RealError
from sim2real.params import Empirical, GaussianPosterior
from sim2real.replay.unknowns import open_parameters
from sim2real.report.attribution_plots import plot_attribution
from sim2real.tasks import find_task
from sim2real.twin import Twin

GAIN, MASS = "actuator/hinge/gain", "body/pole/mass"


@pytest.fixture(scope="module")
def twin():
    return Twin.load(find_task("pendulum-swingup").twin, check=False)


def belief(twin, values=(), *, only=(), width=0.05):
    """A Gaussian posterior at nominal values but for those given, each so many priors wide."""
    open_ = [p for p in open_parameters(twin) if not only or p.name in only]
    std = np.array([width * p.prior_std for p in open_])
    mean = [dict(values).get(p.name, p.nominal) for p in open_]
    return gaussian(open_, mean, np.diag(std**2))


def gaussian(parameters, mean, covariance):
    return GaussianPosterior(
        names=tuple(p.name for p in parameters),
        mean=tuple(float(v) for v in mean),
        covariance=tuple(tuple(float(v) for v in row) for row in covariance),
        low=tuple(p.bounds[0] for p in parameters),
        high=tuple(p.bounds[1] for p in parameters),
    )


def test_a_large_game_is_played_in_some_orders_and_shares_still_sum_to_the_whole():
    inside, weights = game(9, seed=1)
    assert len(inside) < 2**9 and not inside[0].any() and inside[-1].all()
    brought = np.arange(9.0)
    pairs = inside @ brought + 5.0 * (inside[:, 0] & inside[:, 1])
    shares = weights @ pairs
    assert shares.sum() == pytest.approx(pairs[-1] - pairs[0])
    assert np.allclose(shares[2:], brought[2:])
    # An order and its reverse give half to each of two that bring something only together.
    assert np.allclose(shares[:2], brought[:2] + 2.5)


def test_only_dimensions_with_an_identified_parameter_take_part(twin):
    who = dimensions_of(twin, [GAIN, MASS, "joint/hinge/damping"])
    assert who.names == ("dynamics", "actuation")
    base, drawn = np.zeros(len(twin.parameters)), np.ones(len(twin.parameters))
    moved = who.moved(base, drawn, game(2)[0])
    assert moved.sum(axis=1).tolist() == [0.0, 2.0, 1.0, 3.0]
    assert np.flatnonzero(moved[1]).tolist() == list(who.columns[0])


def ratio_told(twin, gain):
    """The posterior of a robot whose gain is off, and of which recordings tell only the ratio of
    gain and mass; all else is told, and right."""
    open_ = open_parameters(twin)
    names = [p.name for p in open_]
    scales = np.array([p.prior_std for p in open_])
    told = np.diag([0.0 if name in (GAIN, MASS) else 1e4 for name in names])
    ratio = np.zeros(len(open_))
    # Slopes of log(gain / mass) on the line through the robot.
    ratio[names.index(GAIN)] = scales[names.index(GAIN)] / gain
    ratio[names.index(MASS)] = -scales[names.index(MASS)] / 0.57
    told += 1e6 * np.outer(ratio, ratio)
    truth = np.zeros(len(open_))
    truth[names.index(GAIN)] = (gain - 1) / scales[names.index(GAIN)]
    covariance = np.linalg.inv(told + np.eye(len(open_)))
    nominal = np.array([p.nominal for p in open_])
    return gaussian(
        open_, nominal + scales * (covariance @ told @ truth), covariance * np.outer(scales, scales)
    )


@pytest.mark.slow
def test_a_gain_that_a_mass_could_stand_in_for_is_not_blamed_on_the_mass(twin):
    found = ratio_told(twin, 1.12)
    mass = dict(zip(found.names, found.mean, strict=True))[MASS]
    assert abs(mass / 0.57 - 1) > 0.04  # the posterior itself moves the mass
    who = dimensions_of(twin, found.names)
    drawn = plausible(twin, found, who, draws=64)
    chance = dict(zip(who.names, drawn.chance, strict=True))
    assert chance["actuation"] > 0.9 and chance["dynamics"] < 0.2
    column = [p.name for p in twin.parameters].index(GAIN)
    only = (drawn.off == (np.array(who.names) == "actuation")).all(axis=1)
    assert drawn.values[only, column] == pytest.approx(1.12, abs=0.01)
    assert drawn.ranges[1, column] == pytest.approx(1.12, abs=0.01)


@pytest.mark.slow
def test_far_outside_its_ranges_a_robot_may_have_a_strong_motor_or_a_light_pole(twin):
    # By the prior alone a light pole is thousands of times as likely: its range is wider.
    found = ratio_told(twin, 1.5)
    who = dimensions_of(twin, found.names)
    drawn = plausible(twin, found, who, draws=64)
    names = [p.name for p in twin.parameters]
    gains, masses = drawn.values[:, names.index(GAIN)], drawn.values[:, names.index(MASS)]
    assert np.abs(gains / 1.5 - 1 - (masses / 0.57 - 1)).max() < 0.01  # on the line, each of them
    strong, light = gains > 1.4, masses < 0.57 * 0.8
    assert strong.mean() > 0.15 and light.mean() > 0.05 and not (strong & light).any()
    again = plausible(twin, found, who, draws=64, seed=5)
    assert np.abs(again.chance - drawn.chance).max() < 0.1  # the chain has settled


@pytest.mark.slow
def test_states_are_drawn_as_often_as_their_evidence_says():
    rng = np.random.default_rng(4)
    slopes = rng.normal(size=(3, 3)) * [2.0, 1.0, 0.4]
    told = Likelihood(slopes @ slopes.T + np.eye(3), slopes @ rng.normal(size=3) * 2.0)
    chain = StateChain(told, np.array([0, 0, 1]), np.random.default_rng(1))
    visited = np.array([chain.sweep() for _ in range(6000)])
    states = np.array(list(product(range(5), repeat=3)))
    weights = np.exp([chain.log_chance(state) for state in states])
    for off in game(3)[0]:
        exact = weights[((states > 0) == off).all(axis=1)].sum() / weights.sum()
        assert ((visited > 0) == off).all(axis=1).mean() == pytest.approx(exact, abs=0.03)


@pytest.mark.slow
def test_one_that_stands_in_for_another_is_found_among_many():
    # Two of twenty are told to the last digit together, and not at all apart.
    ratio = np.zeros(20)
    ratio[[3, 17]] = 1.0, 1.0
    told = Likelihood(1e6 * np.outer(ratio, ratio) + 1e4 * np.diag(1 - ratio), 1e6 * 3.0 * ratio)
    shares = []
    for seed in range(4):
        chain = StateChain(told, np.arange(20) // 10, np.random.default_rng(seed))
        visited = np.array([chain.sweep() for _ in range(400)])
        shares.append((visited[:, 3] > 0).mean())
    assert np.std(shares) < 0.05 and np.mean(shares) == pytest.approx(0.55, abs=0.1)


@pytest.mark.slow
def test_what_a_bound_forbids_is_not_blamed(twin):
    # Gain and delay are told together only: four widths less, of which a delay cannot be one.
    delay = "actuator/hinge/delay"
    two = [p for p in twin.parameters if p.name in (GAIN, delay)]
    scales = np.array([p.prior_std for p in two])
    told = 1e4 * np.ones((2, 2))
    covariance = np.linalg.inv(told + np.eye(2))
    mean = [p.nominal for p in two] + scales * (covariance @ told @ [-2.0, -2.0])
    found = gaussian(two, mean, covariance * np.outer(scales, scales))
    drawn = plausible(twin, found, dimensions_of(twin, found.names), draws=256)
    columns = [[p.name for p in twin.parameters].index(p.name) for p in two]
    x = (drawn.values[:, columns] - [p.nominal for p in two]) / scales
    assert np.abs(x.sum(axis=1) + 4).max() < 0.1
    delays = x[:, [p.name for p in two].index(delay)]
    assert delays.min() > -1.3 and (delays == 0).mean() > 0.3  # most often it is right


@pytest.mark.slow
def test_chance_in_few_samples_is_not_taken_for_knowledge(twin):
    open_ = open_parameters(twin)
    rng = np.random.default_rng(0)
    rows = [[p.nominal + p.prior_std * rng.normal() for p in open_] for _ in range(60)]
    found = Empirical(names=tuple(p.name for p in open_), samples=tuple(map(tuple, rows)))
    drawn = plausible(twin, found, dimensions_of(twin, found.names), draws=8)
    assert drawn.chance == pytest.approx(0.5, abs=0.1)  # as before any recording


@pytest.mark.slow
def test_what_recordings_do_not_tell_is_off_by_no_more_than_its_range(twin):
    known = belief(twin, {"joint/hinge/damping": 0.03}, only=("joint/hinge/damping", MASS))
    mass = next(p for p in twin.parameters if p.name == MASS)
    column = known.names.index(MASS)
    covariance = np.array(known.covariance)
    covariance[column, column] = mass.prior_std**2
    found = gaussian([p for p in twin.parameters if p.name in known.names], known.mean, covariance)
    drawn = plausible(twin, found, dimensions_of(twin, found.names), draws=512)
    values = drawn.values[:, [p.name for p in twin.parameters].index(MASS)]
    assert drawn.off.all() and 0.3 < values.std() / mass.prior_std < 1.1


def grouped(resampled):
    """Names of groups among dimensions a, b, c, … of which (dimensions, n) resamples are given."""
    found = confounded_dimensions(
        "abcdefgh"[: len(resampled)],
        resampled.mean(axis=1).tolist(),
        lambda group: interval_of(resampled[list(group)].sum(axis=0)),
    )
    return [group.names for group in found]


def test_dimensions_whose_sum_alone_is_known_are_told_together():
    rng = np.random.default_rng(0)
    which = rng.choice(3, p=[0.5, 0.3, 0.2], size=4000)[None] == np.arange(3)[:, None]
    late = rng.normal(49.0, 3.0, size=(1, 4000))
    noise = rng.normal(size=(4, 4000))
    pair = np.concatenate([50.0 * which[:1], late, 50.0 * ~which[:1]]) + noise[:3]
    assert grouped(pair) == [("a", "c")]
    assert grouped(np.concatenate([50.0 * which, late]) + noise) == [("a", "b", "c")]
    # A sum that is known does not make what each part is known to be unknown.
    assert not grouped(np.concatenate([late, 100.0 - late]))
    assert not grouped(rng.normal(20.0, 15.0, size=(2, 4000)))
    # What cancels is nothing, however well that is known.
    one = rng.normal(30.0, 40.0, size=(1, 4000))
    assert not grouped(np.concatenate([one, 1.0 - one + noise[:1]]))


@pytest.mark.slow
def test_dimensions_that_are_right_stay_exactly_so(twin):
    found = belief(twin, {GAIN: 1.1})
    who = dimensions_of(twin, found.names)
    drawn = plausible(twin, found, who, draws=16, seed=3)
    nominal = np.array([p.nominal for p in twin.parameters])
    for dimension, columns in enumerate(who.columns):
        right = ~drawn.off[:, dimension]
        assert (drawn.values[right][:, columns] == nominal[list(columns)]).all()
    assert drawn.off[:, who.names.index("actuation")].all()
    assert drawn.off[:, who.names.index("dynamics")].mean() < 0.2


@pytest.mark.slow
def test_draws_without_moments_of_their_own_are_weighed_by_those_of_the_draws(twin):
    rng = np.random.default_rng(0)
    samples = tuple((1.1 + 0.002 * float(z),) for z in rng.normal(size=200))
    found = Empirical(names=(GAIN,), samples=samples)
    drawn = plausible(twin, found, dimensions_of(twin, found.names), draws=8)
    column = [p.name for p in twin.parameters].index(GAIN)
    assert drawn.off.all() and np.abs(drawn.values[:, column] - 1.1).max() < 0.01


def test_a_twin_that_was_not_identified_is_refused(twin):
    with pytest.raises(Sim2RealError, match="identify it first"):
        identified(twin, twin)
    after = twin.with_posterior(belief(twin))
    other = replace(twin, parameters=twin.parameters[1:])
    with pytest.raises(Sim2RealError, match="no such parameter"):
        identified(other, after)


def attribution(of="success", **changes):
    cause = Cause(
        name="actuator/hinge/delay", unit="s", before=0.01, after=0.043, low=0.04, high=0.046,
        effect=30.0,
    )  # fmt: skip
    shares = (
        Share(name="latency", value=31.0, low=24.0, high=38.0, causes=(cause,)),
        Share(name="sensing", value=0.2, low=-1.0, high=1.0),
        Share(name="actuation", value=-6.0, low=-9.0, high=-3.0),
    )
    values = {
        "of": of,
        "unit": "points",
        "whole": 30.2,
        "before": 90.0,
        "after": 64.8,
        "shares": shares,
        "unexplained": Share(name="unexplained", value=5.0, low=-2.0, high=12.0),
        "samples": 64,
        "draws": 8,
    }
    return Attribution(**(values | changes))


def test_sentences_say_what_is_clear_and_why():
    first, second = attribution().sentences()
    assert first == "latency costs 31 [24, 38] points: actuator/hinge/delay is 43 ms, not 10"
    assert second == "actuation saves 6.0 [3.0, 9.0] points"
    assert "explains 31 [24, 38] % of the error" in attribution("trajectory").sentences()[0]
    right = replace(attribution().shares[0].causes[0], after=0.01, chance=0.0, effect=0.0)
    nothing = replace(attribution().shares[1], causes=(right,))
    assert attribution(shares=(nothing,)).sentences() == ["sensing costs 0.2 [-1.0, 1.0] points"]
    unclear = attribution(shares=attribution().shares[1:2]).sentences()
    assert len(unclear) == 1 and unclear[0].startswith("sensing costs 0.2")


def test_only_ranges_that_do_not_hold_the_robot_are_to_be_widened(twin):
    ranges = {p.name: p.prior.support for p in open_parameters(twin)}
    low, high = ranges[GAIN]
    weak = Cause(name=GAIN, unit="", before=1.0, after=0.5 * low, low=0.4 * low, high=0.6 * low)
    middle = np.mean(ranges[MASS])
    # The posterior of what was not told is as wide as its prior, and a little wider.
    vague = Cause(name=MASS, unit="kg", before=middle, after=middle, low=0.0, high=9.0)

    def advised(*causes):
        share = Share(name="actuation", value=30.0, low=20.0, high=40.0, causes=causes)
        (one,) = advise(twin, success=attribution(shares=(share,), unexplained=None))
        return one.do

    assert (
        advised(weak, vague)
        == f"widen 1 range of actuation: {GAIN} to {0.4 * low:.3g} … {high:.3g}"
    )
    assert "posterior" in advised(vague)


def test_what_was_done_is_not_advised_and_every_command_is_one(twin):
    low, high = {p.name: p.prior.support for p in open_parameters(twin)}[GAIN]
    inside = Cause(name=GAIN, unit="", before=1.0, after=0.5 * (low + high), low=low, high=high)
    share = Share(name="actuation", value=30.0, low=20.0, high=40.0, causes=(inside,))
    vague = Share(
        name="inertia", value=1.0, low=-5.0, high=9.0, causes=(replace(inside, name=MASS),)
    )
    rest = Share(name="unexplained", value=20.0, low=9.0, high=30.0)
    lost = attribution(shares=(share, vague), unexplained=rest)
    told = {"identifiability": {"shrinkage": {MASS: 0.1}, "identifiable": ()}}
    slow = Complaint(name="degrades over time", why="later ones fail", p_value=0.01)
    fell = Failures(tried=9, failed=3, kinds=(), diagnoses=(slow,))

    def advised(**options):
        parts = {"success": lost, "failures": fell, "identified": told}
        return advise(twin, won=[True] * 30, target=0.95, **parts, **options)

    assert len(advised()) == len(advised(cured=True)) + 1
    commands = [part for one in advised() for part in one.command.split(";") if part]
    assert len(commands) == 6
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "sim2real" and parse(words)


def either():
    """An attribution in which a gain and a mass are not told apart."""
    gain = Cause(
        name=GAIN,
        unit="N m/N m",
        before=1.0,
        after=1.44,
        low=1.4,
        high=1.5,
        effect=30.0,
        chance=0.7,
    )
    mass = Cause(
        name=MASS, unit="kg", before=0.57, after=0.4, low=0.37, high=0.58, effect=20.0, chance=0.6
    )
    shares = (
        *attribution().shares[:1],
        Share(name="actuation", value=30.0, low=-1.0, high=51.0, causes=(gain,)),
        Share(name="dynamics", value=21.0, low=-1.0, high=51.0, causes=(mass,)),
    )
    group = ConfoundedDimensions(names=("actuation", "dynamics"), value=51.0, low=48.0, high=60.0)
    return attribution(shares=shares, together=(group,), unexplained=None)


def test_what_is_told_only_together_is_said_once_and_advised_to_be_measured(twin):
    first, second = either().sentences()
    assert first == (
        "actuation and dynamics cost 51 [48, 60] points together, and the recordings cannot"
        f" separate them: {GAIN} is 1.44, not 1 (with a chance of 70 %), or {MASS} is 0.4 kg, not"
        " 0.57 (with a chance of 60 %)"
    )
    assert second.startswith("latency costs 31")
    told = {"identifiability": {"shrinkage": {GAIN: 0.7}, "identifiable": ()}}
    late, measure = advise(twin, success=either(), identified=told, cured=True)
    assert "latency" in late.do
    assert measure.do.startswith(f"measure {GAIN} or {MASS} by other means")
    assert "train" in advise(twin, success=either())[1].do  # either is cured by the same training
    assert Attribution.from_dict(json.loads(json.dumps(either().to_dict()))) == either()


def test_an_attribution_is_plain_data():
    data = json.loads(json.dumps(attribution().to_dict()))
    assert [share["name"] for share in data["shares"]] == ["latency", "sensing", "actuation"]
    assert data["shares"][0]["causes"][0]["after"] == 0.043
    assert data["shares"][0]["clear"] and not data["shares"][1]["clear"]


@pytest.mark.parametrize("unexplained", [True, False])
def test_a_waterfall_with_a_negative_share_is_drawn(tmp_path, unexplained):
    found = attribution() if unexplained else attribution(unexplained=None)
    plot_attribution(tmp_path / "found.png", found)
    assert (tmp_path / "found.png").stat().st_size > 5000


def test_what_no_prediction_depends_on_has_no_part_in_the_error(twin):
    found = Empirical(names=("sensor/hinge_pos/noise",), samples=((0.004,), (0.005,)))
    with pytest.raises(Sim2RealError, match="no prediction"):
        attribute_trajectory(twin, twin.with_posterior(found), [])
