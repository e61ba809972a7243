"""Lint: each classic mistake is found where it is made, and good twins pass."""

import pytest

from sim2real.tasks import find_task
from sim2real.twin import Twin, lint
from tests.conftest import SLIDER


@pytest.mark.parametrize("name", ["pendulum-swingup", "arm-reach", "arm-push"])
def test_the_built_in_twins_raise_no_warning(name):
    findings = lint(Twin.load(find_task(name).twin))
    assert not [finding for finding in findings if finding.severity == "warning"]


@pytest.mark.parametrize(
    ("before", "after", "place", "words"),
    [
        ('cone="elliptic"', 'cone="pyramidal"', "option/cone", "creep"),
        ('impratio="10"', 'impratio="1"', "option/impratio", "slip"),
        ('impratio="10"', 'impratio="10" iterations="5"', "option/iterations", "stop early"),
        ('timestep="0.002"', 'timestep="0.02"', "option/timestep", "long"),
        ('kp="20"', 'kp="20000"', "actuator/hinge", "oscillation"),
        ('mass="0.3"', 'mass="3000"', "body/block", "outside"),
        ('mass="0.2"', 'mass="1e-6"', "body/fore", "outside"),
        (' ctrlrange="-2 2" forcerange="-5 5"', ' forcerange="-5 5"', "actuator/hinge", "range"),
        (' forcerange="-5 5"', "", "actuator/hinge", "infinitely strong"),
        (' range="-2.5 2.5"', "", "joint/hinge", "no range"),
        ('<jointpos name="elbow_pos"', "<jointpos", "sensor 2", "no name"),
        ('<freejoint name="block"/>', "<freejoint/>", "joint 2", "no name"),
    ],
)
def test_a_classic_mistake_is_found(make_twin, before, after, place, words):
    assert before in SLIDER
    clean = lint(Twin.load(make_twin("", name="clean")))
    assert not [f for f in clean if f.place == place and words in f.message]
    findings = lint(Twin.load(make_twin("", SLIDER.replace(before, after))))
    hits = [finding for finding in findings if finding.place == place]
    assert hits and any(words in finding.message for finding in hits)
    assert all(finding.remedy for finding in findings)


def test_an_inertia_no_body_has_is_found(make_twin):
    """MuJoCo refuses a broken triangle itself, but not an inertia of far too large a body."""
    inertial = '<inertial pos="0.1 0 0" mass="0.2" diaginertia="0.2 0.3 0.3"/>'
    xml = SLIDER.replace('<geom name="tip"', inertial + '<geom name="tip"')
    findings = lint(Twin.load(make_twin("", xml)))
    assert any(f.place == "body/fore" and "radius of gyration" in f.message for f in findings)
