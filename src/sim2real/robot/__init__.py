"""Driving hardware: the protocol, the supervisor between a policy and a robot, the runner."""

from sim2real.robot.config import DeployConfig

__all__ = ["DeployConfig"]
