"""The drift monitor: its false alarms are as rare as stated, and it names what moved."""

import itertools
import json

import numpy as np
import pytest

from sim2real.cli.drift import run_drift
from sim2real.data import Provenance
from sim2real.data.formats.recording import read_recording
from sim2real.errors import Sim2RealError
from sim2real.logs.control_log import ControlLog
from sim2real.policy import Pilot, Runtime
from sim2real.replay.linearization import sensitivity
from sim2real.robot import (
    DriftConfig,
    Recording,
    StandIn,
    Supervisor,
    watch_drift,
)
from sim2real.robot.drift.blame import causes, change_point
from sim2real.robot.drift.monitor import HORIZON_S, DriftMonitor, DriftScores
from sim2real.robot.drift.ranks import RankEvidence
from sim2real.robot.runner import fly
from tests.simulated import bundle_and_twin, simulate


def evidence_of(numbers, baseline):
    stream = RankEvidence(numbers[:baseline])
    return [stream.add(number) for number in numbers[baseline:]]


def short(episode, seconds=3.0):
    channels = {n: s.between(0.0, seconds) for n, s in episode.signals.items()}
    return episode.derive("cut", channels=channels)


@pytest.fixture(scope="module")
def pendulum():
    """Forty episodes of one pendulum, replayed: (bundle, twin, scores, informations)."""
    bundle, twin = bundle_and_twin("pendulum-swingup")
    episodes = [short(episode) for episode in simulate(bundle, twin, count=40, seed=7)]
    found = [
        sensitivity(twin, ControlLog.of(episode, bundle.contract), horizon_s=HORIZON_S)
        for episode in episodes
    ]
    return bundle, twin, episodes, found


def monitor_of(bundle, found, *, baseline, false_alarm=0.01):
    monitor = DriftMonitor.empty(bundle, baseline=baseline, false_alarm=false_alarm)
    for sensed in found:
        monitor.take(DriftScores.of(sensed), sensed.information)
    return monitor


def test_the_evidence_is_fair_over_every_order_of_the_numbers():
    orders = itertools.permutations([0.1, 5.0, -2.0, 3.3, 0.7, 9.0])
    last = [np.exp(evidence_of(order, 3)[-1]) for order in orders]
    assert np.mean(last) == pytest.approx(1.0, abs=1e-12)
    assert np.std(last) > 0.5  # and it does bet


def test_ties_only_make_the_evidence_smaller():
    orders = itertools.permutations([1.0, 1.0, 2.0, 2.0, 2.0, 3.0])
    assert np.mean([np.exp(evidence_of(order, 3)[-1]) for order in orders]) < 1.0
    assert evidence_of([0.0] * 30, 10)[-1] < 0


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_stated_whatever_the_distribution():
    generator = np.random.default_rng(11)
    alarms, streams, rate = 0, 2000, 0.1
    for stream in range(streams):
        kind = stream % 3
        numbers = (
            generator.standard_cauchy(60)
            if kind == 0
            else generator.exponential(size=60)
            if kind == 1
            else generator.integers(0, 5, size=60).astype(float)
        )
        alarms += max(evidence_of(numbers, 20)) >= np.log(1 / rate)
    assert 0 < alarms / streams <= rate + 3 * np.sqrt(rate * (1 - rate) / streams)


def test_a_clear_change_is_noticed_within_a_few_episodes_and_a_slow_one_later():
    generator = np.random.default_rng(3)
    numbers = generator.normal(size=80)
    numbers[50:] += 6.0
    logs = np.array(evidence_of(numbers, 20))
    assert logs[:30].max() < np.log(100)
    assert np.argmax(logs >= np.log(100)) - 30 < 8
    trend = generator.normal(size=120) + 0.05 * np.maximum(0, np.arange(120) - 20)
    assert max(evidence_of(trend, 20)) > np.log(100)


def test_numbers_that_are_missing_are_left_out():
    numbers = [0.3, 1.0, 2.0, 0.5, 1.5, 7.0, 8.0]
    gaps = [0.3, np.nan, 1.0, 2.0, 0.5, 1.5, 7.0, np.nan, 8.0]
    assert evidence_of(gaps, 6)[-1] == evidence_of(numbers, 5)[-1]


@pytest.mark.slow
def test_a_monitor_of_simulated_episodes_keeps_its_false_alarm_rate_in_any_order(pendulum):
    bundle, _, _, found = pendulum
    generator = np.random.default_rng(5)
    rate, orders, alarms = 0.2, 150, 0
    for _ in range(orders):
        shuffled = [found[k] for k in generator.permutation(len(found))]
        alarms += monitor_of(bundle, shuffled, baseline=15, false_alarm=rate).alarm is not None
    assert alarms / orders <= rate + 3 * np.sqrt(rate * (1 - rate) / orders)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("joint/hinge/frictionloss", 0.05),
        ("actuator/hinge/delay", 0.018),
        ("sensor/hinge_pos/bias", 0.04),
    ],
)
def test_a_moved_parameter_of_the_pendulum_is_noticed_dated_and_named(pendulum, name, value):
    bundle, twin, _, found = pendulum
    monitor = monitor_of(bundle, found[:30], baseline=20)
    assert monitor.alarm is None
    for episode in simulate(bundle, twin, count=10, seed=100, values={name: value}):
        monitor.add(short(episode))
    report = monitor.report()
    assert report.drifted and 31 < report.alarm <= 39
    assert abs(report.change - 31) <= 1
    first = report.causes[0]
    assert name in (first.name, *first.alike)
    moved = value - twin.parameter(name).nominal
    assert first.shift == pytest.approx(moved, rel=0.4) and first.p_value < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "name", "value"),
    [
        ("arm-reach", "actuator/shoulder_lift/kp", 0.85),
        ("arm-push", "actuator/*/delay", 0.035),
    ],
)
def test_a_moved_parameter_of_an_arm_is_noticed_and_named(task, name, value):
    bundle, twin = bundle_and_twin(task)
    old = simulate(bundle, twin, count=12, seed=1)
    new = simulate(bundle, twin, count=8, seed=200, values={name: value})
    episodes = [short(episode, 1.6) for episode in old + new]
    report = watch_drift(bundle, episodes, baseline=10, false_alarm=0.05)
    assert report.alarm is not None and report.alarm > 13
    assert abs(report.change - 13) <= 1
    assert name in (report.causes[0].name, *report.causes[0].alike)


@pytest.mark.slow
def test_a_robot_that_was_swapped_is_noticed_and_one_that_was_not_raises_no_alarm(tmp_path):
    bundle, _ = bundle_and_twin("pendulum-swingup")
    runtime = Runtime(bundle)

    def flown(unit, count, first):
        found = []
        with StandIn(unit, "pendulum-swingup") as robot:
            for trial in range(first, first + count):
                file = tmp_path / f"{unit}-{trial}.arrow"
                source = Provenance(kind="real", robot="pendulum", serial=f"unit-{unit}")
                goals = robot.reset(trial)
                robot.enable()
                fly(
                    robot,
                    Pilot(runtime),
                    Supervisor(bundle.contract, bundle.limits),
                    robot,
                    goals=goals,
                    seconds=2.0,
                    person="ana",
                    execute=True,
                    recording=Recording.of(bundle.contract, file, source),
                )
                found.append(read_recording(file))
        return found

    monitor = DriftMonitor.empty(bundle, baseline=15, false_alarm=0.05)
    monitor.add_all(flown(21, 22, 0))  # a flight that the robot broke off may be left out
    same = len(monitor.state.episodes)
    assert same > 18 and monitor.alarm is None
    monitor.add_all(flown(22, 8, 50))
    report = monitor.report()
    assert report.alarm is not None and report.alarm > same
    assert abs(report.change - (same + 1)) <= 1


@pytest.mark.slow
def test_a_monitor_that_is_saved_goes_on_as_if_it_never_stopped(pendulum, tmp_path):
    bundle, _, episodes, found = pendulum
    whole = monitor_of(bundle, found[:12], baseline=8)
    monitor_of(bundle, found[:10], baseline=8).save(tmp_path / "monitor.json")
    again = DriftMonitor.load(tmp_path / "monitor.json", bundle)
    for episode in episodes[10:12]:
        again.add(episode)
    assert again.verdicts == whole.verdicts
    assert again.report().to_dict() == whole.report().to_dict()
    with pytest.raises(Sim2RealError, match="given twice"):
        again.add(episodes[0])


@pytest.mark.slow
def test_a_state_of_another_bundle_or_a_damaged_one_is_refused(pendulum, tmp_path):
    bundle, _, _, found = pendulum
    file = tmp_path / "monitor.json"
    monitor_of(bundle, found[:6], baseline=5).save(file)
    other, _ = bundle_and_twin("arm-reach")
    with pytest.raises(Sim2RealError, match="another bundle"):
        DriftMonitor.load(file, other)
    data = json.loads(file.read_text())
    for harm in ({"scales": "x"}, {"episodes": [{}]}, {"baseline": 2}, {"schema": 9}):
        file.write_text(json.dumps(data | harm))
        with pytest.raises(Sim2RealError):
            DriftMonitor.load(file, bundle)


def test_causes_are_found_with_their_size_and_those_that_look_alike_are_named_together():
    generator = np.random.default_rng(2)
    direction = generator.normal(size=(30, 4))
    direction[:, 3] = 2.0 * direction[:, 2]  # no log can tell the last two apart
    information = direction.T @ direction
    resolution = np.linalg.solve(information + np.eye(4), information)

    def shifts(*truth):
        estimate = generator.normal(size=(40, 4)) @ (0.1 * resolution)
        estimate[25:] += resolution @ np.array(truth)
        return estimate

    options = {
        "change": 25,
        "names": ("a", "b", "c", "d"),
        "units": ("kg", "", "", ""),
        "scales": np.array([0.5, 1.0, 1.0, 1.0]),
    }
    (first,) = causes(shifts(0.8, 0, 0, 0), information, **options)
    assert first.name == "a" and first.low < 0.4 < first.high and first.alike == ()
    assert first.explains > 0.9
    (first,) = causes(shifts(0, 0, 0.6, 0), information, **options)
    assert {first.name, *first.alike} == {"c", "d"}
    two = causes(shifts(0.8, -0.9, 0, 0), information, **options)
    assert {cause.name for cause in two} == {"a", "b"}
    assert not causes(shifts(0, 0, 0, 0), information, **options)


def test_the_change_is_dated():
    generator = np.random.default_rng(4)
    scores = generator.standard_t(3, size=(40, 2))
    scores[29:] += 5.0
    assert abs(change_point(scores, 20) - 29) <= 1


@pytest.mark.slow
def test_an_episode_that_is_too_short_to_replay_is_left_out_and_said_to_be(pendulum):
    bundle, _, episodes, _ = pendulum
    given = [*episodes[:3], short(episodes[3], 0.1), *episodes[4:8]]
    report = watch_drift(bundle, given, baseline=5)
    assert [verdict.number for verdict in report.verdicts] == [6, 7]
    assert len(report.skipped) == 1 and "shorter horizon" in report.skipped[0]


@pytest.mark.slow
def test_mistakes_are_told(pendulum):
    bundle, _, episodes, _ = pendulum
    with pytest.raises(Sim2RealError, match="no more than the baseline"):
        watch_drift(bundle, episodes[:5], baseline=5)
    with pytest.raises(Sim2RealError, match="too short"):
        watch_drift(bundle, episodes[:5], baseline=3)
    with pytest.raises(Sim2RealError, match="between 0 and 1"):
        watch_drift(bundle, episodes[:7], baseline=5, false_alarm=1.0)


@pytest.mark.slow
def test_the_verb_tells_drift_by_its_exit_code_and_draws_it(
    pendulum, tmp_path, monkeypatch, capsys
):
    bundle, twin, episodes, _ = pendulum
    moved = simulate(bundle, twin, count=7, seed=300, values={"actuator/hinge/delay": 0.022})
    moved = [short(episode) for episode in moved]
    given = {"same": episodes[:14], "moved": [*episodes[:12], *moved], "few": episodes[:3]}
    monkeypatch.setattr("sim2real.robot.drift.monitor.select", lambda paths, **_: given[paths[0]])
    options = {"bundle": bundle.folder, "baseline": 12, "false_alarm": 0.05}
    assert run_drift(DriftConfig(logs=("same",), **options)) == 0
    assert "no drift" in capsys.readouterr().out
    picture, state = tmp_path / "drift.png", tmp_path / "monitor.json"
    config = DriftConfig(logs=("moved",), json=True, out=picture, state=state, **options)
    assert run_drift(config) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["drifted"] and found["causes"][0]["name"] == "actuator/hinge/delay"
    assert picture.read_bytes().startswith(b"\x89PNG") and state.exists()
    assert run_drift(config) == 1  # all episodes are known: nothing is counted twice
    assert json.loads(capsys.readouterr().out) == found
    with pytest.raises(Sim2RealError, match="no more than the baseline"):
        run_drift(DriftConfig(logs=("few",), **options))
    with pytest.raises(Sim2RealError, match="must end in one of"):
        run_drift(DriftConfig(logs=("same",), out=tmp_path / "drift.xyz", **options))
