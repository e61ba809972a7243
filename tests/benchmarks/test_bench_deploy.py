"""The judge of faults sees what is true, and the faults do to a robot what they say."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.deploy.body_troubles import BlockedJoint, OtherProgram, WildPolicy
from benchmarks.deploy.craft import Craft
from benchmarks.deploy.flights import DRAWN, Flown, flight, fly_troubled, supervisor_of
from benchmarks.deploy.judged import Outcome, detection_end_s, judge, largest_step_ratio
from benchmarks.deploy.trouble import Setting, Trouble
from benchmarks.deploy.true_trace import Departure, Motion
from benchmarks.deploy.unit_robot import UnitRobot
from benchmarks.deploy.wire_troubles import CutLink, StoppedProcess
from sim2real.contract import JointLimits, Limits
from sim2real.reality.breakage import PLAIN_FIRMWARE, Breakage, Firmware

NO_WATCHDOG = Firmware(
    watchdog_s=np.inf, overspeed_rad_s=np.inf, checks_encoders=False, checks_supply=False
)
ARM, PENDULUM = "arm-reach", "pendulum-swingup"


@pytest.fixture(scope="module")
def crafts():
    return {task: Craft.load(task) for task in (PENDULUM, ARM, "arm-push")}


def limits_of_one(**others):
    given = {
        "name": "j", "position_low": -1.0, "position_high": 1.0, "velocity": 5.0,
        "acceleration": 100.0, "torque": 1.0, "command_low": -1.0, "command_high": 1.0,
        "command_rate": 2.0, **others,
    }  # fmt: skip
    return Limits(joints=(JointLimits(**given),), observation_low=(), observation_high=())


def motion_of(angle, speed):
    return Motion(
        times=np.array([0.0]), angles=np.array([[angle]]), speeds=np.array([[speed]]),
        tools=np.zeros((1, 0)), torques=np.zeros((1, 1)),
    )  # fmt: skip


def departures(*given):
    """(leaves, value, arrives or None) as departures."""
    return [Departure(leaves_s=t, values=(v,), arrives_s=a) for t, v, a in given]


def pendulum(**options):
    return UnitRobot(PENDULUM, 1007, seed=3, **{"firmware": NO_WATCHDOG, **options})


def pumped(robot):
    """A torque that makes a pendulum faster and faster."""
    return 0.8 if float(robot.device.true_speeds[0]) >= 0 else -0.8


def pumped_to(robot, speed):
    """Swing it up until it is that fast; when it was."""
    end_s = robot.now() + 10.0
    while robot.device.speed() < speed and robot.now() < end_s:
        robot.pass_on({"hinge": pumped(robot)})
        robot.let_pass(robot.now() + 0.02)
    assert robot.now() < end_s
    return robot.now()


def driven(craft, robot, trouble, commands, *, stop_s=np.inf, seconds=2.0, stopped="planted"):
    """A flight by a runner that sends planted commands fifty times a second, up to its stop."""
    begin_s = robot.now()
    while robot.now() < begin_s + seconds:
        if robot.now() >= begin_s + stop_s:
            robot.halt()
            break
        value = commands(robot)
        robot.pass_on(dict.fromkeys(robot.device.names, value))
        robot.let_pass(robot.now() + 0.02)
    left_s = robot.now()
    robot.let_pass(left_s + 20.0)
    return Flown(
        task=PENDULUM, kind="planted", robot=robot, trouble=trouble, trace=robot.trace,
        limits=craft.bundle.limits, rate_hz=50.0, stopped=stopped, raised="", left_s=left_s,
    )  # fmt: skip


def test_a_joint_near_its_limit_has_to_be_noticed_before_it_is_two_degrees_further():
    limits = limits_of_one()
    assert detection_end_s(motion_of(0.0, 1.0), limits, 0.0) == pytest.approx(0.1)
    soon = detection_end_s(motion_of(0.95, 3.0), limits, 0.0)
    assert soon == pytest.approx((0.05 + np.radians(2)) / 3)
    assert detection_end_s(motion_of(0.95, -3.0), limits, 0.0) == pytest.approx(0.1)
    assert detection_end_s(motion_of(1.2, 1.0), limits, 0.0) == 0.0


def test_a_step_is_measured_against_the_time_since_the_command_before():
    limits = limits_of_one()  # 2 a second: 0.2 in a period of 0.1 s

    def ratio(*given):
        return largest_step_ratio(departures(*given), limits, 0.1)

    assert ratio((0.0, 0.0, 0.01), (0.1, 0.2, 0.11)) == pytest.approx(1.0, abs=1e-4)
    assert ratio((0.0, 0.0, 0.01), (0.1, 0.4, 0.11)) == pytest.approx(2.0, abs=1e-4)
    # After a long silence a step is one period's; right after a command it is less.
    assert ratio((0.0, 0.0, 0.01), (1.0, 0.2, 1.01)) == pytest.approx(1.0, abs=1e-4)
    assert ratio((0.0, 0.0, 0.01), (0.05, 0.2, 0.06)) == pytest.approx(2.0, abs=1e-4)
    assert ratio((0.0, 0.0, 0.01), (0.0, 0.2, 0.01)) > 100
    # What a lost command was allowed is left to the next.
    assert ratio((0.0, 0.0, 0.01), (0.1, 0.2, None), (0.2, 0.4, 0.21)) == pytest.approx(
        1.0, abs=1e-4
    )
    assert ratio((0.0, 0.0, None), (0.1, 9.0, 0.11)) == 0.0


@pytest.mark.slow
def test_who_stops_too_late_is_unsafe_and_who_stops_in_time_is_not(crafts):
    found = {}
    limit = crafts[PENDULUM].bundle.limits.joints[0].velocity
    for stop_s in (0.04, np.inf):
        robot = pendulum()
        robot.begin(Trouble(begin_s=robot.now()))
        # The runner sees nothing any more, and goes on.
        begin_s = pumped_to(robot, 0.8 * limit)
        robot.trouble = trouble = Trouble(begin_s=begin_s, impaired=[(begin_s, np.inf)])
        stopped = "" if np.isinf(stop_s) else "in time"
        flown = driven(
            crafts[PENDULUM], robot, trouble, pumped, stop_s=stop_s, seconds=2.0,
            stopped=stopped,
        )  # fmt: skip
        found[stop_s] = judge(flown)
    assert found[0.04].outcome is Outcome.SUPERVISOR and not found[0.04].harms
    assert found[0.04].stopped_after_s == pytest.approx(0.04, abs=0.021)
    late = found[np.inf]
    assert late.outcome is Outcome.UNSAFE and late.limits_exceeded == 1, late
    assert "speed of hinge" in late.harms[0]


@pytest.mark.slow
def test_a_motion_that_gives_itself_away_is_judged_from_where_it_passes_its_limit(crafts):
    """The same stop: nobody could foresee it, or the runner was blind all the time."""
    verdicts = []
    for blind in (False, True):
        robot = pendulum()
        begin_s = robot.now() + 0.1
        trouble = Trouble(begin_s=begin_s, impaired=[(begin_s, np.inf)] if blind else [])
        limit = crafts[PENDULUM].bundle.limits.joints[0].velocity
        robot.begin(trouble)
        left_s = pumped_to(robot, 1.05 * limit)
        robot.halt()
        robot.let_pass(left_s + 20.0)
        flown = Flown(
            task=PENDULUM, kind="planted", robot=robot, trouble=trouble, trace=robot.trace,
            limits=crafts[PENDULUM].bundle.limits, rate_hz=50.0, stopped="too fast", raised="",
            left_s=left_s,
        )  # fmt: skip
        verdicts.append(judge(flown))
    seen, blind = verdicts
    assert not [harm for harm in seen.harms if "speed" in harm] and seen.passed_later == 1
    assert [harm for harm in blind.harms if "speed" in harm]


@pytest.mark.slow
def test_a_robot_that_moves_on_is_no_safe_robot(crafts):
    robot = pendulum()
    trouble = Trouble(begin_s=robot.now() + 0.1)
    robot.begin(trouble)
    flown = driven(crafts[PENDULUM], robot, trouble, pumped, seconds=2.5)
    assert any("still moves" in harm for harm in judge(flown).harms)


@pytest.mark.slow
def test_a_stop_over_a_cut_link_is_the_watchdogs(crafts):
    robot = UnitRobot(ARM, 1003, seed=1, firmware=PLAIN_FIRMWARE)
    begin_s = robot.now() + 1.0
    cut = CutLink(
        begin_s=begin_s, to_robot=True, from_robot=True, silent=False, patience_s=0.0,
        impaired=[(begin_s, np.inf)],
    )  # fmt: skip
    flown = flight(crafts[ARM], robot, cut, kind="link")
    assert flown.stopped
    verdict = judge(flown)
    assert verdict.outcome is Outcome.WATCHDOG
    assert 0.15 < verdict.stopped_after_s < 0.4
    # The same over a link that lets the stop through.
    robot = UnitRobot(ARM, 1003, seed=1, firmware=PLAIN_FIRMWARE)
    cut = CutLink(begin_s=begin_s, to_robot=False, from_robot=True, silent=False, patience_s=0.0)
    assert judge(flight(crafts[ARM], robot, cut, kind="link")).outcome is Outcome.SUPERVISOR


@pytest.mark.slow
def test_a_killed_runner_reaches_nothing_any_more(crafts):
    for firmware, outcome in ((PLAIN_FIRMWARE, Outcome.WATCHDOG), (NO_WATCHDOG, Outcome.HARMLESS)):
        robot = UnitRobot(ARM, 1003, seed=1, firmware=firmware)
        killed = StoppedProcess(begin_s=robot.now() + 1.0, at="think", killed=True, seconds=0.0)
        flown = flight(crafts[ARM], robot, killed, kind="process")
        assert flown.raised == "Killed" and not flown.stopped
        assert judge(flown).outcome is outcome  # a servo without a watchdog holds its last command


@pytest.mark.slow
def test_a_supervisor_with_a_loose_rate_is_found_out(crafts):
    def loose(craft, robot):
        limits = craft.bundle.limits
        joints = tuple(replace(joint, command_rate=1e3) for joint in limits.joints)
        supervisor = supervisor_of(craft, robot)
        return type(supervisor)(craft.bundle.contract, replace(limits, joints=joints))

    ratios = []
    for made in (supervisor_of, loose):
        robot = UnitRobot(ARM, 1003, seed=1, firmware=PLAIN_FIRMWARE)
        names = robot.device.names
        limits = crafts[ARM].bundle.limits
        low, high = ([getattr(j, f"command_{s}") for j in limits.joints] for s in ("low", "high"))
        wild = WildPolicy(
            begin_s=robot.now() + 1.0, nonsense="noise", low=np.array(low), high=np.array(high),
            rng=np.random.default_rng(len(names)),
        )  # fmt: skip
        ratios.append(judge(flight(crafts[ARM], robot, wild, kind="policy", made=made)).step_ratio)
    assert ratios[0] < 1.1 and ratios[1] > 3.0


@pytest.mark.slow
def test_a_joint_that_is_blocked_may_not_be_pressed_for_long(crafts):
    found = []
    for seconds in (0.9, 2.0):
        robot = UnitRobot(ARM, 1003, seed=1, firmware=NO_WATCHDOG)
        begin_s = robot.now() + 0.2
        trouble = BlockedJoint(begin_s=begin_s, body=Breakage(begin_s=begin_s, blocks=(0,)))
        robot.begin(trouble)
        there = robot.device.true_angles + np.array([1.0, 0, 0, 0, 0, 0])
        robot.pass_on(dict(zip(robot.device.names, there, strict=True)))
        robot.let_pass(begin_s + seconds)
        robot.halt()
        robot.let_pass(robot.now() + 2.0)
        flown = Flown(
            task=ARM, kind="planted", robot=robot, trouble=trouble, trace=robot.trace,
            limits=crafts[ARM].bundle.limits, rate_hz=25.0, stopped="planted", raised="",
            left_s=robot.now(),
        )  # fmt: skip
        found.append([harm for harm in judge(flown).harms if "pressed" in harm])
    assert not found[0] and found[1]


@pytest.mark.slow
def test_another_program_moves_the_robot_between_our_commands(crafts):
    robot = UnitRobot(ARM, 1003, seed=1, firmware=PLAIN_FIRMWARE)
    begin_s = robot.now() + 0.1
    there = robot.device.true_angles + np.array([0.4, 0, 0, 0, 0, 0])
    other = OtherProgram(
        begin_s=begin_s, does="goes elsewhere", rate_hz=50.0, middle=there, swing=0 * there,
        swing_hz=1.0, low=there - 1, high=there + 1, rng=np.random.default_rng(0), _next_s=begin_s,
    )  # fmt: skip
    robot.begin(other)
    before = robot.device.true_angles[0]
    robot.let_pass(robot.now() + 1.0)
    assert robot.device.state == "ready"  # it feeds the watchdog too
    assert robot.device.true_angles[0] > before + 0.3
    assert not robot.trace.departures  # none of the commands was ours


@pytest.mark.slow
@pytest.mark.parametrize("kind", DRAWN)
def test_each_kind_of_fault_happens_and_is_judged_the_same_again(kind, crafts):
    verdicts = []
    for _ in range(2):
        flown = fly_troubled(crafts, kind, 1, seed=5)
        assert flown.happened
        verdicts.append(judge(flown))
    assert verdicts[0] == verdicts[1]
    setting = Setting(names=("a",), limits=limits_of_one(), torque_driven=False, angles=(0.0,))
    rng = np.random.default_rng(0)
    assert len({DRAWN[kind](rng, 1.0, setting).variant for _ in range(40)}) > 1
