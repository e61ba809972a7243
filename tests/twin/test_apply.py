"""Applying parameters: physically whole, from the nominal value, in every world alike.

The reference for every kind is the compiler itself: a world with a parameter moves as a model
compiled with that value in its MJCF.
"""

import mujoco
import numpy as np
import pytest
import torch

from sim2real.errors import Sim2RealError
from sim2real.twin import Twin
from sim2real.twin.inertia import perturbed_inertia
from sim2real.worlds import Worlds, open_worlds
from tests.conftest import SLIDER

PERIOD_S = 0.02


def parameter(name: str, operation: str = "set", low: float = 0.5, high: float = 1.5) -> str:
    return (
        f'[parameters."{name}"]\noperation = "{operation}"\n'
        f'prior = {{ kind = "uniform", low = {low}, high = {high} }}\n'
    )


def motion(worlds: Worlds, periods: int = 30) -> np.ndarray:
    """States of all worlds while the joints are driven about and the block slides."""
    record = []
    if worlds.model.nv > 2:
        worlds.state("qvel")[:, 2] = 1.0
    for k in range(periods):
        command = torch.tensor([[np.sin(0.3 * k), np.cos(0.4 * k)]]).repeat(worlds.count, 1)
        worlds.step(command)
        record.append(torch.cat([worlds.state("qpos"), worlds.state("qvel")], dim=1).numpy().copy())
    return np.stack(record)


def moved(folder, value: float) -> np.ndarray:
    """The motion of a world whose only parameter has `value`."""
    worlds = open_worlds(Twin.load(folder), count=2, period_s=PERIOD_S)
    ids = torch.tensor([1])
    worlds.set_parameters(torch.tensor([[value]], dtype=torch.float64), ids)
    worlds.reset(ids)
    worlds.begin(ids)
    return motion(worlds)[:, 1]


EQUAL_TO_COMPILED = [
    ("joint/hinge/damping", "set", 0.3, 'damping="0.05"', 'damping="0.3"'),
    ("joint/elbow/armature", "scale", 2.0, 'armature="0.005"', 'armature="0.01"'),
    ("joint/hinge/frictionloss", "set", 0.2, 'damping="0.05"', 'damping="0.05" frictionloss="0.2"'),
    ("body/fore/mass", "scale", 1.5, 'mass="0.2"', 'mass="0.3"'),
    ("body/fore/pos[0]", "add", 0.02, 'pos="0.3 0 0.05"', 'pos="0.32 0 0.05"'),
    ("actuator/hinge/kp", "set", 30.0, 'kp="20"', 'kp="30"'),
    ("actuator/hinge/kv", "set", 2.0, 'kv="1"', 'kv="2"'),
    ("actuator/hinge/force_limit", "set", 1.5, 'forcerange="-5 5"', 'forcerange="-1.5 1.5"'),
    ("actuator/elbow/kp", "scale", 0.5, "8 0 0.125", "4 0 0.125"),
    ("actuator/elbow/resistance", "set", 3.0, 'resistance="2"', 'resistance="3"'),
    ("actuator/elbow/voltage_limit", "set", 3.0, "0.125 0 0 12", "0.125 0 0 3"),
    ("geom/block/friction", "set", 0.9, 'friction="0.5 ', 'friction="0.9 '),
    ("option/gravity[2]", "set", -3.7, 'impratio="10"', 'impratio="10" gravity="0 0 -3.7"'),
    ("option/impratio", "set", 3.0, 'impratio="10"', 'impratio="3"'),
]


@pytest.mark.parametrize(
    ("name", "operation", "value", "before", "after"), EQUAL_TO_COMPILED, ids=lambda v: str(v)[:30]
)
def test_a_parameter_moves_as_a_model_compiled_with_it(
    make_twin, name, operation, value, before, after
):
    low, high = sorted((value * 0.9, value * 1.1))
    ours = moved(make_twin(parameter(name, operation, low, high)), value)
    assert before in SLIDER
    xml = SLIDER.replace(before, after)
    theirs = motion(open_worlds(Twin.load(make_twin("", xml, "ref")), count=1, period_s=PERIOD_S))[
        :, 0
    ]
    plain = motion(open_worlds(Twin.load(make_twin("", name="plain")), count=1, period_s=PERIOD_S))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)
    assert np.abs(ours - plain[:, 0]).max() > 1e-6


PAIR = """<contact><pair name="slide" geom1="floor" geom2="block" friction="0.5 0.5 0.005 0.0001
0.0001"/></contact><actuator>"""


def test_a_pair_is_reached_like_everything_else(make_twin):
    xml = SLIDER.replace("<actuator>", PAIR)
    ours = {}
    for name, value in (("friction", 0.2), ("stiffness", 1000.0)):
        toml = parameter(f"pair/slide/{name}", low=0.9 * value, high=1.1 * value)
        ours[name] = moved(make_twin(toml, xml, name), value)
    smooth = xml.replace('"0.5 0.5 0.005', '"0.2 0.2 0.005')
    soft = xml.replace('name="slide"', 'name="slide" solref="-1000 -100"')
    for name, reference in (("friction", smooth), ("stiffness", soft)):
        worlds = open_worlds(
            Twin.load(make_twin("", reference, f"ref-{name}")), count=1, period_s=PERIOD_S
        )
        np.testing.assert_allclose(ours[name], motion(worlds)[:, 0], rtol=1e-9, atol=1e-10)
    assert np.abs(ours["friction"] - ours["stiffness"]).max() > 1e-4


def test_contact_stiffness_and_damping_equal_the_direct_solref(make_twin):
    toml = parameter("geom/block/stiffness", low=900, high=1100)
    ours = moved(make_twin(toml), 1000.0)
    # MuJoCo's default solref (0.02, 1) is k = 2500, b = 100 in the direct form.
    xml = SLIDER.replace('mass="0.3"', 'mass="0.3" solref="-1000 -100"')
    theirs = motion(open_worlds(Twin.load(make_twin("", xml, "ref")), count=1, period_s=PERIOD_S))
    np.testing.assert_allclose(ours, theirs[:, 0], rtol=1e-9, atol=1e-10)


def test_the_direct_form_of_a_nominal_contact_changes_nothing(make_twin):
    toml = parameter("geom/block/stiffness", low=2400, high=2600)
    nominal = Twin.load(make_twin(toml)).parameters[0].nominal
    assert nominal == pytest.approx(2500.0)
    plain = motion(open_worlds(Twin.load(make_twin("", name="plain")), count=1, period_s=PERIOD_S))
    ours = motion(open_worlds(Twin.load(make_twin(toml, name="k")), count=1, period_s=PERIOD_S))
    np.testing.assert_allclose(ours, plain, rtol=1e-6, atol=1e-8)


def test_mass_draw_scales_inertia_too(make_twin):
    worlds = open_worlds(
        Twin.load(make_twin(parameter("body/arm/mass", low=0.2, high=1.0))), count=3,
        period_s=PERIOD_S,
    )  # fmt: skip
    masses = torch.tensor([[0.2], [0.4], [0.8]], dtype=torch.float64)
    worlds.set_parameters(masses, torch.arange(3))
    worlds.reset(torch.arange(3))
    arm = worlds.model.body("arm").id
    for world, mass in enumerate((0.2, 0.4, 0.8)):
        model, _ = worlds.world(world)
        assert model.body_mass[arm] == pytest.approx(mass)
        ratio = model.body_inertia[arm] / worlds.model.body_inertia[arm]
        np.testing.assert_allclose(ratio, mass / 0.4)
        # Constants derived from the mass follow it.
        assert model.body_subtreemass[arm] == pytest.approx(mass + 0.2)


def test_draws_never_compound(make_twin):
    toml = parameter("body/arm/mass", "scale") + parameter("object/block/size", "scale")
    worlds = open_worlds(Twin.load(make_twin(toml)), count=2, period_s=PERIOD_S)
    value = torch.tensor([[1.3, 0.8]], dtype=torch.float64)
    once, often = torch.tensor([0]), torch.tensor([1])
    worlds.set_parameters(value, once)
    for factor in (0.5, 1.5, 0.7, 1.0):
        worlds.set_parameters(torch.full((1, 2), factor, dtype=torch.float64), often)
    worlds.set_parameters(value, often)
    worlds.reset(torch.arange(2))
    for field in ("body_mass", "body_inertia", "geom_size", "geom_rbound", "body_ipos"):
        first, second = (worlds.field(field)[k] for k in (0, 1))
        assert torch.equal(first, second), field


def test_a_direct_write_beside_a_consequence_does_not_compound(make_twin):
    toml = parameter("body/arm/inertia[1]", "scale") + parameter("body/fore/mass", "scale")
    worlds = open_worlds(Twin.load(make_twin(toml)), count=1, period_s=PERIOD_S)
    nominal = torch.from_numpy(worlds.model.body_inertia.reshape(-1).copy())
    for _ in range(3):
        worlds.set_parameters(torch.tensor([[1.1, 1.2]], dtype=torch.float64), torch.tensor([0]))
    ratio = worlds.field("body_inertia")[0] / nominal
    fore, arm = (worlds.model.body(name).id for name in ("fore", "arm"))
    assert ratio[3 * fore : 3 * fore + 3].tolist() == pytest.approx([1.2] * 3)
    assert ratio[3 * arm : 3 * arm + 3].tolist() == pytest.approx([1.0, 1.1, 1.0])


def test_a_vector_scales_whole_also_where_its_first_number_is_zero(make_twin):
    worlds = open_worlds(
        Twin.load(make_twin(parameter("body/arm/pos", "scale"))), count=1, period_s=PERIOD_S
    )
    worlds.set_parameters(torch.tensor([[1.5]], dtype=torch.float64), torch.tensor([0]))
    arm = worlds.model.body("arm").id
    assert worlds.field("body_pos")[0, 3 * arm : 3 * arm + 3].tolist() == pytest.approx([0, 0, 0.9])


def test_a_free_body_with_its_mass_off_centre_tumbles_as_compiled(make_twin):
    """The compiler gives a body whose mass is at its centre a simpler mass matrix."""
    toml = parameter("body/block/ipos[0]", "add", -0.03, 0.03)
    ours = moved(make_twin(toml), 0.02)
    inertial = '<inertial mass="0.3" diaginertia="5e-4 5e-4 5e-4" pos="0.02 0 0"/>'
    geom = '<geom name="block" type="box" size="0.05 0.05 0.05" mass="0.3"'
    xml = SLIDER.replace(geom, inertial + geom.replace('mass="0.3"', ""))
    theirs = motion(open_worlds(Twin.load(make_twin("", xml, "ref")), count=1, period_s=PERIOD_S))
    np.testing.assert_allclose(ours, theirs[:, 0], rtol=1e-6, atol=1e-7)


def test_wildcard_masses_mean_bodies_that_have_one(make_twin):
    twin = Twin.load(make_twin(parameter("body/*o*/mass", "scale")))
    worlds = open_worlds(twin, count=1, period_s=PERIOD_S)
    worlds.set_parameters(torch.tensor([[1.5]], dtype=torch.float64), torch.tensor([0]))
    ratio = worlds.field("body_mass")[0] / torch.from_numpy(worlds.model.body_mass)
    expected = {"fore": 1.5, "block": 1.5, "arm": 1.0}
    for name, value in expected.items():
        assert float(ratio[worlds.model.body(name).id]) == pytest.approx(value)


MIXED = """
<mujoco><option timestep="0.002"/><worldbody>
  <body name="a"><joint name="a" axis="0 1 0" damping="0.1"/>
    <geom size="0.05" mass="1" pos="0.1 0 0"/></body>
  <body name="b" pos="0 1 0"><joint name="b" axis="0 1 0" damping="0.1"/>
    <geom size="0.05" mass="1" pos="0.1 0 0"/></body>
</worldbody><actuator>
  <dcmotor name="drag" joint="a" motorconst="0 0" resistance="1" input="none"
           lugre="100 2 0.1 0.2 0.05"/>
  <velocity name="a" joint="a" kv="2" ctrlrange="-5 5"/>
  <motor name="b" joint="b" gear="3" ctrlrange="-1 1" forcerange="0 5"/>
</actuator></mujoco>
"""


@pytest.mark.parametrize(
    ("name", "value", "before", "after"),
    [
        ("actuator/a/kv", 3.0, 'kv="2"', 'kv="3"'),
        ("actuator/b/gear", 2.0, 'gear="3"', 'gear="2"'),
        ("actuator/b/ctrlrange[1]", 0.2, 'ctrlrange="-1 1"', 'ctrlrange="-1 0.2"'),
        ("actuator/b/force_limit", 0.3, 'forcerange="0 5"', 'forcerange="0 0.3"'),
    ],
)
def test_actuators_of_many_kinds_are_told_apart(make_twin, name, value, before, after):
    ours = moved(make_twin(parameter(name, low=0.9 * value, high=1.1 * value), MIXED), value)
    reference = Twin.load(make_twin("", MIXED.replace(before, after), "ref"))
    theirs = motion(open_worlds(reference, count=1, period_s=PERIOD_S))[:, 0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        (parameter("actuator/a/kp"), "velocity servo"),
        (parameter("actuator/drag/missed", low=0.0, high=0.5), "takes no command"),
        (parameter("actuator/b/gear[9]"), "beyond the 6"),
        (
            parameter("body/a/pseudo_inertia[0]", "add", -0.1, 0.1)
            + parameter("body/a/ipos[0]", "add", -0.1, 0.1),
            "both move",
        ),
    ],
)
def test_what_an_actuator_or_body_cannot_have_is_refused(make_twin, toml, words):
    with pytest.raises(Sim2RealError, match=words):
        Twin.load(make_twin(toml, MIXED))


def test_a_scaled_object_keeps_its_mass_and_its_density_of_inertia(make_twin):
    toml = parameter("object/block/size", "scale") + parameter("object/block/mass", low=0.1, high=1)
    worlds = open_worlds(Twin.load(make_twin(toml)), count=1, period_s=PERIOD_S)
    worlds.set_parameters(torch.tensor([[1.2, 0.6]], dtype=torch.float64), torch.tensor([0]))
    worlds.reset(torch.tensor([0]))
    model, _ = worlds.world(0)
    block, side = model.body("block").id, 0.1 * 1.2
    assert model.body_mass[block] == pytest.approx(0.6)
    np.testing.assert_allclose(model.body_inertia[block], 0.6 * side**2 / 6, rtol=1e-9)
    np.testing.assert_allclose(model.geom("block").size, 0.06)
    assert model.geom("block").rbound[0] == pytest.approx(0.06 * np.sqrt(3))


def test_wildcards_scale_each_match_from_its_own_nominal(make_twin):
    worlds = open_worlds(
        Twin.load(make_twin(parameter("joint/*/damping", "scale"))), count=1, period_s=PERIOD_S
    )
    worlds.set_parameters(torch.tensor([[1.4]], dtype=torch.float64), torch.tensor([0]))
    damping = worlds.field("dof_damping")[0]
    assert damping[0] == pytest.approx(0.07) and damping[1] == pytest.approx(0.028)
    assert (damping[2:] == 0).all()


def test_values_are_per_world_and_only_where_asked(make_twin):
    toml = parameter("joint/hinge/damping", low=0.0, high=1.0)
    worlds = open_worlds(Twin.load(make_twin(toml)), count=4, period_s=PERIOD_S)
    worlds.set_parameters(torch.tensor([[0.2], [0.7]], dtype=torch.float64), torch.tensor([1, 3]))
    assert worlds.field("dof_damping")[:, 0].tolist() == pytest.approx([0.05, 0.2, 0.05, 0.7])
    assert worlds.values[:, 0].tolist() == pytest.approx([0.05, 0.2, 0.05, 0.7])


def test_visual_parameters_reach_the_rendered_model(make_twin):
    toml = parameter("light/key/diffuse", "scale") + parameter("camera/front/fovy", low=30, high=60)
    worlds = open_worlds(Twin.load(make_twin(toml)), count=1, period_s=PERIOD_S)
    worlds.set_parameters(torch.tensor([[0.5, 33.0]], dtype=torch.float64), torch.tensor([0]))
    model, _ = worlds.world(0)
    np.testing.assert_allclose(model.light("key").diffuse, [0.25, 0.3, 0.35], rtol=1e-6)
    assert model.camera("front").fovy[0] == pytest.approx(33.0)


def test_a_random_pseudo_inertia_is_always_a_real_body():
    theta = torch.randn(500, 10, generator=torch.manual_seed(0), dtype=torch.float64) * 0.3
    nominal = (0.5, [0.1, 0.0, 0.02], [2e-3, 3e-3, 4e-3], [0.9, 0.1, 0.3, 0.2])
    mass, _, moments, quat = perturbed_inertia(
        theta, *(torch.tensor(part, dtype=torch.float64) for part in nominal)
    )
    assert (mass > 0).all() and (moments > 0).all()
    assert (moments[:, 2] <= (moments[:, 0] + moments[:, 1]) * (1 + 1e-9)).all()
    np.testing.assert_allclose(quat.norm(dim=1), 1.0)


def test_a_zero_pseudo_inertia_changes_nothing_and_alpha_scales_all():
    nominal = [
        torch.tensor(part, dtype=torch.float64)
        for part in (0.5, [0.1, 0.0, 0.02], [2e-3, 3e-3, 4e-3], [0.9, 0.1, 0.3, 0.2])
    ]
    nominal[3] = nominal[3] / nominal[3].norm()
    theta = torch.zeros(2, 10, dtype=torch.float64)
    theta[1, 0] = 0.5 * np.log(2.0)
    mass, com, moments, quat = perturbed_inertia(theta, *nominal)

    def about_com(k):
        rotation = np.zeros(9)
        mujoco.mju_quat2Mat(rotation, quat[k].numpy())
        rotation = rotation.reshape(3, 3)
        return rotation @ np.diag(moments[k]) @ rotation.T

    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, nominal[3].numpy())
    rotation = rotation.reshape(3, 3)
    expected = rotation @ np.diag(nominal[2]) @ rotation.T
    assert mass.tolist() == pytest.approx([0.5, 1.0])
    np.testing.assert_allclose(com, np.tile(nominal[1], (2, 1)), atol=1e-12)
    np.testing.assert_allclose(about_com(0), expected, atol=1e-12)
    np.testing.assert_allclose(about_com(1), 2 * expected, atol=1e-12)


def test_a_shifted_centre_of_mass_moves_as_compiled(make_twin):
    inertial = '<inertial mass="0.2" diaginertia="1e-4 7e-4 7e-4" pos="{} 0 0"/>'
    geom = 'pos="0.1 0 0" mass="0.2"'
    base = SLIDER.replace(
        '<geom name="tip"', inertial.format("0.1") + '<geom name="tip"'
    ).replace(geom, 'pos="0.1 0 0"')  # fmt: skip
    toml = parameter("body/fore/ipos[0]", "add", -0.05, 0.05)
    worlds = open_worlds(Twin.load(make_twin(toml, base)), count=1, period_s=PERIOD_S)
    worlds.set_parameters(torch.tensor([[0.03]], dtype=torch.float64), torch.tensor([0]))
    worlds.reset(torch.tensor([0]))
    worlds.begin(torch.tensor([0]))
    ours = motion(worlds)[:, 0]
    shifted = base.replace(inertial.format("0.1"), inertial.format("0.13"))
    theirs = motion(
        open_worlds(Twin.load(make_twin("", shifted, "ref")), count=1, period_s=PERIOD_S)
    )
    np.testing.assert_allclose(ours, theirs[:, 0], rtol=1e-9, atol=1e-10)
