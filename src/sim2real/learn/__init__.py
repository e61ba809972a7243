"""Learning a policy in randomised worlds, with rsl_rl's PPO.

`train` trains as a `TrainConfig` says and writes a folder, a `Run`: configuration, checkpoints,
TensorBoard events and result. An interrupted run continues bit for bit. `TrainedPolicy` is a run's
newest actor, ready to use.

>>> from sim2real.learn import Run, TrainConfig
>>> run = Run.plan(TrainConfig(task="pendulum-swingup", worlds=64), learner_threads=1)
>>> run.source, run.training.worlds
('prior', 64)
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "ExportConfig",
    "Run",
    "TrainConfig",
    "TrainProgress",
    "TrainResult",
    "TrainedPolicy",
    "Trainer",
    "export",
    "train",
    "train_seeds",
]

if TYPE_CHECKING:
    from sim2real.learn.bundle_export import export
    from sim2real.learn.learn_configs import ExportConfig, TrainConfig
    from sim2real.learn.policy import TrainedPolicy
    from sim2real.learn.run import Run
    from sim2real.learn.seeds import train_seeds
    from sim2real.learn.trainer import Trainer, TrainProgress, TrainResult, train
else:
    __getattr__, __dir__ = attach(__name__, __file__)
