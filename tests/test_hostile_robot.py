"""A hostile robot misbehaves as its seed says, and tells truly what reached its joints."""

import math

import numpy as np
import pytest

from benchmarks.deploy.hostile import NonsensePilot, hostilities
from sim2real.robot import Supervisor, fly
from sim2real.testing import HostileRobot, Misbehaviour, hostile_contract, hostile_limits

CONTRACT = hostile_contract()
LIMITS = hostile_limits(CONTRACT)  # 4.5 a second, at 25 Hz: 0.18 a period


def silent(**options):
    """A robot that does nothing bad."""
    return HostileRobot(CONTRACT, seed=0, does=(), **options)


def sent(robot, *steps, period_s=0.04):
    """Send commands that differ by these steps, one a period."""
    seen = robot.get_observation()
    at = np.array([seen[f"joint_{k}_pos"] for k in range(2)])
    for step in steps:
        at = at + np.array([step, 0.0])
        robot.sleep_until(robot.now() + period_s)
        robot.send_action(dict(zip(("joint_0", "joint_1"), at, strict=True)))
    return robot.largest_step_ratio(LIMITS, CONTRACT.rate_hz)


def test_steps_are_measured_against_what_the_time_between_them_allows():
    assert sent(silent(), 0.18, -0.18, 0.09) == pytest.approx(1.0, abs=1e-4)
    assert sent(silent(), 0.18, 0.36) == pytest.approx(2.0, abs=1e-4)
    assert sent(silent(), 0.09, 0.09, period_s=0.01) == pytest.approx(2.0, abs=1e-4)
    assert sent(silent(), 0.18, 0.18, period_s=3.0) == pytest.approx(1.0, abs=1e-4)
    assert sent(silent(), math.nan) == math.inf


def test_a_lost_command_leaves_its_step_to_the_next():
    robot = HostileRobot(CONTRACT, seed=3, does=(Misbehaviour.LOST,), share=0.5)
    sent_ratio = sent(robot, *[0.05] * 60)
    assert {command.arrived for command in robot.commands} == {True, False}
    assert sent_ratio == pytest.approx(0.05 / 0.18, abs=1e-3)


def test_joints_are_where_the_last_command_that_arrived_says():
    robot = silent()
    sent(robot, 0.1, 0.1)
    seen = robot.get_observation()
    assert seen["joint_0_pos"] == pytest.approx(robot.commands[-1].values[0])
    assert seen["joint_0_vel"] == pytest.approx(0.1 / 0.04)


@pytest.mark.parametrize("way", Misbehaviour)
def test_it_does_what_it_is_told_to_and_the_same_for_the_same_seed(way):
    logs = []
    for _ in range(2):
        robot, log = HostileRobot(CONTRACT, seed=8, does=(way,)), []
        for k in range(120):
            robot.sleep_until(0.04 * k)
            begin = robot.now()
            try:
                seen = robot.get_observation()
                echo = robot.send_action({"joint_0": 0.01 * k, "joint_1": 0.0})
            except OSError as error:
                log.append(str(error))
                continue
            lost = not seen or not robot.commands[-1].arrived
            late = robot.now() > begin
            log.append((str(dict(seen)), str(dict(echo)), lost, late))
        logs.append(log)
    assert logs[0] == logs[1]
    calm = silent()
    expected = []
    for k in range(120):
        calm.sleep_until(0.04 * k)
        seen = calm.get_observation()
        echo = calm.send_action({"joint_0": 0.01 * k, "joint_1": 0.0})
        expected.append((str(dict(seen)), str(dict(echo)), False, False))
    assert sum(a != b for a, b in zip(logs[0][4:], expected[4:], strict=True)) >= 2


def test_a_loop_without_a_rate_is_found_out():
    def loose(contract, limits, abilities):
        return Supervisor(contract, hostile_limits(contract, command_rate=100.0))

    assert hostilities(0, 20, made=loose).largest > 5.0


def test_a_robot_that_obeys_is_flown_to_the_end():
    robot = silent()
    flight = fly(
        robot, NonsensePilot(CONTRACT, seed=0), Supervisor(CONTRACT, LIMITS), robot, goals={},
        seconds=1.0, person="bench", execute=True,
    )  # fmt: skip
    assert flight.stopped == "" and len(robot.commands) >= 25
    assert robot.largest_step_ratio(LIMITS, CONTRACT.rate_hz) <= 1.0
