"""What breaks in a unit acts on its body, and a unit can be brought back to a moment."""

import math

import numpy as np
import pytest

from sim2real.reality.breakage import PLAIN_FIRMWARE, Breakage, Firmware
from sim2real.reality.device import START_UP_S, Device
from sim2real.reality.scene import BENCHES


def moving(task="arm-reach", unit=3, **options):
    """A unit whose first joint is on its way: 0.6 rad away for a servo, by a torque else."""
    device = Device(task, unit, **options)
    device.reset(0)
    device.enable()
    device.advance(device.now_s + START_UP_S + 0.05)
    feed(device, 0.1, wanted=goal(device))
    return device


def goal(device):
    if device.torque_driven:
        return np.array([0.8])
    return device.true_angles + np.array([0.6, 0, 0, 0, 0, 0])


def feed(device, seconds, wanted):
    """Send a command fifty times a second; (periods, joints) true angles."""
    seen = []
    for _ in range(round(50 * seconds)):
        device.send(wanted)
        device.advance(device.now_s + 0.02)
        seen.append(device.true_angles)
    return np.array(seen)


@pytest.mark.parametrize("task", BENCHES)
def test_a_unit_brought_back_to_a_moment_does_again_what_it_did(task):
    device = moving(task)
    moment = device.saved()
    first = device.now_s
    once = feed(device, 0.3, device.command)
    device.load(moment)
    assert device.now_s == first
    assert np.array_equal(feed(device, 0.3, device.command), once)


def test_a_blocked_joint_stands_still_and_goes_on_when_it_is_free():
    device = moving()
    wanted = device.command
    now = device.now_s
    device.breaks(Breakage(begin_s=now, end_s=now + 0.5, blocks=(0,)))
    stuck = feed(device, 0.5, wanted)[:, 0]
    assert np.ptp(stuck[5:]) < 0.01 < abs(wanted[0] - stuck[-1]) - 0.1
    assert abs(feed(device, 0.6, wanted)[-1, 0] - stuck[-1]) > 0.1


def test_an_encoder_that_jumps_moves_a_servo_and_on_the_bus_only_its_readings():
    away = (0.5, 0.0, 0.0, 0.0, 0.0, 0.0)
    moved, read = [], []
    for on_bus in (False, True):
        device = moving()
        feed(device, 0.8, wanted := device.command)
        before = device.true_angles[0]
        device.breaks(Breakage(begin_s=device.now_s, jump_rad=away, jumps_on_bus_only=on_bus))
        feed(device, 0.8, wanted)
        moved.append(device.true_angles[0] - before)
        found = next(f for f in (device.read() for _ in range(99)) if f)
        read.append(found["shoulder_pan_pos"] - before)
    assert moved[0] == pytest.approx(-0.5, abs=0.1) and abs(moved[1]) < 0.02
    assert abs(read[0]) < 0.1 and read[1] == pytest.approx(0.5, abs=0.05)


def test_a_stuck_encoder_is_noticed_by_firmware_that_checks_and_by_no_plain_one():
    for options, stopped in (({}, True), ({"firmware": PLAIN_FIRMWARE}, False)):
        device = moving(**options)
        device.breaks(Breakage(begin_s=device.now_s, sticks=(0,)))
        feed(device, 0.3, device.command + np.array([0.5, 0, 0, 0, 0, 0]))
        assert (device.state == "tripped") == stopped, device.why


def test_a_supply_that_sags_makes_a_servo_slow_and_one_that_breaks_down_stops_it():
    reached = {}
    for supply in (1.0, 0.45, 0.3):
        device = moving()
        device.breaks(Breakage(begin_s=device.now_s, supply=supply))
        before = device.true_angles[0]
        reached[supply] = abs(feed(device, 0.12, device.command)[-1, 0] - before)
        assert (device.state == "tripped") == (supply == 0.3)
    assert reached[0.45] < 0.85 * reached[1.0]


def test_a_relaxed_arm_sinks_and_one_that_holds_does_not():
    sunk = []
    for relaxed in (True, False):
        device = moving("arm-push")
        before = device.true_angles
        device.relax() if relaxed else device.stop()
        device.advance(device.now_s + 1.0)
        sunk.append(float(np.abs(device.true_angles - before).max()))
    assert sunk[0] > 0.3 > sunk[1]


def test_a_worn_unit_is_slower_than_the_same_unit_was():
    lags = []
    for old in (False, True):
        device = moving("arm-reach", unit=11, old=old)
        lags.append(abs(device.command[0] - device.true_angles[0]))
    assert lags[1] > lags[0] + 0.01


def test_a_unit_without_a_watchdog_goes_on_when_nobody_speaks():
    device = moving(firmware=Firmware(watchdog_s=math.inf))
    device.advance(device.now_s + 1.0)
    assert device.state == "ready"
