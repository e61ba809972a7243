"""What drives hardware, with the methods of a LeRobot robot, and the clock that paces it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable


@runtime_checkable
class Robot(Protocol):
    """A robot behind a few calls.

    Readings and commands go by name and in SI units: `{"shoulder_pan_pos": 0.1}`. A value of
    several numbers is a sequence. Optional are a text `stopped_itself`, which says why the robot
    stopped by itself ('' while it obeys), `actuators`, the names of its actuators, and `enable`,
    which starts its drives.
    """

    name: str
    """Model of the robot."""
    serial: str
    """Serial number of this robot."""
    safe_stop: str
    """What `stop` does: 'hold' the position, or 'damp' the motion until it rests."""

    @property
    def is_connected(self) -> bool:
        """Whether the robot answers."""

    def connect(self) -> None:
        """Make the robot ready; if that fails it is a `Sim2RealError`."""

    def get_observation(self) -> Mapping[str, object]:
        """The newest readings, by sensor; empty where a packet was lost.

        '@age' is how old they are [s], '@torque' the actuators' torques where the robot measures
        them [N m or N], '@command' the commands of the controller in charge. The last two are
        in the order of `actuators`, or of the contract where there are none.
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
