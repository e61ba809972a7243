"""Trials of worlds and robots: success rates with intervals, comparison, ranking, prediction.

`evaluate` runs a policy in randomised worlds, `compare` says whether B is better than A,
`rank_table` whether simulation ranks policies as reality does, and `plan_trials` how many trials
show a difference.

>>> from sim2real.evaluation import plan_trials
>>> plan_trials(0.6, 0.8).unpaired
84
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "CompareConfig",
    "Comparison",
    "EvaluateConfig",
    "Evaluation",
    "Expectation",
    "OpenedPolicy",
    "PlayConfig",
    "PolicySource",
    "PowerConfig",
    "PredictConfig",
    "Prediction",
    "RankConfig",
    "RankThresholds",
    "RankedTable",
    "SimulatedTrials",
    "TrialPlan",
    "compare",
    "evaluate",
    "expect",
    "open_policy",
    "plan_trials",
    "play",
    "predict",
    "rank_table",
    "run_trials",
]

if TYPE_CHECKING:
    from sim2real.evaluation.comparison import Comparison, compare
    from sim2real.evaluation.evaluation import Evaluation, SimulatedTrials
    from sim2real.evaluation.evaluation_configs import (
        CompareConfig,
        EvaluateConfig,
        PlayConfig,
        PowerConfig,
        PredictConfig,
        RankConfig,
    )
    from sim2real.evaluation.expectation import Expectation, expect
    from sim2real.evaluation.opened import OpenedPolicy, PolicySource, open_policy
    from sim2real.evaluation.playback import play
    from sim2real.evaluation.policy_success import evaluate
    from sim2real.evaluation.prediction import Prediction, predict
    from sim2real.evaluation.ranking import RankThresholds
    from sim2real.evaluation.ranking_table import RankedTable, rank_table
    from sim2real.evaluation.simulated_trials import run_trials
    from sim2real.evaluation.trial_plan import TrialPlan, plan_trials
else:
    __getattr__, __dir__ = attach(__name__, __file__)
