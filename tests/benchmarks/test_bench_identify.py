"""The pieces of the benchmark `identify`, on problems small enough to wait for."""

import numpy as np
import pytest
import torch

from benchmarks.identify.calibration import Placed, placed
from benchmarks.identify.growth import exponent
from benchmarks.identify.pace import Positions, cma_es, counted, pace_twin
from benchmarks.identify.sysid import MODELS, shared_problem
from sim2real.replay.unknowns import open_parameters
from sim2real.tasks import find_task
from sim2real.testing import multisine, recordings, truths_of
from sim2real.twin import Twin
from sim2real.worlds import open_worlds
from tests.repository import want


def arm():
    return Twin.load(find_task("arm-reach").twin, check=False)


def test_a_multisine_stays_within_its_range_and_begins_at_its_middle():
    limits = np.array([[-1.0, 1.0], [-0.2, 1.8]])
    found = multisine(np.random.default_rng(0), limits, np.arange(500) / 50.0)
    assert (found > limits[:, 0]).all() and (found < limits[:, 1]).all()
    assert np.allclose(found[0], 0.0) and (np.abs(found).max(axis=0) > 0.05).all()


def test_a_recording_is_of_the_values_that_were_planted():
    twin = Twin.load(find_task("pendulum-swingup").twin, check=False)
    truths = truths_of(twin, 2, seed=0)
    first, second = recordings(twin, truths, seconds=1.0, rate_hz=50.0)
    assert len(first.times) == 51 and np.isfinite(first.readings).all()
    again = recordings(twin, truths, seconds=1.0, rate_hz=50.0)[0]
    assert np.array_equal(first.readings, again.readings)
    assert not np.allclose(first.readings, second.readings)


def test_truths_are_drawn_from_the_prior_where_a_prediction_depends_on_them():
    twin = arm()
    truths = truths_of(twin, 200, seed=1)
    open_ = {parameter.name for parameter in open_parameters(twin)}
    for column, parameter in enumerate(twin.parameters):
        low, high = parameter.prior.support
        drawn = truths[:, column]
        if parameter.name in open_:
            assert low <= drawn.min() < drawn.max() <= high, parameter.name
            assert abs(drawn.mean() - (low + high) / 2) < 0.15 * (high - low), parameter.name
        else:
            assert (drawn == parameter.nominal).all(), parameter.name


def test_even_ranks_pass_and_ranks_in_the_middle_do_not():
    even = np.arange(400) % 200
    assert placed_with(even).uneven() > 0.9
    assert placed_with(70 + np.arange(400) % 60).uneven() < 1e-6


def test_one_uneven_parameter_among_even_ones_is_found_and_named():
    even, narrow = np.arange(200) % 200, 70 + np.arange(200) % 60
    found = Placed(
        names=("a",) * 200 + ("b",) * 200,
        inside=(True,) * 400,
        ranks=(*even.tolist(), *narrow.tolist()),
    )
    chance, worst = found.sbc_p()
    assert worst == "b" and chance < 1e-6
    assert placed_with(even).sbc_p() == (pytest.approx(1.0), "a")


def placed_with(ranks):
    count = len(ranks)
    return Placed(names=("a",) * count, inside=(True,) * count, ranks=tuple(ranks.tolist()))


@pytest.mark.slow
def test_truths_are_placed_in_the_posteriors_of_what_a_log_tells():
    twin = Twin.load(find_task("pendulum-swingup").twin, check=False)
    truths = truths_of(twin, 1, seed=0)
    logs = recordings(twin, truths, seconds=4.0, rate_hz=50.0, seed=1)
    found = placed(twin, truths, logs)
    assert 0 < len(found.names) <= len(open_parameters(twin))
    assert len(found.inside) == len(found.ranks) == len(found.names)
    assert "sensor/hinge_pos/bias" in found.names and np.mean(found.inside) > 0.5
    assert all(0 <= rank <= 199 for rank in found.ranks)


def test_the_exponent_of_linear_growth_is_one():
    assert exponent([1.0, 2.0, 4.0], [3.0, 6.0, 12.0]) == pytest.approx(1.0)


@pytest.mark.parametrize("model", list(MODELS))
def test_both_sides_simulate_the_same_robot(model):
    lacks = want("extra bench", "pip install 'sim2real[bench]'")
    peer = pytest.importorskip("benchmarks.identify.sysid_peer", reason=lacks)
    if not hasattr(pytest.importorskip("mujoco.sysid", reason=lacks), "optimize"):
        pytest.skip(lacks)
    shared = shared_problem(model, seconds=3.0, seed=0)
    theirs = peer.SysidPeer(shared, threads=1)
    assert theirs.cost(shared.truth) < 0.5 * theirs.cost(
        np.array([p.nominal for p in shared.twin.parameters])
    )
    ours = simulated(shared)
    noise = np.array([0.002, 0.05]) if model == "pendulum" else np.repeat([0.001, 0.02], 6)
    off = (shared.log.readings - ours)[1:] / noise
    assert 0.8 < off.std() < 1.2  # nothing but the noise of the sensors is left


def simulated(shared):
    """Readings of our worlds at the planted values, without noise."""
    quiet = {**shared.twin.effects, "sensor": {}}
    twin = Twin(**{**vars(shared.twin), "effects": quiet})
    worlds = open_worlds(twin, count=1, period_s=1.0 / shared.log.contract.rate_hz)
    one = torch.arange(1)
    worlds.set_parameters(torch.from_numpy(shared.truth[None]), one)
    worlds.reset(one)
    worlds.begin(one)
    found = [worlds.measured[0].double().numpy().copy()]
    for sent in shared.log.command[:-1]:
        worlds.step(torch.from_numpy(sent[None]).float())
        found.append(worlds.measured[0].double().numpy().copy())
    return np.array(found)


def test_the_truth_predicts_a_recording_best():
    twin = pace_twin(arm())
    low, high = np.array([p.bounds for p in twin.parameters]).T
    truth = low + 0.4 * (high - low)
    log = recordings(twin, truth[None], seconds=1.0, rate_hz=25.0)[0]
    right, wrong = Positions(twin, log, worlds=2).errors(np.stack([truth, (low + high) / 2]))
    assert right < 3e-6 < wrong  # the sensors' noise of 1 mrad, squared


def test_a_search_keeps_to_its_simulated_time():
    pytest.importorskip("cmaes", reason=want("extra bench", "pip install 'sim2real[bench]'"))
    twin = pace_twin(arm())
    low, high = np.array([p.bounds for p in twin.parameters]).T
    log = recordings(twin, (low + 0.4 * (high - low))[None], seconds=0.5, rate_hz=25.0)[0]
    with counted() as total:
        best = cma_es(twin, log, seconds=40.0, seed=0)
    assert 30.0 < total.seconds <= 40.0
    assert ((best >= low) & (best <= high)).all()
