"""What reaches the joints of robots that lie, dawdle and lose packets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from inspect import signature

import numpy as np

from benchmarks.benchmark import Result
from sim2real.arrays import Reals
from sim2real.contract import Contract, Limits
from sim2real.errors import Sim2RealError
from sim2real.robot import RobotAbilities, Supervisor, fly
from sim2real.testing import HostileRobot, hostile_contract, hostile_limits

_SECONDS = 1.0
_NOTHING = np.zeros(0)

HostileSupervisor = Callable[[Contract, Limits, RobotAbilities], Supervisor]


@dataclass(frozen=True, kw_only=True)
class Hostilities:
    """What many hostile sequences came to."""

    sequences: int = 0
    commands: int = 0
    """Commands that reached joints."""
    largest: float = 0.0
    """Largest step over the largest allowed."""
    beyond: dict[str, int] = field(default_factory=dict)
    """Sequences with a step beyond what is allowed, by what the robot did."""


class NonsensePilot:
    """A controller that wishes anything."""

    def __init__(self, contract: Contract, *, seed: int) -> None:
        self.contract = contract
        self._rng = np.random.default_rng([seed, 32])
        self._low = np.array([command.low for command in contract.commands])
        self._high = np.array([command.high for command in contract.commands])
        self._command: Reals = np.zeros((1, len(self._low)))
        self._style = int(self._rng.integers(4))

    @property
    def command(self) -> Reals:
        """The resting command: where the joints are."""
        return self._command

    def start(self, readings: Reals, goals: Reals) -> None:
        """Rest where the robot is."""
        at = np.asarray(readings, dtype=float)[: len(self._low)]
        self._command = np.clip(at, self._low, self._high)[None]

    def step(self, readings: Reals) -> tuple[Reals, Reals, Reals]:
        """Anywhere between the limits, beyond them, or at one of them; never mind the readings."""
        rng, count = self._rng, len(self._low)
        wished = rng.uniform(self._low, self._high)
        if self._style == 1:
            wished = np.where(rng.random(count) < 0.5, self._low, self._high)
        if self._style == 2:
            wished = self._high * 1e3
        if self._style == 3 and rng.random() < 0.02:
            wished = np.full(count, np.nan)
        return _NOTHING, _NOTHING, wished

    def sent(self, command: Reals) -> None:
        """It does not care."""


def supervisor_of(
    contract: Contract, limits: Limits, abilities: RobotAbilities, **others: object
) -> Supervisor:
    """The supervisor, which knows what the robot can do, if it asks."""
    asks = "abilities" in signature(Supervisor).parameters
    options: dict[str, object] = {"abilities": abilities} if asks else {}
    return Supervisor(contract, limits, **{**options, **others})  # type: ignore[arg-type]


def hostilities(first: int, count: int, *, made: HostileSupervisor = supervisor_of) -> Hostilities:
    """Fly hostile robots with the seeds from `first` on, and look at what reached their joints."""
    contract = hostile_contract()
    limits = hostile_limits(contract)
    commands, largest, beyond = 0, 0.0, Counter[str]()
    for seed in range(first, first + count):
        robot = HostileRobot(contract, seed=seed)
        with suppress(Sim2RealError):  # no readings to begin with, for one
            fly(
                robot, NonsensePilot(contract, seed=seed),
                made(contract, limits, robot.abilities), robot, goals={}, seconds=_SECONDS,
                person="bench", execute=True,
            )  # fmt: skip
        ratio = robot.largest_step_ratio(limits, contract.rate_hz)
        commands += sum(command.arrived for command in robot.commands)
        largest = max(largest, ratio)
        if ratio > 1.0 + 1e-6:
            beyond.update([" and ".join(sorted(robot.does))])
    return Hostilities(
        sequences=count, commands=commands, largest=largest, beyond=dict(beyond.most_common(8))
    )


def hostile_results(parts: Sequence[Hostilities]) -> Iterator[Result]:
    """The largest step that reached a joint."""
    beyond = Counter[str]()
    for part in parts:
        beyond.update(part.beyond)
    worst = ", ".join(f"{does} ({n})" for does, n in beyond.most_common(3))
    yield Result(
        name="deploy.hostile_max_step_ratio",
        value=max(part.largest for part in parts),
        unit="ratio",
        target="<= 1.0",
        note=f"largest step that reached a joint over the largest allowed, of"
        f" {sum(part.commands for part in parts)} commands in"
        f" {sum(part.sequences for part in parts)} hostile sequences"
        + (f"; beyond it in {beyond.total()}: {worst}" if worst else ""),
    )
