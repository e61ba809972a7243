"""Parameters from forces: known truths come back, and what cannot be told is said."""

import numpy as np
import pytest
import torch

from benchmarks.real.inverse import inverse_error, inverse_fit
from sim2real.data import Episode, Provenance, Signal
from sim2real.errors import Sim2RealError
from sim2real.logs.alignment import aligned
from sim2real.twin import Twin
from sim2real.worlds import open_worlds

DRIVE = """
<mujoco model="drive">
  <option timestep="0.001" integrator="Euler"/>
  <worldbody>
    <body name="carriage">
      <joint name="slide" type="slide" axis="1 0 0" damping="20" frictionloss="5"
             solreffriction="0.004 1"/>
      <geom name="carriage" size="0.1" mass="10"/>
    </body>
  </worldbody>
  <actuator><position name="drive" joint="slide" kp="40000" kv="1200"/></actuator>
  <sensor>
    <jointpos name="position" joint="slide"/>
    <jointactuatorfrc name="force" joint="slide"/>
  </sensor>
</mujoco>
"""
PARAMETERS = """
[parameters."body/carriage/mass"]
bounds = [1.0, 50.0]
prior = { kind = "uniform", low = 5.0, high = 15.0 }
[parameters."joint/slide/damping"]
bounds = [0.0, 200.0]
prior = { kind = "uniform", low = 0.0, high = 50.0 }
[parameters."joint/slide/damping_asymmetry"]
bounds = [-0.9, 0.9]
prior = { kind = "uniform", low = -0.4, high = 0.4 }
[parameters."joint/slide/frictionloss"]
bounds = [0.0, 50.0]
prior = { kind = "uniform", low = 0.0, high = 15.0 }
[parameters."option/gravity[0]"]
bounds = [-2.0, 2.0]
prior = { kind = "uniform", low = -1.0, high = 1.0 }
"""
TRUTH = {
    "body/carriage/mass": 12.0,
    "joint/slide/damping": 30.0,
    "joint/slide/damping_asymmetry": 0.25,
    "joint/slide/frictionloss": 8.0,
    "option/gravity[0]": -0.3,
}


def recorded(twin: Twin, *, noise_n: float = 0.0) -> Episode:
    """Four seconds of a drive with the true parameters, which follows a sum of sines."""
    worlds, one = open_worlds(twin, count=1, period_s=0.001), torch.arange(1)
    values = [[TRUTH.get(p.name, p.nominal) for p in twin.parameters]]
    worlds.set_parameters(torch.tensor(values, dtype=torch.float64), one)
    worlds.reset(one)
    worlds.begin(one)
    times = 0.001 * np.arange(4000)
    goal = 0.3 * (1 - np.cos(3.0 * times)) + 0.05 * (1 - np.cos(11.0 * times))
    position, force = np.empty(len(times)), np.empty(len(times))
    for row, command in enumerate(goal):
        position[row] = float(worlds.state("qpos")[0, 0])
        worlds.step(torch.tensor([[command]]))
        force[row] = float(worlds.derived("sensordata")[0, 1])
    force += np.random.default_rng(0).normal(0.0, noise_n, len(force))
    channels = {
        "sensor/position": Signal(times, position, "m", 1000.0),
        "sensor/force": Signal(times, force, "N", 1000.0),
        "actuator/drive": Signal(times, goal, "m", 1000.0),
    }
    return Episode(channels=channels, provenance=Provenance(kind="simulated"))


@pytest.mark.slow
def test_masses_frictions_and_their_asymmetry_come_back_from_forces(make_twin):
    twin = Twin.load(make_twin(PARAMETERS, DRIVE))
    log = aligned(recorded(twin, noise_n=0.5), twin)
    found = inverse_fit(twin, [log])
    truth = np.array([TRUTH[name] for name in found.names])
    assert found.values == pytest.approx(truth, rel=0.05)
    assert (np.abs(found.values - truth) < 6 * found.std + 0.02 * np.abs(truth)).all()
    assert found.error[0] < 0.05
    assert inverse_error(twin, [log])[0] > 3 * found.error[0]


@pytest.mark.slow
def test_only_the_parameters_asked_for_move(make_twin):
    twin = Twin.load(make_twin(PARAMETERS, DRIVE))
    log = aligned(recorded(twin), twin)
    found = inverse_fit(twin, [log], fitted=["body/carriage/mass", "joint/slide/frictionloss"])
    assert found.names == ("body/carriage/mass", "joint/slide/frictionloss")
    assert found.error[0] > inverse_fit(twin, [log]).error[0]


@pytest.mark.slow
def test_parameters_that_forces_do_not_tell_apart_are_named(make_twin):
    # While it moves, dry friction that differs by direction is a constant force.
    more = (
        '[parameters."joint/slide/friction_asymmetry"]\nbounds = [-0.9, 0.9]\n'
        'prior = { kind = "uniform", low = -0.4, high = 0.4 }\n'
    )
    twin = Twin.load(make_twin(PARAMETERS + more, DRIVE))
    log = aligned(recorded(twin), twin)
    with pytest.raises(Sim2RealError, match="friction_asymmetry"):
        inverse_fit(twin, [log])


def test_a_log_without_forces_is_refused(make_twin):
    twin = Twin.load(make_twin(PARAMETERS, DRIVE))
    episode = recorded(twin)
    channels = {n: s for n, s in episode.channels.items() if n != "sensor/force"}
    log = aligned(Episode(channels=channels, provenance=episode.provenance), twin)
    with pytest.raises(Sim2RealError, match="no forces"):
        inverse_fit(twin, [log])
