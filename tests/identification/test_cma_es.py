"""Searching without gradients: on costs whose answer is known, and on simulated tosses."""

import mujoco
import numpy as np
import pytest

from sim2real.data import Episode, Origin, Provenance, Signal
from sim2real.errors import Sim2RealError
from sim2real.identification.cma_es import agreement, search
from sim2real.identification.contact_parameters import narrowed, touches
from sim2real.identification.importance_sampling import weighed_posterior
from sim2real.identification.whole_recordings import WholeRecordings
from sim2real.logs.alignment import aligned
from sim2real.logs.control_log import ControlLog
from sim2real.replay.replayer import Replayer
from sim2real.twin import Twin, model_limits, twin_contract
from tests.repository import REAL_EXAMPLES

CUBE = REAL_EXAMPLES / "cube"
RATE_HZ = 148.0


class Bowl:
    """Costs like those of trajectories, with a known answer: a bowl, broken where `broken` says."""

    names = ("first", "second")
    bounds = (np.full(2, -3.0), np.full(2, 3.0))
    segments, batches = 40, 1
    bottom, width = np.array([1.0, -0.5]), np.array([0.1, 0.4])
    likeliest = bottom / (1.0 + width**2)  # the prior pulls towards zero
    spread = width / np.sqrt(1.0 + width**2)

    def __init__(self, broken=lambda x: np.zeros(len(x), bool)):
        self.broken = broken

    def values(self, x):
        return 2.0 * x

    def slopes(self, x):
        return np.full(2, 2.0)

    def settle(self, x):
        pass

    def costs(self, x, batch=None):
        off = (((x - self.bottom) / self.width) ** 2).sum(axis=1) / (2 * self.segments)
        off = np.where(self.broken(x), np.inf, off)
        return np.repeat(off[:, None], self.segments, axis=1)


def toss(seed, *, friction=0.2, rows=60):
    """A toss of the cube, as it is recorded: speeds are differences of the rows before."""
    model = Twin.load(CUBE, check=False).compile().model
    corners = [k for k in range(model.ngeom) if model.geom(k).name.startswith("corner")]
    model.geom_friction[corners, 0] = friction
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    data.qpos[:3] = 0.0, 0.0, 0.13
    data.qpos[3:7] = rng.normal(size=4)
    data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
    data.qvel[:] = [*rng.normal(0.0, 0.7, 2), 0.0, *rng.normal(0.0, 3.0, 3)]
    poses = np.zeros((rows + 1, 7))
    for row in range(rows + 1):
        poses[row] = data.qpos
        mujoco.mj_step(model, data, round(1 / RATE_HZ / model.opt.timestep))
    places, turns = poses[:, :3], poses[:, 3:]
    rates = np.zeros((rows, 3))
    for row in range(rows):
        mujoco.mju_subQuat(rates[row], turns[row + 1], turns[row])
    times = np.arange(rows) / RATE_HZ
    channels = {
        "position": Signal(times, places[1:], "m", RATE_HZ),
        "quat_wxyz": Signal(times, turns[1:], "", RATE_HZ),
        "velocity": Signal(times, np.diff(places, axis=0) * RATE_HZ, "m/s", RATE_HZ),
        "angular_velocity_body": Signal(times, rates * RATE_HZ, "rad/s", RATE_HZ),
    }
    return Episode(channels=channels, provenance=Provenance(kind=Origin.SIMULATED))


@pytest.fixture(scope="module")
def cube():
    return Twin.load(CUBE, check=False)


def test_the_likeliest_place_in_a_bowl_is_found():
    found = search(Bowl(), generations=60, population=8)
    assert np.abs(found.x - Bowl.likeliest).max() < 1e-3
    assert np.allclose(found.values, 2.0 * found.x)
    assert found.cost < 1.0 and not found.at_bounds


def test_a_world_that_diverged_never_wins():
    bowl = Bowl(broken=lambda x: x[:, 0] > 0.6)
    found = search(bowl, generations=60, population=8)
    assert found.x[0] <= 0.6 and found.diverged > 0 and np.isfinite(found.cost)


def test_a_search_is_the_same_with_the_same_seed():
    first, again = (search(Bowl(), generations=10, population=6, seed=3) for _ in range(2))
    assert np.array_equal(first.x, again.x)
    assert not np.array_equal(first.x, search(Bowl(), generations=10, population=6, seed=4).x)


def test_weighed_draws_are_as_wide_as_the_costs_say():
    found = search(Bowl(), generations=40, population=8)
    posterior = weighed_posterior(found)
    assert np.allclose(posterior.std, 2.0 * Bowl.spread, rtol=0.3)
    assert np.allclose(posterior.mean, found.values)
    assert np.allclose(narrowed(found, posterior).shrinkage, Bowl.spread, rtol=0.3)


def test_slopes_agree_where_a_cost_is_smooth_and_not_where_it_is_rough():
    def smooth(x):
        return (x**2).sum(axis=1, keepdims=True)

    def rough(x):
        return smooth(x) + 0.05 * np.sin(400.0 * x).sum(axis=1, keepdims=True)

    at, bounds = np.array([0.7, -0.4, 0.2]), (np.full(3, -3.0), np.full(3, 3.0))
    assert agreement(smooth, at, bounds) > 0.99
    assert agreement(rough, at, bounds) < 0.7


def test_only_a_twin_whose_contact_is_open_touches(cube):
    assert touches(cube)
    assert touches(cube, ["geom/corner_*/friction", "option/gravity[2]"])
    assert not touches(cube, ["option/gravity[2]", "body/cube/ipos[0]"])


def test_a_twin_that_nothing_drives_cannot_be_recorded_with(cube):
    contract = twin_contract(cube, RATE_HZ)
    assert not contract.commands
    with pytest.raises(Sim2RealError, match="no actuator"):
        model_limits(cube, contract)


def test_a_toss_is_predicted_from_its_first_row(cube):
    logs = [aligned(toss(seed, rows=rows), cube) for seed, rows in ((0, 60), (1, 40))]
    assert logs[0].command.shape == (60, 0)
    values = np.array([[p.nominal for p in cube.parameters]])
    replayer = Replayer(cube, ControlLog.join(logs), horizon_s=1.0, recordings=True, values=values)
    replay = replayer(values)
    assert replay.starts.tolist() == [0, 60] and replay.measured.shape[1] == 59
    assert np.isnan(replay.measured[1, 39:]).all() and np.isfinite(replay.measured[1, :39]).all()
    # While it flies: what happens at an impact depends on the start too finely.
    flight = replay.errors[0][:, :5]
    assert np.abs(flight[..., replay.column("position")]).max() < 1e-3
    assert np.abs(flight[..., replay.column("orientation")]).max() < 5e-3


@pytest.mark.slow
def test_a_planted_friction_is_found_in_tosses(cube):
    logs = [aligned(toss(seed, friction=0.35), cube) for seed in range(8)]
    problem = WholeRecordings(cube, logs, fitted=("geom/corner_*/friction",), threads=1)
    found = search(problem, generations=12, population=6)
    posterior = weighed_posterior(found)
    assert abs(found.values[0] - 0.35) < 0.04
    assert abs(found.values[0] - 0.35) < 4 * posterior.std[0] < 0.3
    new = cube.with_posterior(posterior.distribution)
    assert new.parent == cube.version
