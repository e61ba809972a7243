"""What can differ between simulation and reality, how it is distributed, and how it is drawn.

A `Parameter` has a path, a dimension of the gap, a unit, a nominal value and a prior. A draw is a
function of (seed, name, world, episode) alone: the same worlds come back in any order and on any
number of threads. What identification knows of several parameters is a `JointDistribution`.

>>> import torch
>>> from sim2real.params import Key, Parameter
>>> mass = Parameter.of_table("body/pole/mass", {"unit": "kg", "prior": {
...     "kind": "uniform", "low": 0.8, "high": 1.2}}, nominal=1.0)
>>> worlds, episodes = torch.arange(3), torch.zeros(3, dtype=torch.long)
>>> draws = mass.prior.sample(Key.of(0, mass.name), worlds=worlds, episodes=episodes)
>>> str(mass.dimension), [round(float(draw), 3) for draw in draws]
('dynamics', [1.179, 0.942, 1.194])
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "Choice",
    "Dimension",
    "Distribution",
    "DrawTable",
    "Empirical",
    "Fixed",
    "GaussianPosterior",
    "JointDistribution",
    "Key",
    "LogUniform",
    "Normal",
    "Parameter",
    "TruncatedNormal",
    "Uniform",
    "dimension_of",
    "normal_block",
    "split_path",
    "uniform",
    "uniform_block",
]

if TYPE_CHECKING:
    from sim2real.params.dimension import Dimension, dimension_of
    from sim2real.params.distributions import (
        Choice,
        Distribution,
        Fixed,
        LogUniform,
        Normal,
        TruncatedNormal,
        Uniform,
    )
    from sim2real.params.draws import DrawTable, Key, normal_block, uniform, uniform_block
    from sim2real.params.joint import (
        Empirical,
        GaussianPosterior,
        JointDistribution,
    )
    from sim2real.params.parameter import Parameter, split_path
else:
    __getattr__, __dir__ = attach(__name__, __file__)
