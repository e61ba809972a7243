"""Learning a policy in randomised worlds, with rsl_rl's PPO."""

from sim2real.learn.config import TrainConfig

__all__ = ["TrainConfig"]
