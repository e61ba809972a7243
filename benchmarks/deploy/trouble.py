"""A trouble between a runner and its robot: what it changes of each call, and when it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sim2real.arrays import Floats, Reals
from sim2real.contract import Limits

if TYPE_CHECKING:
    from benchmarks.deploy.true_trace import Motion
    from benchmarks.deploy.unit_robot import UnitRobot
    from sim2real.reality.breakage import Breakage


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a trouble is drawn for."""

    names: tuple[str, ...]
    """Joints."""
    limits: Limits
    torque_driven: bool
    angles: tuple[float, ...]
    """Where the joints are at the beginning [rad]."""


@dataclass(kw_only=True)
class Trouble:
    """Nothing wrong, from which kinds of trouble differ. Times are on the unit's clock [s]."""

    begin_s: float
    end_s: float = np.inf
    variant: str = ""
    """What it is, in words."""
    body: Breakage | None = None
    """What breaks in the robot's body."""
    impaired: list[tuple[float, float]] = field(default_factory=list)
    """When runner and robot could not see or obey each other (begin, end): limits are then judged
    from its begin; otherwise from where the motion passes them."""

    def lasts(self, now_s: float) -> bool:
        """Whether it is there."""
        return self.begin_s <= now_s < self.end_s

    def observe(self, robot: UnitRobot) -> Mapping[str, object]:
        """What the runner is given as readings."""
        return robot.read()

    def send(self, robot: UnitRobot, values: dict[str, float]) -> Mapping[str, float]:
        """What becomes of a command; what is echoed."""
        return robot.pass_on(values)

    def stop(self, robot: UnitRobot) -> None:
        """What becomes of a request to stop."""
        robot.halt()

    def relax(self, robot: UnitRobot) -> None:
        """What becomes of a request to relax."""
        robot.let_go()

    def sleep(self, robot: UnitRobot) -> None:
        """What happens before the runner waits."""

    def think(self, robot: UnitRobot) -> None:
        """What happens while the runner computes."""

    def wish(self, wanted: Reals, now_s: float) -> Reals:
        """What the policy wants."""
        return wanted

    def next_event_s(self, now_s: float) -> float:
        """When someone else does something next."""
        return float(np.inf)

    def happen(self, robot: UnitRobot, event_s: float) -> None:
        """Someone else does it."""

    def shows_s(self, motion: Motion) -> float:
        """When it first has an effect that could be seen or do harm."""
        return self.begin_s


def chosen(rng: np.random.Generator, *options: str) -> str:
    """One of some words."""
    return options[int(rng.integers(len(options)))]


def lasting(rng: np.random.Generator, begin_s: float, low_s: float, high_s: float) -> float:
    """When a trouble ends: never, in half of the draws."""
    return float(np.inf if rng.random() < 0.5 else begin_s + rng.uniform(low_s, high_s))


def limits_of(setting: Setting, name: str) -> Floats:
    """One limit of every joint."""
    return np.array([getattr(joint, name) for joint in setting.limits.joints], dtype=float)
