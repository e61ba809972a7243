"""Two programs cannot command one robot."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from sim2real.errors import Sim2RealError
from sim2real.robot import RobotAbilities
from sim2real.robot.sole_driver import sole_driver

HOLDS = """
import sys
from pathlib import Path
from types import SimpleNamespace
from sim2real.robot import RobotAbilities
from sim2real.robot.sole_driver import sole_driver
robot = SimpleNamespace(name="arm", serial=sys.argv[2], abilities=RobotAbilities())
with sole_driver(robot, Path(sys.argv[1])):
    print("holds it", flush=True)
    sys.stdin.read()
"""


def arm(serial="7", **abilities):
    return SimpleNamespace(name="arm", serial=serial, abilities=RobotAbilities(**abilities))


@pytest.fixture
def other(tmp_path):
    command = [sys.executable, "-c", HOLDS, str(tmp_path), "7"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout.readline() == "holds it\n"
        yield one
        one.kill()


def test_a_robot_that_another_program_drives_is_refused_and_the_program_named(other, tmp_path):
    said = rf"arm 7 is driven by process {other.pid} \(since \d\d:\d\d\)"
    with pytest.raises(Sim2RealError, match=said), sole_driver(arm(), tmp_path):
        pass
    with sole_driver(arm("8"), tmp_path):
        pass  # another robot is


def test_the_lock_goes_with_a_killed_program(other, tmp_path):
    other.kill()
    other.wait()
    again = sole_driver(arm(), tmp_path)
    with sole_driver(arm(), tmp_path), pytest.raises(Sim2RealError, match="this one"):
        again.__enter__()
    with sole_driver(arm(), tmp_path):
        pass


def test_names_that_look_alike_in_a_file_name_are_different_robots(tmp_path):
    with sole_driver(arm("a/b"), tmp_path), sole_driver(arm("a b"), tmp_path):
        assert len(list(tmp_path.iterdir())) == 2


def test_a_robot_that_this_program_started_is_nobody_elses(tmp_path):
    with sole_driver(arm(owned=True), tmp_path), sole_driver(arm(owned=True), tmp_path):
        assert not list(tmp_path.iterdir())


def test_a_lock_that_cannot_be_taken_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    lock = sole_driver(arm(), tmp_path / "file")
    with pytest.raises(Sim2RealError, match="cannot tell whether another program drives"):
        lock.__enter__()
