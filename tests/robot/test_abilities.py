"""A robot is asked what it declares, and nothing else about it is looked at."""

import json
import threading
from dataclasses import replace

import numpy as np
import pytest
import zmq

from sim2real.errors import Sim2RealError
from sim2real.policy import Bundle, Pilot, Runtime
from sim2real.robot import PassedOnRobot, RobotAbilities, Supervisor, fly, open_robot, robot_scheme
from sim2real.robot.abilities import refuse_unwatched
from sim2real.robot.connect import (
    WallClock,
    check_abilities,
    clock_of,
    connected,
    refuse_other_robot,
)
from sim2real.robot.readings import first_readings, in_order, make_ready
from sim2real.robot.remote import OLD_SERVER, RemoteRobot
from tests.repository import BUNDLES

BUNDLE = Bundle.open(BUNDLES / "pendulum-swingup")


class Hanging:
    """A pendulum that hangs still, with the least that a robot has."""

    name, serial, safe_stop, is_connected = "hanging", "1", "damp", True
    abilities = RobotAbilities()

    def __init__(self, **more):
        self.more, self.sent = more, []

    def connect(self): ...

    def get_observation(self):
        self.sent.append(None)
        return {"hinge_pos": 0.0, "hinge_vel": 1e-4 * len(self.sent), **self.more}

    def send_action(self, action):
        return action

    def stop(self): ...

    def disconnect(self): ...


class Patient:
    """A clock that only waiting moves, so that nothing is ever late."""

    moment_s = 0.0

    def now(self):
        return self.moment_s

    def sleep_until(self, moment_s):
        self.moment_s = moment_s


def test_a_robot_that_declares_nothing_is_driven_in_real_time():
    robot = Hanging()
    assert isinstance(clock_of(robot), WallClock)
    flight = fly(
        robot, Pilot(Runtime(BUNDLE)), Supervisor(BUNDLE.contract, BUNDLE.limits), Patient(),
        goals={}, seconds=0.06, person="ana", execute=False,
    )  # fmt: skip
    assert flight.periods == 3 and flight.stopped == ""


@pytest.mark.parametrize(("name", "ability"), [("@torque", "measures_torque"),
                                               ("@command", "reports_commands")])  # fmt: skip
def test_what_is_reported_must_be_declared_or_nobody_would_look_at_it(name, ability):
    robot = Hanging(**{name: [0.1]})
    said = f"reports {name}, but does not declare it: set {ability}"
    with pytest.raises(Sim2RealError, match=said):
        first_readings(robot, BUNDLE.contract, WallClock())
    robot.abilities = RobotAbilities(**{ability: True})
    assert first_readings(robot, BUNDLE.contract, WallClock()).shape == (2,)
    assert in_order(robot, BUNDLE.contract, robot.more, name).tolist() == [0.1]


@pytest.mark.parametrize(
    ("ability", "lacks"),
    [
        ("enables", "enable"), ("reports_why_stopped", "stopped_itself"), ("judges", "judge"),
        ("resets", "reset, goals"), ("virtual_time", "now, sleep_until"),
        ("patience", "patience_s"),
    ],
)  # fmt: skip
def test_a_robot_must_have_what_it_declares(ability, lacks):
    robot = Hanging()
    robot.abilities = RobotAbilities(**{ability: True})
    said = f"declares that it {ability}, but has no {lacks}$"
    with pytest.raises(Sim2RealError, match=said), connected(robot):
        pass
    robot.abilities = RobotAbilities()
    check_abilities(robot)


@pytest.mark.parametrize(
    ("why", "reports", "starts"), [("", True, 0), ("tripped", True, 1), ("", False, 1)]
)
def test_drives_are_started_where_they_have_to_be(why, reports, starts):
    robot = Hanging()
    robot.abilities = RobotAbilities(enables=True, reports_why_stopped=reports)
    robot.started, robot.stopped_itself = 0, why
    robot.enable = lambda: setattr(robot, "started", robot.started + 1)
    make_ready(robot, BUNDLE.contract, WallClock())
    assert robot.started == starts


def test_a_robot_that_is_passed_on_has_neither_bench_nor_clock_of_its_own():
    robot = Hanging()
    robot.abilities = replace(OLD_SERVER, virtual_time=True, actuators=("hinge",))
    robot.stopped_itself = "brown-out"
    through = PassedOnRobot(robot)
    assert through.abilities.actuators == ("hinge",) and through.abilities.measures_torque
    assert through.stopped_itself == "brown-out"
    check_abilities(through)
    for ability in ("resets", "judges", "virtual_time", "patience"):
        assert not getattr(through.abilities, ability)


def served(hello: dict):
    """A server that says this when it is greeted, in a thread; its port and its socket."""
    socket = zmq.Context.instance().socket(zmq.REP)
    port = socket.bind_to_random_port("tcp://127.0.0.1")

    def answer():
        if socket.poll(5000):
            socket.recv()
            socket.send(json.dumps(hello).encode())

    thread = threading.Thread(target=answer)
    thread.start()
    return str(port), socket, thread


HELLO = {"robot": "r", "serial": "1", "safe_stop": "hold", "clock": "real", "actuators": ["hinge"]}


@pytest.mark.parametrize(
    ("told", "judges", "torque"),
    [
        ({}, True, True),  # an old server
        ({"judges": False}, False, True),
        ({"judges": False, "measures_torque": False, "flies": True}, False, False),
        ({"simulated": True, "owned": True, "repeats": True}, True, True),
    ],
)
def test_a_hello_declares_what_a_server_can_do(told, judges, torque):
    port, socket, thread = served(HELLO | ({"abilities": told} if told else {}))
    robot = RemoteRobot(port)
    assert robot.abilities == OLD_SERVER
    robot.connect()
    thread.join()
    found = robot.abilities
    assert (found.judges, found.measures_torque) == (judges, torque)
    assert found.actuators == ("hinge",) and not found.virtual_time
    # Whether people are safe from it is not for a server to say.
    assert not (found.simulated or found.owned or found.repeats)
    socket.close()


@pytest.mark.parametrize(("told", "watchdog_s"), [({"watchdog_s": 0.25}, 0.25), ({}, 0.0)])
def test_a_hello_says_after_how_long_its_watchdog_stops_the_robot(told, watchdog_s):
    port, socket, thread = served(HELLO | told)
    robot = RemoteRobot(port)
    robot.connect()
    thread.join()
    assert robot.abilities.watchdog_s == watchdog_s and robot.abilities.holds_position
    socket.close()


@pytest.mark.parametrize(
    ("abilities", "refused"),
    [
        ({}, "hanging has no watchdog: nothing stops it in time .* --by-the-switch"),
        ({"watchdog_s": 30.0}, "only a watchdog of 30 s"),
        ({"watchdog_s": float("nan")}, "no watchdog"),
        ({"watchdog_s": 0.25}, ""),
        ({"simulated": True}, ""),
    ],
)
def test_hardware_that_nothing_stops_when_the_program_dies_needs_a_person_by_the_switch(
    abilities, refused
):
    robot = Hanging()
    robot.abilities = RobotAbilities(**abilities)
    if refused:
        with pytest.raises(Sim2RealError, match=refused):
            refuse_unwatched(robot, by_the_switch=False)
    else:
        refuse_unwatched(robot, by_the_switch=False)
    refuse_unwatched(robot, by_the_switch=True)


def test_a_robot_that_is_passed_on_keeps_its_watchdog():
    robot = Hanging()
    robot.abilities = RobotAbilities(watchdog_s=0.1, holds_position=True, measures_temperature=True)
    assert PassedOnRobot(robot).abilities == robot.abilities


def test_another_robot_behind_the_same_address_is_refused():
    robot = Hanging()
    refuse_other_robot(robot, "1", "somewhere")
    refuse_other_robot(robot, "", "somewhere")
    with pytest.raises(
        Sim2RealError, match=r"another robot answers at somewhere: hanging 1, .* 2;"
    ):
        refuse_other_robot(robot, "2", "somewhere")


def test_a_malformed_hello_is_one_clear_error():
    port, socket, thread = served(HELLO | {"abilities": {"judges": "yes"}})
    with pytest.raises(Sim2RealError, match="judges"):
        RemoteRobot(port).connect()
    thread.join()
    socket.close()


def test_what_an_address_leads_to_is_known_before_it_is_opened(tmp_path):
    unit = robot_scheme("unit:7")
    known = unit.abilities("unit:7")
    assert known.simulated and known.repeats and unit.behind("unit:7")
    assert known == open_robot("unit:7", task="pendulum-swingup").abilities
    for address in ("127.0.0.1:5555", "tcp://10.0.0.1:5", "5555"):
        scheme = robot_scheme(address)
        assert scheme.abilities(address) == RobotAbilities() and scheme.behind(address) == ""
    file = tmp_path / "arm.toml"
    file.write_text("a = 1")
    before = robot_scheme("lerobot:x").behind(f"lerobot:{file}")
    file.write_text("a = 2")
    assert robot_scheme("lerobot:x").behind(f"lerobot:{file}") != before
    with pytest.raises(Sim2RealError, match="cannot read"):
        robot_scheme("lerobot:x").behind("lerobot:nowhere.toml")
    with pytest.raises(Sim2RealError, match="no robot at 'somewhere'"):
        robot_scheme("somewhere")


def test_a_robot_of_a_python_class_is_found_by_its_name(tmp_path, monkeypatch):
    (tmp_path / "my_robot.py").write_text(
        "from tests.robot.test_abilities import Hanging, RobotAbilities\n"
        "class Mine(Hanging):\n    name = 'mine'\n"
        "    abilities = RobotAbilities(simulated=True)\n"
        "class Half:\n    name = 'half'\n"
    )
    monkeypatch.chdir(tmp_path)
    assert open_robot("my_robot:Mine").name == "mine"
    assert robot_scheme("my_robot:Mine").abilities("my_robot:Mine").simulated
    with pytest.raises(Sim2RealError, match="my_robot:Half is no robot"):
        open_robot("my_robot:Half")
    with pytest.raises(Sim2RealError, match="there is no robot my_robot:Other"):
        open_robot("my_robot:Other")
    with pytest.raises(Sim2RealError, match="there is no robot no_module:Mine"):
        open_robot("no_module:Mine")


def test_torques_follow_the_declared_order():
    robot = Hanging()
    robot.abilities = RobotAbilities(actuators=("elbow", "hinge"))
    contract = replace(
        BUNDLE.contract,
        commands=(*BUNDLE.contract.commands, replace(BUNDLE.contract.commands[0], name="elbow")),
    )
    assert in_order(robot, contract, {"@torque": np.array([1.0, 2.0])}, "@torque").tolist() == [
        2,
        1,
    ]
