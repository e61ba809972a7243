"""Distributions of one parameter.

Every distribution has a `quantile` and a `support`; `sample` is the quantile of a keyed uniform
draw, so a draw is a pure function of its key for any distribution. All of them work on torch
tensors of any device and shape, in float64.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError
from sim2real.params.draws import Key, uniform
from sim2real.plain import PlainData


@dataclass(frozen=True, kw_only=True)
class Distribution(PlainData, ABC):
    """A probability distribution over the value of one parameter."""

    kind: ClassVar[str] = ""
    """Name in files."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Smallest and largest possible value."""

    @abstractmethod
    def quantile(self, p: Tensor) -> Tensor:
        """The value below which a share `p`, between 0 and 1, of the draws lies."""

    def quantiles(self, shares: ArrayLike) -> Floats:
        """The same for numpy arrays."""
        return np.asarray(self.quantile(torch.from_numpy(np.asarray(shares, float))))

    def sample(self, key: Key, *, worlds: Tensor, episodes: Tensor) -> Tensor:
        """One draw per world: a function of (key, world, episode) alone."""
        return self.quantile(uniform(key, worlds=worlds, episodes=episodes))

    def _refuse(self, why: str) -> None:
        raise Sim2RealError(f"{self.kind} distribution: {why}")


@dataclass(frozen=True, kw_only=True)
class Fixed(Distribution):
    """Always the same value."""

    kind: ClassVar[str] = "fixed"
    value: float

    @property
    def support(self) -> tuple[float, float]:
        return self.value, self.value

    def quantile(self, p: Tensor) -> Tensor:
        return torch.full_like(p, self.value)


@dataclass(frozen=True, kw_only=True)
class _Between(Distribution):
    """Values between two bounds."""

    low: float
    high: float

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.high


@dataclass(frozen=True, kw_only=True)
class Uniform(_Between):
    """Every value between two bounds is equally likely."""

    kind: ClassVar[str] = "uniform"

    def __post_init__(self) -> None:
        if not self.low < self.high:
            self._refuse(f"low {self.low:g} must be below high {self.high:g}")

    def quantile(self, p: Tensor) -> Tensor:
        return self.low + (self.high - self.low) * p


@dataclass(frozen=True, kw_only=True)
class LogUniform(_Between):
    """Every order of magnitude between two positive bounds is equally likely."""

    kind: ClassVar[str] = "log-uniform"

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high:
            self._refuse(f"low {self.low:g} must be above 0 and below high {self.high:g}")

    def quantile(self, p: Tensor) -> Tensor:
        span = math.log(self.high / self.low)
        return torch.clamp(self.low * torch.exp(span * p), self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class Normal(Distribution):
    """A Gaussian."""

    kind: ClassVar[str] = "normal"
    mean: float
    std: float

    def __post_init__(self) -> None:
        if not self.std > 0:
            self._refuse(f"std {self.std:g} must be positive")

    @property
    def support(self) -> tuple[float, float]:
        return -math.inf, math.inf

    def quantile(self, p: Tensor) -> Tensor:
        value: Tensor = self.mean + self.std * torch.special.ndtri(p)
        return value


@dataclass(frozen=True, kw_only=True)
class TruncatedNormal(Normal):
    """A Gaussian known to lie between two bounds."""

    kind: ClassVar[str] = "truncated-normal"
    low: float
    high: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            self._refuse(f"low {self.low:g} must be below high {self.high:g}")
        # Beyond 8 standard deviations the tail has no float64 resolution left to draw from.
        reach = 8 * self.std
        if self.high < self.mean - reach or self.low > self.mean + reach:
            self._refuse(
                f"mean {self.mean:g} is more than 8 std outside of {self.low:g} .. {self.high:g}"
            )

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.high

    def quantile(self, p: Tensor) -> Tensor:
        sign = -1.0 if self.low > self.mean else 1.0  # keeps both shares in the lower tail
        below_low, below_high = (
            0.5 * math.erfc(-sign * (edge - self.mean) / self.std / math.sqrt(2))
            for edge in self.support
        )
        z = sign * torch.special.ndtri(below_low + (below_high - below_low) * p)
        return torch.clamp(self.mean + self.std * z, self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class Choice(Distribution):
    """One of several values, in increasing order, each with a weight."""

    kind: ClassVar[str] = "choice"
    values: tuple[float, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(float(v) for v in self.values))
        weights = tuple(float(w) for w in self.weights) or (1.0,) * len(self.values)
        object.__setattr__(self, "weights", weights)
        if not self.values:
            self._refuse("values must not be empty")
        if any(b <= a for a, b in zip(self.values, self.values[1:], strict=False)):
            self._refuse("values must be in increasing order")
        if len(weights) != len(self.values) or min(weights) < 0 or sum(weights) <= 0:
            self._refuse("weights must be one per value, none negative, not all zero")

    @property
    def support(self) -> tuple[float, float]:
        return self.values[0], self.values[-1]

    def quantile(self, p: Tensor) -> Tensor:
        weights = torch.tensor(self.weights, dtype=torch.float64, device=p.device)
        edges = torch.cumsum(weights, 0) / weights.sum()
        index = torch.searchsorted(edges, p.double().contiguous()).clamp(max=len(self.values) - 1)
        return torch.tensor(self.values, dtype=torch.float64, device=p.device)[index]
