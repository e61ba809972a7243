"""The loop on a robot: what it sends, what it records, and how it ends."""

import resource
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from sim2real.data import Provenance
from sim2real.data.formats.recording import read_recording
from sim2real.errors import Sim2RealError
from sim2real.policy import Bundle, Pilot, Runtime
from sim2real.robot import Recording, RobotAbilities, StandIn, Supervisor, fly
from sim2real.robot.readings import in_order
from tests.repository import BUNDLES

pytestmark = pytest.mark.slow
REAL = Provenance(kind="real", robot="arm-reach", serial="unit-4")


@pytest.fixture(scope="module")
def bundle():
    return Bundle.open(BUNDLES / "arm-reach")


@pytest.fixture
def robot():
    with StandIn(4, "arm-reach") as robot:
        yield robot


def drive(robot, bundle, tmp_path, *, execute=True, seconds=2.0, **options):
    goals = robot.reset(1)
    robot.enable()
    recording = Recording.of(bundle.contract, tmp_path / "flight.arrow", REAL)
    return fly(
        robot,
        Pilot(Runtime(bundle)),
        Supervisor(bundle.contract, bundle.limits),
        robot,
        goals=goals,
        seconds=seconds,
        person="ana",
        execute=execute,
        recording=recording,
        **options,
    )


def test_a_flight_is_recorded_whole_and_ends_in_the_safe_stop(robot, bundle, tmp_path):
    flight = drive(robot, bundle, tmp_path)
    assert flight.stopped == "" and flight.periods == 50
    assert robot.state == "tripped" and robot.why == "asked to"
    episode = read_recording(tmp_path / "flight.arrow")
    assert episode.provenance.serial == "unit-4"
    assert len(episode["command"].times) == len(episode["action"].times) == 50
    assert episode["action"].rate_hz == pytest.approx(25, rel=0.01)
    lost = 50 - len(episode["sensor/shoulder_pan_pos"].times)
    assert lost == flight.lost < 5
    moved = np.ptp(episode["command"].values, axis=0)
    rates = np.abs(np.diff(episode["command"].values, axis=0)).max(axis=0) * 25
    allowed = [joint.command_rate for joint in bundle.limits.joints]
    assert moved.max() > 0 and (rates <= np.array(allowed) + 1e-6).all()


def test_a_dry_run_sends_nothing(robot, bundle, tmp_path):
    sent = []
    robot.send_action = sent.append
    flight = drive(robot, bundle, tmp_path, execute=False, seconds=0.2)
    assert sent == [] and flight.periods == 5


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("dropped link", "stay away: no good one for"),
        ("slow bus", "old"),
        ("stuck reading", "old"),
        ("brown-out", "stopped by itself"),
        ("encoder freeze", "encoder error"),
    ],
)
def test_a_fault_ends_in_the_safe_stop(robot, bundle, tmp_path, kind, words):
    goals = robot.reset(1)
    robot.enable()
    robot.fault(kind, 0.22)
    flight = fly(
        robot, Pilot(Runtime(bundle)), Supervisor(bundle.contract, bundle.limits), robot,
        goals=goals, seconds=2.0, person="ana", execute=True,
    )  # fmt: skip
    robot.sleep_until(robot.now() + 1.0)
    robot.get_observation()
    assert robot.state == "tripped"
    # It fails in the sixth period, and 100 ms after the last good readings it has ended.
    assert words in flight.stopped and flight.periods <= 9


def test_the_operator_stops_it(robot, bundle, tmp_path):
    presses = iter([False] * 7 + [True] * 9)
    flight = drive(robot, bundle, tmp_path, operator_stop=lambda: next(presses))
    assert flight.periods == 7 and "operator" in flight.stopped


def test_another_robot_is_refused_before_anything_moves(robot, bundle, tmp_path):
    seen = dict(robot.get_observation() or robot.get_observation())
    del seen["elbow_flex_vel"]
    robot.get_observation = lambda: seen
    with pytest.raises(Sim2RealError, match="does not report elbow_flex_vel: is it the"):
        drive(robot, bundle, tmp_path)
    robot.get_observation = lambda: {**seen, "elbow_flex_vel": [1.0, 2.0]}
    assert not (tmp_path / "flight.arrow").exists()  # nothing happened, nothing is left
    with pytest.raises(Sim2RealError, match="contract's shape"):
        drive(robot, bundle, tmp_path)


KILLED = """
import os, sys, time
from pathlib import Path
from sim2real.data import Provenance
from sim2real.robot.recording import Recording
recording = Recording(Path(sys.argv[1]), {"q": "rad"}, Provenance(kind="real"))
begin = time.monotonic()
while True:
    now = time.monotonic() - begin
    recording.add(now, {"q": [now]})
    print(now, flush=True)
    time.sleep(0.01)
"""


def test_a_killed_recording_loses_at_most_a_second(tmp_path):
    path = tmp_path / "flight.arrow"
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        last = 0.0
        while last < 2.3:
            last = float(process.stdout.readline())
        process.kill()
    episode = read_recording(path)
    assert last - 1.0 < episode["q"].times[-1] <= last + 0.1
    assert "cut off" in episode.provenance.process


@pytest.mark.parametrize("content", [b"", b"nonsense", b"ARROW1" + b"\x00" * 100])
def test_what_is_no_recording_is_one_clear_error(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(Sim2RealError, match="is not a recording"):
        read_recording(tmp_path / "x")


def test_a_network_that_gives_no_number_stops_the_robot(robot, bundle, tmp_path):
    class Broken(Runtime):
        def policy(self, observations):
            return np.full((1, len(self.contract.actions)), np.nan)

    goals = robot.reset(1)
    robot.enable()
    flight = fly(
        robot, Pilot(Broken(bundle)), Supervisor(bundle.contract, bundle.limits), robot,
        goals=goals, seconds=2.0, person="ana", execute=True,
    )  # fmt: skip
    assert flight.periods == 0 and "not a number" in flight.stopped


def test_what_a_robot_tells_of_its_actuators_is_put_in_order(bundle):
    there = reversed([command.name for command in bundle.contract.commands])
    robot = SimpleNamespace(abilities=RobotAbilities(actuators=tuple(there)))
    seen = {"@torque": [float(k) for k in range(6)]}
    assert in_order(robot, bundle.contract, seen, "@torque").tolist() == [5, 4, 3, 2, 1, 0]
    assert in_order(robot, bundle.contract, {}, "@torque") is None


def test_a_recording_that_cannot_go_on_says_so(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, limits[1]))  # as full as a disk can be
    try:
        recording = Recording(tmp_path / "x.arrow", {"q": "rad"}, REAL)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with pytest.raises(Sim2RealError, match=r"cannot record to .*File too large"):
        for k in range(500):
            recording.add(0.01 * k, {"q": [1.0]})
            time.sleep(0.01)
    recording.close()
