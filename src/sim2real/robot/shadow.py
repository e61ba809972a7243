"""A policy that runs beside the controller in charge, and never acts.

It is shown what the robot measures and told what was really sent, and says what it would have
sent. How often the two agree, and how often it was out of its depth, is what shadow mode measures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sim2real.contract import Contract, Limits
from sim2real.errors import Sim2RealError
from sim2real.robot.protocol import Robot
from sim2real.robot.runner import Controller

_TINY = 1e-6
_CLOSE = 0.05
"""Commands agree when they differ by less than this share of their range."""
_MOST_OUTSIDE = 0.02
"""Share of periods in which an observation may lie outside of training."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How a policy compares with what was really sent, a number a command where there are many."""

    periods: int
    rms: tuple[float, ...]
    """Root mean square of the difference, in the command's unit."""
    largest: tuple[float, ...]
    bias: tuple[float, ...]
    """Mean of the policy's command less the one sent."""
    correlation: tuple[float, ...]
    """Of the changes from period to period of the two; nan where one does not change."""
    close: float
    """Share of periods in which all commands agree to a twentieth of their range."""
    outside: float
    """Share of periods in which the observation lies outside of training."""
    limited: float
    """Share of periods in which the policy's command would have been limited."""
    absurd: int
    """Periods in which it gave no number."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data; what is no number is null."""
        return {
            name: [None if not np.isfinite(v) else v for v in value]
            if isinstance(value, tuple)
            else value
            for name, value in asdict(self).items()
        }

    def wrong(self) -> str:
        """Why it should not go on to act; '' if it may."""
        if self.absurd:
            return f"the policy gave no number in {self.absurd} periods"
        if self.outside > _MOST_OUTSIDE:
            return f"{100 * self.outside:.0f} % of the observations lie outside of training"
        return ""


class ShadowComparison:
    """Collects what a policy would have sent beside what was."""

    def __init__(self, contract: Contract, limits: Limits) -> None:
        self._limits = limits
        self._rate_hz = contract.rate_hz
        self._rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, frame: np.ndarray, wanted: np.ndarray, sent: np.ndarray) -> None:
        """One period: what the policy saw and would send, and what was sent."""
        self._rows.append((np.array(frame), np.array(wanted, float), np.array(sent, float)))

    @property
    def periods(self) -> int:
        """Periods that were compared."""
        return len(self._rows)

    def agreement(self) -> Agreement:
        """The statistics; none without a period."""
        if not self._rows:
            raise Sim2RealError("there is no period to compare")
        frames, wanted, sent = (np.stack(part) for part in zip(*self._rows, strict=True))
        joints = self._limits.joints
        low, high = (
            np.array([getattr(joint, f"command_{side}") for joint in joints])
            for side in ("low", "high")
        )
        rate = np.array([joint.command_rate for joint in joints]) / self._rate_hz
        good = np.isfinite(wanted).all(axis=1) & np.isfinite(sent).all(axis=1)
        off = np.where(good[:, None], wanted - sent, 0.0)
        before = np.vstack([sent[:1], sent[:-1]])
        tight = (wanted < low - _TINY) | (wanted > high + _TINY)
        tight |= np.abs(wanted - before) > rate + _TINY
        outside = (frames < np.array(self._limits.observation_low)) | (
            frames > np.array(self._limits.observation_high)
        )
        return Agreement(
            periods=len(wanted),
            rms=_tuple(np.sqrt(np.mean(off**2, axis=0))),
            largest=_tuple(np.abs(off).max(axis=0)),
            bias=_tuple(off.mean(axis=0)),
            correlation=tuple(
                _correlation(wanted[good, k], sent[good, k]) for k in range(wanted.shape[1])
            ),
            close=float((np.abs(off) < _CLOSE * (high - low)).all(axis=1)[good].mean())
            if good.any()
            else 0.0,
            outside=float(outside.any(axis=1).mean()),
            limited=float(tight.any(axis=1).mean()),
            absurd=int((~np.isfinite(wanted).all(axis=1)).sum()),
        )


class Shadowed:
    """The controller in charge, with a guest beside it that sees all and sends nothing."""

    def __init__(self, charge: Controller, guest: Controller, comparison: ShadowComparison) -> None:
        self._charge, self._guest, self._comparison = charge, guest, comparison
        self._seen: tuple[np.ndarray, np.ndarray] | None = None
        self.contract = guest.contract
        self.command = charge.command

    def start(self, readings: np.ndarray, goals: np.ndarray) -> None:
        """Begin both."""
        self._charge.start(readings, goals)
        self._guest.start(readings, goals)
        self.command = self._charge.command

    def step(self, readings: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the guest saw and did, and the command of the one in charge."""
        frame, action, wanted = self._guest.step(readings)
        _, _, command = self._charge.step(readings)
        self._seen = (frame, wanted)
        return frame, action, command

    def sent(self, command: np.ndarray) -> None:
        """Tell both what was really sent; of a robot in other hands, what they sent."""
        if isinstance(self._charge, Overheard):
            command = self._charge.command[0]
        if self._seen is not None:
            self._comparison.add(*self._seen, command)
        self._charge.sent(command)
        self._guest.sent(command)


class Holding:
    """Keeps the robot where it is; a guest sees readings that stay what they are."""

    def __init__(self, pilot: Controller) -> None:
        """`pilot` knows the command that rests."""
        self._pilot = pilot
        self.contract = pilot.contract
        self.command = pilot.command

    def start(self, readings: np.ndarray, goals: np.ndarray) -> None:
        """Rest where the robot is."""
        self._pilot.start(readings, goals)
        self.command = self._pilot.command.copy()

    def step(self, readings: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same command again."""
        return np.zeros(self.contract.frame_width), np.zeros(0), self.command[0]

    def sent(self, command: np.ndarray) -> None:
        """Nothing to remember."""


class Overheard:
    """A robot in somebody else's hands: its readings, and the command it is given by them.

    As a `Robot` it takes no command; as a controller it gives theirs.
    """

    def __init__(self, robot: Robot, contract: Contract) -> None:
        self._robot = robot
        self.contract = contract
        self.name, self.serial, self.safe_stop = robot.name, robot.serial, robot.safe_stop
        self.command = np.zeros((1, len(contract.commands)))

    @property
    def is_connected(self) -> bool:
        """Whether the robot answers."""
        return self._robot.is_connected

    def connect(self) -> None:
        """Make it ready to be listened to."""
        self._robot.connect()

    def get_observation(self) -> Mapping[str, Any]:
        """The newest readings, with the command of whoever is in charge."""
        seen = self._robot.get_observation()
        if seen:
            if "@command" not in seen:
                raise Sim2RealError("this robot does not tell what it is commanded by others")
            there = list(getattr(self._robot, "actuators", ()))
            wanted = [command.name for command in self.contract.commands]
            values = np.array(seen["@command"], dtype=float)
            if set(there) == set(wanted):
                values = values[[there.index(name) for name in wanted]]
            self.command = values.reshape(1, -1)
        return seen

    def send_action(self, action: Mapping[str, float]) -> Mapping[str, float]:
        """Refused: somebody else is in charge."""
        raise Sim2RealError("somebody else is in charge of this robot")

    def stop(self) -> None:
        """Left to whoever is in charge."""

    def disconnect(self) -> None:
        """Listen no more."""
        self._robot.disconnect()

    def start(self, readings: np.ndarray, goals: np.ndarray) -> None:
        """Nothing to begin."""

    def step(self, readings: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Their command."""
        return np.zeros(0), np.zeros(0), self.command[0]

    def sent(self, command: np.ndarray) -> None:
        """Nothing to remember."""


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    one, other = np.diff(one), np.diff(other)
    if len(one) < 2 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


def _tuple(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
