"""What drives hardware, with the methods of a LeRobot robot, and the clock that paces it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from sim2real.robot.abilities import RobotAbilities


@runtime_checkable
class Robot(Protocol):
    """A robot behind a few calls.

    Readings and commands go by name and in SI units: `{"shoulder_pan_pos": 0.1}`. A value of
    several numbers is a sequence. What it can do besides, it declares in `abilities`.
    """

    name: str
    """Model of the robot."""
    serial: str
    """Serial number of this robot."""
    safe_stop: str
    """What `stop` does: 'hold' the position, or 'damp' the motion until it rests."""

    @property
    def abilities(self) -> RobotAbilities:
        """What it can do besides; what only shows on connecting is declared from then on."""

    @property
    def is_connected(self) -> bool:
        """Whether the robot answers."""

    def connect(self) -> None:
        """Make the robot ready; if that fails it is a `Sim2RealError`."""

    def get_observation(self) -> Mapping[str, object]:
        """The newest readings, by sensor; empty where a packet was lost.

        '@age' is how old they are [s], '@torque' the actuators' torques [N m or N], '@command' the
        commands of the controller in charge. The last two need the abilities `measures_torque` and
        `reports_commands`, and are in the order of the declared actuators, or of the contract where
        none are declared.
        """

    def send_action(self, action: Mapping[str, float]) -> Mapping[str, float]:
        """Send commands by actuator; what was really sent, after the robot's own limits."""

    def stop(self) -> None:
        """Go to the safe stop, and stay there."""

    def disconnect(self) -> None:
        """Disconnect, in the safe stop."""


class ControlClock(Protocol):
    """What paces control periods: real time, or a virtual robot's own."""

    def now(self) -> float:
        """The time [s]."""

    def sleep_until(self, moment_s: float) -> None:
        """Wait until a moment of this clock."""
