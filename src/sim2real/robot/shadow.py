"""A policy that runs beside the controller in charge and never acts.

It sees what the robot measures and what was really sent, and computes what it would have sent.
Shadow mode measures how often the two agree, and how often the policy was outside its training.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sim2real.arrays import Bools, Floats, Reals
from sim2real.contract import Contract, Limits
from sim2real.errors import Sim2RealError
from sim2real.plain import PlainData
from sim2real.robot.abilities import RobotAbilities
from sim2real.robot.passed_on import PassedOnRobot
from sim2real.robot.protocol import Robot
from sim2real.robot.readings import in_order
from sim2real.robot.runner import Controller

_TOLERANCE = 1e-6
"""Difference of commands from rounding alone, in their unit."""
_CLOSE_SHARE = 0.05
"""Commands agree when they differ by less than this share of their range."""
_MAX_OUTSIDE_SHARE = 0.02
"""Share of periods in which the observation may lie outside training."""


@dataclass(frozen=True, kw_only=True)
class Agreement(PlainData):
    """How a policy compares with what was really sent; tuples have a number per command."""

    periods: int
    rms: tuple[float, ...]
    """Root mean square of the difference, in the command's unit."""
    largest: tuple[float, ...]
    bias: tuple[float, ...]
    """Mean of the policy's command minus the one sent."""
    correlation: tuple[float, ...]
    """Correlation of their changes from period to period; nan if one does not change."""
    close: float
    """Share of periods in which all commands agree within a twentieth of their range."""
    outside: float
    """Share of periods in which the observation lies outside training."""
    limited: float
    """Share of periods in which the policy's command would have been limited."""
    absurd: int
    """Periods in which its command was not a number."""

    def wrong(self) -> str:
        """Why it may not go on to act; '' if it may."""
        if self.absurd:
            return f"the policy's command was not a number in {self.absurd} periods"
        if self.outside > _MAX_OUTSIDE_SHARE:
            return f"{100 * self.outside:.0f} % of the observations lie outside training"
        return ""


class ShadowComparison:
    """Collects what a policy would have sent, and what was sent."""

    def __init__(self, contract: Contract, limits: Limits) -> None:
        self._limits = limits
        self._rate_hz = contract.rate_hz
        self._rows: list[tuple[Reals, Floats, Floats]] = []

    def add(self, frame: Reals, wanted: Reals, sent: Reals) -> None:
        """Add a period: what the policy saw and would send, and what was sent."""
        self._rows.append((np.array(frame), np.array(wanted, float), np.array(sent, float)))

    @property
    def periods(self) -> int:
        """Periods that were compared."""
        return len(self._rows)

    def agreement(self) -> Agreement:
        """The statistics; without a period it is a `Sim2RealError`."""
        if not self._rows:
            raise Sim2RealError("there is no period to compare")
        frames = np.stack([frame for frame, _, _ in self._rows])
        wanted = np.stack([wanted for _, wanted, _ in self._rows])
        sent = np.stack([sent for _, _, sent in self._rows])
        low, high = self._limits.of("command_low"), self._limits.of("command_high")
        rate = self._limits.of("command_rate") / self._rate_hz
        good: Bools = np.logical_and.reduce(np.isfinite(wanted) & np.isfinite(sent), axis=1)
        off = np.where(good[:, None], wanted - sent, 0.0)
        before = np.vstack([sent[:1], sent[:-1]])
        tight = (wanted < low - _TOLERANCE) | (wanted > high + _TOLERANCE)
        tight |= np.abs(wanted - before) > rate + _TOLERANCE
        outside = (frames < np.array(self._limits.observation_low)) | (
            frames > np.array(self._limits.observation_high)
        )
        near = np.abs(off[good]) < _CLOSE_SHARE * (high - low)
        return Agreement(
            periods=len(wanted),
            rms=tuple(np.sqrt(np.mean(off**2, axis=0)).tolist()),
            largest=tuple(np.abs(off).max(axis=0).tolist()),
            bias=tuple(off.mean(axis=0).tolist()),
            correlation=tuple(
                _correlation(wanted[good, k], sent[good, k]) for k in range(wanted.shape[1])
            ),
            close=float(near.all(axis=1).mean()) if good.any() else 0.0,
            outside=float(outside.any(axis=1).mean()),
            limited=float(tight.any(axis=1).mean()),
            absurd=int((~np.isfinite(wanted).all(axis=1)).sum()),
        )


class Shadowed:
    """The controller in charge, with a guest beside it that sees everything and sends nothing."""

    def __init__(
        self,
        charge: Controller,
        guest: Controller,
        comparison: ShadowComparison,
        *,
        overheard: bool = False,
    ) -> None:
        """`overheard` says that another program drives the robot, and `charge` repeats it."""
        self._overheard = overheard
        self._charge, self._guest, self._comparison = charge, guest, comparison
        self._seen: tuple[Reals, Reals] | None = None
        self.contract = guest.contract
        self.command = charge.command

    def start(self, readings: Reals, goals: Reals) -> None:
        """Begin both."""
        self._charge.start(readings, goals)
        self._guest.start(readings, goals)
        self.command = self._charge.command

    def step(self, readings: Reals) -> tuple[Reals, Reals, Reals]:
        """What the guest saw and did, and the command of the one in charge."""
        frame, action, wanted = self._guest.step(readings)
        _, _, command = self._charge.step(readings)
        self._seen = (frame, wanted)
        return frame, action, command

    def sent(self, command: Reals) -> None:
        """Pass on to both what was really sent; if others drive the robot, what they sent."""
        if self._overheard:
            command = self._charge.command[0]
        if self._seen is not None:
            self._comparison.add(*self._seen, command)
        self._charge.sent(command)
        self._guest.sent(command)


class Holding:
    """Keeps the robot where it is."""

    def __init__(self, pilot: Controller) -> None:
        """`pilot` knows the command that rests."""
        self._pilot = pilot
        self.contract = pilot.contract
        self.command = pilot.command

    def start(self, readings: Reals, goals: Reals) -> None:
        """Rest where the robot is."""
        self._pilot.start(readings, goals)
        self.command = self._pilot.command.copy()

    def step(self, readings: Reals) -> tuple[Reals, Reals, Reals]:
        """The same command again."""
        return np.zeros(self.contract.frame_width), np.zeros(0), self.command[0]

    def sent(self, command: Reals) -> None:
        """Nothing to remember."""


class Overheard(PassedOnRobot):
    """A robot that another program drives: its readings, and the commands it gets.

    As a `Robot` it takes no command; as a controller it repeats theirs.
    """

    def __init__(self, robot: Robot, contract: Contract) -> None:
        super().__init__(robot)
        self.contract = contract
        self.command: Floats = np.zeros((1, len(contract.commands)))

    @property
    def abilities(self) -> RobotAbilities:
        """What it can do: it reads, and starts no drives."""
        return replace(super().abilities, enables=False, reports_why_stopped=False)

    def get_observation(self) -> Mapping[str, object]:
        """The newest readings; it notes the command of the controller in charge."""
        seen = self._robot.get_observation()
        if seen:
            command = in_order(self._robot, self.contract, seen, "@command")
            if command is None:
                raise Sim2RealError(
                    "this robot does not report the commands of the program that drives it"
                )
            self.command = command.reshape(1, -1)
        return seen

    def send_action(self, action: Mapping[str, float]) -> Mapping[str, float]:
        """Refused: another program is in charge."""
        raise Sim2RealError("another program is in charge of this robot")

    def stop(self) -> None:
        """Left to the controller in charge."""

    def start(self, readings: Reals, goals: Reals) -> None:
        """Nothing to begin."""

    def step(self, readings: Reals) -> tuple[Reals, Reals, Reals]:
        """Their command."""
        return np.zeros(0), np.zeros(0), self.command[0]

    def sent(self, command: Reals) -> None:
        """Nothing to remember."""


def _correlation(one: Floats, other: Floats) -> float:
    one, other = np.diff(one), np.diff(other)
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])
