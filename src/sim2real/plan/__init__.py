"""What to record next: the motions that say most about a twin's parameters.

`plan_motions` simulates candidate motions inside the robot's limits and picks those whose
recordings are expected to determine the parameters best, as `record` commands.

>>> from sim2real.plan import PlanConfig
>>> PlanConfig(twin="robot").motions
4
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "FORMATS",
    "MotionPlan",
    "PlanConfig",
    "plan_motions",
]

if TYPE_CHECKING:
    from sim2real.plan.chosen_motions import FORMATS, MotionPlan
    from sim2real.plan.motion_plan import plan_motions
    from sim2real.plan.plan_config import PlanConfig
else:
    __getattr__, __dir__ = attach(__name__, __file__)
