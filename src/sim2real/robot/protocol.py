"""What drives hardware, in the shape LeRobot gave it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Robot(Protocol):
    """A robot behind four calls.

    Readings and commands are by name and in SI units: `{"shoulder_pan_pos": 0.1}`. A value of
    several numbers is a sequence. A robot that can tell why it has stopped by itself has a text
    `stopped_itself`, '' while it obeys; one that knows its actuators' names has `actuators`.
    """

    name: str
    """Model of the robot."""
    serial: str
    """Which one it is."""
    safe_stop: str
    """What `stop` does: 'hold' the position, or 'damp' the motion until it rests."""

    @property
    def is_connected(self) -> bool:
        """Whether the robot answers."""
        ...

    def connect(self) -> None:
        """Make the robot ready; one that cannot be is a `Sim2RealError`."""
        ...

    def get_observation(self) -> Mapping[str, Any]:
        """The newest readings.

        '@age' is how old they are [s], '@torque' the torques of the actuators where the robot
        measures them [N m or N], '@command' what it is being commanded by whoever is in charge;
        both in the order of `actuators`, or of the contract where there are none.
        """
        ...

    def send_action(self, action: Mapping[str, float]) -> Mapping[str, float]:
        """Send commands by actuator; what was really sent, after the robot's own limits."""
        ...

    def stop(self) -> None:
        """Go to the safe stop, and stay there."""
        ...

    def disconnect(self) -> None:
        """Let go of the robot, in its safe stop."""
        ...
