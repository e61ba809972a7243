"""The ladder: what may be taken in spite of what, and who decides."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from sim2real.errors import Sim2RealError
from sim2real.evaluation import open_policy
from sim2real.robot import OperatorPrompts, RobotAbilities
from sim2real.robot.ladder import LadderRecord, missing, write_record
from sim2real.robot.permission import permission, refuse_force
from tests.repository import BUNDLES

UNATTENDED = OperatorPrompts()
LOOP = OperatorPrompts(goes_on=True)


class Arm:
    name, serial, abilities = "arm", "1", RobotAbilities()


class Simulated(Arm):
    abilities = RobotAbilities(simulated=True)


@pytest.fixture
def policy(tmp_path):
    return open_policy(Path(shutil.copytree(BUNDLES / "arm-reach", tmp_path / "bundle")))


def taken(policy, step, day, **more):
    record = LadderRecord(
        step=step, passed=not more.get("why"), bundle=policy.seal, robot="arm", serial="1",
        time=f"2026-01-{day:02d}T00:00:00", **more,
    )  # fmt: skip
    write_record(policy, record)


def may(policy, step, prompts, *, force=False, robot=None):
    return permission(policy, step, robot or Arm(), force=force, prompts=prompts)


def test_doubts_stop_nobody_from_the_next_safe_step_but_who_is_not_asked(policy):
    taken(policy, "replay", 1, why="outside", to_pass="give other logs", doubt=True)
    with pytest.raises(Sim2RealError, match=r"replay \(outside\); to pass it, give other logs"):
        may(policy, "shadow", UNATTENDED)
    assert may(policy, "shadow", LOOP).despite == "replay (outside)"
    asked = []
    yes, no = (
        OperatorPrompts(ask=str, press=lambda text, keys, key=key: asked.append(text) or key)
        for key in "yn"
    )
    assert may(policy, "shadow", yes).despite == "replay (outside)"
    assert "give other logs" in asked[0] and "shadow" in asked[0]
    with pytest.raises(Sim2RealError, match="first needs replay"):
        may(policy, "shadow", no)
    with pytest.raises(Sim2RealError, match="first needs replay"):
        may(policy, "full", yes)  # no safe step
    with pytest.raises(Sim2RealError, match=r"shadow \(not tried\)"):
        may(policy, "limited", yes)


def test_what_is_wrong_with_the_policy_itself_only_a_person_overrules(policy):
    taken(policy, "replay", 1, why="the doctor says: sign flipped")
    with pytest.raises(Sim2RealError, match="sign flipped"):
        may(policy, "shadow", LOOP)
    yes = OperatorPrompts(ask=str, press=lambda text, keys: "y")
    assert "sign flipped" in may(policy, "shadow", yes).despite


def test_a_later_step_that_was_passed_ends_the_doubt_and_an_earlier_or_forced_one_does_not(policy):
    at = {"robot": "arm", "serial": "1"}
    taken(policy, "limited", 1)
    taken(policy, "replay", 2, why="outside", doubt=True)
    taken(policy, "shadow", 3, despite="replay (outside)")
    assert missing(policy, "limited", **at) == [] == missing(policy, "full", **at)
    taken(policy, "replay", 4, why="again outside", doubt=True)
    assert missing(policy, "full", **at) == ["replay (again outside)"]
    taken(policy, "limited", 5, skipped="replay (again outside)")
    assert missing(policy, "full", **at) == ["replay (again outside)"]
    taken(policy, "limited", 6, despite="replay (again outside)")
    assert missing(policy, "full", **at) == []
    assert missing(policy, "full", robot="arm", serial="2") != []


def test_force_skips_nothing_on_hardware(policy):
    with pytest.raises(Sim2RealError, match="for stand-in hardware only; arm 1 is a real robot"):
        refuse_force(Arm(), force=True)
    refuse_force(Arm(), force=False)
    refuse_force(Simulated(), force=True)
    assert may(policy, "full", UNATTENDED, force=True, robot=Simulated()).skipped.startswith(
        "replay (not tried)"
    )
    with pytest.raises(Sim2RealError) as error:
        may(policy, "full", UNATTENDED)
    assert "--force" not in str(error.value)


def test_keys_other_than_those_asked_for_are_asked_again():
    said = iter(["maybe\n", "Yes\n"])
    assert replace(UNATTENDED, ask=lambda text: next(said)).choose("?", "yn") == "y"
    assert replace(UNATTENDED, ask=lambda text: "\n").choose("?", "yn") == " "
    assert UNATTENDED.choose("?", "yn") == "" and not UNATTENDED.attended
