"""Attribution of planted gaps: the error and the success go to the dimension that is off."""

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sim2real.attribution.confounded import confounded_dimensions
from sim2real.attribution.lost_success import attribute_success, interval_of_sum, resampled_means
from sim2real.attribution.trajectory_error import attribute_trajectory, resampled_shares
from sim2real.cli.main import main
from sim2real.data import Lake
from sim2real.errors import Sim2RealError
from sim2real.evaluation.simulated_trials import run_trials
from sim2real.params import Empirical
from sim2real.policy import BundlePolicy, FunctionPolicy
from sim2real.replay.unknowns import open_parameters
from sim2real.tasks import find_task
from sim2real.testing import plant, recordings
from tests.attribution.test_shares import GAIN, MASS, belief
from tests.repository import BUNDLES
from tests.simulated import bundle_and_twin, simulate

DELAY, BIAS = "actuator/hinge/delay", "sensor/hinge_pos/bias"


@pytest.fixture(scope="module")
def pendulum():
    return bundle_and_twin("pendulum-swingup")


def recorded(twin, values, seconds=4.0):
    row = np.array([[values.get(p.name, p.nominal) for p in twin.parameters]])
    return recordings(twin, row, seconds=seconds, rate_hz=50.0)


def by_name(found):
    return {share.name: share for share in found.shares}


@pytest.mark.slow
def test_the_error_goes_to_what_is_off_and_shares_sum_to_all_of_it(pendulum):
    _, twin = pendulum
    truth = {GAIN: 1.2, BIAS: 0.018}
    after = twin.with_posterior(belief(twin, truth))
    found = attribute_trajectory(twin, after, recorded(twin, truth), draws=6, segments=8, threads=1)
    shares = by_name(found)
    assert found.shares[0].name == "actuation"
    assert shares["actuation"].clear and shares["sensing"].clear
    assert not shares["dynamics"].clear and not shares["latency"].clear
    total = sum(share.value for share in found.shares) + found.unexplained.value
    assert total == pytest.approx(100.0)
    assert abs(found.unexplained.value) < 15 and found.after < 0.1 * found.before
    assert shares["actuation"].causes[0].name == GAIN
    assert shares["actuation"].causes[0].effect > 5


@pytest.mark.slow
def test_what_no_dimension_explains_is_unexplained(pendulum):
    _, twin = pendulum
    # The robot's friction is far off, but only its gain was identified, and found right.
    truth = {"joint/hinge/frictionloss": 0.2}
    after = twin.with_posterior(belief(twin, {GAIN: 1.03}))
    found = attribute_trajectory(twin, after, recorded(twin, truth), draws=4, segments=8, threads=1)
    assert found.unexplained.value > 50 and found.unexplained.low > 0


@pytest.mark.slow
def test_a_parameter_that_does_harm_only_with_another_is_named(pendulum, monkeypatch):
    _, twin = pendulum
    after = twin.with_posterior(belief(twin, {MASS: 0.4, DELAY: 0.05}))
    names = [p.name for p in twin.parameters]
    mass, delay = names.index(MASS), names.index(DELAY)

    def tried(*given, rows, **options):
        return SimpleNamespace(success=~((rows[:, mass] < 0.5) & (rows[:, delay] > 0.03)))

    monkeypatch.setattr("sim2real.attribution.lost_success.run_trials", tried)
    found = attribute_success(twin, after, find_task("pendulum-swingup"), None, draws=4, each=2)
    shares = by_name(found)
    for dimension, cause in (("dynamics", MASS), ("latency", DELAY)):
        assert shares[dimension].value == pytest.approx(50.0)
        assert shares[dimension].causes[0].name == cause
        assert shares[dimension].causes[0].effect == pytest.approx(50.0)
    assert all(cause.effect == 0.0 for cause in shares["dynamics"].causes[1:])


@pytest.mark.slow
def test_a_twin_that_is_right_has_nothing_to_attribute(pendulum):
    _, twin = pendulum
    after = twin.with_posterior(belief(twin))
    with pytest.raises(Sim2RealError, match="no error to attribute"):
        attribute_trajectory(twin, after, recorded(twin, {}), draws=2, segments=8, threads=1)


@pytest.mark.slow
def test_refits_show_that_a_mass_could_stand_in_for_a_gain(pendulum):
    _, twin = pendulum
    truth = {GAIN: 1.12}
    after = twin.with_posterior(belief(twin, truth, only=(GAIN, MASS, DELAY)))
    found = attribute_trajectory(
        twin, after, recorded(twin, truth), draws=2, segments=8, with_refits=True, threads=1
    )
    shares = by_name(found)
    assert shares["actuation"].value > 90 and abs(shares["dynamics"].value) < 2
    tried = shares["dynamics"].refit
    assert tried.alone < 20 and tried.share > 20  # by refits alone it would be to blame
    assert shares["actuation"].refit.without < 20
    assert shares["latency"].refit.alone > 50


@pytest.mark.slow
def test_success_lost_to_a_delay_is_blamed_on_latency(pendulum):
    bundle, twin = pendulum
    after = twin.with_posterior(belief(twin, {DELAY: 0.076, GAIN: 1.05}))
    done = []
    found = attribute_success(
        twin,
        after,
        find_task("pendulum-swingup"),
        BundlePolicy(bundle),
        real=(2, 10),
        draws=4,
        each=8,
        threads=1,
        report=lambda a, b: done.append((a, b)),
    )
    assert found.shares[0].name == "latency" and found.shares[0].value > 10
    assert found.shares[0].causes[0].name == DELAY
    total = sum(share.value for share in found.shares)
    assert total == pytest.approx(found.before - found.after)
    assert found.whole == pytest.approx(found.before - 20.0)
    assert found.unexplained.value == pytest.approx(found.after - 20.0)
    assert found.unexplained.low < found.unexplained.value < found.unexplained.high
    # Nothing of it moved, and all else was the same.
    assert by_name(found)["sensing"].value == pytest.approx(0.0, abs=1e-9)
    assert done[-1][0] == done[-1][1]


def test_trials_scatter_is_not_taken_for_robots_that_differ():
    rng = np.random.default_rng(0)
    same = 100.0 * (rng.uniform(size=(1, 40, 25)) < 0.5)
    low, high = np.percentile(resampled_means(same, 0), (2.5, 97.5))
    assert low < same.mean() < high and high - low < 20  # 25 trials alone would have it at 39
    rates = np.where(np.arange(40) % 2, 0.9, 0.1)[None, :, None]
    differ = 100.0 * (rng.uniform(size=(1, 40, 25)) < rates)
    low, high = np.percentile(resampled_means(differ, 0), (2.5, 97.5))
    assert low < 20 and high > 80


def test_stand_ins_are_told_together_though_trials_scatter():
    # Half of the robots lose half of their success by one, the other half by the other.
    rng = np.random.default_rng(0)
    lost = np.where(rng.uniform(size=(32, 16)) < 0.5, 100.0, 0.0)
    which = (np.arange(32) % 2 == 0)[:, None]
    parts = np.stack([lost * which, lost * ~which])
    found = confounded_dimensions(
        ("a", "b"), parts.mean(axis=(1, 2)).tolist(), partial(interval_of_sum, parts, seed=0)
    )
    assert [group.names for group in found] == [("a", "b")]
    assert found[0].low < lost.mean() < found[0].high < found[0].low + 25


def test_given_rows_are_what_is_tried(pendulum):
    _, twin = pendulum
    nominal = np.array([p.nominal for p in twin.parameters])
    rows = np.stack([nominal, nominal])
    rows[1, 0] = 0.6
    task = find_task("pendulum-swingup")

    policy = FunctionPolicy(task, lambda seen: torch.zeros(len(seen), 1))

    def tried(**options):
        return run_trials(
            task, policy, seed=0, source="nominal", twin=twin,
            threads=1, **options,
        )  # fmt: skip

    found = tried(episodes=4, rows=rows, each=2)
    assert np.allclose(found.values, np.repeat(rows, 2, axis=0))
    plain = tried(episodes=4, rows=np.repeat(nominal[None], 4, axis=0))
    assert np.allclose(plain.values, nominal)


@pytest.fixture(scope="module")
def identified(pendulum, tmp_path_factory):
    """A lake of episodes at a planted gain, and the twin identified from them."""
    bundle, twin = pendulum
    folder = tmp_path_factory.mktemp("attribute")
    Lake.create(str(folder / "lake")).append(simulate(bundle, twin, count=2, values={GAIN: 1.15}))
    known = Empirical(names=(GAIN, DELAY), samples=((1.15, 0.011), (1.16, 0.01), (1.14, 0.009)))
    twin.with_posterior(known).save(folder / "found" / "twin")
    return folder


@pytest.mark.slow
def test_the_verb_writes_shares_and_plots(identified, tmp_path, capsys):
    words = ["attribute", str(BUNDLES / "pendulum-swingup"), "--logs", str(identified / "lake")]
    words += ["--identified", str(identified / "found"), "--draws", "2", "--segments", "6"]
    words += ["--policy", str(BUNDLES / "pendulum-swingup"), "--real", "3/10", "--each", "2"]
    assert main([*words, "--threads", "1", "--out", str(tmp_path / "out"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["trajectory"]["shares"][0]["name"] == "actuation"
    assert data["success"]["unexplained"] is not None
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"result.json", "report.html", "trajectory.png", "success.png"}
    assert main([*words, "--out", str(tmp_path / "out")]) == 2  # not empty


def test_real_trials_that_are_none_are_a_mistake(identified, capsys):
    words = ["attribute", str(BUNDLES / "pendulum-swingup"), "--logs", str(identified / "lake")]
    assert main([*words, "--real", "3/10"]) == 2
    assert "--policy" in capsys.readouterr().err
    assert main([*words, "--policy", "here", "--real", "12/10"]) == 2
    assert "12/20" in capsys.readouterr().err


def test_a_plant_leaves_something_right_and_something_off(pendulum):
    _, twin = pendulum
    nominal = np.array([p.nominal for p in twin.parameters])
    of = {p.name: str(p.dimension) for p in twin.parameters}
    counts = set()
    for seed in range(30):
        found = plant(twin, np.random.default_rng(seed))
        pairs = zip(twin.parameters, found.values, nominal, strict=True)
        moved = {p.name for p, a, b in pairs if a != b}
        assert {of[name] for name in moved} == set(found.off)
        assert found.off and found.right and not set(found.off) & set(found.right)
        assert moved <= {p.name for p in open_parameters(twin)}
        counts.add(len(found.off))
    assert counts == {1, 2, 3}


def test_a_gap_in_a_single_stretch_has_an_interval_of_sensible_width():
    found = np.zeros((2, 4, 10))
    nobody = np.zeros(10)
    nobody[3] = 50.0
    nobody[[0, 1]] = -2.0, 1.0
    found[0, :, 3], found[1] = 50.0, 0.0
    values, resampled = resampled_shares(found, nobody, seed=0)
    low, high = np.percentile(resampled, [2.5, 97.5], axis=1)
    assert values[0] == pytest.approx(100 * 50 / 49)
    assert low[0] == 0.0 and high[0] < 500  # no resample without the gap is divided by nothing
    assert low[1] == high[1] == 0.0
