"""The stand-in hardware as a process: reached by a socket, robust, and silent about itself."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import zmq

from sim2real.errors import Sim2RealError
from sim2real.reality.scene import Scene
from sim2real.reality.server import Server
from sim2real.robot import StandIn, open_robot
from sim2real.robot.remote import RemoteRobot
from sim2real.tasks import add_task
from sim2real.tasks.pendulum import PendulumSwingup


@pytest.fixture
def unit():
    """A virtual arm in a process of its own, and its port."""
    command = [sys.executable, "-m", "sim2real.reality", "serve", "--unit", "7"]
    command += ["--task", "arm-reach", "--virtual"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip()
        process.kill()


def test_a_unit_is_driven_like_any_robot(unit):
    robot = RemoteRobot(unit)
    robot.connect()
    assert (robot.serial, robot.safe_stop, robot.virtual) == ("unit-7", "hold", True)
    goals = robot.reset(3)
    assert len(goals["target_position"]) == 3 and len(goals["target_rotation"]) == 9
    robot.enable()
    target = {}
    for _ in range(30):
        seen = robot.get_observation()
        if seen and not target:
            target = {n.removesuffix("_pos"): v for n, v in seen.items() if n.endswith("_pos")}
            target["shoulder_pan"] += 0.3
        if target:
            assert robot.send_action(target) == target
        robot.sleep_until(robot.now() + 0.04)
    seen = robot.get_observation() or robot.get_observation()
    assert abs(seen["shoulder_pan_pos"] - target["shoulder_pan"]) < 0.15
    assert robot.judge() is False
    robot.disconnect()
    assert not robot.is_connected


def test_the_clock_is_the_units_own(unit):
    robot = RemoteRobot(unit)
    robot.connect()
    robot.reset(0)
    before = robot.now()
    robot.sleep_until(before + 10.0)
    assert robot.now() == pytest.approx(before + 10.0, abs=0.002)
    with pytest.raises(Sim2RealError, match="next minute"):
        robot.sleep_until(robot.now() - 5.0)


@pytest.mark.slow
def test_a_robot_that_is_not_there_is_one_clear_error():
    robot = RemoteRobot("59999")
    with pytest.raises(Sim2RealError, match="does not answer"):
        robot.connect()
    assert not robot.is_connected
    with pytest.raises(Sim2RealError, match="not connected"):
        robot.get_observation()


@pytest.fixture
def server():
    server = Server("pendulum-swingup", 2, virtual=True)
    yield server
    server.answer(b'{"do": "quit"}')
    server.serve()


def test_it_listens_on_loopback_only(server):
    rows = [line.split()[1:4:2] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    listening = "0A"
    mine = f":{server.port:04X}"
    assert {at for at, state in rows if state == listening and at.endswith(mine)} == {
        f"0100007F{mine}"
    }


def test_no_answer_reveals_what_the_unit_is_made_of(server):
    made_of = Scene("pendulum-swingup", 2).plant.hidden
    secrets = {f"{value:.6f}"[:7] for value in made_of.friction}
    said = ""
    for message in ("hello", "enable", "observe", "judge", "stop"):
        said += json.dumps(server.answer(json.dumps({"do": message}).encode()))
    said += json.dumps(server.answer(b'{"do": "reset", "seed": 1}'))
    assert not any(secret in said for secret in secrets)
    for word in ("mass", "friction", "hidden", "gain", "delay", "supply"):
        assert word not in said


def test_nonsense_is_answered_and_survived(server):
    rng = random.Random(0)
    good = [
        {"do": "hello"}, {"do": "reset", "seed": 1}, {"do": "enable"}, {"do": "observe"},
        {"do": "command", "values": {"hinge": 0.1}}, {"do": "stop"}, {"do": "judge"},
        {"do": "fault", "kind": "brown-out", "after_s": 1.0}, {"do": "wait", "until_s": 0.01},
    ]  # fmt: skip
    values = [None, True, -1, 1e308, "x", [], {}, [[]], float("nan"), 2**70, "hinge"]
    for _ in range(10_000):
        message = dict(rng.choice(good))
        for key in list(message):
            if rng.random() < 0.4:
                message[key] = rng.choice(values)
        raw = bytearray(json.dumps(message).encode())
        for _ in range(rng.randint(0, 2)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        answer = server.answer(bytes(raw))
        json.dumps(answer)
        assert isinstance(answer, dict) and (
            "error" in answer or "state" in answer or "robot" in answer
        )
    assert server.answer(b'{"do": "hello"}')["serial"] == "unit-2"


def test_a_message_of_several_frames_is_survived(unit):
    socket = zmq.Context.instance().socket(zmq.REQ)
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect(f"tcp://127.0.0.1:{unit}")
    socket.send_multipart([b'{"do": "hello"}', b"x"])
    assert socket.poll(5000) and "error" in json.loads(socket.recv())
    socket.close()
    robot = RemoteRobot(unit)
    robot.connect()
    assert robot.serial == "unit-7"


def test_a_stand_in_runs_from_connect_to_disconnect_only():
    robot = open_robot("unit:3", task="arm-reach")
    assert robot.process is None
    robot.disconnect()  # nothing to let go of
    robot.connect()
    number = robot.process.pid
    assert alive(number) and robot.serial == "unit-3"
    robot.disconnect()
    assert not alive(number)
    with pytest.raises(Sim2RealError, match="unknown task 'nothing'"):
        open_robot("unit:3", task="nothing")


def test_a_task_without_a_bench_has_no_stand_in_hardware():
    class Benchless(PendulumSwingup):
        name = "benchless"
        bench = ""

    add_task(Benchless)
    with pytest.raises(Sim2RealError, match="it names no bench"):
        open_robot("unit:3", task="benchless")


def test_a_stand_in_at_a_bench_that_nobody_built_says_so():
    with pytest.raises(Sim2RealError, match="no stand-in hardware"):
        StandIn(3, "nothing").connect()


@pytest.mark.slow
def test_a_stand_in_ends_with_the_process_that_started_it():
    code = (
        "import sys; from sim2real.robot.standin import StandIn; unit = StandIn(3, 'arm-reach'); "
        "unit.connect(); print(unit.process.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        number = int(starter.stdout.readline())
        starter.kill()
        starter.wait()
    end = time.monotonic() + 10.0
    while alive(number) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(number)


def alive(number: int) -> bool:
    """Whether a process runs; one that has ended may still be in the list."""
    try:
        return ") Z " not in Path(f"/proc/{number}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
