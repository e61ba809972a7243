"""The policy that drives a robot while another one shadows it."""

from __future__ import annotations

from sim2real.errors import Sim2RealError
from sim2real.evaluation import OpenedPolicy, open_policy
from sim2real.robot.deploy_config import DeployConfig
from sim2real.robot.ladder import missing
from sim2real.robot.protocol import Robot


def policy_in_charge(config: DeployConfig, policy: OpenedPolicy) -> OpenedPolicy | None:
    """The policy that drives the robot while another shadows it; None without one."""
    if config.step != "shadow" or config.in_charge in ("hold", "robot"):
        return None
    other = open_policy(config.in_charge)
    if other.seal == policy.seal:
        raise Sim2RealError("a policy cannot shadow itself: --in-charge names the same one")
    one, two = policy.contract, other.contract
    mine, theirs = ([command.name for command in c.commands] for c in (one, two))
    if mine != theirs or (one.sensors, one.goals, one.rate_hz) != (
        two.sensors, two.goals, two.rate_hz,
    ):  # fmt: skip
        raise Sim2RealError(f"the policy in charge, {config.in_charge}, is for another robot")
    return other


def check_charge(policy: OpenedPolicy, given: str, robot: Robot) -> None:
    """Refuse a policy in charge that has not climbed the whole ladder itself; `given` names it."""
    left = missing(policy, "full", robot=robot.name, serial=robot.serial)
    if left:
        skip = ", or skip them with --force" if robot.abilities.simulated else ""
        raise Sim2RealError(
            f"{given} may not drive {robot.name} {robot.serial}: it has not passed"
            f" {', '.join(left)}; pass these first{skip}"
        )
