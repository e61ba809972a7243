"""Attempts of a loop on robots: nothing that was tried is forgotten."""

import shutil
import subprocess
import sys

import pytest

from sim2real.data import Provenance
from sim2real.errors import Sim2RealError
from sim2real.evaluation import open_policy
from sim2real.loop import KeptResult, LoopConfig, Stages
from sim2real.policy import Bundle
from sim2real.robot import OperatorPrompts, Recording
from sim2real.robot.ladder import Shortfall, read_records
from sim2real.robot.rehearsal import Rehearsal
from tests.ladder import climbed
from tests.repository import BUNDLES

TASK = "pendulum-swingup"
BUNDLE = BUNDLES / TASK


@pytest.fixture
def address():
    """A robot behind a socket, which the loop takes for a real one."""
    command = [sys.executable, "-m", "sim2real.reality", "serve", "--unit", "4", "--task", TASK]
    with subprocess.Popen([*command, "--virtual"], stdout=subprocess.PIPE, text=True) as process:
        yield f"localhost:{process.stdout.readline().strip()}"
        process.kill()


@pytest.fixture
def bundle(tmp_path):
    return climbed(shutil.copytree(BUNDLE, tmp_path / "bundle"), TASK, "unit-4")


def at(address: str, **prompts) -> Stages:
    return Stages(robot=address, task=TASK, person="test", prompts=OperatorPrompts(**prompts))


class Cut:
    """Somebody who stops the program in the middle of the second attempt."""

    def __init__(self):
        self.begun = 0

    def __call__(self, done, of):
        self.begun += done == 1
        if self.begun == 2 and done == 60:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_attempts_on_a_robot_that_were_interrupted_count(address, bundle, tmp_path):
    folder = tmp_path / "attempts"
    with pytest.raises(KeyboardInterrupt):
        at(address, report=Cut(), ask=lambda text: "me").attempt(folder, bundle, first=0, count=4)
    left = sorted(path.name for path in folder.rglob("*.arrow"))
    assert left == ["trial-0001.arrow", "trial-0002.arrow"]
    found = at(address, ask=lambda text: "me").attempt(folder, bundle, first=0, count=4)
    assert len(found["success"]) == len(set(found["episodes"])) == 4
    assert found["stopped"][1] and not found["success"][1]
    assert at(address).attempt(folder, bundle, first=0, count=4) == found


def test_a_recording_that_was_cut_off_before_it_moved_does_not_stop_the_next(
    address, bundle, tmp_path
):
    begun = tmp_path / "attempts" / "from-0000"
    begun.mkdir(parents=True)
    (begun / "trial-0001.arrow").write_bytes(b"")
    found = at(address).attempt(tmp_path / "attempts", bundle, first=0, count=1)
    assert len(found["success"]) == 1


@pytest.mark.slow
def test_stand_in_hardware_begins_a_batch_anew(bundle, tmp_path):
    folder = tmp_path / "attempts"
    whole = at("unit:4").attempt(folder, bundle, first=0, count=3)
    shutil.rmtree(folder)
    with pytest.raises(KeyboardInterrupt):
        at("unit:4", report=Cut()).attempt(folder, bundle, first=0, count=3)
    found = at("unit:4").attempt(folder, bundle, first=0, count=3)
    assert found["success"] == whole["success"] and len(list(folder.rglob("*.arrow"))) == 3


def test_a_stop_that_nobody_re_arms_ends_a_batch_in_one_line(address, bundle, tmp_path):
    folder = tmp_path / "attempts"
    robot = at(address, tell=lambda text: stop.touch())
    stop = folder / "from-0000" / "STOP"
    with pytest.raises(Sim2RealError, match="of 4 attempts were made: the file"):
        robot.attempt(folder, bundle, first=0, count=4)


def test_robots_are_told_apart_by_what_stands_behind_their_address(tmp_path):
    file = tmp_path / "arm.toml"
    file.write_text("port = 1")
    first = at(f"lerobot:{file}").robot_identity
    file.write_text("port = 2")
    assert at(f"lerobot:{file}").robot_identity != first
    assert not at("localhost:5555").robot_identity["behind"]


def test_stand_in_hardware_is_an_algorithm_of_what_is_done_on_it():
    assert "stand-in" in at("unit:4").record(seconds=18.0).algorithms
    assert "stand-in" not in at("localhost:5555").record(seconds=18.0).algorithms


def doubtful(folder, bundle) -> tuple[KeptResult, KeptResult]:
    """A bundle, and recordings that are too short to show anything."""
    contract = Bundle.open(bundle).contract
    source = Provenance(kind="real", twin=contract.robot, process="record: steps")
    recording = Recording.of(contract, folder / "recorded" / "steps.arrow", source)
    for k in range(30):
        row = {"sensor/hinge_pos": [1e-3 * k], "sensor/hinge_vel": [0.05], "command": [0.0]}
        recording.add(k / contract.rate_hz, row)
    recording.close()
    step = at("unit:4").record(seconds=18.0)
    return tuple(
        KeptResult(step, place, {}, 0.0, kept=False)
        for place in (bundle.parent, folder / "recorded")
    )


def climb(folder, bundle, **prompts):
    stages = at("unit:4", **prompts)
    shutil.rmtree(bundle / "ladder")
    done = doubtful(folder, bundle)
    return stages.ladder(done[0].step, done[1].step).work(folder / "ladder", done)


@pytest.mark.slow
def test_doubts_of_a_replay_do_not_end_a_loop(bundle, tmp_path):
    said = []
    found = climb(tmp_path, bundle, tell=said.append)
    replay, shadow, limited = found["steps"]
    assert not replay["passed"] and "only 30 control periods" in replay["why"]
    assert shadow["passed"] and limited["passed"] and not found["passed"]
    assert any("to pass it, give longer logs" in line for line in said)
    trials = at("unit:4").attempt(tmp_path / "attempts", bundle, first=0, count=1)
    assert len(trials["success"]) == 1
    despite = [record.despite for record in read_records(open_policy(bundle))]
    assert any("replay (the logs have only 30" in text for text in despite)


@pytest.mark.slow
def test_a_person_may_say_that_doubts_end_it(bundle, tmp_path):
    asked = []
    keys = {"ask": lambda text: "me", "press": lambda text, keys: asked.append(text) or "n"}
    with pytest.raises(Sim2RealError, match="to pass it, give longer logs"):
        climb(tmp_path, bundle, **keys)
    assert len(asked) == 1 and "Go on with shadow all the same?" in asked[0]


@pytest.mark.slow
def test_what_is_wrong_with_the_policy_itself_ends_a_loop_that_nobody_watches(
    bundle, tmp_path, monkeypatch
):
    wrong = Shortfall(why="the doctor says: sign flipped", to_pass="mend it")
    monkeypatch.setattr(Rehearsal, "shortfall", lambda self: wrong)
    with pytest.raises(Sim2RealError, match=r"shadow .* first needs replay \(the doctor says"):
        climb(tmp_path, bundle)


def test_a_loop_on_hardware_takes_no_force():
    config = LoopConfig(task=TASK, robot="localhost:1", execute=True, person="me", force=True)
    with pytest.raises(Sim2RealError, match="for stand-in hardware only"):
        config.check(simulated=False)
    config.check(simulated=True)
