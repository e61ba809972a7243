"""What leaves the trainer: the contract of a policy, and the bundle a robot runs."""

from sim2real.policy.bundle import Bundle

__all__ = ["Bundle"]
