"""What can differ between simulation and reality, how it is distributed, and how it is drawn."""

from sim2real.params.dimension import KINDS, Dimension, dimension_of
from sim2real.params.distributions import (
    Choice,
    Distribution,
    Fixed,
    LogUniform,
    Normal,
    TruncatedNormal,
    Uniform,
    distribution_from_dict,
)
from sim2real.params.draws import (
    DrawTable,
    Key,
    normal_block,
    uniform,
    uniform_block,
)
from sim2real.params.joint import (
    Empirical,
    GaussianPosterior,
    JointDistribution,
    joint_from_dict,
)
from sim2real.params.parameter import Parameter, split_path

__all__ = [
    "KINDS",
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
    "distribution_from_dict",
    "joint_from_dict",
    "normal_block",
    "split_path",
    "uniform",
    "uniform_block",
]
