"""Trials that no bench sets up or judges: a person does, or a file, or nothing moves."""

import json
import os
import pty
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from sim2real.errors import Sim2RealError
from sim2real.loop import Stages
from sim2real.robot import OperatorPrompts, RobotAbilities, StandIn, deploy
from sim2real.robot.attendance import Attendance, read_outcomes
from sim2real.robot.supervisor import OPERATOR
from tests.ladder import climbed
from tests.repository import BUNDLES

TASK = "pendulum-swingup"


class Bare(StandIn):
    """A unit that neither sets up nor judges trials, and is no stand-in as far as it says."""

    moved = 0

    def connect(self):
        super().connect()
        less = {"resets": False, "judges": False, "simulated": False}
        self.abilities = replace(self.abilities, **less)

    def enable(self):
        Bare.moved += 1
        super().enable()


@pytest.fixture
def bare(monkeypatch):
    Bare.moved = 0

    def opened(address, *, task=""):
        return Bare(4, TASK)

    monkeypatch.setattr("sim2real.robot.deployment_session.open_robot", opened)
    monkeypatch.setattr("sim2real.loop.stages.robot.open_robot", opened)


@pytest.fixture
def bundle(tmp_path):
    return climbed(shutil.copytree(BUNDLES / TASK, tmp_path / "bundle"), TASK, "unit-4")


def tried(bundle, folder, *, trials=2, prompts=None, **options):
    return deploy(
        bundle, robot="localhost:1", execute=True, person="ana", trials=trials, seconds=0.6,
        out=folder, lake="", prompts=prompts, **options,
    )  # fmt: skip


@pytest.mark.slow
def test_what_nobody_could_judge_or_set_up_is_refused_before_anything_moves(bare, bundle, tmp_path):
    with pytest.raises(Sim2RealError, match="does not judge its trials, and nobody"):
        tried(bundle, tmp_path / "one", trials=1)
    outcomes = tmp_path / "outcomes.csv"
    outcomes.write_text("trial,success\n")
    with pytest.raises(Sim2RealError, match="does not set up its trials, and nobody"):
        tried(bundle, tmp_path / "two", judge=outcomes)
    with pytest.raises(Sim2RealError, match="cannot read the outcomes"):
        tried(bundle, tmp_path / "three", trials=1, judge=tmp_path / "nowhere.csv")
    assert Bare.moved == 0


def test_a_loop_refuses_it_before_it_records(bare, tmp_path):
    stages = Stages(robot="localhost:1", task=TASK, person="ana")
    with pytest.raises(Sim2RealError, match="does not judge its trials, and nobody"):
        stages.record(seconds=18.0).work(tmp_path, ())
    assert Bare.moved == 0


@pytest.mark.slow
def test_a_person_sets_up_and_judges_trials_with_a_key(bare, bundle, tmp_path):
    said, keys = [], iter("ny")

    def press(text, keys_):
        said.append(text)
        return next(keys)

    prompts = OperatorPrompts(ask=lambda text: said.append(text) or "\n", press=press)
    found = tried(bundle, tmp_path / "run", prompts=prompts)
    assert [trial.stopped for trial in found.trials] == ["", ""]
    assert [trial.outcome for trial in found.trials] == ["failure", "success"]
    assert ["set up" in text for text in said] == [True, False, True, False]


@pytest.mark.slow
def test_a_person_judges_the_attempts_of_a_loop(bare, bundle, tmp_path):
    prompts = OperatorPrompts(ask=lambda text: "ana\n", press=lambda text, keys: "y")
    stages = Stages(robot="localhost:1", task=TASK, person="ana", prompts=prompts)
    found = stages.attempt(tmp_path / "attempts", bundle, first=0, count=1)
    assert found["success"] == [not found["stopped"][0]]


@pytest.mark.slow
def test_the_end_of_the_terminal_ends_the_series_before_the_next_trial(bare, bundle, tmp_path):
    found = tried(bundle, tmp_path / "run", prompts=OperatorPrompts(ask=lambda text: ""))
    assert not found.trials and found.ended == "nobody set up trial 1" and Bare.moved == 0


@pytest.mark.slow
def test_a_file_judges_trials_by_their_number(bare, bundle, tmp_path):
    outcomes = tmp_path / "outcomes.json"
    outcomes.write_text(json.dumps([{"trial": 8, "success": True}, {"trial": 1, "success": 0}]))
    found = tried(bundle, tmp_path / "run", trials=1, seed=7, judge=outcomes)
    assert [(trial.outcome, trial.stopped) for trial in found.trials] == [("success", "")]


class Plain:
    name, abilities = "plain arm", RobotAbilities()


def attended(**options):
    return Attendance(robot=Plain(), prompts=OperatorPrompts(), **options)


def test_a_file_may_grow_while_it_is_waited_for_and_its_silence_ends_the_series(tmp_path):
    file = tmp_path / "outcomes.csv"
    file.write_text("trial,outcome\n1,fail")  # half a line

    def later(seconds):
        file.write_text("trial,outcome\n1,failure\n2,success\n1,success\n")

    judge = attended(judge=file, sleep=later)
    assert judge.judged(0, "") == "success" and not judge.ended
    assert judge.judged(2, "") == "" and judge.ended == f"{file} has no outcome of trial 3"


def test_a_stop_is_a_failure_unless_the_operator_stopped_it(tmp_path):
    judge = attended()
    assert judge.judged(0, "hinge too fast") == "failure" and judge.judged(0, OPERATOR) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("trial,success\n0,1\n", "row 1: trial must be a number from 1"),
        ("trial,success\n1,1\n2,perhaps\n", "row 2: outcome must be success or failure"),
        ("number,success\n1,1\n", "row 1: trial"),
        ("trial,success\n1,\n", "row 1: outcome"),
    ],
)
def test_a_bad_row_of_a_file_is_named(tmp_path, text, said):
    (tmp_path / "o.csv").write_text(text)
    with pytest.raises(Sim2RealError, match=said):
        read_outcomes(tmp_path / "o.csv")
    (tmp_path / "o.json").write_text("{}")
    with pytest.raises(Sim2RealError, match="must be a list of rows"):
        read_outcomes(tmp_path / "o.json")


PRESSING = """
from sim2real.cli.output import ask_key
print("ready", flush=True)
print("pressed", repr(ask_key("did it succeed?", "yn")), flush=True)
"""


def test_one_key_answers_at_a_terminal():
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-c", PRESSING])
    said = b""
    while b"did it succeed?" not in said:
        said += os.read(terminal, 1000)
    os.write(terminal, b"xY")
    while b"pressed 'y'" not in said:
        said += os.read(terminal, 1000)
    os.waitpid(child, 0)
    os.close(terminal)
    alone = subprocess.run(
        [sys.executable, "-c", PRESSING], stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    assert b"pressed ''" in alone.stdout
