"""Measuring a gap: errors over the horizon, the verdict, the page and the verb."""

import json
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from sim2real.cli.main import main
from sim2real.data.formats import write_episodes
from sim2real.errors import Sim2RealError
from sim2real.gap.horizon_errors import channel_gaps
from sim2real.gap.measure import measure_gap
from sim2real.gap.replayed_pairs import make_pairs
from sim2real.params import GaussianPosterior
from sim2real.report.gap_page import write_gap
from tests.gap_recordings import recorded
from tests.simulated import bundle_and_twin, simulate

FRICTION = "joint/hinge/frictionloss"


@pytest.fixture(scope="module")
def twin():
    return bundle_and_twin("pendulum-swingup")[1]


@pytest.fixture(scope="module")
def rubbing(twin):
    """Logs of a robot with more friction, and the gap they show."""
    logs = recorded(twin, seconds=12, values={FRICTION: 0.08})
    return logs, measure_gap(twin, logs, threads=1)


@pytest.mark.slow
def test_the_errors_of_a_right_twin_are_at_the_floor_and_small_against_staying(twin):
    pairs = make_pairs(twin, recorded(twin), horizon_s=0.5, most=400, threads=1)
    for channel in channel_gaps(pairs):
        assert channel.ratio_low < 1 < channel.ratio_high and 0.85 < channel.ratio < 1.15
        assert channel.predicts and channel.stays[-1] > 5 * channel.error
        assert channel.lag is None or not channel.lag.told
        assert (np.array(channel.low) <= channel.rms).all()
        assert (np.array(channel.high) >= channel.rms).all()
        assert len(channel.rms) == 25 and channel.times_s[-1] == pytest.approx(0.5)


@pytest.mark.slow
def test_a_sensor_that_is_off_by_an_offset_is_off_by_that_at_every_step(twin):
    logs = recorded(twin, count=2)
    pairs = make_pairs(twin, logs, horizon_s=0.2, most=400, threads=1)
    # The robot's position jumps by ten noise levels where each segment starts.
    later = replace(pairs.real, measured=pairs.real.measured + np.array([0.02, 0.0]))
    (position, speed), (before, _) = (
        channel_gaps(replace(pairs, real=real)) for real in (later, pairs.real)
    )
    expected = np.hypot(before.rms, 0.02)
    assert np.allclose(position.rms, expected, rtol=0.15)
    assert position.in_noise == pytest.approx(position.error / 0.002048, rel=0.01)
    assert position.in_spread == pytest.approx(position.error / position.spread)
    assert speed.rms == channel_gaps(pairs)[1].rms


def test_a_robot_that_is_later_than_predicted_shows_its_lag(twin):
    pairs = make_pairs(twin, recorded(twin, count=2), horizon_s=0.5, most=400, threads=1)
    shifted = pairs.real.measured.copy()
    shifted[:, 2:] = pairs.real.predicted[0][:, :-2]  # two periods of 20 ms
    late = channel_gaps(replace(pairs, real=replace(pairs.real, measured=shifted)))
    for channel in late:
        assert channel.lag.seconds == pytest.approx(0.04, abs=0.006)
        assert channel.lag.dominates and channel.lag.low > 0.03


@pytest.mark.slow
def test_more_friction_is_the_verdict_with_a_channel_a_size_and_a_chance(rubbing):
    _, gap = rubbing
    assert gap.found and gap.p_value < 0.01
    assert gap.worst.ratio_low > 1.2
    assert gap.verdict.startswith("the twin is off by ") and f"on {gap.worst.name}" in gap.verdict
    assert "a classifier separates real from simulated" in gap.verdict
    assert "p ≤ 0.0005" in gap.verdict
    told = json.loads(json.dumps(gap.to_dict(), allow_nan=False))
    assert told["found"] and set(told["channels"]) == {"hinge_pos", "hinge_vel"}
    assert told["places_looked_at"] == len(gap.places) > 100
    assert len(told["recordings"]) == 4 and told["coverage"] is None


@pytest.mark.slow
def test_a_right_twin_has_no_gap(twin):
    gap = measure_gap(twin, recorded(twin, seconds=10, seed=5), threads=1, seed=5)
    assert not gap.found and gap.verdict.startswith("no gap is found in 40 s")


@pytest.mark.slow
def test_a_sensor_that_is_stuck_has_no_spread_to_be_a_share_of(twin):
    logs = recorded(twin, count=2)
    stuck = [replace(log, readings=log.readings * [1.0, 0.0]) for log in logs]
    gap = measure_gap(twin, stuck, threads=1)
    position, speed = gap.channels
    assert position.moves and not speed.moves and speed.in_spread is None
    assert speed.spread_words == "does not move" and position.spread_words.endswith(" %")
    assert any("readings of hinge_vel hardly change" in note for note in gap.notes)
    json.dumps(gap.to_dict(), allow_nan=False)


def test_few_segments_are_told_apart_on_shorter_ones(twin):
    gap = measure_gap(twin, recorded(twin, count=1, seconds=4, values={FRICTION: 0.08}), threads=1)
    assert gap.segments < 8 and all(distance.pairs > 15 for distance in gap.distances)
    assert gap.found and gap.verdict.startswith("the twin is off by ")
    assert gap.channels[0].times_s[-1] == pytest.approx(0.5)  # errors are of the whole horizon
    assert any("also use segments of 0.1 s" in note for note in gap.notes)


def test_too_few_segments_to_tell_are_called_so(twin):
    gap = measure_gap(
        twin, recorded(twin, count=1, seconds=1.8, values={FRICTION: 0.08}), threads=1
    )
    assert not gap.found and not gap.distances
    assert gap.verdict.startswith("too few segments to tell (12 are needed")


@pytest.mark.slow
def test_the_verdict_does_not_contradict_the_places_that_are_listed(rubbing):
    _, gap = rubbing
    unsure = [replace(d, mmd_p=0.3, accuracy_p=0.2) for d in gap.distances]
    for p_value, found in ((0.03, False), (0.02, True)):
        places = [replace(place, p_value=p_value, excess=1.0) for place in gap.places[:3]]
        other = replace(gap, distances=tuple(unsure), places=tuple(places))
        assert other.found == found == bool(other.worst_places)
        assert other.verdict.startswith("the twin is off by " if found else "a gap is not shown in")
        assert (f"(p = {p_value})" in other.verdict) == found
        assert "a classifier" not in other.verdict or not found
        untested = replace(other, distances=())
        assert untested.found == found == untested.verdict.startswith("the twin is off by ")


@pytest.mark.slow
def test_a_posterior_adds_its_coverage_and_its_band(twin, rubbing, tmp_path):
    logs, _ = rubbing
    posterior = GaussianPosterior(
        names=(FRICTION,), mean=(0.08,), covariance=((1e-5,),), low=(0.0,), high=(0.3,)
    )
    gap = measure_gap(twin.with_posterior(posterior), logs, seed=7, threads=1)
    assert gap.coverage is not None and gap.overlays[0].low is not None
    assert gap.worst.ratio < 1.25  # the best guess is the posterior's
    write_gap(tmp_path / "gap.html", gap)
    page = (tmp_path / "gap.html").read_text()
    assert "Coverage of the posterior" in page and "The band is 95 % of" in page
    assert page.count("<img") >= 5 and "http" not in page


def test_logs_that_are_too_short_or_of_several_rates_are_refused(twin):
    with pytest.raises(Sim2RealError, match="choose a shorter horizon"):
        measure_gap(twin, recorded(twin, count=1, seconds=0.4))
    log = recorded(twin, count=1, seconds=3)[0]
    other = replace(log, contract=replace(log.contract, rate_hz=100.0))
    with pytest.raises(Sim2RealError, match="control rates from 50 to 100 Hz"):
        measure_gap(twin, [log, other])
    with pytest.raises(Sim2RealError, match="--horizon-s must be a positive number"):
        measure_gap(twin, [log], horizon_s=0.0)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--horizon-s", "inf"), "--horizon-s must be a positive number"),
        (("--horizon-s", "nan"), "--horizon-s must be a positive number"),
        (("--seed", "-1"), "--seed must not be negative, got -1"),
    ],
)
def test_an_option_that_is_none_is_one_line_before_anything_is_read(option, words, capsys):
    assert main(["gap", "nowhere", "--logs", "nowhere.npz", *option]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_readings_no_world_can_start_from_leave_one_line_and_no_file(
    twin, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    log = recorded(twin, count=1, seconds=3)[0]
    with pytest.raises(Sim2RealError, match="diverges from every start"):
        measure_gap(twin, [replace(log, readings=np.full_like(log.readings, 1e300))], threads=2)
    assert not list(tmp_path.iterdir()) and capfd.readouterr().out == ""
    assert mujoco.get_mju_user_warning() is None


@pytest.mark.slow
def test_the_verb_writes_a_page_and_refuses_what_it_cannot_compare(tmp_path, capsys):
    bundle, twin = bundle_and_twin("pendulum-swingup")
    write_episodes(tmp_path / "logs.npz", simulate(bundle, twin, count=2), format="npz")
    folder = str(bundle.folder)
    words = ["--logs", str(tmp_path / "logs.npz"), "--threads", "1", "--out"]
    first, other = str(tmp_path / "out"), str(tmp_path / "other")
    assert main(["gap", folder, *words, first, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["folder"] == first and len(told["recordings"]) == 2
    kept = json.loads((tmp_path / "out" / "gap.json").read_text())
    assert kept["verdict"] == told["verdict"]
    assert kept["verdict"][1:] in (tmp_path / "out" / "gap.html").read_text()
    assert main(["gap", folder, *words, first]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert main(["gap", folder, *words, other]) == 0
    assert "test of" in capsys.readouterr().out

    arm, _ = bundle_and_twin("arm-reach")
    another = str(tmp_path / "another")
    assert main(["gap", str(arm.folder), *words, another]) == 2
    error = capsys.readouterr().err
    assert "it is of another robot" in error and error.count("\n") == 1
    assert main(["gap", folder, *words, another, "--horizon-s", "100"]) == 2
    assert "choose a shorter horizon" in capsys.readouterr().err
