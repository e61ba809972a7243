"""What leaves the trainer: the contract of a policy, and the bundle a robot runs."""

from sim2real.policy.bundle import Bundle
from sim2real.policy.contract import Contract
from sim2real.policy.limits import JointLimits, Limits

__all__ = ["Bundle", "Contract", "JointLimits", "Limits"]
