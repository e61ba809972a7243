"""A robot of LeRobot's shape behind our protocol: units, velocities, stops, and clear mistakes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim2real.errors import Sim2RealError
from sim2real.plain import of_plain
from sim2real.policy import Bundle, Pilot, Runtime
from sim2real.robot import Robot, StandIn, Supervisor, fly
from sim2real.robot.driver_names import UNITS, DriverNames, DriverQuantity, DriverTables
from sim2real.robot.lerobot import LeRobotRobot
from sim2real.robot.lerobot_file import from_config, read_file
from tests.repository import BUNDLES, ROOT

SO101 = ROOT / "examples/robots/so101.toml"
JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")


class Clock:
    """A clock the test sets."""

    def __init__(self):
        self.time = 0.0

    def now(self):
        return self.time

    def sleep_until(self, moment_s):
        self.time = moment_s


class Bus:
    """Motors that remember whether they are stiff."""

    stiff = True

    def disable_torque(self):
        self.stiff = False

    def enable_torque(self):
        self.stiff = True


class Fake:
    """What LeRobot's robot classes look like from outside: two joints in degrees."""

    name = "fake"
    id = "f-1"

    def __init__(self, keys=("a.pos", "b.pos")):
        self.observation_features = dict.fromkeys(keys, float) | {"front": (4, 4, 3)}
        self.action_features = dict.fromkeys(keys, float)
        self.places = dict.fromkeys(keys, 0.0)
        self.sent, self.broken = [], []
        self.is_connected, self.is_calibrated = False, True
        self.bus = Bus()

    def connect(self, calibrate=True):
        assert not calibrate, "calibration is a dialogue at the terminal"
        self.is_connected = True

    def get_observation(self):
        if self.broken:
            raise self.broken.pop(0)
        return dict(self.places) | {"front": np.zeros((4, 4, 3), np.uint8)}

    def send_action(self, action):
        self.sent.append(dict(action))
        return {key: min(value, 90.0) for key, value in action.items()}

    def disconnect(self):
        self.is_connected = False


def names_of(**joints):
    return of_plain(DriverTables, {"joints": joints or TWO}).names


TWO = {"a": {"key": "a.pos", "unit": "deg"}, "b": {"key": "b.pos", "unit": "deg", "sign": -1}}


def connected(fake=None, **options):
    fake, clock = fake or Fake(), Clock()
    robot = LeRobotRobot(fake, names=names_of(), clock=clock, **options)
    robot.connect()
    return robot, fake, clock


@given(
    unit=st.sampled_from(UNITS),
    sign=st.sampled_from([1, -1]),
    scale=st.floats(0.01, 100.0),
    offset=st.floats(-10.0, 10.0),
    low=st.floats(-5.0, 5.0),
    width=st.floats(0.01, 10.0),
    value=st.floats(-20.0, 20.0),
)
def test_a_number_in_si_units_survives_the_way_to_the_driver_and_back(
    unit, sign, scale, offset, low, width, value
):
    part = unit in ("percent", "range_0_100")
    quantity = DriverQuantity(
        key="k", unit=unit, sign=sign, scale=scale, offset=offset,
        range=(low, low + width) if part else None,
    )  # fmt: skip
    back = quantity.to_si(quantity.from_si(value))
    assert back == pytest.approx(value, rel=1e-9, abs=1e-9 * (1 + scale * 20))


def test_units_mean_what_they_say():
    half = DriverQuantity(key="k", unit="percent", range=(-1.0, 3.0))
    assert [half.to_si(v) for v in (-100, 0, 100)] == [-1.0, 1.0, 3.0]
    jaw = DriverQuantity(key="k", unit="range_0_100", range=(-0.17, 1.745))
    assert [jaw.to_si(v) for v in (0, 100)] == [-0.17, 1.745]
    turned = DriverQuantity(key="k", unit="deg", sign=-1, offset=0.5)
    assert turned.to_si(90.0) == pytest.approx(0.5 - math.pi / 2)
    assert turned.from_si(0.5) == 0.0


def test_readings_and_commands_are_in_si_units_under_the_contracts_names():
    robot, fake, _ = connected()
    assert isinstance(robot, Robot) and (robot.name, robot.serial) == ("fake", "f-1")
    fake.places = {"a.pos": 90.0, "b.pos": 45.0}
    seen = robot.get_observation()
    assert seen["a_pos"] == pytest.approx(math.pi / 2)
    assert seen["b_pos"] == pytest.approx(-math.pi / 4)
    assert seen["@age"] == 0.0 and "front" not in seen
    sent = robot.send_action({"a": 2.0, "b": 0.5})
    assert fake.sent[-1]["b.pos"] == pytest.approx(-math.degrees(0.5))
    # The driver cuts at 90 degrees, and says so.
    assert sent["a"] == pytest.approx(math.pi / 2) and sent["b"] == pytest.approx(0.5)


def test_a_velocity_is_the_difference_over_the_true_time_between_readings():
    robot, fake, clock = connected()
    assert robot.get_observation()["a_vel"] == 0.0
    for span in (0.04, 0.031, 0.055):
        clock.time += span
        fake.places["a.pos"] += math.degrees(2.0 * span)
        seen = robot.get_observation()
        assert seen["a_vel"] == pytest.approx(2.0) and seen["b_vel"] == 0.0
    # Two readings in quick succession must not divide by next to nothing.
    clock.time += 1e-4
    fake.places["a.pos"] += 0.1
    assert robot.get_observation()["a_vel"] == pytest.approx(2.0, rel=0.02)
    # After a silence nothing is known about the present speed.
    clock.time += 5.0
    assert robot.get_observation()["a_vel"] == 0.0


def test_temperatures_are_read_now_and_then_and_forgotten_if_they_cannot_be():
    fake, asked = Fake(), []
    fake.bus.motors = {"a": 1, "b": 2}

    def sync_read(what, *, normalize):
        asked.append((what, normalize))
        if len(asked) > 2:
            raise ConnectionError("no status packet")
        return {"b": 50 + len(asked), "a": 30}

    fake.bus.sync_read = sync_read
    robot, _, clock = connected(fake, temperature=True)
    assert robot.abilities.measures_temperature
    seen = []
    for _ in range(130):
        seen.append(robot.get_observation().get("@temperature"))
        clock.time += 0.1
    assert set(asked) == {("Present_Temperature", False)} and len(asked) == 13
    assert seen[9] == [30.0, 51.0] and seen[11] == seen[100] == [30.0, 52.0]
    assert seen[-1] is None, "an old temperature is none"


def test_temperatures_that_nobody_tells_are_refused_before_anything_moves():
    with pytest.raises(Sim2RealError, match="fake does not tell temperatures"):
        connected(Fake(), temperature=True)
    fake = Fake()
    fake.bus.motors, fake.bus.sync_read = {"a": 1, "c": 2}, None
    with pytest.raises(Sim2RealError, match=r"no motor 'b' .* there are 'a', 'c'"):
        connected(fake, temperature=True)


def test_a_lost_packet_is_no_reading_and_a_lost_robot_an_error():
    robot, fake, _ = connected()
    fake.broken = [ConnectionError("no status packet")]
    assert robot.get_observation() == {}
    fake.broken, fake.is_connected = [ConnectionError("port gone")], False
    with pytest.raises(Sim2RealError, match="connection to fake is lost: port gone"):
        robot.get_observation()
    fake.broken = [RuntimeError("overload")]
    with pytest.raises(Sim2RealError, match="cannot be read: overload"):
        robot.get_observation()


def test_a_stop_holds_the_present_position_and_nothing_moves_it_after_that():
    robot, fake, _ = connected()
    robot.send_action({"a": 0.1, "b": 0.0})
    fake.places = {"a.pos": 3.0, "b.pos": 4.0}
    robot.stop()
    assert fake.sent[-1] == {"a.pos": 3.0, "b.pos": 4.0} and fake.bus.stiff
    with pytest.raises(Sim2RealError, match="fake is stopped"):
        robot.send_action({"a": 0.5})
    robot.enable()
    robot.send_action({"a": 0.5})


def test_a_stop_that_is_repeated_holds_the_same_position_though_the_arm_sinks():
    robot, fake, _ = connected()
    robot.send_action({"a": 0.1})
    fake.places = {"a.pos": 3.0, "b.pos": 4.0}
    robot.stop()
    fake.places = {"a.pos": 2.5, "b.pos": 3.5}
    robot.stop()
    assert fake.sent[-1] == {"a.pos": 3.0, "b.pos": 4.0}
    robot.enable()
    robot.stop()
    assert fake.sent[-1] == {"a.pos": 2.5, "b.pos": 3.5}


def test_a_stop_without_readings_holds_where_the_robot_was_last_not_where_it_began():
    robot, fake, _ = connected()
    robot.send_action({"a": 0.1})
    fake.places = {"a.pos": 30.0, "b.pos": 0.0}
    robot.get_observation()
    fake.broken = [RuntimeError("bus")] * 9
    robot.stop()
    assert fake.sent[-1]["a.pos"] == 30.0


def test_a_limp_stop_lets_go_of_the_motors_and_gets_stiff_where_the_robot_is():
    robot, fake, _ = connected(stop="limp")
    robot.send_action({"a": 0.1})
    robot.stop()
    assert not fake.bus.stiff
    fake.places["a.pos"] = -20.0
    robot.enable()
    assert fake.bus.stiff and fake.sent[-1]["a.pos"] == -20.0
    bare = Fake()
    del bare.bus
    with pytest.raises(Sim2RealError, match="cannot switch its motors off"):
        LeRobotRobot(bare, names=names_of(), stop="limp")


def test_a_command_that_is_not_given_stays_where_the_robot_rests():
    fake = Fake(("a.pos", "b.pos", "jaw.pos"))
    fake.places["jaw.pos"] = 33.0
    robot, fake, _ = connected(fake)
    robot.send_action({"a": 0.0, "b": 0.0})
    assert fake.sent[-1]["jaw.pos"] == 33.0


def test_a_robot_that_was_only_looked_at_is_sent_nothing():
    robot, fake, _ = connected()
    robot.get_observation()
    robot.disconnect()
    assert fake.sent == [] and not fake.is_connected


def test_a_robot_that_is_not_calibrated_is_let_go_of():
    fake = Fake()
    fake.is_calibrated = False
    with pytest.raises(Sim2RealError, match="not calibrated: run lerobot-calibrate"):
        connected(fake)
    assert not fake.is_connected


def test_names_the_robot_does_not_have_are_one_clear_line():
    with pytest.raises(Sim2RealError, match=r"sensor 'a_pos': fake has no 'a\.po'.*'a\.pos'"):
        LeRobotRobot(Fake(), names=names_of(a={"key": "a.po", "unit": "deg"}))
    fake = Fake()
    fake.action_features["x.vel"] = float
    with pytest.raises(Sim2RealError, match=r"also takes 'x\.vel': add a command for it"):
        LeRobotRobot(fake, names=names_of())
    robot, _, _ = connected()
    with pytest.raises(Sim2RealError, match="no command 'c'"):
        robot.send_action({"c": 0.0})


HEAD = '[robot]\ntype = "so101_follower"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[robot", "is not readable TOML"),
        ("[joint]\n", "has no 'joint'; did you mean 'joints'"),
        ("[joints]\n", "needs 'robot'"),
        ("[robot]\nstop = 'hold'\n", "robot needs 'type'"),
        ("[robot]\ntype = 3\n", "type must be text"),
        ("[robot]\ntyp = 'x'\n", "has no 'typ'; did you mean 'type'"),
        (HEAD + "stop = 'fall'\n", "stop: 'fall' is unknown; there are 'hold', 'limp'"),
        (HEAD, "neither joints nor commands"),
        (HEAD + "[joints]\na = 3\n", "'a' must be a table"),
        (HEAD + "[joints]\na = {unit='deg'}\n", "'a' needs 'key'"),
        (
            HEAD + "[joints]\na = {key='a.pos', unit='dge'}\n",
            "unknown unit 'dge'; did you mean 'deg",
        ),
        (HEAD + "[joints]\na = {key='a.pos', unit='deg', sing=-1}\n", "no 'sing'; did you mean"),
        (
            HEAD + "[joints]\na = {key='a.pos', unit='deg', sign=2}\n",
            "sign: 2 is unknown; there are '-1', '1'",
        ),
        (HEAD + "[joints]\na = {key='a.pos', unit='deg', scale=0}\n", "scale must be positive"),
        (HEAD + "[joints]\na = {key='a.pos', unit='percent'}\n", "'percent' and a range do not go"),
        (
            HEAD + "[joints]\na = {key='k', unit='percent', range=[1]}\n",
            "range must be a list of length 2, not",
        ),
        (
            HEAD + "[joints]\na = {key='k', unit='percent', range=[2, 1]}\n",
            "must go from low",
        ),
        (HEAD + "[joints]\na = {key='k', unit='deg', offset='x'}\n", "offset must be a number"),
        (
            HEAD + "[joints]\na = {key='k', unit='deg'}\n[commands]\na = {key='k', unit='deg'}\n",
            "'a' occurs twice",
        ),
    ],
)
def test_a_malformed_file_is_one_clear_line(tmp_path, text, words):
    path = tmp_path / "robot.toml"
    path.write_text(text)
    with pytest.raises(Sim2RealError, match=words) as caught:
        read_file(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(Sim2RealError, match="no such file"):
        read_file(tmp_path / "nothing.toml")


def test_the_example_names_everything_the_arms_contract_wants():
    file = read_file(SO101)
    contract = Bundle.open(BUNDLES / "arm-reach").contract
    given = {*file.names.sensors, *file.names.velocities}
    assert {sensor.name for sensor in contract.sensors} <= given
    assert [command.name for command in contract.commands] == list(file.names.commands)
    jaw = contract.commands[-1]
    assert file.names.commands["gripper"].range == (jaw.low, jaw.high)


def test_without_lerobot_the_error_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "lerobot", None)
    with pytest.raises(Sim2RealError, match="pip install lerobot"):
        from_config(SO101)


def test_a_velocity_of_the_driver_is_taken_instead_of_a_difference():
    own = {"a_vel": {"key": "a.vel", "unit": "deg/s"}}
    names = of_plain(DriverTables, {"joints": TWO, "sensors": own}).names
    assert names.velocities == {"b_vel": "b_pos"} and names.sensors["a_vel"].key == "a.vel"


class InDegrees:
    """Stand-in hardware as LeRobot would show it: positions only, in its own units."""

    name, id, is_calibrated = "so101_follower", "stand-in", True

    def __init__(self, unit: StandIn, names: DriverNames) -> None:
        self._unit, self._names = unit, names
        self.observation_features = {q.key: float for q in names.sensors.values()}
        self.action_features = {q.key: float for q in names.commands.values()}

    @property
    def is_connected(self):
        return self._unit.is_connected

    def connect(self, calibrate=True):
        self._unit.connect()

    def get_observation(self):
        seen = self._unit.get_observation()
        if not seen:
            raise ConnectionError("no status packet")
        return {q.key: q.from_si(seen[name]) for name, q in self._names.sensors.items()}

    def send_action(self, action):
        values = {name: q.to_si(action[q.key]) for name, q in self._names.commands.items()}
        taken = self._unit.send_action(values)
        return {q.key: q.from_si(taken[name]) for name, q in self._names.commands.items()}

    def disconnect(self):
        self._unit.disconnect()


@pytest.mark.slow
def test_a_bundle_flies_a_robot_of_lerobots_shape(tmp_path):
    bundle = Bundle.open(BUNDLES / "arm-reach")
    names = read_file(SO101).names
    with StandIn(2, "arm-reach") as unit:
        robot = LeRobotRobot(InDegrees(unit, names), names=names, clock=unit)
        goals = unit.reset(0)  # one that it reaches without a driver between, too
        unit.enable()
        robot.connect()
        flight = fly(
            robot, Pilot(Runtime(bundle)), Supervisor(bundle.contract, bundle.limits), unit,
            goals=goals, seconds=4.0, person="ana", execute=True,
        )  # fmt: skip
        assert flight.stopped == "" and flight.periods == 100
        assert unit.judge()
