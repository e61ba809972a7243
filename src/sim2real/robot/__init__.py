"""Driving hardware: the protocol, the supervisor between a policy and a robot, the runner."""

from sim2real.robot.protocol import Robot
from sim2real.robot.supervisor import Decision, Inputs, State, Supervisor

__all__ = ["Decision", "Inputs", "Robot", "State", "Supervisor"]
