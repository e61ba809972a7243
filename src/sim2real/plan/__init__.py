"""What to record next: motions that tell a twin's parameters apart.

`plan_motions` simulates candidate motions inside the robot's limits and picks those whose
recordings are expected to tell most, as commands for `record`.

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
    "PlannedMotions",
    "advice",
    "plan_motions",
]

if TYPE_CHECKING:
    from sim2real.plan.informative_motions import MotionPlan, advice
    from sim2real.plan.motion_plan import FORMATS, PlannedMotions, plan_motions
    from sim2real.plan.plan_config import PlanConfig
else:
    __getattr__, __dir__ = attach(__name__, __file__)
