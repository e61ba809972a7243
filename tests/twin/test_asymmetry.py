"""Friction that differs by the direction of motion."""

import pytest
import torch

from sim2real.errors import Sim2RealError
from sim2real.twin import Twin
from sim2real.worlds import open_worlds

SLIDE = """
<mujoco model="slide">
  <option timestep="0.001" gravity="0 0 0"/>
  <worldbody>
    <body name="block">
      <joint name="slide" type="slide" axis="1 0 0" damping="{damping}" frictionloss="{friction}"
             stiffness="{stiffness}"/>
      <geom name="block" size="0.1" mass="2"/>
    </body>
  </worldbody>
  <actuator><motor name="slide" joint="slide"/></actuator>
  <sensor><jointpos name="slide" joint="slide"/></sensor>
</mujoco>
"""


def speeds_after(folder, values, start):
    """Speeds of worlds of given parameters, 0.2 s after they started with a speed."""
    twin = Twin.load(folder)
    worlds, everyone = (
        open_worlds(twin, count=len(values), period_s=0.01),
        torch.arange(len(values)),
    )
    worlds.set_parameters(torch.tensor(values, dtype=torch.float64), everyone)
    worlds.reset(everyone)
    worlds.state("qvel")[:, 0] = torch.tensor(start, dtype=torch.float64)
    worlds.begin(everyone)
    for _ in range(20):
        worlds.step(torch.zeros(len(values), 1))
    return worlds.state("qvel")[:, 0].tolist()


@pytest.mark.parametrize(
    ("attribute", "model"),
    [
        ("damping", SLIDE.format(damping=4, friction=0, stiffness=0)),
        ("friction", SLIDE.format(damping=0, friction=4, stiffness=0)),
    ],
)
def test_motion_one_way_is_braked_like_the_other_way_with_the_opposite_asymmetry(
    make_twin, attribute, model
):
    name = f"joint/slide/{attribute}_asymmetry"
    toml = f'[parameters."{name}"]\nprior = {{ kind = "uniform", low = -0.5, high = 0.5 }}\n'
    folder = make_twin(toml, model)
    there, back, mirrored, even = speeds_after(
        folder, [[0.5], [0.5], [-0.5], [0.0]], [1.0, -1.0, -1.0, 1.0]
    )
    assert there == pytest.approx(-mirrored, rel=1e-6)
    assert there < even < -back


def test_an_asymmetric_damping_brakes_by_its_share(make_twin):
    toml = "[effects.joint.slide]\ndamping_asymmetry = -0.5\n"
    folder = make_twin(toml, SLIDE.format(damping=4, friction=0, stiffness=0))
    half = make_twin("", SLIDE.format(damping=2, friction=0, stiffness=0), name="half")
    assert speeds_after(folder, [[]], [1.0]) == pytest.approx(speeds_after(half, [[]], [1.0]))


def test_a_spring_rests_where_its_parameter_says(make_twin):
    toml = (
        '[parameters."joint/slide/springref"]\nunit = "m"\nbounds = [-1.0, 1.0]\n'
        'prior = { kind = "uniform", low = -0.5, high = 0.5 }\n'
    )
    folder = make_twin(toml, SLIDE.format(damping=4, friction=0, stiffness=50))
    left, right = speeds_after(folder, [[-0.2], [0.2]], [0.0, 0.0])
    assert left == pytest.approx(-right, rel=1e-6) and right > 0.05


def test_an_asymmetry_needs_a_number(make_twin):
    folder = make_twin('[effects.joint.hinge]\ndamping_asymmetry = "left"\n')
    with pytest.raises(Sim2RealError, match="damping_asymmetry"):
        Twin.load(folder)
