"""Flights of the example bundles on units in this process, with a trouble or without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature

import numpy as np

from benchmarks.deploy.body_troubles import (
    BlockedJoint,
    BrokenEncoder,
    OtherProgram,
    PolicyError,
    SaggingSupply,
    WildPolicy,
)
from benchmarks.deploy.craft import TASKS, Craft
from benchmarks.deploy.trouble import Setting, Trouble
from benchmarks.deploy.true_trace import TrueTrace
from benchmarks.deploy.unit_robot import Killed, UnitRobot
from benchmarks.deploy.wire_troubles import (
    BadReadings,
    CutLink,
    LateCalls,
    LyingEcho,
    StoppedProcess,
)
from sim2real.arrays import Reals
from sim2real.contract import Limits
from sim2real.policy import Pilot
from sim2real.reality.breakage import PLAIN_FIRMWARE, Firmware
from sim2real.robot import Recording, Supervisor, fly

DRAWN: dict[str, Callable[[np.random.Generator, float, Setting], Trouble]] = {
    "link": CutLink.drawn,
    "process": StoppedProcess.drawn,
    "late calls": LateCalls.drawn,
    "echo": LyingEcho.drawn,
    "readings": BadReadings.drawn,
    "encoder": BrokenEncoder.drawn,
    "blocked joint": BlockedJoint.drawn,
    "supply": SaggingSupply.drawn,
    "policy": WildPolicy.drawn,
    "two programs": OtherProgram.drawn,
}
"""Kinds of faults, and how one of a kind is drawn."""
_FIRST_UNIT = 1000
_UNITS = 400
_REST_S = 0.5
_LONGEST_REST_S = 40.0
"""A pendulum that brakes swings for a while [s]."""
_JUDGED_S = 2.0
"""How long after the end of a run limits may still be passed because of it [s]."""
_RESTS = 0.05
"""Speed of joints at rest [rad/s]."""


@dataclass(frozen=True, kw_only=True)
class Flown:
    """A flight as it truly went, for the judge."""

    task: str
    kind: str
    """Kind of the fault; '' for none."""
    robot: UnitRobot
    trouble: Trouble
    trace: TrueTrace
    limits: Limits
    rate_hz: float
    stopped: str
    """Why the runner says that it stopped; '' if it ran to its end or was killed."""
    raised: str
    """What the runner raised, if it did."""
    left_s: float
    """When the runner was done with the robot, on the unit's clock [s]."""
    lost: int = 0
    logged: int = 0
    """Periods that were flown."""

    @property
    def happened(self) -> bool:
        """Whether the fault came before the runner was done."""
        return bool(self.kind) and self.left_s > self.trouble.begin_s


SupervisorMade = Callable[[Craft, UnitRobot], Supervisor]


def supervisor_of(craft: Craft, robot: UnitRobot, **options: object) -> Supervisor:
    """The supervisor as `deploy` makes it; it knows what the robot can do, if it asks."""
    if "abilities" in signature(Supervisor).parameters:
        options["abilities"] = robot.abilities
    return Supervisor(craft.bundle.contract, craft.bundle.limits, **options)  # type: ignore[arg-type]


class _TroubledPilot:
    """A policy whose wishes, and whose time to think, a trouble may change."""

    def __init__(self, pilot: Pilot, robot: UnitRobot) -> None:
        self._pilot, self._robot = pilot, robot
        self.contract = pilot.contract

    @property
    def command(self) -> Reals:
        """The policy's own."""
        return self._pilot.command

    def start(self, readings: Reals, goals: Reals) -> None:
        """Begin."""
        self._pilot.start(readings, goals)

    def step(self, readings: Reals) -> tuple[Reals, Reals, Reals]:
        """What the policy wants, after the trouble."""
        frame, action, wanted = self._pilot.step(readings)
        robot = self._robot
        robot.trouble.think(robot)
        return frame, action, robot.trouble.wish(wanted, robot.now())

    def sent(self, command: Reals) -> None:
        """Pass on what was sent."""
        self._pilot.sent(command)


def fly_troubled(
    crafts: dict[str, Craft],
    kind: str,
    number: int,
    *,
    seed: int,
    made: SupervisorMade = supervisor_of,
) -> Flown:
    """The flight of that number with a fault of that kind, which happens before it ends."""
    for attempt in range(30):
        flown = _tried(crafts, kind, [seed, list(DRAWN).index(kind), number, attempt], made)
        if flown.happened:
            return flown
    raise RuntimeError(f"no flight lasts until a fault: {flown.stopped}")


def _tried(crafts: dict[str, Craft], kind: str, seed: list[int], made: SupervisorMade) -> Flown:
    rng = np.random.default_rng(seed)
    task = TASKS[seed[2] % len(TASKS)]
    # Half of the units have cheap drives, whose firmware has a watchdog and nothing else.
    firmware = Firmware() if rng.random() < 0.5 else PLAIN_FIRMWARE
    robot = UnitRobot(
        task,
        _FIRST_UNIT + int(rng.integers(_UNITS)),
        seed=int(rng.integers(2**31)),
        old=bool(rng.random() < 0.25),
        firmware=firmware,
    )
    contract, limits = crafts[task].bundle.contract, crafts[task].bundle.limits
    setting = Setting(
        names=tuple(robot.device.names),
        limits=limits,
        torque_driven=robot.device.torque_driven,
        angles=tuple(robot.device.true_angles.tolist()),
    )
    begin_s = robot.now() + float(rng.uniform(0.05, 0.8)) * contract.episode_s
    return flight(crafts[task], robot, DRAWN[kind](rng, begin_s, setting), kind=kind, made=made)


def flight(
    craft: Craft,
    robot: UnitRobot,
    trouble: Trouble,
    *,
    kind: str = "",
    made: SupervisorMade = supervisor_of,
    recording: Recording | None = None,
) -> Flown:
    """Fly a trial, and leave the robot alone until it rests."""
    contract, limits = craft.bundle.contract, craft.bundle.limits
    robot.begin(trouble)
    stopped, raised, lost, periods = "", "", 0, 0
    try:
        found = fly(
            robot, _TroubledPilot(Pilot(craft.runtime), robot), made(craft, robot), robot,
            goals=robot.goals, seconds=contract.episode_s, person="bench", execute=True,
            tool=craft.kinematics.tool, recording=recording,
        )  # fmt: skip
        stopped, lost, periods = found.stopped, found.lost, len(found.late_s)
    except (Killed, PolicyError) as error:
        raised = type(error).__name__
    left_s = robot.now()
    robot.trace.keep_to_s = left_s + _JUDGED_S
    _let_rest(robot)
    return Flown(
        task=craft.bundle.contract.task, kind=kind, robot=robot, trouble=trouble,
        trace=robot.trace, limits=limits, rate_hz=contract.rate_hz, stopped=stopped,
        raised=raised, left_s=left_s, lost=lost, logged=periods,
    )  # fmt: skip


def _let_rest(robot: UnitRobot) -> None:
    """Let time pass until the robot has rested for a while, or should have."""
    end_s, still_s = robot.now() + _LONGEST_REST_S, 0.0
    while robot.now() < end_s and still_s < _REST_S:
        robot.let_pass(robot.now() + 0.05)
        still_s = still_s + 0.05 if robot.device.speed() < _RESTS else 0.0
