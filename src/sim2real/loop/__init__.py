"""The circle: train, deploy, measure, attribute, identify, and again, resumable anywhere.

`close_the_loop` runs it for one robot until its target is met or its budget of attempts is spent.
The result of every step is stored under a hash of its inputs, so an interrupted loop continues
where it stopped, and loops with one `Store` share the steps that they have in common.

>>> from sim2real.loop import LoopConfig
>>> config = LoopConfig(task="pendulum-swingup", robot="unit:7", budget="60-trials")
>>> config.check(simulated=True)
>>> config.trials, str(config.folder)
(60, 'runs/loop/pendulum-swingup/unit-7')
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "ALGORITHMS",
    "RESULT_FILE",
    "SUMMARY_FILE",
    "Algorithm",
    "AttemptFilm",
    "KeptResult",
    "KeptStep",
    "LoopConfig",
    "LoopPlan",
    "LoopResult",
    "Round",
    "Stages",
    "Store",
    "close_the_loop",
    "episodes_of",
    "lower_bound",
    "plan_the_loop",
    "policy_of",
    "prediction_of",
    "run_of",
    "widened",
]

if TYPE_CHECKING:
    from sim2real.loop.algorithms import ALGORITHMS, Algorithm
    from sim2real.loop.circle import close_the_loop, lower_bound
    from sim2real.loop.dry_run import LoopPlan, plan_the_loop
    from sim2real.loop.loop_config import LoopConfig
    from sim2real.loop.remade import RESULT_FILE
    from sim2real.loop.rounds import SUMMARY_FILE, AttemptFilm, LoopResult, Round
    from sim2real.loop.stages import Stages
    from sim2real.loop.stages.base import episodes_of, run_of
    from sim2real.loop.stages.policy import prediction_of
    from sim2real.loop.steps import KeptResult, KeptStep, Store
    from sim2real.loop.strategies import policy_of, widened
else:
    __getattr__, __dir__ = attach(__name__, __file__)
