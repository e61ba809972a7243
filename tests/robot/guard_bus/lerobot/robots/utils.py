"""Builds the arm."""

from lerobot.robots import LoggedArm


def make_robot_from_config(config):
    return LoggedArm(config)
