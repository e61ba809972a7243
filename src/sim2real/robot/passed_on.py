"""A robot that passes everything on to another: what stands between a program and its robot."""

from __future__ import annotations

from collections.abc import Mapping

from sim2real.robot.abilities import (
    RobotAbilities,
    enabled,
    relaxing,
    stated_limits,
    why_stopped,
)
from sim2real.robot.protocol import Robot


class PassedOnRobot:
    """Another robot, driven through this one, for subclasses that change some of what passes.

    It has neither the other's bench nor its clock.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self.name, self.serial, self.safe_stop = robot.name, robot.serial, robot.safe_stop

    @property
    def abilities(self) -> RobotAbilities:
        """What it can do: it drives."""
        other = self._robot.abilities
        return RobotAbilities(
            actuators=other.actuators,
            enables=other.enables,
            reports_why_stopped=other.reports_why_stopped,
            holds_position=other.holds_position,
            watchdog_s=other.watchdog_s,
            relaxes=other.relaxes,
            states_limits=other.states_limits,
            measures_torque=other.measures_torque,
            measures_temperature=other.measures_temperature,
            reports_commands=other.reports_commands,
            simulated=other.simulated,
        )

    @property
    def is_connected(self) -> bool:
        """Whether the robot answers."""
        return self._robot.is_connected

    @property
    def stopped_itself(self) -> str:
        """Why it stopped by itself; '' while it obeys."""
        return why_stopped(self._robot)

    def connect(self) -> None:
        """Make the robot ready."""
        self._robot.connect()
        robot = self._robot
        self.name, self.serial, self.safe_stop = robot.name, robot.serial, robot.safe_stop

    def enable(self) -> None:
        """Start its drives, if they have to be started."""
        drives = enabled(self._robot)
        if drives is not None:
            drives.enable()

    def get_observation(self) -> Mapping[str, object]:
        """The newest readings."""
        return self._robot.get_observation()

    def send_action(self, action: Mapping[str, float]) -> Mapping[str, float]:
        """Send commands; what was really sent."""
        return self._robot.send_action(action)

    def stop(self) -> None:
        """Go to the safe stop."""
        self._robot.stop()

    def relax(self) -> None:
        """Take the torque off its drives, if it can."""
        able = relaxing(self._robot)
        if able is not None:
            able.relax()

    @property
    def joint_limits(self) -> Mapping[str, Mapping[str, float]]:
        """Limits that it states."""
        return stated_limits(self._robot)

    def disconnect(self) -> None:
        """Disconnect."""
        self._robot.disconnect()
