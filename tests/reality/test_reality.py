"""The stand-in hardware: a fair opponent, the same for the same number, and safe by itself."""

import numpy as np
import pytest

from sim2real.reality.device import FAULTS, START_UP_S, WATCHDOG_S, Device
from sim2real.reality.scene import BENCHES, Scene
from sim2real.reality.unit_truth import draw


def started(task: str = "arm-reach", unit: int = 3, seed: int = 0) -> Device:
    device = Device(task, unit)
    device.reset(seed)
    device.enable()
    device.advance(device.now_s + START_UP_S + 0.05)
    return device


def reading(device: Device) -> dict:
    """Readings; a lost packet is asked for again."""
    return next(found for found in (device.read() for _ in range(100)) if found is not None)


def hold(device: Device, seconds: float) -> None:
    """Keep sending where the joints are, twenty-five times a second."""
    target = np.array([reading(device)[f"{name}_pos"] for name in device.names])
    for _ in range(round(25 * seconds)):
        device.send(np.zeros(1) if device.torque_driven else target)
        device.advance(device.now_s + 0.04)


@pytest.mark.parametrize("task", BENCHES)
def test_a_unit_is_the_same_robot_every_time(task):
    traces = []
    for _ in range(2):
        device = started(task, unit=5, seed=2)
        hold(device, 0.4)
        traces.append(reading(device))
    assert traces[0] == traces[1]
    other = started(task, unit=6, seed=2)
    hold(other, 0.4)
    assert reading(other) != traces[0]


def test_units_differ_and_lie_in_part_outside_of_what_a_twin_supposes():
    units = [draw("arm", k, joints=6, bodies=9) for k in range(200)]
    gains = np.array([unit.gain for unit in units])
    delays = np.array([unit.command_delay_s for unit in units])
    assert gains.min() < 0.8 and gains.max() > 1.25  # the arm's twin supposes 0.8 to 1.25
    assert delays.min() >= 0.006 and delays.max() <= 0.038
    friction = np.array([unit.friction for unit in units])
    assert friction.max() > 1.6  # … and friction up to 1.6


def test_a_device_starts_up_before_it_moves():
    device = Device("arm-reach", 1)
    device.reset(0)
    before = reading(device)["shoulder_pan_pos"]
    for _ in range(10):
        device.send(np.full(6, 0.5))
        device.advance(device.now_s + 0.02)
    assert abs(reading(device)["shoulder_pan_pos"] - before) < 0.05  # the drives are off
    device.enable()
    assert device.state == "starting"
    device.advance(device.now_s + START_UP_S + 0.01)
    assert device.state == "ready"


def test_commands_arrive_late():
    device = started("arm-reach", unit=2)
    hold(device, 0.5)
    target = np.array([reading(device)[f"{name}_pos"] for name in device.names])
    begin, moved = device.now_s, np.array([0.4, 0, 0, 0, 0, 0])
    for _ in range(60):
        device.send(target + moved)
        device.advance(device.now_s + 0.002)
        if abs(reading(device)["shoulder_pan_pos"] - target[0]) > 0.01:
            break
    assert 0.01 < device.now_s - begin < 0.115


def test_a_device_that_is_not_fed_stops_by_itself():
    device = started()
    hold(device, 0.5)
    assert device.state == "ready"
    device.advance(device.now_s + WATCHDOG_S + 0.1)
    assert device.state == "tripped" and "watchdog" in device.why
    device.advance(device.now_s + 1.0)
    assert device.speed() < 0.05


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_can_be_asked_for(kind):
    device = started()
    hold(device, 0.3)
    device.fault(kind, 0.1)
    before = reading(device)
    target = np.array([before[f"{name}_pos"] for name in device.names])
    answers = []
    for k in range(25):
        device.send(target + 0.01 * k)
        device.advance(device.now_s + 0.02)
        answers.append(device.read())
    last = answers[-1]
    if kind == "dropped link":
        assert last is None and device.state == "tripped"
    elif kind == "brown-out":
        assert device.state == "tripped" and "brown-out" in device.why
    elif kind == "slow bus":
        assert max(a["@age"] for a in answers if a) > 0.2
    else:
        tail = [a["elbow_flex_pos"] for a in answers[-8:] if a]
        assert len(set(tail)) == 1
        stuck = kind == "stuck reading"  # an old packet; else new ones of a dead encoder
        assert last["@age"] > 0.2 if stuck else last["elbow_flex_vel"] == 0.0


@pytest.mark.parametrize("task", BENCHES)
def test_doing_nothing_is_no_success(task):
    device = started(task)
    hold(device, 2.0)
    assert not device.succeeded()


@pytest.fixture
def scenes(monkeypatch):
    """What stands behind each device of a test."""
    found = []

    class Seen(Scene):
        def __init__(self, *given, **options):
            super().__init__(*given, **options)
            found.append(self)

    monkeypatch.setattr("sim2real.reality.device.Scene", Seen)
    return found


def test_a_pendulum_held_upright_is_a_success(scenes):
    device = started("pendulum-swingup")
    plant = scenes[-1].plant
    for _ in range(60):
        plant.place(np.array([np.pi]))
        device.send(np.zeros(1))
        device.advance(device.now_s + 0.02)
    assert device.succeeded()


def test_a_current_loop_keeps_its_torque_until_the_voltage_is_used_up():
    plant = Scene("pendulum-swingup", 4).plant
    plant.damped, plant.command = False, np.array([1.0])
    motor = float(plant.hidden.motor[0])

    def torque(speed: float) -> float:
        plant.volts = 11.0
        return plant.torques([0.0], [speed])[0]

    assert torque(0.0) == torque(5.0) == pytest.approx(motor)  # its command, times its strength
    # 11 V over 1.6 ohm and 0.3 N m/A, less what the turning motor gives back.
    constant = 0.3 * motor
    assert torque(30.0) == pytest.approx(constant * (11.0 - constant * 30.0) / 1.6)
    assert torque(-30.0) == pytest.approx(motor)  # braking needs less voltage, not more


@pytest.mark.parametrize("task", BENCHES)
def test_time_may_pass_before_the_first_trial(task):
    device = Device(task, 3)
    device.advance(0.1)
    assert device.state == "off" and not device.succeeded()


def test_an_arm_is_held_until_its_drives_are_on_and_a_pendulum_swings(scenes):
    for task, still in (("arm-push", True), ("pendulum-swingup", False)):
        device = Device(task, 3)
        device.reset(1)
        plant = scenes[-1].plant
        before = plant.angles.copy()
        device.enable()
        device.advance(device.now_s + 0.4)
        assert (np.abs(plant.angles - before).max() == 0.0) == still
        device.advance(device.now_s + 0.2)
        assert device.state == "ready" and not plant.held
