"""Deploying: nothing moves unless told to, in the order of trust, and all of it is on record."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from sim2real.cli import main
from sim2real.data import Lake
from sim2real.data.formats.recording import read_recording
from sim2real.errors import Sim2RealError
from sim2real.evaluation import open_policy
from sim2real.policy import Bundle
from sim2real.policy.bundle import seal
from sim2real.robot import DeployConfig, StandIn, deploy, open_robot
from sim2real.robot.ladder import (
    LadderRecord,
    missing,
    read_records,
    small_and_slow,
    write_record,
)
from sim2real.robot.ladder_step import parse_goals
from sim2real.robot.operator import OperatorStop
from sim2real.robot.remote import RemoteRobot
from tests.ladder import climbed
from tests.repository import BUNDLES


@pytest.fixture
def bundle(tmp_path) -> Path:
    return Path(shutil.copytree(BUNDLES / "arm-reach", tmp_path / "bundle"))


def go(bundle, *words) -> int:
    return main(["deploy", str(bundle), *words])


def edit(folder: Path, name: str, change) -> None:
    """Change a JSON file of a bundle and its manifest, as someone who knows how would."""
    data = json.loads((folder / name).read_text())
    change(data)
    (folder / name).write_text(json.dumps(data))
    seal(folder)


@pytest.mark.slow
def test_a_dry_run_says_what_would_be_sent_and_sends_nothing(bundle, capsys, monkeypatch):
    monkeypatch.setattr(RemoteRobot, "send_action", lambda *_: pytest.fail("it sent something"))
    assert go(bundle, "--robot", "unit:3", "--seconds", "1") == 0
    said = capsys.readouterr().out
    assert "commands that would be sent" in said and "nothing was sent" in said
    assert not Bundle.open(bundle).records.exists()


@pytest.mark.slow
def test_the_ladder_is_climbed_step_by_step(bundle, tmp_path, capsys, monkeypatch):
    robot = ["--robot", "unit:3", "--execute", "--person", "ana"]
    assert go(bundle, *robot) == 2
    assert "first needs replay (not tried), shadow (not tried)" in capsys.readouterr().err
    logs, lake = tmp_path / "logs", tmp_path / "lake"
    assert go(bundle, *robot, "--force", "--trials", "2", "--out", str(logs)) == 0
    assert "skipped by force" in capsys.readouterr().out
    assert go(bundle, "--step", "replay", "--logs", str(logs)) == 0
    assert go(bundle, *robot, "--step", "limited") == 2
    assert "limited on arm-reach unit-3 first needs shadow (not tried)" in capsys.readouterr().err
    monkeypatch.setenv("SIM2REAL_LAKE", str(tmp_path / "named"))
    assert go(bundle, "--robot", "unit:3", "--seconds", "1") == 0  # a dry run records nothing
    assert not (tmp_path / "named").exists()
    assert go(bundle, *robot, "--step", "shadow", "--seconds", "1") == 0
    assert len(Lake.open(tmp_path / "named")) == 1
    monkeypatch.setenv("SIM2REAL_LAKE", "")
    assert go(bundle, *robot, "--step", "limited", "--seconds", "1") == 0
    capsys.readouterr()
    assert go(bundle, *robot, "--trials", "2", "--lake", str(lake), "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["success"]["n"] == 2 and result["skipped"] == ""
    kept = Lake.open(str(lake))
    for trial in result["trials"]:
        episode = kept.get(trial["episode"])
        assert episode.outcome == trial["outcome"]
        source = episode.provenance
        assert (source.kind, source.serial, source.operator) == ("real", "unit-3", "ana")
        assert source.policy == Bundle.open(bundle).id[:32]
        assert len(episode["action"].times) == trial["periods"] == 100
    ids = [trial["episode"] for trial in result["trials"]]
    assert set(ids) < set(Bundle.open(bundle).tested_on)
    steps = [record.step for record in read_records(open_policy(bundle))]
    assert steps == ["full", "replay", "shadow", "limited", "full"]
    # Another unit of the same model has not been through it.
    assert go(bundle, "--robot", "unit:4", "--execute", "--person", "ana") == 2
    assert "unit-4 first needs shadow" in capsys.readouterr().err


@pytest.mark.slow
def test_a_replay_of_its_own_flight_gives_what_was_sent(bundle, tmp_path):
    config = DeployConfig(
        bundle=bundle, robot="unit:5", execute=True, force=True, person="ana", out=tmp_path / "run"
    )
    deploy(config)
    log = read_recording(tmp_path / "run" / "trial-0001.arrow")
    found = deploy(DeployConfig(bundle=bundle, step="replay"), logs=[log])
    agreement = found.record.figures["agreement"]
    # Its start was soft, and nothing else was limited.
    assert agreement["close"] >= 0.75 and agreement["outside"] == 0.0
    late = log["command"].times > 1.0
    wanted, sent = (log[name].values[late] for name in ("wanted", "command"))
    assert np.abs(wanted - sent).max() < 1e-4 and agreement["limited"] < 0.25


@pytest.mark.slow
def test_a_replay_of_a_broken_interface_is_not_passed(bundle, tmp_path, capsys):
    config = DeployConfig(
        bundle=bundle, robot="unit:5", execute=True, force=True, person="ana", out=tmp_path / "run"
    )
    deploy(config)
    log = read_recording(tmp_path / "run" / "trial-0001.arrow")
    name = "sensor/shoulder_lift_pos"
    turned = replace(log[name], values=-log[name].values)
    spoilt = replace(log, channels={**log.channels, name: turned})
    found = deploy(DeployConfig(bundle=bundle, step="replay"), logs=[spoilt])
    assert not found.record.passed and "sign flipped" in found.record.why
    assert (
        "replay (the doctor says"
        in missing(open_policy(bundle), "full", robot="arm-reach", serial="unit-5")[0]
    )
    lake = tmp_path / "lake"
    Lake.create(lake).append(spoilt)
    assert go(bundle, "--step", "replay", "--logs", str(lake)) == 1
    said = capsys.readouterr().out
    assert "has the opposite sign" in said and f"sim2real doctor {bundle} --logs {lake}" in said


@pytest.mark.slow
def test_a_shadow_compares_with_the_bundle_in_charge(bundle, tmp_path):
    with pytest.raises(Sim2RealError, match="moves the robot: add --execute"):
        deploy(DeployConfig(bundle=bundle, robot="unit:6", step="shadow"))
    other = shutil.copytree(bundle, tmp_path / "other")
    edit(other, "provenance.json", lambda data: data.update(run="another"))
    config = DeployConfig(
        bundle=bundle, robot="unit:6", step="shadow", execute=True, force=True, person="ana",
        in_charge=str(other), out=tmp_path / "run",
    )  # fmt: skip
    with pytest.raises(Sim2RealError, match="cannot shadow itself"):
        deploy(replace(config, in_charge=str(bundle)))
    rehearsed = LadderRecord(step="replay", passed=True, bundle=Bundle.open(bundle).id)
    write_record(open_policy(bundle), rehearsed)
    with pytest.raises(Sim2RealError, match="may not drive arm-reach unit-6"):
        deploy(replace(config, force=False))
    found = deploy(config)
    agreement = found.record.figures["agreement"]
    # The same policy wants the same; only the soft start lets less of it through.
    assert agreement["periods"] == 100 and agreement["close"] >= 0.75
    assert max(agreement["rms"]) < 0.03
    held = deploy(replace(config, in_charge="hold", out=tmp_path / "held"))
    assert min(held.record.figures["agreement"]["rms"][:4]) > 0.001
    moved = read_recording(tmp_path / "held" / "trial-0001.arrow")["command"].values
    assert np.ptp(moved, axis=0).max() < 1e-6
    with pytest.raises(Sim2RealError, match="is for another robot"):
        deploy(replace(config, in_charge=str(BUNDLES / "pendulum-swingup"), out=None))


@pytest.mark.slow
def test_a_shadow_listens_to_a_robot_in_other_hands(bundle, tmp_path):
    with StandIn(6, "arm-reach") as robot:
        goals = tuple(f"{k}={','.join(map(str, v))}" for k, v in robot.reset(0).items())
        robot.enable()
        seen = robot.get_observation() or robot.get_observation()
        start = {name: seen[f"{name}_pos"] for name in robot.actuators}
        ending = threading.Event()

        def drive() -> None:
            begin = robot.now()
            while not ending.wait(0.001):
                lean = 0.3 * np.sin(2.0 * (robot.now() - begin))
                robot.send_action({**start, "shoulder_pan": start["shoulder_pan"] + lean})

        hands = threading.Thread(target=drive)
        hands.start()
        address = robot.address.removeprefix("tcp://")
        config = DeployConfig(
            bundle=bundle, robot=address, step="shadow", in_charge="robot", seconds=2.0,
            out=tmp_path / "run",
        )  # fmt: skip
        found = deploy(config)
        dry = deploy(replace(config, step="full", out=None, goal=goals, seconds=0.4))
        ending.set()
        hands.join()
        robot.get_observation()
        # The others did not stop it; on a busy machine the hands may be silent for too long.
        assert robot.state == "ready" or robot.why == "watchdog: no command"
        assert not dry.execute
    assert found.record.figures["agreement"]["periods"] == 50
    heard = read_recording(found.trials[0].recording)["command"].values
    # Before the hands move, the servos hold what their encoders say, to a step of those.
    assert 0.2 < np.ptp(heard[:, 0]) < 0.7 and np.ptp(heard[:, 1]) < 0.0016


@pytest.mark.slow
def test_what_is_malformed_is_refused_with_one_line(bundle, capsys):
    cases = [
        (["--robot", "unit:3", "--execute"], "--person"),
        (["--robot", "somewhere"], "no robot at 'somewhere'"),
        (["--robot", "unit:x"], "is not a stand-in unit"),
        (["--execute", "--person", "ana"], "--robot is required"),
        (["--robot", "unit:3", "--goal", "x=a"], "must look like"),
        (["--robot", "unit:3", "--goal", "target_positon=1,2,3"], "did you mean 'target_position'"),
        (["--robot", "unit:3", "--seconds", "nan"], "--seconds"),
        (["--robot", "unit:3", "--trials", "0"], "--trials"),
        (["--step", "replay"], "--logs"),
        (["--step", "replay", "--logs", "nowhere.arrow"], "nowhere.arrow"),
    ]
    for words, said in cases:
        assert go(bundle, *words) == 2
        error = capsys.readouterr().err.strip()
        assert said in error and "\n" not in error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("limits.json", lambda d: d["joints"][0].update(position_high=9.0), "the model only from"),
        ("limits.json", lambda d: d["joints"][0].update(torque=90.0), "torque of 90"),
        ("limits.json", lambda d: d.update(tool="hand"), "names? the tool 'hand'"),
        ("limits.json", lambda d: d["joints"][0].update(name="hip"), "limits are for"),
        ("limits.json", lambda d: d["joints"][0].update(command_rate=None), "must be finite"),
        ("limits.json", lambda d: d.update(reaction_s="x"), "must be a number"),
        ("limits.json", lambda d: d.update(reaction_s=9.0), "at most 0.5, not 9"),
        ("contract.json", lambda d: d.update(rate_hz=0.0), "rate_hz must be more than 0"),
        ("contract.json", lambda d: d.update(schema=9), "update sim2real"),
    ],
)
def test_a_bundle_that_contradicts_its_model_never_reaches_a_robot(
    bundle, monkeypatch, name, change, said
):
    where = "sim2real.robot.deployment_session.open_robot"
    monkeypatch.setattr(where, lambda *_, **__: pytest.fail("opened"))
    edit(bundle, name, change)
    with pytest.raises(Sim2RealError, match=said):
        deploy(DeployConfig(bundle=bundle, robot="unit:1", execute=True, person="ana", force=True))


@pytest.mark.slow
def test_a_bundle_of_another_robot_moves_nothing(bundle, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(RemoteRobot, "send_action", lambda *_: pytest.fail("it sent something"))
    execute = ["--execute", "--person", "ana"]
    climbed(bundle, "arm-reach", "unit-2")
    push = climbed(
        Path(shutil.copytree(BUNDLES / "arm-push", tmp_path / "push")), "arm-reach", "unit-2"
    )
    with StandIn(2, "pendulum-swingup") as robot:
        address = robot.address.removeprefix("tcp://")
        assert go(bundle, "--robot", address, *execute) == 2
        assert "for another robot" in capsys.readouterr().err
    with StandIn(2, "arm-reach") as robot:
        address = robot.address.removeprefix("tcp://")
        assert go(push, "--robot", address, *execute) == 2
        assert "goal 'goal' needs 2 finite numbers" in capsys.readouterr().err
        words = ["--goal", "goal=0.3,0.1"]
        assert go(push, "--robot", address, *execute, *words) == 2
        assert "the robot does not report cube_pos" in capsys.readouterr().err
    assert go(bundle, "--robot", "127.0.0.1:9") == 2
    assert "does not answer" in capsys.readouterr().err


def test_limited_is_small_and_slow():
    limits = Bundle.open(BUNDLES / "arm-reach").limits
    rest = np.array([1.9, 0.0, 0.0, 0.0, 0.0, 0.0])
    small = small_and_slow(limits, rest)
    for joint, wide, at in zip(small.joints, limits.joints, rest, strict=True):
        assert wide.command_low <= joint.command_low <= at <= joint.command_high
        assert joint.command_high <= wide.command_high
        assert joint.command_rate == wide.command_rate / 4
        assert joint.velocity == 0.75 * wide.velocity
        span = joint.command_high - joint.command_low
        assert span <= (wide.command_high - wide.command_low) / 4 + 1e-9


def test_the_newest_record_of_a_step_decides(bundle):
    opened = open_policy(bundle)
    robot = {"robot": "arm", "serial": "1"}
    one = LadderRecord(
        step="shadow", passed=True, bundle=opened.seal, time="2026-01-01T00:00:00", **robot
    )
    write_record(opened, replace(one, step="replay", serial="2"))
    write_record(opened, one)
    assert missing(opened, "limited", **robot) == []
    assert missing(opened, "limited", robot="arm", serial="2") == ["shadow (not tried)"]
    write_record(opened, replace(one, passed=False, why="fell", time="2026-01-02T00:00:00"))
    assert missing(opened, "limited", **robot) == ["shadow (fell)"]
    # Of another bundle's records nothing is believed.
    write_record(opened, replace(one, bundle="0" * 64, time="2026-01-03T00:00:00"))
    assert missing(opened, "limited", **robot) == ["shadow (fell)"]
    assert Bundle.open(bundle).id == opened.seal


@pytest.mark.parametrize(
    "text",
    [
        "{", "[]", '{"step": "fly"}', '{"step": "full"}',
        '{"step": "full", "passed": true, "bundle": "b", "episodes": 5}',
        '{"step": "full", "passed": true, "bundle": "b", "time": 5}',
    ],
)  # fmt: skip
def test_a_malformed_record_is_one_clear_error(bundle, text):
    (bundle / "ladder").mkdir()
    (bundle / "ladder" / "1-full.json").write_text(text)
    with pytest.raises(Sim2RealError, match=r"1-full\.json"):
        read_records(open_policy(bundle))


def test_goals_are_read_from_words():
    assert parse_goals(["a=1,2", "b=-0.5"]) == {"a": [1.0, 2.0], "b": [-0.5]}


def test_an_operator_stops_with_a_file_or_a_signal(tmp_path):
    file = tmp_path / "STOP"
    with OperatorStop(file) as stop:
        assert not stop()
        file.touch()
        assert stop() and str(file) in stop.how
        file.unlink()
        assert stop()  # wanted once, wanted until cleared
        stop.how = ""
        assert not stop()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop() and stop.signalled
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


TYPING = """
import os, pty, sys, time
child, terminal = pty.fork()
if child == 0:
    from sim2real.robot.operator import OperatorStop
    with OperatorStop() as stop:
        print("ready", flush=True)
        end = time.monotonic() + 20
        while not stop() and time.monotonic() < end:
            time.sleep(0.01)
        print("stopped by", stop.how, flush=True)
    os._exit(0)
said = b""
while b"ready" not in said:
    said += os.read(terminal, 100)
os.write(terminal, b" ")
while b"stopped by" not in said or not said.endswith(b"\\n"):
    said += os.read(terminal, 100)
print(said.decode())
"""


@pytest.mark.slow
def test_an_operator_stops_with_a_key():
    done = subprocess.run(
        [sys.executable, "-c", TYPING], capture_output=True, text=True, timeout=60, check=True
    )
    assert "stopped by a key" in done.stdout


def fly_until(bundle, folder, how) -> tuple[int, dict] | None:
    """Fly in real time until the operator stops it; None where a busy machine stopped it before."""
    climbed(bundle, "arm-reach", "unit-1")
    with StandIn(1, "arm-reach", virtual=False) as robot:
        address = robot.address.removeprefix("tcp://")
        command = [sys.executable, "-m", "sim2real.cli", "deploy", str(bundle), "--robot", address]
        command += ["--execute", "--person", "ana", "--seconds", "30"]
        command += ["--out", str(folder), "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            file = folder / "trial-0001.arrow"
            while not (file.exists() and file.stat().st_size > 4000):
                if process.poll() is not None:
                    return None
                time.sleep(0.05)
            if how == "signal":
                process.send_signal(signal.SIGINT)
            else:
                (folder / "STOP").touch()
            said = process.stdout.read()
        result = json.loads(said)
        if result["trials"][0]["stopped"] != "the operator stopped it":
            return None
        robot.get_observation()
        assert robot.state == "tripped" and robot.why == "asked to"
        return process.returncode, result


@pytest.mark.slow
@pytest.mark.parametrize("how", ["signal", "file"])
def test_a_running_robot_is_stopped_by_its_operator(bundle, tmp_path, how):
    tries = (fly_until(bundle, tmp_path / str(k), how) for k in range(4))
    code, result = next(found for found in tries if found is not None)
    assert code == (130 if how == "signal" else 1)
    assert how in result["ended"] and result["trials"][0]["outcome"] == ""
    episode = read_recording(result["trials"][0]["recording"])
    assert len(episode["action"].times) == result["trials"][0]["periods"] + 1


@pytest.mark.slow
def test_a_stop_ends_the_series_unless_someone_re_arms(bundle, tmp_path):
    calls = []

    def stuck(self, seconds=0.0):
        calls.append(1)
        raise Sim2RealError("nobody is there")

    config = DeployConfig(
        bundle=bundle, robot="unit:3", execute=True, person="ana", force=True, trials=3, seconds=0.4
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RemoteRobot, "send_action", stuck)
        found = deploy(replace(config, out=tmp_path / "one"))
        assert len(found.trials) == 1 and "did not take" in found.trials[0].stopped
        assert not found.record.passed
        found = deploy(replace(config, out=tmp_path / "all", rearm=True))
        assert len(found.trials) == 3
        assert all(trial.outcome == "failure" for trial in found.trials)
        record = read_records(open_policy(bundle))[-1]
        assert not record.passed and record.skipped.startswith("replay (not tried)")


@pytest.mark.slow
def test_what_moved_is_on_record_however_it_ended(bundle, tmp_path, monkeypatch):
    config = DeployConfig(
        bundle=bundle, robot="unit:3", execute=True, person="ana", force=True, step="limited",
        seconds=1.2, out=tmp_path / "run",
    )  # fmt: skip
    assert deploy(replace(config, out=tmp_path / "fine")).record.passed
    assert not missing(open_policy(bundle), "limited", robot="arm-reach", serial="unit-3")[2:]

    def full(self, time_s, values):
        raise Sim2RealError("no space left")

    monkeypatch.setattr("sim2real.robot.recording.Recording.add", full)
    with pytest.raises(Sim2RealError, match="no space left"):
        deploy(config)
    record = read_records(open_policy(bundle))[-1]
    assert (record.step, record.passed, record.why) == ("limited", False, "no space left")
    assert not (tmp_path / "run" / "trial-0001.arrow").exists()


@pytest.mark.slow
def test_a_step_of_a_moment_proves_nothing(bundle, tmp_path):
    found = deploy(
        DeployConfig(
            bundle=bundle,
            robot="unit:3",
            execute=True,
            person="ana",
            force=True,
            step="limited",
            seconds=0.2,
            out=tmp_path / "run",
        )
    )
    assert not found.record.passed and "only 5 control periods" in found.record.why


def test_an_address_says_what_it_is():
    assert isinstance(open_robot("127.0.0.1:5555"), RemoteRobot)
    assert open_robot("tcp://10.0.0.1:5").address == "tcp://10.0.0.1:5"
    with pytest.raises(Sim2RealError, match="needs a task"):
        open_robot("unit:3")


def test_a_record_is_plain_data():
    record = LadderRecord(step="full", passed=True, bundle="b", episodes=("a",), figures={"x": 1.0})
    assert json.loads(json.dumps(asdict(record)))["episodes"] == ["a"]
