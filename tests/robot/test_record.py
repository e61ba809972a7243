"""Excitation: within the limits whatever is asked for, clear of everything, and kept."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim2real.cli.record import run_record
from sim2real.contract import CommandSpec, Contract, JointLimits, Limits, SensorSpec
from sim2real.data import Lake
from sim2real.data.formats.recording import read_recording
from sim2real.errors import Sim2RealError
from sim2real.robot import ExcitationPlan, ExcitedRobot, RecordConfig, StandIn, prepare_motion
from sim2real.robot.excite.clearance import CLEAR_M
from sim2real.robot.excite.plan import Envelope, Excitation, plan_motion, resting
from sim2real.robot.excite.record import chosen
from sim2real.robot.excite.recordings import MotionPlayer
from sim2real.twin import Twin, model_limits, twin_contract
from tests.repository import BUNDLES

HOME = np.array([0.0, -0.4, 0.5, 0.6, 0.0, 0.3])


def contract_of(units, rate_hz=50.0):
    return Contract(
        task="",
        robot="any",
        twin_version="0",
        rate_hz=rate_hz,
        history=1,
        sensors=tuple(
            SensorSpec(name=f"j{k}_pos", unit="rad", width=1, kind="jointpos", of=f"j{k}")
            for k in range(len(units))
        ),
        goals=(),
        observations=(),
        actions=(),
        commands=tuple(
            CommandSpec(name=f"j{k}", joint=f"j{k}", unit=unit, low=-9.0, high=9.0, default=0.0)
            for k, unit in enumerate(units)
        ),
    )


@st.composite
def joint_limits(draw, k):
    low = draw(st.floats(-4.0, 1.0))
    high = low + draw(st.floats(0.05, 6.0))
    return JointLimits(
        name=f"j{k}",
        position_low=low - draw(st.floats(-0.01, 1.0)),
        position_high=high + draw(st.floats(-0.01, 1.0)),
        velocity=draw(st.floats(0.2, 20.0)),
        acceleration=draw(st.floats(0.5, 300.0)),
        torque=1.0,
        command_low=low,
        command_high=high,
        command_rate=draw(st.floats(0.01, 20.0)),
    )


@st.composite
def cases(draw):
    units = draw(st.lists(st.sampled_from(["rad", "m", "N m"]), min_size=1, max_size=4))
    limits = Limits(
        joints=tuple(draw(joint_limits(k)) for k in range(len(units))),
        observation_low=(),
        observation_high=(),
    )
    start = np.array([draw(st.floats(j.command_low, j.command_high)) for j in limits.joints])
    return contract_of(units, draw(st.sampled_from([25.0, 50.0, 200.0]))), limits, start


@pytest.mark.slow
@pytest.mark.parametrize("motion", ExcitationPlan.MOTIONS)
@settings(max_examples=30, deadline=None)
@given(
    case=cases(),
    seconds=st.floats(1.0, 15.0),
    amplitude=st.floats(0.0, 1.0),
    seed=st.integers(0, 2**31),
    speed=st.none() | st.floats(0.05, 5.0),
)
def test_every_sample_of_every_motion_is_within_the_limits(
    motion, case, seconds, amplitude, seed, speed
):
    contract, limits, start = case
    envelope = Envelope.of(contract, limits, speed=speed)
    servo = np.array([command.unit != "N m" for command in contract.commands])
    start = np.where(servo, start, np.clip(0.0, envelope.low, envelope.high))
    try:
        plan = plan_motion(
            motion, envelope, rate_hz=contract.rate_hz, start=start, seconds=seconds,
            amplitude=amplitude, seed=seed,
        )  # fmt: skip
    except Sim2RealError as error:
        assert "to reach a pose with room" in str(error)
        return
    sent = plan.commands
    assert np.isfinite(sent).all()
    for k, joint in enumerate(limits.joints):
        low, high = joint.command_low, joint.command_high
        if servo[k]:
            low, high = max(low, joint.position_low), min(high, joint.position_high)
        assert low - 1e-9 <= sent[:, k].min() and sent[:, k].max() <= high + 1e-9
        rate = np.abs(np.diff(sent[:, k])) * contract.rate_hz
        allowed = min(joint.command_rate, speed or np.inf) if servo[k] else joint.command_rate
        assert rate.max() <= allowed * (1 + 1e-9) + 1e-9
        if servo[k]:
            change = np.abs(np.diff(sent[:, k], 2)) * contract.rate_hz**2
            assert change.max() <= joint.acceleration * (1 + 1e-6) + 1e-6
    clipped = np.clip(start, envelope.low, envelope.high)
    np.testing.assert_allclose(sent[0], clipped, atol=1e-12)
    np.testing.assert_allclose(sent[-1], clipped, atol=1e-12)
    np.testing.assert_array_equal(sent[0], sent[1])
    np.testing.assert_array_equal(sent[-1], sent[-2])


def arm():
    return ExcitedRobot.open(BUNDLES / "arm-reach")


def readings_at(subject, pose):
    readings = subject.clearance.default_readings()
    readings[: len(pose)] = pose
    return readings


def plan_of(motion, **options):
    subject = arm()
    options = {"seconds": 20.0, "amplitude": 0.3, "seed": 1, "start": HOME} | options
    return plan_motion(motion, subject.envelope(), rate_hz=25.0, **options)


def test_joints_of_a_multisine_are_orthogonal_and_their_peaks_low():
    plan = plan_of("multisine")
    rows = plan.commands[plan.excited] - plan.commands[plan.excited][0]
    ramp = 25
    whole = rows[ramp:-ramp] - rows[ramp:-ramp].mean(axis=0)
    correlation = np.corrcoef(whole.T)
    assert np.abs(correlation - np.eye(6)).max() < 1e-6
    crest = np.abs(whole).max(axis=0) / whole.std(axis=0)
    # Sines that all peak at once have a crest factor of several times this.
    assert crest.max() < 3.0


def test_a_chirp_gets_smaller_as_it_gets_faster_and_moves_one_joint_at_a_time():
    plan = plan_of("chirp", seconds=60.0)
    rows = plan.commands[plan.excited] - plan.commands[plan.excited][0]
    assert (np.count_nonzero(np.abs(rows) > 1e-9, axis=1) <= 1).all()
    pan = rows[np.abs(rows[:, 0]) > 1e-9, 0]
    begin, end = pan[: len(pan) // 3], pan[-len(pan) // 6 :]
    assert np.ptp(begin) > 3 * np.ptp(end)
    turns = [np.count_nonzero(np.diff(np.sign(np.diff(part)))) / len(part) for part in (begin, end)]
    assert turns[1] > 3 * turns[0]


def test_the_same_seed_gives_the_same_motion_and_another_gives_another():
    for motion in ("steps", "multisine", "targets"):
        same = [plan_of(motion, seed=4).commands for _ in range(2)]
        np.testing.assert_array_equal(*same)
        assert np.abs(plan_of(motion, seed=5).commands - same[0][: len(same[0])]).max() > 0.01


def test_only_the_chosen_joints_move():
    subject = arm()
    found = prepare_motion(
        subject, "targets", readings_at(subject, HOME), seconds=4, joints=("wrist_roll",)
    )
    moved = np.ptp(found.plan.commands, axis=0) > 1e-6
    assert moved.tolist() == [False] * 4 + [True, False]
    with pytest.raises(Sim2RealError, match="no joint 'wrist_rol' is commanded; did you mean"):
        chosen(subject.contract, ["wrist_rol"])


@pytest.mark.parametrize("motion", ExcitationPlan.MOTIONS)
def test_a_prepared_motion_stays_off_the_table(motion):
    subject = arm()
    readings = readings_at(subject, HOME)
    found = prepare_motion(subject, motion, readings, seconds=10, amplitude=1.0)
    model = subject.twin.compile().model
    model.geom_margin[:] = 0.05
    data = mujoco.MjData(model)
    nearest = np.inf
    for pose in found.plan.commands:
        data.qpos[:6] = pose
        mujoco.mj_forward(model, data)
        nearest = min(nearest, *data.contact.dist, 1.0)
    assert nearest > 0.9 * CLEAR_M
    assert (found.plan.amplitude > 0).all() or motion == "hold"
    if motion in ("multisine", "targets"):
        assert "comes near" in found.reduced or "leaves its workspace" in found.reduced


def test_what_touches_from_the_start_and_cannot_get_away_is_refused():
    subject = arm()
    subject = replace(subject, limits=replace(subject.limits, tool=""))
    model = subject.twin.compile().model
    model.geom_margin[:] = 0.05
    data = mujoco.MjData(model)
    for elbow in np.linspace(-1.5, 0.0, 300):  # the forearm goes down until it is almost there
        data.qpos[:6] = down = [0.0, 1.2, elbow, 0.0, 0.0, 0.3]
        mujoco.mj_forward(model, data)
        if min([*data.contact.dist, 1.0]) < 0.005:
            break
    with pytest.raises(Sim2RealError, match=r"no steps from this pose is safe: .* near .*another"):
        prepare_motion(
            subject, "steps", readings_at(subject, down), seconds=4, joints=("elbow_flex",)
        )


def test_a_motion_stays_in_the_tools_box():
    subject = arm()
    readings = readings_at(subject, HOME)
    free = replace(subject, limits=replace(subject.limits, tool=""))
    wide = prepare_motion(free, "targets", readings, seconds=6, joints=("shoulder_pan",))
    box = replace(
        subject.limits, tool="tool", workspace_low=(-1, -0.05, 0), workspace_high=(1, 0.05, 1)
    )
    narrow = prepare_motion(
        replace(subject, limits=box), "targets", readings, seconds=6, joints=("shoulder_pan",)
    )
    assert "leaves its workspace" in narrow.reduced
    assert np.ptp(narrow.plan.commands[:, 0]) < 0.5 * np.ptp(wide.plan.commands[:, 0])


def test_a_torque_is_reduced_until_the_twin_stays_slow():
    subject = ExcitedRobot.open(BUNDLES / "pendulum-swingup")
    slow = replace(
        subject, limits=replace(subject.limits, joints=(
            replace(subject.limits.joints[0], velocity=3.0),
        )),
    )  # fmt: skip
    found = prepare_motion(slow, "steps", np.zeros(2), seconds=5)
    assert "gets too fast" in found.reduced and 0 < found.plan.amplitude[0] < 0.5


def test_an_arm_that_sank_after_planning_is_brought_back_and_one_that_moved_is_refused():
    subject, plan = arm(), plan_of("hold")
    readings = readings_at(subject, HOME)
    readings[2] += 0.05
    excitation = Excitation(subject.contract, plan)
    excitation.start(readings, np.zeros(0))
    assert excitation.command[0, 2] == pytest.approx(HOME[2] + 0.05)
    sent = np.array([excitation.step(readings)[2] for _ in range(len(plan.commands))])
    assert np.abs(np.diff(sent, axis=0)).max() * 25 < 0.25
    np.testing.assert_array_equal(sent[plan.excited], plan.commands[plan.excited])
    readings[2] += 0.15
    with pytest.raises(Sim2RealError, match=r"elbow_flex is 0\.20 away from the start"):
        Excitation(subject.contract, plan).start(readings, np.zeros(0))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seconds": 0.1}, "from 1 to 3600 s"),
        ({"amplitude": 2.0}, "must be from 0 to 1"),
        ({"amplitude": -0.1}, "must be from 0 to 1"),
    ],
)
def test_a_motion_that_makes_no_sense_is_one_clear_error(options, words):
    with pytest.raises(Sim2RealError, match=words):
        plan_of("chirp", **options)
    with pytest.raises(Sim2RealError, match="unknown motion 'chrip'; did you mean 'chirp'"):
        plan_of("chrip")


def test_a_twin_without_a_task_has_a_contract_and_limits(make_twin):
    twin = Twin.load(make_twin())
    contract = twin_contract(twin, 100.0)
    assert contract.task == "" and contract.frame_width == 0 and contract.rate_hz == 100
    assert [command.name for command in contract.commands] == ["hinge", "elbow"]
    limits = model_limits(twin, contract, speed=0.5)
    hinge = limits.joints[0]
    assert (hinge.position_low, hinge.position_high) == (-2.5, 2.5)
    assert (hinge.command_low, hinge.command_high) == (-2.0, 2.0)
    assert hinge.command_rate == 0.5 and hinge.torque == 5.0
    pendulum = Twin.load(BUNDLES / "pendulum-swingup" / "twin")
    motor = model_limits(pendulum, twin_contract(pendulum, 50.0), speed=4.0).joints[0]
    assert motor.velocity == 4.0 and motor.torque == motor.command_high == 1.5
    with pytest.raises(Sim2RealError, match="control rate"):
        twin_contract(twin, 0.0)


def test_a_servo_nobody_measures_cannot_be_recorded():
    contract = replace(contract_of(["rad"]), sensors=())
    with pytest.raises(Sim2RealError, match="no sensor measures joint 'j0', which"):
        resting(contract, np.zeros(0))


@pytest.mark.slow
def test_a_dry_run_without_a_robot_tells_and_plots_what_it_would_do(tmp_path, capsys):
    config = RecordConfig(
        subject=BUNDLES / "arm-reach", motion="targets", seconds=4, out=tmp_path, json=True
    )
    assert run_record(config) == 0
    told = json.loads(capsys.readouterr().out)
    assert not told["executed"] and told["recordings"] == []
    assert told["plans"][0]["commands"][0]["name"] == "shoulder_pan"
    assert (tmp_path / "targets.png").read_bytes().startswith(b"\x89PNG")


def test_nothing_moves_without_a_robot_or_a_person():
    config = RecordConfig(subject=BUNDLES / "arm-reach", execute=True)
    with pytest.raises(Sim2RealError, match="needs a robot to move: --robot"):
        run_record(config)
    with pytest.raises(Sim2RealError, match="--person"):
        run_record(replace(config, robot="unit:1"))


@pytest.mark.slow
def test_a_dry_run_on_a_robot_sends_nothing(capsys, monkeypatch):
    sent = []
    monkeypatch.setattr(StandIn, "send_action", lambda self, action: sent.append(action))
    monkeypatch.setattr(StandIn, "enable", lambda self: sent.append("enable"))
    config = RecordConfig(subject=BUNDLES / "arm-reach", robot="unit:3", motion="steps", seconds=3)
    assert run_record(config) == 0
    assert sent == [] and "nothing was sent" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "unit"),
    [("pendulum-swingup", 2), ("pendulum-swingup", 9), ("arm-reach", 5), ("arm-reach", 12)],
)
def test_every_motion_is_played_to_the_end_on_stand_in_hardware(task, unit, tmp_path):
    subject = ExcitedRobot.open(BUNDLES / task)
    plans = []
    with StandIn(unit, task) as robot:
        robot.reset(unit)
        found = list(
            MotionPlayer(subject=subject, robot=robot, person="ana", show=plans.append).play(
                ExcitationPlan.MOTIONS, tmp_path, planned=partial(prepare_motion, seconds=4.0)
            )
        )
        assert robot.state == "tripped" and robot.why == "asked to"
    assert [recorded.flight.stopped for recorded in found] == [""] * len(ExcitationPlan.MOTIONS)
    for recorded, prepared in zip(found, plans, strict=True):
        plan, episode = prepared.plan, read_recording(recorded.path)
        assert recorded.flight.limited == 0
        np.testing.assert_allclose(
            episode["command"].values[plan.excited], plan.commands[plan.excited], atol=1e-9
        )
        source = episode.provenance
        assert source.kind == "real" and source.operator == "ana" and source.task == ""
        assert (source.robot, source.serial) == (task, f"unit-{unit}")
        assert source.twin_version == subject.twin.version
        assert source.process.startswith(f"record: {plan.motion}, ")
        for k, command in enumerate(subject.contract.commands):
            wanted = np.ptp(plan.commands[:, k])
            moved = np.ptp(episode[f"sensor/{command.joint}_pos"].values)
            if plan.envelope.servo[k]:
                # Friction may hold a worn servo 0.13 rad off its target, and its weight more.
                assert 0.3 * (wanted - 0.13) <= moved <= wanted + 0.4
            elif plan.motion != "hold":
                assert moved > 0.2


@pytest.mark.slow
def test_a_twin_alone_is_recorded_and_kept_in_a_lake(tmp_path, capsys):
    lake = str(tmp_path / "lake")
    config = RecordConfig(
        subject=BUNDLES / "pendulum-swingup" / "twin", task="pendulum-swingup", robot="unit:4",
        motion="chirp", seconds=3, execute=True, person="ana", out=tmp_path / "out", lake=lake,
        json=True,
    )  # fmt: skip
    assert run_record(config) == 0
    told = json.loads(capsys.readouterr().out)["recordings"][0]
    assert told["stopped"] == "" and told["file"] == str(tmp_path / "out/chirp.arrow")
    assert Lake.open(lake).get(told["episode"]) == read_recording(Path(told["file"]))


@pytest.mark.slow
def test_an_operator_keeps_what_was_recorded_until_he_stopped_it(tmp_path):
    subject = ExcitedRobot.open(BUNDLES / "pendulum-swingup")
    presses = iter([False] * 40 + [True] * 999)
    with StandIn(6, "pendulum-swingup") as robot:
        player = MotionPlayer(
            subject=subject, robot=robot, person="ana", operator_stop=lambda: next(presses)
        )
        planned = partial(prepare_motion, seconds=3.0)
        found = list(player.play(("steps", "chirp"), tmp_path, planned=planned))
        assert robot.state == "tripped"
    assert len(found) == 1 and found[0].flight.periods == 40
    beside = json.loads(found[0].path.with_suffix(".json").read_text())
    assert "the operator" in beside["stopped"]
    assert len(read_recording(tmp_path / "steps.arrow")["command"].times) == 40
    assert not (tmp_path / "chirp.arrow").exists()
