"""Of limits that are stated differently the tightest counts, and it is said whose it is."""

import shutil
from dataclasses import replace
from types import MappingProxyType

import pytest

from sim2real.errors import Sim2RealError
from sim2real.evaluation import open_policy
from sim2real.robot import ExcitedRobot, RobotAbilities, StandIn, deploy
from sim2real.robot.agreed_limits import agreed_limits
from sim2real.robot.deployment import OperatorPrompts
from sim2real.robot.excite.recordings import agreed_with
from tests.repository import BUNDLES

POLICY = open_policy(BUNDLES / "arm-reach")


class Arm:
    name = "arm"
    abilities = RobotAbilities()


class Narrow(Arm):
    abilities = RobotAbilities(states_limits=True)
    joint_limits = MappingProxyType(
        {"elbow_flex": {"velocity": 2.0, "position_high": 0.5, "torque": 99.0}}
    )


def agreed(robot, limits=POLICY.limits):
    return agreed_limits(limits, POLICY.contract, POLICY.twin, robot)


def of(limits, joint, name):
    return next(getattr(one, name) for one in limits.joints if one.name == joint)


def test_where_nothing_differs_one_line_says_so():
    found = agreed(Arm())
    assert found.limits == POLICY.limits and not found.differing
    assert len(list(found.lines())) == 1


def test_the_tightest_counts_whoever_states_it():
    found = agreed(Narrow())
    told = {(one.limit, one.source): one for one in found.differing}
    assert set(told) == {("velocity", "robot"), ("position_high", "robot"), ("torque", "bundle")}
    assert of(found.limits, "elbow_flex", "velocity") == 2.0
    assert of(found.limits, "elbow_flex", "position_high") == 0.5
    assert of(found.limits, "elbow_flex", "torque") == of(POLICY.limits, "elbow_flex", "torque")
    assert told["torque", "bundle"].others == {"robot": 99.0}
    (first, *lines) = found.lines()
    assert "tightest" in first and any("elbow_flex velocity 2 from the robot" in x for x in lines)
    wide = tuple(replace(joint, torque=50.0, command_high=9.0) for joint in POLICY.limits.joints)
    other = agreed(Arm(), replace(POLICY.limits, joints=wide))
    assert {one.source for one in other.differing} == {"twin", "contract"}
    assert other.limits.joints[0].torque == POLICY.limits.joints[0].torque


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"elbow": {"velocity": 1.0}}, "'elbow', which is not driven; did you mean 'elbow_flex'"),
        ({"elbow_flex": {"speed": 1.0}}, "a limit 'speed' of elbow_flex"),
        ({"elbow_flex": {"velocity": "fast"}}, "velocity of elbow_flex that arm states must be"),
        ({"elbow_flex": {"position_high": -9.0}}, "leave joint elbow_flex no room"),
        ({"elbow_flex": {"velocity": -1.0}}, "velocity must be positive"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(stated, said):
    robot = Narrow()
    robot.joint_limits = stated
    with pytest.raises(Sim2RealError, match=said):
        agreed(robot)


@pytest.mark.slow
def test_a_run_keeps_to_them_and_says_so_before_it_moves(tmp_path, monkeypatch):
    class Slow(StandIn):
        def connect(self):
            super().connect()
            self.abilities = replace(self.abilities, states_limits=True)
            self.joint_limits = {"hinge": {"velocity": 0.05}}

    where = "sim2real.robot.deployment_session.open_robot"
    monkeypatch.setattr(where, lambda *_, **__: Slow(4, "pendulum-swingup"))
    said = []
    bundle = shutil.copytree(BUNDLES / "pendulum-swingup", tmp_path / "bundle")
    found = deploy(
        bundle, robot="unit:4", execute=True, force=True, person="ana",
        out=tmp_path / "run", lake="", prompts=OperatorPrompts(tell=said.append),
    )  # fmt: skip
    assert "hinge velocity 0.05 from the robot" in said[1] and "0.05" in found.trials[0].stopped


def test_motions_are_planned_within_them():
    subject = ExcitedRobot.open(BUNDLES / "arm-reach")
    said = []
    narrow = agreed_with(subject, Narrow(), said.append)
    place = [joint.name for joint in narrow.limits.joints].index("elbow_flex")
    assert narrow.envelope().high[place] <= 0.5 < subject.envelope().high[place]
    assert len(said) == 4
