"""What leaves the trainer: the contract of a policy, and the bundle a robot runs."""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = ["Bundle", "Contract", "JointLimits", "Limits", "open_twin"]

if TYPE_CHECKING:
    from sim2real.policy.bundle import Bundle, open_twin
    from sim2real.policy.contract import Contract
    from sim2real.policy.limits import JointLimits, Limits
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            "Bundle": "bundle",
            "Contract": "contract",
            "JointLimits": "limits",
            "Limits": "limits",
            "open_twin": "bundle",
        },
    )
