"""Twins: loading, saving, versions, and input that is not one."""

from dataclasses import replace

import pytest

from sim2real.errors import Sim2RealError
from sim2real.params import GaussianPosterior, Uniform
from sim2real.tasks import find_task, task_names
from sim2real.twin import Twin
from tests.conftest import SLIDER

MASS = """
[parameters."body/arm/mass"]
unit = "kg"
bounds = [0.1, 1.0]
prior = { kind = "uniform", low = 0.3, high = 0.5 }
"""


@pytest.mark.parametrize("name", task_names())
def test_a_built_in_twin_survives_saving(name, tmp_path):
    twin = Twin.load(find_task(name).twin)
    saved = twin.save(tmp_path / "copy")
    assert saved.version == twin.version
    assert saved.parameters == twin.parameters
    assert Twin.load(tmp_path / "copy").version == twin.version


def test_the_nominal_value_comes_from_the_model(make_twin):
    twin = Twin.load(make_twin(MASS))
    assert twin.parameter("body/arm/mass").nominal == pytest.approx(0.4)


def test_the_version_changes_with_every_part(make_twin):
    plain = Twin.load(make_twin(MASS))
    heavier = Twin.load(make_twin(MASS, SLIDER.replace('mass="0.4"', 'mass="0.41"'), "heavier"))
    wider = Twin.load(make_twin(MASS.replace("0.5 }", "0.6 }"), name="wider"))
    assert len({plain.version, heavier.version, wider.version}) == 3


def test_a_new_version_knows_its_parent_and_leaves_it_alone(make_twin, tmp_path):
    folder = make_twin(MASS)
    twin = Twin.load(folder)
    prior = replace(twin.parameters[0], prior=Uniform(low=0.35, high=0.45))
    child = twin.with_parameters(prior).save(tmp_path / "child")
    assert child.parent == twin.version
    assert Twin.load(folder).version == twin.version


def test_a_posterior_is_saved_with_the_twin(make_twin, tmp_path):
    twin = Twin.load(make_twin(MASS))
    posterior = GaussianPosterior(
        names=("body/arm/mass",), mean=(0.4,), covariance=((1e-4,),), low=(0.1,), high=(1.0,)
    )
    saved = twin.with_posterior(posterior).save(tmp_path / "identified")
    assert Twin.load(tmp_path / "identified").posterior == posterior
    assert saved.version != twin.version


def test_saving_over_a_folder_is_refused(make_twin):
    folder = make_twin(MASS)
    with pytest.raises(Sim2RealError, match="exists already"):
        Twin.load(folder).save(folder)


def test_a_folder_without_a_twin_is_refused(tmp_path):
    with pytest.raises(Sim2RealError, match="no twin at"):
        Twin.load(tmp_path)


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("[parameters", "not readable TOML"),
        ("[paramaters]", "parameters"),
        ('[parameters."body/arn/mass"]', "'arm'"),
        ('[parameters."body/arm/mas"]', "'mass'"),
        ('[parameters."bdy/arm/mass"]', "'body'"),
        ('[parameters."body/arm/mass"]\nbounds = [1.0, 2.0]', "exclude the nominal"),
        ('[parameters."body/arm/mass"]\nopration = "scale"', "'operation'"),
        ('[parameters."body/arm/mass"]\noperation = "scael"', "'scale'"),
        ('[parameters."body/arm/mass"]\ndimension = "dynamix"', "'dynamics'"),
        ('[parameters."option/timestp"]', "'timestep'"),
        ('[parameters."option/gravity"]', "name one"),
        ('[parameters."body/arm/ipos"]', "name one component"),
        ('[parameters."body/arm/ipos[7]"]', "beyond the 3 components"),
        ('[parameters."body/wall/mass"]', "no effect"),
        ('[parameters."geom/link/friction"]', "collides with nothing"),
        ('[parameters."actuator/hinge/resistance"]', "no effect.*servo"),
        ('[parameters."actuator/hinge/delay"]', "delay_max"),
        ('[parameters."joint/hinge/backlash"]', "declare a nominal backlash"),
        ('[parameters."joint/hinge/static_friction"]', "declare a nominal static"),
        ('[parameters."geom/block/size"]', "use operation = 'scale'"),
        ('[parameters."environment/push/force"]', "no event 'push'"),
        ('[parameters."joint/hinge/damping"]\n[parameters."joint/h*/damping"]', "both move"),
        ('[effects.actuator.hing]', "matches no actuator"),
        ('[effects.actuator.hinge]\ndelya = 0.1', "'delay'"),
        ('[effects.actuator.hinge]\ndelay = 0.1', "exceeds delay_max"),
        ('[effects.sensor.hinge_pos]\nnoise = -1.0', "must be at least 0"),
        ('[events.push]\nbody = "arn"', "'arm'"),
        ('[parameters."sensor/hinge_pos/noise"]\noperation = "scale"', "nominal value of zero"),
        ('[parameters."geom/block/friction[5]"]', "beyond the 3"),
        (
            '[parameters."body/arm/mass"]\nbounds = [0.3, 0.5]\n'
            'prior = {kind = "normal", mean = 0.4, std = 0.1}',
            "use a truncated-normal",
        ),
        ('[channels]\ntheta = { unit = "rad" }', "needs 'source'"),
    ],
)  # fmt: skip
def test_a_malformed_twin_is_one_clear_error(make_twin, toml, words):
    with pytest.raises(Sim2RealError, match=words) as caught:
        Twin.load(make_twin(toml))
    assert "\n" not in str(caught.value)


def test_a_friction_that_a_rougher_partner_overrules_is_an_error(make_twin):
    xml = SLIDER.replace('friction="0.3 0.005 0.0001"', 'friction="1 0.005 0.0001"')
    toml = '[parameters."geom/block/friction"]\nprior = {kind = "uniform", low=0.2, high=0.8}'
    with pytest.raises(Sim2RealError, match=r"takes the larger friction.*'floor' has 1"):
        Twin.load(make_twin(toml, xml))
    raised = xml.replace('mass="0.3" friction', 'mass="0.3" priority="1" friction')
    Twin.load(make_twin(toml, raised, "raised"))


BOMB = """<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<mujoco>&b;</mujoco>"""


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        (BOMB, "document type"),
        ('<mujoco><include file="../../../etc/passwd"/></mujoco>', "outside the folder"),
        ('<mujoco><include file="/etc/passwd"/></mujoco>', "outside the folder"),
        ('<mujoco><asset><mesh name="m" file="/etc/passwd"/></asset></mujoco>', "outside"),
        (
            '<mujoco><compiler meshdir="../.."/><asset><mesh file="x.stl"/></asset></mujoco>',
            "outside",
        ),
        ('<mujoco><include file="missing.xml"/></mujoco>', "is not in"),
        ("<mujoco><worldbody>", "not XML"),
        ("", "not XML"),
        ("<robot/>", "it is no MJCF model"),
        (
            '<mujoco><asset><mesh file="x.stl"/></asset><include file="late.xml"/></mujoco>',
            "is not in",
        ),
        ("<mujoco><worldboddy/></mujoco>", "worldboddy"),
        ("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", "mass"),
    ],
)
def test_a_hostile_or_broken_model_is_one_clear_error(make_twin, xml, words):
    with pytest.raises(Sim2RealError, match=words) as caught:
        Twin.load(make_twin("", xml))
    assert "\n" not in str(caught.value)


def test_an_include_that_loops_ends(make_twin):
    folder = make_twin("", '<mujoco><include file="model.xml"/></mujoco>')
    with pytest.raises(Sim2RealError):
        Twin.load(folder)


def test_a_symbolic_link_out_of_the_folder_is_refused(make_twin, tmp_path):
    folder = make_twin("", '<mujoco><include file="inner.xml"/></mujoco>')
    secret = tmp_path / "secret.xml"
    secret.write_text("<mujoco/>")
    (folder / "inner.xml").symlink_to(secret)
    with pytest.raises(Sim2RealError, match="outside the folder"):
        Twin.load(folder)
