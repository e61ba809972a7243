"""Worlds: deterministic, independent, and honest about delays, noise and divergence."""

import math

import numpy as np
import pytest
import torch

from sim2real.errors import Sim2RealError
from sim2real.twin import Twin
from sim2real.worlds import Worlds, open_worlds
from tests.conftest import SLIDER

PERIOD_S = 0.02
EVERYTHING = """
[effects.actuator."*"]
delay = 0.01
delay_jitter = 0.004
delay_max = 0.05
quantum = 0.01
slew = 8.0
missed = 0.1
[effects.sensor."*"]
delay = 0.006
delay_max = 0.02
noise = 0.01
bias = 0.02
walk = 0.05
scale = 1.02
quantum = 0.001
period = 0.04
dropout = 0.1
[effects.joint.hinge]
backlash = 0.02
load_friction = 0.1
[effects.joint.elbow]
static_friction = 0.2
coulomb_friction = 0.1
[parameters."body/arm/mass"]
prior = { kind = "uniform", low = 0.3, high = 0.5 }
[parameters."actuator/*/delay"]
prior = { kind = "uniform", low = 0.0, high = 0.04 }
[parameters."joint/hinge/backlash"]
prior = { kind = "uniform", low = 0.005, high = 0.05 }
[parameters."joint/elbow/static_friction"]
prior = { kind = "uniform", low = 0.15, high = 0.3 }
"""


def start(worlds: Worlds, values: list[list[float]] | None = None) -> None:
    everyone = torch.arange(worlds.count)
    if values is not None:
        worlds.set_parameters(torch.tensor(values, dtype=torch.float64), everyone)
    worlds.reset(everyone)
    worlds.begin(everyone)


def drive(worlds: Worlds, periods: int = 40) -> torch.Tensor:
    record = []
    for k in range(periods):
        command = torch.stack(
            [torch.sin(0.3 * k + torch.arange(worlds.count)), torch.full((worlds.count,), 0.5)], 1
        )
        worlds.step(command)
        record.append(torch.cat([worlds.state("qpos").float(), worlds.measured], 1).clone())
    return torch.stack(record)


@pytest.mark.parametrize("threads", [2, 5])
def test_results_are_bit_identical_at_any_number_of_threads(make_twin, threads):
    twin = Twin.load(make_twin(EVERYTHING))

    def run(threads: int) -> torch.Tensor:
        worlds = open_worlds(twin, count=7, period_s=PERIOD_S, seed=3, threads=threads)
        first = drive(worlds, 15)
        some = torch.tensor([1, 4])
        worlds.reset(some)
        worlds.begin(some)
        return torch.cat([first, drive(worlds, 15)])

    assert torch.equal(run(1), run(threads))


def test_a_world_does_not_depend_on_how_many_others_there_are(make_twin):
    twin = Twin.load(make_twin(EVERYTHING))
    few = drive(open_worlds(twin, count=3, period_s=PERIOD_S, seed=3))
    many = drive(open_worlds(twin, count=9, period_s=PERIOD_S, seed=3))
    assert torch.equal(few, many[:, :3])


def test_state_goes_on_bit_for_bit_after_being_saved(make_twin):
    twin = Twin.load(make_twin(EVERYTHING))
    worlds = open_worlds(twin, count=4, period_s=PERIOD_S, seed=1)
    drive(worlds, 13)
    saved = worlds.state_dict()
    expected = drive(worlds, 20)
    other = open_worlds(twin, count=4, period_s=PERIOD_S, seed=1)
    other.load_state_dict(saved)
    assert torch.equal(drive(other, 20), expected)


def test_resetting_one_world_leaves_the_others_alone(make_twin):
    twin = Twin.load(make_twin(EVERYTHING))
    undisturbed = drive(open_worlds(twin, count=3, period_s=PERIOD_S), 30)
    worlds = open_worlds(twin, count=3, period_s=PERIOD_S)
    before = drive(worlds, 10)
    ids = torch.tensor([1])
    worlds.reset(ids)
    worlds.begin(ids)
    assert float(worlds.state("time")[1]) == 0.0
    record = []
    for k in range(10, 30):
        command = torch.stack([torch.sin(0.3 * k + torch.arange(3)), torch.full((3,), 0.5)], dim=1)
        worlds.step(command)
        record.append(torch.cat([worlds.state("qpos").float(), worlds.measured], 1).clone())
    after = torch.cat([before, torch.stack(record)])
    assert torch.equal(after[:, [0, 2]], undisturbed[:, [0, 2]])
    assert not torch.equal(after[:, 1], undisturbed[:, 1])


def test_a_world_that_diverges_is_reported_and_the_others_go_on(make_twin):
    worlds = open_worlds(Twin.load(make_twin("")), count=4, period_s=PERIOD_S)
    healthy = open_worlds(Twin.load(make_twin("", name="other")), count=4, period_s=PERIOD_S)
    worlds.state("qvel")[2] = 1e12
    broken = worlds.step(torch.zeros(4, 2))
    healthy.step(torch.zeros(4, 2))
    assert broken.tolist() == [False, False, True, False]
    assert worlds.diverged == 1
    good = [0, 1, 3]
    assert torch.equal(worlds.state("qpos")[good], healthy.state("qpos")[good])
    worlds.reset(torch.tensor([2]))
    worlds.begin(torch.tensor([2]))
    assert not worlds.step(torch.zeros(4, 2)).any()
    assert torch.isfinite(worlds.state("qpos")).all()


DELAY = """
[effects.actuator.hinge]
delay = 0.0
delay_max = 0.1
[parameters."actuator/hinge/delay"]
prior = { kind = "uniform", low = 0.0, high = 0.1 }
"""


def test_a_delay_shifts_the_response_by_just_that_much(make_twin):
    """With 2 ms steps, a delay of 2k ms acts k steps later."""
    twin = Twin.load(make_twin(DELAY))
    worlds = open_worlds(twin, count=4, period_s=0.002)
    worlds.derived("qfrc_actuator")
    start(worlds, [[0.0], [0.01], [0.04], [0.1]])
    record = []
    for _ in range(120):
        worlds.step(torch.tensor([[1.0, 0.0]]).repeat(4, 1))
        record.append(worlds.derived("qfrc_actuator")[:, 0].clone())
    force = torch.stack(record).numpy()
    assert [int(np.argmax(force[:, k] > 2.5)) for k in range(4)] == [0, 5, 20, 50]


def test_a_fractional_delay_lies_between_its_neighbours(make_twin):
    worlds = open_worlds(Twin.load(make_twin(DELAY)), count=3, period_s=0.002)
    worlds.derived("qfrc_actuator")
    start(worlds, [[0.010], [0.011], [0.012]])
    for k in range(12):
        worlds.step(torch.tensor([[0.01 * k, 0.0]]).repeat(3, 1))
    early, middle, late = worlds.derived("qfrc_actuator")[:, 0].tolist()
    assert late < middle < early
    assert middle == pytest.approx((early + late) / 2, rel=0.02)


def test_asking_for_more_delay_than_the_buffer_holds_raises(make_twin):
    worlds = open_worlds(Twin.load(make_twin(DELAY)), count=1, period_s=PERIOD_S)
    with pytest.raises(Sim2RealError, match="history buffer"):
        worlds.set_parameters(torch.tensor([[0.2]], dtype=torch.float64), torch.tensor([0]))
    too_long = DELAY.replace("high = 0.1", "high = 0.3")
    with pytest.raises(Sim2RealError, match="delay_max minus jitter"):
        open_worlds(Twin.load(make_twin(too_long, name="long")), count=1, period_s=PERIOD_S)


def test_an_episode_begins_with_its_own_past_in_the_buffers(make_twin):
    """No zeros from nowhere: a delayed sensor first reads the start, not the model's zero."""
    toml = """
    [effects.sensor.hinge_pos]
    delay = 0.05
    delay_max = 0.06
    """
    worlds = open_worlds(Twin.load(make_twin(toml)), count=2, period_s=PERIOD_S)
    everyone = torch.arange(2)
    worlds.reset(everyone)
    worlds.state("qpos")[:, 0] = torch.tensor([0.7, -0.4], dtype=torch.float64)
    worlds.state("ctrl")[:, 0] = torch.tensor([0.7, -0.4], dtype=torch.float64)
    worlds.begin(everyone)
    assert worlds.measured[:, 0].tolist() == pytest.approx([0.7, -0.4])
    worlds.step(worlds.state("ctrl").clone())
    assert worlds.measured[:, 0].tolist() == pytest.approx([0.7, -0.4])


def sensors(make_twin, effects: str, *, periods: int = 400, count: int = 50) -> np.ndarray:
    """(periods, worlds) readings of a joint that stays at zero."""
    xml = SLIDER.replace('impratio="10"', 'impratio="10" gravity="0 0 0"')
    twin = Twin.load(make_twin(f"[effects.sensor.hinge_pos]\n{effects}", xml))
    worlds = open_worlds(twin, count=count, period_s=PERIOD_S)
    record = []
    for _ in range(periods):
        worlds.step(torch.zeros(count, 2))
        record.append(worlds.measured[:, 0].numpy().copy())
    return np.stack(record)


@pytest.mark.slow
def test_white_noise_has_its_spread_and_no_memory(make_twin):
    error = sensors(make_twin, "noise = 0.02")
    assert error.std() == pytest.approx(0.02, rel=0.03)
    assert abs(np.corrcoef(error[1:].ravel(), error[:-1].ravel())[0, 1]) < 0.03


@pytest.mark.slow
def test_a_bias_walks_with_the_root_of_time(make_twin):
    error = sensors(make_twin, "walk = 0.03", count=600)
    assert error[24].std() == pytest.approx(0.03 * math.sqrt(25 * PERIOD_S), rel=0.1)
    assert error[399].std() == pytest.approx(0.03 * math.sqrt(400 * PERIOD_S), rel=0.1)


def test_bias_scale_and_resolution_are_exact(make_twin):
    assert sensors(make_twin, "bias = 0.1", periods=3).ravel() == pytest.approx(0.1, abs=1e-6)
    toml = "[effects.sensor.hinge_pos]\nscale = 1.5\nquantum = 0.25"
    worlds = open_worlds(Twin.load(make_twin(toml, name="q")), count=1, period_s=PERIOD_S)
    for _ in range(20):
        worlds.step(torch.tensor([[1.0, 0.0]]))
        truth = float(worlds.derived("sensordata")[0, 0])
        assert float(worlds.measured[0, 0]) == pytest.approx(round(1.5 * truth / 0.25) * 0.25)


def test_a_slow_sensor_repeats_its_reading(make_twin):
    error = sensors(make_twin, "noise = 0.1\nperiod = 0.06", periods=60, count=5)
    changes = (np.diff(error, axis=0) != 0).sum(axis=0)
    assert (np.abs(changes - 20) <= 1).all()


@pytest.mark.slow
def test_lost_readings_repeat_the_last_one(make_twin):
    error = sensors(make_twin, "noise = 0.1\ndropout = 0.3", periods=500, count=40)
    repeated = (np.diff(error, axis=0) == 0).mean()
    assert repeated == pytest.approx(0.3, abs=0.02)


def commands(make_twin, effects: str, targets: list[float], count: int = 1) -> np.ndarray:
    twin = Twin.load(make_twin(f"[effects.actuator.hinge]\n{effects}"))
    worlds = open_worlds(twin, count=count, period_s=PERIOD_S)
    record = []
    for target in targets:
        worlds.step(torch.tensor([[target, 0.0]]).repeat(count, 1))
        record.append(worlds.state("ctrl")[:, 0].numpy().copy())
    return np.stack(record)


def test_commands_are_rounded_to_their_resolution(make_twin):
    rounded = commands(make_twin, "quantum = 0.1", [0.234, -0.27])
    assert rounded[:, 0].tolist() == pytest.approx([0.2, -0.3])


def test_a_slew_limit_bounds_the_change_of_a_command(make_twin):
    slewed = commands(make_twin, "slew = 5.0", [1.0] * 12)[:, 0]
    assert slewed.tolist() == pytest.approx([min(0.1 * k, 1.0) for k in range(1, 13)], abs=1e-6)


def test_a_device_with_its_own_period_takes_every_third_command(make_twin):
    taken = commands(make_twin, "period = 0.06", [0.1 * k for k in range(9)])[:, 0]
    assert taken.tolist() == pytest.approx([0.0, 0.0, 0.0, 0.3, 0.3, 0.3, 0.6, 0.6, 0.6], abs=1e-6)


def test_a_period_between_two_ticks_is_right_on_average(make_twin):
    taken = commands(make_twin, "period = 0.05", [0.001 * k for k in range(200)])[:, 0]
    assert (np.diff(taken) > 1e-6).sum() == pytest.approx(200 / 2.5, abs=1)


def test_a_slow_device_still_slews_between_its_commands(make_twin):
    taken = commands(make_twin, "period = 0.06\nslew = 5.0", [1.0] * 12)[:, 0]
    assert taken.tolist() == pytest.approx([min(0.1 * k, 1.0) for k in range(1, 13)], abs=1e-6)


def test_missed_commands_leave_the_last_one(make_twin):
    targets = [0.001 * k for k in range(300)]
    taken = commands(make_twin, "missed = 0.25", targets, count=20)
    missed = (np.abs(taken - np.array(targets)[:, None]) > 1e-6).mean()
    assert missed == pytest.approx(0.25, abs=0.03)


def test_backlash_leaves_the_load_free_within_its_width(make_twin):
    """The load, pulled down by gravity, hangs half the play below the motor's side."""
    toml = """
    [effects.joint.hinge]
    backlash = 0.1
    encoder = "output"
    [parameters."actuator/hinge/backlash"]
    prior = { kind = "uniform", low = 0.02, high = 0.3 }
    """
    worlds = open_worlds(Twin.load(make_twin(toml)), count=2, period_s=PERIOD_S)
    start(worlds, [[0.1], [0.2]])
    for _ in range(100):
        worlds.step(torch.tensor([[0.0, 0.0]]).repeat(2, 1))
    play = worlds.model.joint("hinge_backlash")
    gap = worlds.state("qpos")[:, int(play.qposadr[0])]
    assert gap.tolist() == pytest.approx([0.05, 0.1], abs=0.005)
    motor = worlds.state("qpos")[:, int(worlds.model.joint("hinge").qposadr[0])]
    assert worlds.measured[:, 0].tolist() == pytest.approx((motor + gap).tolist(), abs=1e-3)


def test_stribeck_friction_holds_until_its_break_away_torque(make_twin):
    xml = SLIDER.replace('<option timestep="0.002"', '<option gravity="0 0 0" timestep="0.002"')
    xml = xml.replace(
        '<position name="hinge" joint="hinge" kp="20" kv="1" ctrlrange="-2 2" forcerange="-5 5"/>',
        '<motor name="hinge" joint="hinge" ctrlrange="-2 2"/>',
    )
    toml = """
    [effects.joint.hinge]
    static_friction = 0.5
    coulomb_friction = 0.3
    stribeck_velocity = 0.5
    """
    twin = Twin.load(make_twin(toml, xml))
    worlds = open_worlds(twin, count=2, period_s=PERIOD_S)
    assert worlds.model.nu == 2
    start(worlds)
    for k in range(40):
        # The second joint is torn loose, then driven with the torque that holds the first.
        worlds.step(torch.tensor([[0.4, 0.0], [0.8 if k < 10 else 0.4, 0.0]]))
    held, moving = worlds.state("qvel")[:, 0].abs().tolist()
    assert held < 0.01 and worlds.state("qpos")[0, 0].abs() < 0.02
    assert moving > 0.5


def test_load_friction_grows_with_the_torque_the_gear_carries(make_twin):
    toml = "[effects.joint.hinge]\nload_friction = 0.2"
    worlds = open_worlds(Twin.load(make_twin(toml)), count=1, period_s=PERIOD_S)
    for _ in range(5):
        load = float(worlds.derived("qfrc_actuator")[0, 0].abs())
        worlds.step(torch.tensor([[1.0, 0.0]]))
        friction = float(worlds.field("dof_frictionloss")[0, 0])
        assert friction == pytest.approx(0.2 * load, abs=1e-6)
    assert friction > 0.1


def test_a_sensor_loses_its_reading_as_a_whole(make_twin):
    xml = SLIDER.replace("<sensor>", '<sensor><framepos name="tip" objtype="body" objname="fore"/>')
    toml = "[effects.sensor.tip]\nnoise = 0.1\ndropout = 0.4"
    worlds = open_worlds(Twin.load(make_twin(toml, xml)), count=30, period_s=PERIOD_S)
    last = worlds.measured[:, :3].clone()
    for _ in range(30):
        worlds.step(torch.zeros(30, 2))
        same = worlds.measured[:, :3] == last
        assert torch.equal(same.any(1), same.all(1))
        last = worlds.measured[:, :3].clone()


def test_a_delay_written_in_the_model_itself_is_kept(make_twin):
    xml = SLIDER.replace('kv="1"', 'kv="1" nsample="30" delay="0.02"')
    worlds = open_worlds(Twin.load(make_twin("", xml)), count=1, period_s=0.002)
    worlds.derived("qfrc_actuator")
    start(worlds)
    force = []
    for _ in range(20):
        worlds.step(torch.tensor([[1.0, 0.0]]))
        force.append(float(worlds.derived("qfrc_actuator")[0, 0]))
    assert int(np.argmax(np.array(force) > 2.5)) == 10


def test_an_ideal_servo_given_a_motor_loses_torque_with_speed(make_twin):
    """At speed w a DC motor gives at most K/R (V - K w), however hard the servo pulls."""
    toml = """
    [effects.actuator.hinge]
    resistance = 2.0
    motorconst = 1.5
    voltage_limit = 12.0
    [parameters."actuator/hinge/voltage_limit"]
    prior = { kind = "uniform", low = 6.0, high = 14.0 }
    """
    xml = SLIDER.replace('kp="20"', 'kp="2000"').replace('forcerange="-5 5"', 'forcerange="-50 50"')
    worlds = open_worlds(Twin.load(make_twin(toml, xml)), count=2, period_s=0.002)
    worlds.derived("qfrc_actuator")
    start(worlds, [[12.0], [6.0]])
    for _ in range(20):
        before = worlds.state("qvel")[:, 0].clone()
        worlds.step(torch.tensor([[2.0, 0.0]]).repeat(2, 1))
        limit = 1.5 / 2.0 * (torch.tensor([12.0, 6.0]) - 1.5 * before)
        torch.testing.assert_close(worlds.derived("qfrc_actuator")[:, 0], limit.double())


def test_worlds_may_differ_in_their_time_step(make_twin):
    toml = """
    [parameters."option/timestep"]
    prior = { kind = "choice", values = [0.001, 0.002, 0.004] }
    """
    worlds = open_worlds(Twin.load(make_twin(toml)), count=3, period_s=0.02)
    start(worlds, [[0.001], [0.002], [0.004]])
    for _ in range(10):
        worlds.step(torch.tensor([[1.0, 0.3]]).repeat(3, 1))
    np.testing.assert_allclose(worlds.state("time"), 0.2, atol=1e-9)
    angles = worlds.state("qpos")[:, 0]
    np.testing.assert_allclose(angles, angles[0], atol=0.01)
    assert len(set(angles.tolist())) == 3


def test_a_period_that_is_no_whole_number_of_steps_is_refused(make_twin):
    with pytest.raises(Sim2RealError, match="whole number of time steps"):
        open_worlds(Twin.load(make_twin("")), count=1, period_s=0.0051)
