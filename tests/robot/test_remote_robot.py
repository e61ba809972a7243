"""The client of a robot behind a socket: who answers, and what it says when nobody does."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from sim2real.errors import Sim2RealError
from sim2real.robot.remote import RemoteRobot


@contextmanager
def served(unit, port="0"):
    """A unit of stand-in hardware in real time, and its port."""
    command = [sys.executable, "-m", "sim2real.reality", "serve", "--unit", str(unit)]
    command += ["--task", "pendulum-swingup", "--port", port, "--parent", str(os.getpid())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@pytest.mark.slow
def test_another_robot_that_takes_over_the_port_is_sent_no_command():
    with served(3) as (_, port):
        robot = RemoteRobot(port)
        robot.connect()
        robot.enable()
        robot.send_action({"hinge": 0.0})
    robot.patience_s = 0.05
    with served(4, port):
        other = RemoteRobot(port)
        other.connect()
        other.enable()
        with pytest.raises(Sim2RealError, match=r"nothing came within 0\.05 s"):
            robot.send_action({"hinge": 1.0})
        for call in (lambda: robot.send_action({"hinge": 1.0}), robot.get_observation,
                     robot.stop, robot.connect):  # fmt: skip
            with pytest.raises(
                Sim2RealError, match=r"another robot answers at .* unit-4, .*unit-3"
            ):
                call()
        assert other.get_observation()["@command"] == [0.0] and other.stopped_itself == ""
    with served(3, port):
        robot.patience_s = 2.0
        robot.connect()
        assert robot.serial == "unit-3"


@pytest.mark.slow
def test_a_silent_robot_is_asked_who_it_is_before_anything_else_and_errors_are_sentences():
    with served(3) as (process, port):
        robot = RemoteRobot(port)
        robot.connect()
        robot.patience_s = 0.04
        process.send_signal(signal.SIGSTOP)
        for _ in range(2):
            begin = time.monotonic()
            with pytest.raises(Sim2RealError) as caught:
                robot.get_observation()
            assert time.monotonic() - begin < 0.09
            said = str(caught.value)
            assert said.endswith("does not answer: nothing came within 0.04 s")
        process.send_signal(signal.SIGCONT)
        robot.patience_s = 2.0
        assert robot.get_observation() is not None and robot.is_connected


def test_a_malformed_address_is_one_clear_line():
    with pytest.raises(Sim2RealError, match=r"is not a robot's address .*: use HOST:PORT"):
        RemoteRobot("tcp://nowhere").connect()
