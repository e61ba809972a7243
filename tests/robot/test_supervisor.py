"""The supervisor: no sequence of inputs gets an unlimited command through."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim2real.contract import (
    ActionSpec,
    CommandSpec,
    Contract,
    JointLimits,
    Limits,
    SensorSpec,
    TermSpec,
)
from sim2real.errors import Sim2RealError
from sim2real.robot import Supervisor
from sim2real.robot.supervisor import Inputs, State

JOINTS = ("pan", "lift")
CONTRACT = Contract(
    task="t",
    robot="r",
    twin_version="v",
    rate_hz=50.0,
    history=1,
    sensors=tuple(
        SensorSpec(name=f"{joint}_{kind}", unit="rad", width=1, kind=f"joint{kind}", of=joint)
        for kind in ("pos", "vel")
        for joint in JOINTS
    ),
    goals=(),
    observations=(
        TermSpec(name="angles", unit="rad", width=2, scale=1.0, sources=("pan_pos", "lift_pos")),
    ),
    actions=(ActionSpec(name="a"), ActionSpec(name="b")),
    commands=tuple(
        CommandSpec(name=joint, joint=joint, unit="rad", low=-2.0, high=2.0, default=0.0)
        for joint in JOINTS
    ),
)
LIMITS = Limits(
    joints=tuple(
        JointLimits(
            name=joint,
            position_low=-1.5,
            position_high=1.5,
            velocity=3.0,
            acceleration=100.0,
            torque=2.0,
            command_low=-1.5,
            command_high=1.5,
            command_rate=2.5,
        )
        for joint in JOINTS
    ),
    observation_low=(-2.0, -2.0),
    observation_high=(2.0, 2.0),
    tool="tip",
    workspace_low=(-1.0, -1.0, 0.0),
    workspace_high=(1.0, 1.0, 1.0),
)
FINE = Inputs(
    readings=np.zeros(4),
    frame=np.zeros(2),
    wanted=np.zeros(2),
    torque=np.zeros(2),
    tool=np.array([0.0, 0.0, 0.5]),
)


def supervisor() -> Supervisor:
    found = Supervisor(CONTRACT, LIMITS)
    found.arm(person="ana", resting=np.zeros(2))
    return found


numbers = st.one_of(
    st.floats(-3, 3),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([np.nan, np.inf, -np.inf, 1e308]),
)


def arrays(width: int) -> st.SearchStrategy:
    fitting = st.lists(numbers, min_size=width, max_size=width)
    other = st.lists(numbers, max_size=5)
    calm = st.lists(st.floats(-1, 1), min_size=width, max_size=width)
    return st.one_of(st.none(), calm, calm, fitting, other).map(
        lambda values: None if values is None else np.array(values, dtype=float)
    )


steps = st.builds(
    Inputs,
    readings=arrays(4),
    age_s=st.one_of(st.just(0.0), st.floats(0, 1), st.just(np.nan)),
    late_s=st.one_of(st.just(0.0), st.floats(0, 1), st.just(np.nan)),
    connected=st.sampled_from([True, True, True, False]),
    operator_stop=st.sampled_from([False, False, False, True]),
    frame=arrays(2),
    wanted=arrays(2),
    torque=arrays(2),
    tool=arrays(3),
)
events = st.one_of(
    steps.map(lambda inputs: ("step", inputs)),
    st.just(("arm", None)),
    arrays(2).map(lambda command: ("sent", command)),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(events, min_size=1, max_size=40))
def test_no_sequence_gets_an_unlimited_command_through(sequence):
    one = Supervisor(CONTRACT, LIMITS)
    last = None
    for what, value in sequence:
        if what == "arm":
            one.arm(person="ana", resting=np.zeros(2))
            last = np.zeros(2)
        elif what == "sent":
            if value is not None and value.shape == (2,) and np.isfinite(value).all():
                if last is not None:
                    last = np.clip(value, -1.5, 1.5)
                one.sent(value)
        else:
            before = one.state
            decision = one.step(value)
            assert one.state is decision.state
            if decision.command is None:
                assert decision.state is not State.RUNNING
                assert before is not State.RUNNING or decision.reason
                continue
            assert before is decision.state is State.RUNNING
            assert np.isfinite(decision.command).all()
            assert (np.abs(decision.command) <= 1.5).all()
            assert (np.abs(decision.command - last) <= 2.5 / 50 + 1e-9).all()
            last = decision.command


@settings(max_examples=100, deadline=None)
@given(st.lists(steps, min_size=1, max_size=20))
def test_what_stopped_stays_stopped_until_a_person_arms_it(sequence):
    one = supervisor()
    one.stop("a test")
    for inputs in sequence:
        decision = one.step(inputs)
        assert decision.state is State.STOPPED and decision.command is None
    one.arm(person="ben", resting=np.zeros(2))
    assert one.step(FINE).command is not None


def test_nothing_moves_before_a_person_arms_it():
    one = Supervisor(CONTRACT, LIMITS)
    assert one.step(FINE).command is None and one.state is State.DISARMED
    with pytest.raises(Sim2RealError, match="only a person may arm"):
        one.arm(person="", resting=np.zeros(2))
    with pytest.raises(Sim2RealError, match="2 finite numbers"):
        one.arm(person="ana", resting=np.full(2, np.nan))
    with pytest.raises(Sim2RealError, match="joint lift rests outside"):
        one.arm(person="ana", resting=np.array([0.0, 1.9]))
    assert one.step(FINE).command is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"operator_stop": True}, "operator"),
        ({"connected": False}, "connection"),
        ({"readings": None}, "no readings"),
        ({"readings": np.zeros(3)}, "3 numbers"),
        ({"readings": np.array([0, np.nan, 0, 0])}, "not a number"),
        ({"readings": np.array([1.7, 0, 0, 0])}, "joint pan is at 1.700"),
        ({"readings": np.array([0, 0, 0, -4.0])}, "joint lift moves at -4.00"),
        ({"readings": np.array([0, 0, 2.5, 0.0])}, "joint pan accelerates"),
        ({"age_s": 0.1}, "100 ms old"),
        ({"age_s": -5.0}, "ms old"),
        ({"age_s": np.nan}, "ms old"),
        ({"late_s": 0.05}, "50 ms late"),
        (
            {"torque": np.array([0, 2.6])},
            "joint lift has a torque of 2.60, above its limit",
        ),
        ({"stopped_itself": "brown-out"}, "stopped by itself: brown-out"),
        ({"tool": np.array([0, 0, -0.1])}, "outside its workspace"),
        ({"tool": np.zeros(0)}, "outside its workspace"),
        ({"torque": np.zeros(3)}, "3 torques"),
        ({"frame": np.zeros(3)}, "observation is not a number"),
        ({"wanted": None}, "gave no command"),
        ({"wanted": np.array([np.inf, 0])}, "not a number"),
        ({"frame": np.array([np.nan, 0])}, "observation is not a number"),
    ],
)
def test_every_danger_ends_in_the_safe_stop_with_its_reason(change, words):
    one = supervisor()
    assert one.step(FINE).command is not None
    decision = one.step(replace(FINE, **change))
    assert decision.command is None and decision.state is State.STOPPED
    assert words in decision.reason and one.reason == decision.reason


def test_an_observation_outside_of_training_stops_when_it_lasts():
    one = supervisor()
    far = replace(FINE, frame=np.array([0.0, 3.0]))
    assert one.step(far).command is not None and one.step(far).command is not None
    assert one.step(FINE).command is not None
    for _ in range(2):
        assert one.step(far).command is not None
    decision = one.step(far)
    assert decision.command is None and "angles[1]" in decision.reason


def test_a_command_is_slowed_and_bounded():
    one = supervisor()
    wild = replace(FINE, wanted=np.array([9.0, -0.01]))
    for period in range(1, 40):
        flicker = np.array([0.001 * (period % 2), 0, 0, 0])
        decision = one.step(replace(wild, readings=flicker))
        assert decision.command[0] == pytest.approx(min(0.05 * period, 1.5))
        assert decision.command[1] == pytest.approx(-0.01)
        assert decision.limited == ("pan",)


def moving(one: Supervisor, periods: int, speed: float) -> np.ndarray:
    """Let both joints move evenly for some periods; the last readings."""
    for period in range(periods):
        place = -0.5 + speed * period / 50
        readings = np.array([place, 0.1 * place, speed, 0.1 * speed])
        assert one.step(replace(FINE, readings=readings)).command is not None
    return readings


def test_a_joint_that_was_moving_and_reads_the_same_stops_it_in_two_periods():
    one = supervisor()
    last = moving(one, 10, 1.5)
    frozen = replace(FINE, readings=last)
    assert one.step(frozen).command is not None
    decision = one.step(frozen)
    assert decision.command is None and "joint pan reads the same" in decision.reason


def test_a_joint_that_comes_to_rest_does_not_stop_it():
    one = supervisor()
    last = moving(one, 10, 0.5)
    for period in range(10):
        rest = last * [1, 1, 0, 0] + [0.004 if period else 0, 0, 0, 0]
        assert one.step(replace(FINE, readings=rest)).command is not None


def test_readings_that_stand_still_while_commands_move_stop_it():
    one = supervisor()
    for period in range(30):
        decision = one.step(replace(FINE, wanted=np.array([0.02 * period, 0.0])))
        if decision.command is None:
            break
    assert "stand still" in decision.reason and 5 <= period < 29
    one.arm(person="ana", resting=np.zeros(2))
    assert all(one.step(FINE).command is not None for _ in range(100))
    # After a long rest, the first command that moves has time to do so.
    assert one.step(replace(FINE, wanted=np.array([0.5, 0.0]))).command is not None
