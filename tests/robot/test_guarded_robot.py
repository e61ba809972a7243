"""The process that owns a bus stops the robot when the program that drives it does not."""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sim2real.errors import Sim2RealError
from sim2real.robot import Robot, open_robot
from sim2real.robot.abilities import refuse_unwatched
from sim2real.robot.connect import check_abilities, connected
from sim2real.robot.guarded_robot import GuardedRobot
from tests.repository import ROOT

BUS = Path(__file__).parent / "guard_bus"
RUNNER = Path(__file__).parent / "guard_runner.py"
FILE = """[robot]
type = "logged_arm"
{head}
[robot.config]
id = "arm-7"
log = "{log}"
{config}
[joints]
a = {{ key = "a.pos", unit = "deg" }}
b = {{ key = "b.pos", unit = "deg" }}
"""
SLACK_S = 0.1


class Bench:
    """A file of a robot, and what its bus was told."""

    def __init__(self, folder):
        self.path, self.log = folder / "arm.toml", folder / "bus.log"
        self.describe()

    def describe(self, head="", config=""):
        self.path.write_text(FILE.format(head=head, log=self.log, config=config))

    @property
    def address(self):
        return f"lerobot:{self.path}"

    @property
    def told(self):
        """(time, what) of all that reached the bus."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(float(t), what) for t, _, what in (line.partition(" ") for line in lines)]

    def said(self, what, after_s=0.0):
        return [moment for moment, told in self.told if told.startswith(what) and moment > after_s]

    def wait_for(self, what, *, after_s=0.0, count=1, seconds=10.0):
        end = time.monotonic() + seconds
        while len(self.said(what, after_s)) < count:
            assert time.monotonic() < end, f"no {what} in {self.told[-5:]}"
            time.sleep(0.002)
        return self.said(what, after_s)[0]


def forget_lerobot():
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("lerobot", "draccus"):
            del sys.modules[name]


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BUS))
    forget_lerobot()
    yield Bench(tmp_path)
    forget_lerobot()


@contextmanager
def opened(bench):
    robot = open_robot(bench.address)
    try:
        robot.connect()
        robot.enable()
        yield robot
    finally:
        with suppress(Sim2RealError):
            robot.disconnect()
        if robot.process.poll() is None:
            os.kill(robot.process.pid, signal.SIGCONT)
            robot.process.kill()
            robot.process.wait()


def test_a_robot_of_lerobots_is_guarded_unless_its_file_says_otherwise(bench):
    robot = open_robot(bench.address)
    assert isinstance(robot, GuardedRobot) and isinstance(robot, Robot)
    assert robot.abilities.actuators == ("a", "b") and robot.abilities.holds_position
    assert robot.abilities.watchdog_s == 0.25
    refuse_unwatched(robot, False)
    bench.describe(head="watchdog_s = 0.1\nstop = 'limp'")
    abilities = open_robot(bench.address).abilities
    assert abilities.watchdog_s == 0.1 and not abilities.holds_position
    bench.describe(head="watchdog_s = 0")
    bare = open_robot(bench.address)
    with pytest.raises(Sim2RealError, match="no watchdog"):
        refuse_unwatched(bare, False)
    bench.describe(head="watchdog_s = 5")
    with pytest.raises(Sim2RealError, match=r"arm.toml.*watchdog_s must be from 0.02 to 1 s"):
        open_robot(bench.address)


def test_through_its_guard_a_robot_is_what_it_is_without(bench):
    with opened(bench) as robot:
        check_abilities(robot)
        assert (robot.name, robot.serial, robot.safe_stop) == ("logged_arm", "arm-7", "hold")
        assert robot.is_connected and robot.stopped_itself == ""
        seen = robot.get_observation()
        assert seen["a_pos"] == pytest.approx(1.7453, abs=1e-3) and seen["a_vel"] == 0.0
        assert robot.send_action({"a": 0.1, "b": 0.0}) == pytest.approx({"a": 0.1, "b": 0.0})
        with pytest.raises(Sim2RealError, match=r"^logged_arm has no command 'c'"):
            robot.send_action({"c": 0.0})
        robot.stop()
        with pytest.raises(Sim2RealError, match="logged_arm is stopped: asked to"):
            robot.send_action({"a": 0.2})
        robot.disconnect()
        assert not robot.is_connected and robot.process.poll() == 0
        assert bench.told[-1][1] == "disconnect" and bench.said("hold")
        with pytest.raises(Sim2RealError, match="not connected"):
            robot.get_observation()


def test_a_robot_that_was_only_looked_at_is_sent_nothing(bench):
    robot = open_robot(bench.address)
    with connected(robot):
        robot.get_observation()
    assert [what for _, what in bench.told] == ["connect", "disconnect"]


@pytest.mark.slow
def test_without_a_command_the_guard_stops_the_robot_and_keeps_it_stopped(bench):
    with opened(bench) as robot:
        robot.send_action({"a": 0.1, "b": 0.0})
        last = time.monotonic()
        while time.monotonic() < last + 0.4:
            robot.get_observation()  # to look is not to drive
        assert 0.24 < bench.wait_for("hold", after_s=last) - last < 0.25 + SLACK_S
        assert robot.stopped_itself.startswith("no command for 0.25 s")
        with pytest.raises(Sim2RealError, match=r"is stopped: no command for 0\.25 s"):
            robot.send_action({"a": 0.1, "b": 0.0})
        assert len(bench.said("hold", last)) == 3 and len(bench.said("command")) == 1
        robot.enable()
        robot.send_action({"a": 0.2, "b": 0.0})
        assert len(bench.said("command")) == 2 and robot.stopped_itself == ""


def test_a_stop_that_the_bus_loses_is_sent_until_it_arrives(bench):
    bench.describe(config="lost_holds = 40")
    with opened(bench) as robot:
        robot.send_action({"a": 0.1, "b": 0.0})
        with pytest.raises(Sim2RealError, match="does not stop"):
            robot.stop()
        with pytest.raises(Sim2RealError, match="is stopped"):
            robot.send_action({"a": 0.1, "b": 0.0})
        with pytest.raises(Sim2RealError, match="does not take its stop yet"):
            robot.enable()
        bench.wait_for("hold", count=3)
        assert len(bench.said("lost")) == 40


@pytest.mark.slow
def test_a_guard_that_falls_silent_is_a_lost_connection_within_the_patience(bench):
    with opened(bench) as robot:
        robot.send_action({"a": 0.1, "b": 0.0})
        robot.patience_s = 0.1
        os.kill(robot.process.pid, signal.SIGSTOP)
        for call in (robot.get_observation, lambda: robot.send_action({"a": 0.3, "b": 0}),
                     *[robot.stop] * 12):  # fmt: skip
            begin = time.monotonic()
            with pytest.raises(Sim2RealError, match=r"logged_arm did not answer within 0\.1 s"):
                call()
            assert time.monotonic() - begin < 0.1 + SLACK_S and not robot.is_connected
        os.kill(robot.process.pid, signal.SIGCONT)
        bench.wait_for("hold")
        robot.patience_s = 2.0
        robot.get_observation()
        assert len(bench.said("command")) == 1, "a command that nobody waits for was sent"


def test_a_command_that_waited_too_long_is_refused(bench):
    with opened(bench) as robot:
        robot.send_action({"a": 0.1, "b": 0.0})
        os.kill(robot.process.pid, signal.SIGSTOP)
        robot.patience_s = 0.02
        with pytest.raises(Sim2RealError, match="did not answer"):
            robot.send_action({"a": 0.2, "b": 0.0})
        os.kill(robot.process.pid, signal.SIGCONT)
        robot.patience_s = 2.0
        robot.get_observation()
        assert len(bench.said("command")) == 1


@pytest.mark.slow
def test_an_answer_that_comes_late_is_not_taken_for_that_of_another_call(bench):
    bench.describe(config="hangs_at = 2")
    with opened(bench) as robot:
        robot.send_action({"a": 0.1, "b": 0.0})
        robot.patience_s = 0.05
        with pytest.raises(Sim2RealError, match="did not answer"):
            robot.send_action({"a": 0.2, "b": 0.0})
        robot.patience_s = 2.0
        assert "a_pos" in robot.get_observation()


def test_a_killed_guard_is_noticed_at_once(bench):
    with opened(bench) as robot:
        robot.process.kill()
        robot.process.wait()
        with pytest.raises(Sim2RealError, match="guarding process of logged_arm has ended"):
            robot.get_observation()
        assert not robot.is_connected
        with pytest.raises(Sim2RealError, match="not connected"):
            robot.stop()


def test_the_terminals_signals_do_not_end_a_guard(bench):
    with opened(bench) as robot:
        robot.send_action({"a": 0.1, "b": 0.0})
        assert os.getpgid(robot.process.pid) != os.getpgid(0)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(robot.process.pid, number)
        robot.send_action({"a": 0.1, "b": 0.0})
        assert len(bench.said("command")) == 2


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ('port = "missing"', r"cannot connect to logged_arm: there is no such port.*ttyACM0"),
        ("exits = true", "this driver ends programs"),
    ],
)
def test_what_the_driver_says_comes_back_as_one_line_and_nothing_is_left(bench, config, words):
    bench.describe(config=config)
    robot = open_robot(bench.address)
    with pytest.raises(Sim2RealError, match=words):
        robot.connect()
    assert robot.process.wait(5) == 0 and not robot.is_connected


def test_a_robot_in_python_is_guarded_if_its_address_says_so(tmp_path, monkeypatch):
    (tmp_path / "my_guarded.py").write_text(
        "from sim2real.robot import RobotAbilities\n"
        "class Mine:\n"
        "    name, serial, safe_stop, is_connected = 'mine', '3', 'damp', True\n"
        "    abilities = RobotAbilities(actuators=('hinge',), judges=True)\n"
        "    def connect(self): ...\n"
        "    def get_observation(self): return {'hinge_pos': 0.5}\n"
        "    def send_action(self, action): return action\n"
        "    def stop(self): ...\n"
        "    def judge(self): return True\n"
        "    def disconnect(self): ...\n"
    )
    monkeypatch.chdir(tmp_path)
    robot = open_robot("guarded:my_guarded:Mine")
    with connected(robot):
        assert (robot.name, robot.serial, robot.safe_stop) == ("mine", "3", "damp")
        assert robot.abilities.watchdog_s == 0.25 and robot.abilities.enables
        assert robot.get_observation() == {"hinge_pos": 0.5} and robot.judge()
        assert robot.send_action({"hinge": 1.0}) == {"hinge": 1.0}
        with pytest.raises(Sim2RealError, match="no bench that sets up trials"):
            robot.goals()
    for address in ("guarded:unit:7", "guarded:localhost:5", "guarded:guarded:my_guarded:Mine"):
        with pytest.raises(Sim2RealError, match=r"only guarded:package\.module:Class"):
            open_robot(address, task="arm-reach")


@contextmanager
def running(bench):
    command = [sys.executable, RUNNER, bench.address, BUS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as runner:
        guard = int(runner.stdout.readline())
        try:
            yield runner, guard
        finally:
            runner.kill()


def gone(process):
    """Whether a process ends soon; one that only waits to be taken note of has ended."""
    stat, end = Path(f"/proc/{process}/stat"), time.monotonic() + 1.5
    while True:
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["hold", "limp"])
def test_a_runner_that_is_stopped_leaves_a_robot_in_its_safe_stop_in_time(bench, stop):
    bench.describe(head=f"stop = '{stop}'", config="read_s = 0.002")
    rng, took = random.Random(3), []
    with running(bench) as (runner, _):
        for _ in range(20):
            bench.wait_for("command", after_s=time.monotonic(), count=5)
            time.sleep(rng.uniform(0.0, 0.03))
            os.kill(runner.pid, signal.SIGSTOP)
            stopped = time.monotonic()
            took.append(bench.wait_for(stop, after_s=stopped) - stopped)
            time.sleep(0.1)
            assert not bench.said("command", stopped + took[-1])
            os.kill(runner.pid, signal.SIGCONT)
    sys.stderr.write(f"\n{stop} after SIGSTOP: {sorted(round(1e3 * t) for t in took)} ms\n")
    assert sorted(took)[-4] <= 0.25 + SLACK_S and max(took) < 1.0  # a busy machine may be late


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["hold", "limp"])
def test_a_runner_that_is_killed_leaves_a_robot_in_its_safe_stop_in_time(bench, stop):
    bench.describe(head=f"stop = '{stop}'", config="read_s = 0.002\nlost_holds = 4")
    rng, took = random.Random(4), []
    for _ in range(20):
        with running(bench) as (runner, guard):
            bench.wait_for("command", after_s=time.monotonic(), count=5)
            time.sleep(rng.uniform(0.0, 0.03))
            runner.kill()
            killed = time.monotonic()
            took.append(bench.wait_for(stop, after_s=killed) - killed)
            assert gone(guard)
            assert not bench.said("command", killed + took[-1])
            # To disconnect would let go of the motors of many an arm.
            assert not bench.said("disconnect")
    sys.stderr.write(f"\n{stop} after SIGKILL: {sorted(round(1e3 * t) for t in took)} ms\n")
    assert sorted(took)[-4] <= 0.25 + SLACK_S and max(took) < 1.0  # a busy machine may be late
