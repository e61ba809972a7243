"""Motions that excite a robot for identification, within its limits by construction.

A plan is a table of commands, a row per control period. It begins with the command that rests at
the present pose and ends at rest. Every joint's motion is a shape without a size; it is made as
large as the wanted amplitude, the command's range, rate and acceleration allow, and no larger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sim2real.arrays import Bools, Floats, Reals
from sim2real.contract import Contract, Limits
from sim2real.errors import Sim2RealError, nearest
from sim2real.robot.excite.motions import SHAPES, Limit, fitted, largest, smooth, travel_s

STOP_MARGIN = 0.05
"""Share of a joint's range that excitation keeps free at each end."""
RATE_SHARE = 0.8
"""Share of the command's rate limit that a plan uses; the supervisor enforces the whole."""
ACCELERATION_SHARE = 0.35
"""Share of the joint's acceleration limit that the command of a position servo uses."""
_APPROACH_SHARE = 0.4
"""Share of a plan's own limits that its approach and return use."""
_REST_S = 0.5
"""Rest before and after a motion [s]."""
_MAX_APPROACH_S = 60.0
"""Longest approach; a joint that needs more hardly moves [s]."""
_MIN_AMPLITUDE = 1e-6
"""Smaller amplitudes count as zero."""
_MAX_SHIFT = 0.1
"""How far a joint may move between planning and starting [rad or m]."""


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """What a planned command may do: arrays (commands,) in the command's unit."""

    low: Floats
    high: Floats
    rate: Floats
    """Largest change per second."""
    acceleration: Floats
    """Largest change of the rate per second; infinite if the command is not a position."""
    servo: Bools
    """Whether the command is a position that the joint follows."""

    @classmethod
    def of(cls, contract: Contract, limits: Limits, *, speed: float | None = None) -> Envelope:
        """The envelope inside a robot's limits; `speed` [rad/s or m/s] slows servos further."""
        servo = np.array([command.unit in ("rad", "m") for command in contract.commands])
        rate = RATE_SHARE * limits.of("command_rate")
        rate = np.where(servo, np.minimum(rate, RATE_SHARE * limits.of("velocity")), rate)
        if speed is not None:
            if not (math.isfinite(speed) and speed > 0):
                raise Sim2RealError(f"the speed must be positive and finite, not {speed:g}")
            rate = np.where(servo, np.minimum(rate, speed), rate)
        low, high = limits.of("command_low"), limits.of("command_high")
        fastest = ACCELERATION_SHARE * limits.of("acceleration")
        return cls(
            low=np.where(servo, np.maximum(low, limits.of("position_low")), low),
            high=np.where(servo, np.minimum(high, limits.of("position_high")), high),
            rate=rate,
            acceleration=np.where(servo, fastest, math.inf),
            servo=servo,
        )


@dataclass(frozen=True, kw_only=True)
class ExcitationPlan:
    """Commands that excite a robot, a row per control period."""

    MOTIONS: ClassVar = tuple(SHAPES)
    """Every motion, from the gentlest on."""

    motion: str
    rate_hz: float
    commands: Floats
    """(periods, commands) from rest to rest."""
    excited: slice
    """Rows of the excitation itself, between the approach to its centre and the return."""
    amplitude: Floats
    """(commands,) amplitude as a share of half the range; 0 for a joint that rests."""
    envelope: Envelope

    @property
    def seconds(self) -> float:
        """How long it takes [s]."""
        return len(self.commands) / self.rate_hz

    @property
    def speed(self) -> Floats:
        """(commands,) largest change of each command per second."""
        return largest(np.diff(self.commands, axis=0) * self.rate_hz)

    @property
    def acceleration(self) -> Floats:
        """(commands,) largest change of its rate per second."""
        return largest(np.diff(self.commands, 2, axis=0) * self.rate_hz**2)

    def check(self) -> None:
        """Refuse a plan that leaves its envelope anywhere; the last check before anything moves."""
        bounds, slack = self.envelope, 1e-6
        outside = (self.commands < bounds.low - slack) | (self.commands > bounds.high + slack)
        if not np.isfinite(self.commands).all() or outside.any():
            raise Sim2RealError(f"the planned {self.motion} leaves the range of a command")
        if (self.speed > bounds.rate * (1 + slack) + slack).any():
            raise Sim2RealError(f"the planned {self.motion} exceeds the rate limit of a command")
        if (self.acceleration > bounds.acceleration * (1 + slack) + slack).any():
            raise Sim2RealError(
                f"the planned {self.motion} exceeds the acceleration limit of a command"
            )


def plan_motion(
    motion: str,
    envelope: Envelope,
    *,
    rate_hz: float,
    start: Floats,
    seconds: float,
    amplitude: Floats | float,
    seed: int,
    home: Floats | None = None,
    around: Floats | None = None,
) -> ExcitationPlan:
    """A motion of `seconds` that begins at `start` (commands,), which rests at the present pose.

    `amplitude` (commands,) is a share of half the range, from 0 (rests) to 1. The motion ends at
    `home`, by default where it starts. Its centre is `home`, or `around`, both (commands,); if
    that leaves no room for the amplitude, the nearest place that does.
    """
    shape = SHAPES.get(motion)
    if shape is None:
        raise Sim2RealError(f"unknown motion {motion!r}{nearest(motion, SHAPES)}")
    if not 1.0 <= seconds <= 3600.0:
        raise Sim2RealError(f"a motion must take from 1 to 3600 s, not {seconds:g}")
    parts = _parts(envelope, 0.0 if motion == "hold" else amplitude, seconds)
    rest = np.clip(np.asarray(start, float), envelope.low, envelope.high)
    end = rest if home is None else np.clip(home, envelope.low, envelope.high)
    near = end if around is None else np.where(envelope.servo & (parts > 0), around, end)
    centre, size = _room(envelope, np.clip(near, envelope.low, envelope.high), parts)
    count = max(2, round(seconds * rate_hz))
    moving = np.flatnonzero(size > _MIN_AMPLITUDE * (envelope.high - envelope.low))
    deviation = np.zeros((count, len(size)))
    if len(moving):
        rng = np.random.default_rng([seed, sorted(SHAPES).index(motion)])
        slower = Limit(size[moving], envelope.rate[moving], envelope.acceleration[moving])
        deviation[:, moving] = fitted(shape(rng, count, rate_hz, slower), rate_hz, slower)
    way, back = (_way(one, centre, rate_hz, envelope) for one in (rest, end))
    still = _still(rate_hz)
    # Approach and return end on the same rows as the excitation, so their accelerations stay apart.
    commands = np.concatenate(
        [
            np.tile(rest, (still, 1)),
            way,
            centre + deviation,
            centre[None],
            back[::-1],
            np.tile(end, (still, 1)),
        ]
    )
    begin = still + len(way)
    plan = ExcitationPlan(
        motion=motion,
        rate_hz=rate_hz,
        commands=np.clip(commands, envelope.low, envelope.high),
        excited=slice(begin, begin + count),
        amplitude=parts,
        envelope=envelope,
    )
    plan.check()
    return plan


def _parts(envelope: Envelope, amplitude: Floats | float, seconds: float) -> Floats:
    """(commands,) amplitudes as shares of half the range; 0 for joints that can hardly move."""
    parts = np.broadcast_to(np.asarray(amplitude, float), envelope.low.shape).copy()
    if not ((parts >= 0) & (parts <= 1)).all():
        raise Sim2RealError("amplitudes must be from 0 to 1, as shares of half the range")
    parts[parts < _MIN_AMPLITUDE] = 0.0
    # A speed limit near zero means that the joint must not move.
    parts[envelope.rate * seconds < STOP_MARGIN * (envelope.high - envelope.low)] = 0.0
    return parts


class Excitation:
    """Plays a plan on a robot, as a controller without observation or action."""

    def __init__(self, contract: Contract, plan: ExcitationPlan) -> None:
        self.contract = contract
        self._plan = plan
        self._rows = plan.commands
        self._row = 0
        self.command: Floats = plan.commands[:1].copy()

    def start(self, readings: Reals, goals: Reals) -> None:
        """Begin at readings (numbers,); a robot that is elsewhere is a `Sim2RealError`.

        The rest at the beginning absorbs how far an arm has sunk since planning.
        """
        plan = self._plan
        here = np.clip(resting(self.contract, readings), plan.envelope.low, plan.envelope.high)
        away = np.where(plan.envelope.servo, here - plan.commands[0], 0.0)
        if (np.abs(away) > _MAX_SHIFT).any():
            worst = int(np.argmax(np.abs(away)))
            raise Sim2RealError(
                f"{self.contract.commands[worst].name} is {abs(away[worst]):.2f} away from the"
                " start of the planned motion: plan it again"
            )
        still = _still(plan.rate_hz)
        self._rows = plan.commands.copy()
        self._rows[:still] += (1.0 - smooth(still))[:, None] * away
        self._row = 0
        self.command = self._rows[:1].copy()

    def step(self, readings: Reals) -> tuple[Floats, Floats, Floats]:
        """(no observation, no action, command) of this period."""
        row = min(self._row, len(self._rows) - 1)
        self._row += 1
        return np.zeros(0), np.zeros(0), self._rows[row].copy()

    def sent(self, command: Reals) -> None:
        """Take note of what was really sent, after limits."""
        self.command = np.asarray(command, float)[None]


def resting(contract: Contract, readings: Reals) -> Floats:
    """(commands,) that rest at readings (numbers,): a servo's own position, else no effort.

    A position servo without a position sensor is a `Sim2RealError`: its position is unknown.
    """
    columns = contract.columns("jointpos")
    found = np.zeros(len(contract.commands))
    for k, command in enumerate(contract.commands):
        if command.unit in ("rad", "m"):
            if command.joint not in columns:
                raise Sim2RealError(
                    f"no sensor measures joint {command.joint!r}, which {command.name!r} moves"
                )
            found[k] = readings[columns[command.joint]]
    return found


def _room(envelope: Envelope, near: Floats, parts: Floats) -> tuple[Floats, Floats]:
    """Centre and largest deviation of each joint, clear of its stops."""
    servo = envelope.servo
    half = 0.5 * (envelope.high - envelope.low) * (1 - 2 * STOP_MARGIN)
    effort = np.minimum(envelope.high, -envelope.low)
    size = parts * np.where(servo, half, np.maximum(effort, 0.0))
    margin = STOP_MARGIN * (envelope.high - envelope.low) + size
    middle = np.clip(near, envelope.low + margin, np.maximum(envelope.high - margin, envelope.low))
    return np.where(servo & (parts > 0), middle, near), size


def _still(rate_hz: float) -> int:
    """Rows of rest before and after a motion."""
    return max(2, round(_REST_S * rate_hz))


def _way(rest: Floats, centre: Floats, rate_hz: float, envelope: Envelope) -> Floats:
    """Rows from rest to the centre, smoothly; none where they are the same."""
    if np.array_equal(rest, centre):
        return np.zeros((0, len(rest)))
    seconds = travel_s(
        centre - rest, _APPROACH_SHARE * envelope.rate, _APPROACH_SHARE * envelope.acceleration
    )
    if seconds > _MAX_APPROACH_S:
        raise Sim2RealError(
            f"the robot would take {seconds:.0f} s, more than {_MAX_APPROACH_S:g}, to reach a pose"
            " with room to move: start farther from the joint limits"
        )
    rows = math.ceil(seconds * rate_hz)
    found: Floats = rest + (centre - rest) * np.append(smooth(rows), 1.0)[:, None]
    return found
