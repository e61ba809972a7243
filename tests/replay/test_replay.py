"""A log replayed in the twin: right where the twin is right, wrong where it is not."""

from dataclasses import replace

import numpy as np
import pytest

from sim2real.data import Signal
from sim2real.errors import Sim2RealError
from sim2real.logs.control_log import ControlLog
from sim2real.replay.replayer import Replayer
from tests.simulated import bundle_and_twin, rows, simulate

MOVED = {
    "pendulum-swingup": ("actuator/hinge/gain", 1.2),
    "arm-reach": ("actuator/shoulder_lift/kp", 0.8),
    "arm-push": ("joint/shoulder_lift/frictionloss", 3.0),
}


@pytest.fixture(scope="module")
def pendulum():
    bundle, twin = bundle_and_twin("pendulum-swingup")
    (episode,) = simulate(bundle, twin, count=1, seed=1)
    return bundle, twin, episode


def replay(twin, log, *, horizon_s, values=None, stride_s=None):
    """The log predicted with rows of parameters, the nominal ones by default."""
    nominal = np.array([[parameter.nominal for parameter in twin.parameters]])
    given = nominal if values is None else np.atleast_2d(values)
    fits = given.shape[1] == nominal.shape[1]
    replayer = Replayer(
        twin, log, horizon_s=horizon_s, stride_s=stride_s, values=given if fits else nominal
    )
    return replayer(given)


def misfit(found):
    """Mean square error in units of the expected noise, one number a parameter vector."""
    return np.nanmean((found.errors / found.noise) ** 2, axis=(1, 2, 3))


@pytest.mark.slow
@pytest.mark.parametrize("task", MOVED)
def test_a_log_is_explained_by_its_own_parameters_to_within_its_noise_and_by_no_others(task):
    bundle, twin = bundle_and_twin(task)
    name, value = MOVED[task]
    nominal = twin.parameter(name).nominal
    (episode,) = simulate(bundle, twin, count=1, seed=1, values={name: value})
    log = ControlLog.of(episode, bundle.contract)
    grid = [nominal, (nominal + value) / 2, value, 1.5 * value - 0.5 * nominal]
    # One period ahead, so that the noise of the start does not grow.
    found = replay(twin, log, horizon_s=0.04, values=rows(twin, name, grid))
    errors = misfit(found)
    assert errors.argmin() == 2
    assert errors[2] < 3.0  # noise of the reading and of the start
    longer = misfit(replay(twin, log, horizon_s=0.4, values=rows(twin, name, grid)))
    assert longer.argmin() == 2 and longer[0] > 2 * longer[2]
    assert found.assumed == ()


@pytest.mark.slow
@pytest.mark.parametrize(("task", "delay"), [("pendulum-swingup", 0.03), ("arm-reach", 0.03)])
def test_a_delay_is_honoured_to_a_fraction_of_a_period(task, delay):
    bundle, twin = bundle_and_twin(task)
    name = next(p.name for p in twin.parameters if p.name.endswith("/delay"))
    (episode,) = simulate(bundle, twin, count=1, seed=2, values={name: delay})
    grid = delay + 0.005 * np.arange(-4, 5)
    log = ControlLog.of(episode, bundle.contract)
    errors = misfit(replay(twin, log, horizon_s=0.2, values=rows(twin, name, grid)))
    assert abs(grid[errors.argmin()] - delay) <= 0.0051
    assert (np.diff(errors[:3]) < 0).all() and (np.diff(errors[-3:]) > 0).all()


@pytest.mark.slow
def test_a_delayed_camera_is_undone_where_a_segment_starts():
    bundle, twin = bundle_and_twin("arm-push")
    name = "sensor/cube_pos/delay"
    (episode,) = simulate(bundle, twin, count=1, seed=3, values={name: 0.07})
    log = ControlLog.of(episode, bundle.contract)
    found = replay(twin, log, horizon_s=0.4, values=rows(twin, name, [0.0, 0.07]))
    cube = found.column("cube_pos")
    errors = np.nanmean((found.errors[..., cube] / found.noise[cube]) ** 2, axis=(1, 2, 3))
    assert errors[1] < 4 and errors[1] < errors[0]


def test_a_bias_is_taken_off_the_start_and_put_on_the_prediction(pendulum):
    bundle, twin, _ = pendulum
    name = "sensor/hinge_pos/bias"
    (episode,) = simulate(bundle, twin, count=1, seed=4, values={name: 0.15})
    log = ControlLog.of(episode, bundle.contract)
    errors = misfit(replay(twin, log, horizon_s=0.4, values=rows(twin, name, [-0.1, 0.0, 0.15])))
    assert errors.argmin() == 2 and errors[2] < 0.5 * errors[1]


def test_a_batch_gives_each_parameter_vector_what_it_gets_alone(pendulum):
    bundle, twin, episode = pendulum
    log = ControlLog.of(episode, bundle.contract)
    values = rows(twin, "body/pole/mass", [0.5, 0.57, 0.64])
    whole = replay(twin, log, horizon_s=0.3, values=values)
    for k in range(3):
        alone = replay(twin, log, horizon_s=0.3, values=values[k])
        assert np.array_equal(alone.predicted[0], whole.predicted[k])
    again = replay(twin, log, horizon_s=0.3, values=values)
    assert np.array_equal(whole.predicted, again.predicted)  # nothing is left to chance


def test_lost_packets_are_neither_compared_nor_started_from(pendulum):
    bundle, twin, episode = pendulum
    kept = np.ones(250, dtype=bool)
    kept[::7] = False
    channels = dict(episode.channels)
    for name in ("sensor/hinge_pos", "sensor/hinge_vel"):
        signal = episode[name]
        channels[name] = Signal(signal.times[kept], signal.values[kept], signal.unit)
    log = ControlLog.of(episode.derive("packets lost", channels=channels), bundle.contract)
    found = replay(twin, log, horizon_s=0.02, stride_s=0.02)
    lost = found.starts + 1
    assert np.array_equal(found.valid[:, 0, 0], kept[lost])
    whole = replay(twin, ControlLog.of(episode, bundle.contract), horizon_s=0.02, stride_s=0.02)
    # A start from a held reading would be off by a period's motion, a hundred times the noise.
    assert misfit(found)[0] < 2 * misfit(whole)[0]
    assert np.nanmax(np.abs(found.errors[..., 0])) < 0.05


def test_a_speed_that_no_sensor_measures_is_taken_from_the_positions(pendulum):
    bundle, twin, episode = pendulum
    only = tuple(s for s in bundle.contract.sensors if s.name == "hinge_pos")
    log = ControlLog.of(episode, replace(bundle.contract, sensors=only))
    found = replay(twin, log, horizon_s=0.1)
    assert found.measured.shape[-1] == 1
    moved = np.nanmean(np.abs(found.measured[:, -1] - log.readings[found.starts]))
    assert np.nanmean(np.abs(found.errors[:, :, -1])) < 0.1 * moved


def test_rows_without_numbers_and_uneven_rows_are_left_out(pendulum):
    bundle, twin, episode = pendulum
    log = ControlLog.of(episode, bundle.contract)
    readings = log.readings.copy()
    readings[100] = np.nan
    times = log.times + np.where(np.arange(len(log.times)) >= 150, 0.5, 0.0)
    command = log.command.copy()
    command[200] = np.nan
    broken = replace(log, readings=readings, times=times, command=command)
    found = replay(twin, broken, horizon_s=0.1, stride_s=0.02)
    span = found.starts[:, None] + np.arange(5)
    assert not (span == 149).any() and not (span == 200).any()
    assert (found.starts > 150).any() and (found.starts == 99).any()
    assert not found.valid[found.starts == 99][:, 0].any()
    assert np.nanmax(np.abs(found.errors[..., 0])) < 0.1


def test_a_log_that_cannot_be_replayed_says_why(pendulum):
    bundle, twin, episode = pendulum
    log = ControlLog.of(episode, bundle.contract)
    with pytest.raises(Sim2RealError, match="shorter horizon"):
        replay(twin, log, horizon_s=6.0)
    with pytest.raises(Sim2RealError, match="time steps"):
        replay(twin, replace(log, times=log.times * 0.37), horizon_s=0.1)
    with pytest.raises(Sim2RealError, match="commands"):
        replay(twin, replace(log, command=np.full_like(log.command, np.nan)), horizon_s=0.1)
    with pytest.raises(Sim2RealError, match="one for each parameter"):
        replay(twin, log, horizon_s=0.1, values=np.zeros((2, 3)))
    _, arm = bundle_and_twin("arm-reach")
    with pytest.raises(Sim2RealError, match="no sensor 'hinge_pos'"):
        replay(arm, log, horizon_s=0.1)
    blind = replace(log, fresh=np.zeros_like(log.fresh))
    with pytest.raises(Sim2RealError, match="gives a joint's position"):
        replay(twin, blind, horizon_s=0.1)
