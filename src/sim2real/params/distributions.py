"""Distributions of one parameter.

Every distribution gives `quantile`, `log_prob` and `support`; `sample` is the quantile of a
keyed uniform draw, so a draw is a pure function of its key whatever the distribution. All of
them work on torch tensors of any device and shape, in float64.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sim2real.errors import Sim2RealError, nearest
from sim2real.params.draws import Key, uniform

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, kw_only=True)
class Distribution(ABC):
    """A probability distribution over the value of one parameter."""

    kind: ClassVar[str]
    """Name in files."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Smallest and largest possible value."""

    @abstractmethod
    def quantile(self, p: Tensor) -> Tensor:
        """The value below which a share `p` in (0, 1) of the draws lies."""

    @abstractmethod
    def log_prob(self, x: Tensor) -> Tensor:
        """Natural logarithm of the density (of the probability, for discrete ones) at `x`."""

    def sample(self, key: Key, *, worlds: Tensor, episodes: Tensor) -> Tensor:
        """One draw a world: a function of (key, world, episode) alone."""
        return self.quantile(uniform(key, worlds=worlds, episodes=episodes))

    def to_dict(self) -> dict[str, object]:
        """Plain data for JSON or TOML."""
        return {"kind": self.kind, **asdict(self)}

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

    def log_prob(self, x: Tensor) -> Tensor:
        return torch.where(x == self.value, torch.zeros_like(x), -math.inf)


@dataclass(frozen=True, kw_only=True)
class Uniform(Distribution):
    """Every value between two bounds is equally likely."""

    kind: ClassVar[str] = "uniform"
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            self._refuse(f"low {self.low:g} must be below high {self.high:g}")

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.high

    def quantile(self, p: Tensor) -> Tensor:
        return self.low + (self.high - self.low) * p

    def log_prob(self, x: Tensor) -> Tensor:
        inside = (x >= self.low) & (x <= self.high)
        level = torch.full_like(x, -math.log(self.high - self.low))
        return torch.where(inside, level, -math.inf)


@dataclass(frozen=True, kw_only=True)
class LogUniform(Distribution):
    """Every order of magnitude between two positive bounds is equally likely."""

    kind: ClassVar[str] = "log-uniform"
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high:
            self._refuse(f"needs 0 < low < high, got low {self.low:g}, high {self.high:g}")

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.high

    def quantile(self, p: Tensor) -> Tensor:
        span = math.log(self.high / self.low)
        return torch.clamp(self.low * torch.exp(span * p), self.low, self.high)

    def log_prob(self, x: Tensor) -> Tensor:
        inside = (x >= self.low) & (x <= self.high)
        safe = torch.where(inside, x, self.low)
        density = -torch.log(safe) - math.log(math.log(self.high / self.low))
        return torch.where(inside, density, -math.inf)


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

    def log_prob(self, x: Tensor) -> Tensor:
        z = (x - self.mean) / self.std
        return -0.5 * z * z - math.log(self.std) - _HALF_LOG_2PI


@dataclass(frozen=True, kw_only=True)
class TruncatedNormal(Distribution):
    """A Gaussian known to lie between two bounds."""

    kind: ClassVar[str] = "truncated-normal"
    mean: float
    std: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.std > 0:
            self._refuse(f"std {self.std:g} must be positive")
        if not self.low < self.high:
            self._refuse(f"low {self.low:g} must be below high {self.high:g}")
        # Beyond 8 standard deviations the tail has no float64 resolution left to draw from.
        reach = 8 * self.std
        if self.high < self.mean - reach or self.low > self.mean + reach:
            self._refuse(f"mean {self.mean:g} lies over 8 std outside {self.low:g}..{self.high:g}")

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.high

    def _edges(self) -> tuple[float, float, float]:
        """Cumulative shares below low and high, and the sign that keeps them in the lower tail."""
        sign = -1.0 if self.low > self.mean else 1.0
        root2 = math.sqrt(2)
        below = [
            0.5 * math.erfc(-sign * (edge - self.mean) / self.std / root2)
            for edge in (self.low, self.high)
        ]
        return below[0], below[1], sign

    def quantile(self, p: Tensor) -> Tensor:
        below_low, below_high, sign = self._edges()
        z = sign * torch.special.ndtri(below_low + (below_high - below_low) * p)
        return torch.clamp(self.mean + self.std * z, self.low, self.high)

    def log_prob(self, x: Tensor) -> Tensor:
        below_low, below_high, _ = self._edges()
        z = (x - self.mean) / self.std
        density = -0.5 * z * z - math.log(self.std * abs(below_high - below_low)) - _HALF_LOG_2PI
        return torch.where((x >= self.low) & (x <= self.high), density, -math.inf)


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
            self._refuse("needs at least one value")
        if any(b <= a for a, b in zip(self.values, self.values[1:], strict=False)):
            self._refuse("values must increase")
        if len(weights) != len(self.values) or min(weights) < 0 or sum(weights) <= 0:
            self._refuse("needs one weight >= 0 a value, not all of them zero")

    @property
    def support(self) -> tuple[float, float]:
        return self.values[0], self.values[-1]

    def quantile(self, p: Tensor) -> Tensor:
        weights = torch.tensor(self.weights, dtype=torch.float64, device=p.device)
        edges = torch.cumsum(weights, 0) / weights.sum()
        index = torch.searchsorted(edges, p.double().contiguous()).clamp(max=len(self.values) - 1)
        return torch.tensor(self.values, dtype=torch.float64, device=p.device)[index]

    def log_prob(self, x: Tensor) -> Tensor:
        values = torch.tensor(self.values, dtype=torch.float64, device=x.device)
        weights = torch.tensor(self.weights, dtype=torch.float64, device=x.device)
        share = (x.unsqueeze(-1) == values).double() @ (weights / weights.sum())
        return torch.log(share)

    def to_dict(self) -> dict[str, object]:
        return {"kind": self.kind, "values": list(self.values), "weights": list(self.weights)}


_KINDS: dict[str, type[Distribution]] = {
    cls.kind: cls for cls in (Fixed, Uniform, LogUniform, Normal, TruncatedNormal, Choice)
}


def distribution_from_dict(data: object) -> Distribution:
    """The distribution that `to_dict` described; malformed data is a `Sim2RealError`."""
    if not isinstance(data, Mapping) or "kind" not in data:
        raise Sim2RealError(f"a distribution is a table with a 'kind', got {data!r}")
    kind = str(data["kind"])
    if kind not in _KINDS:
        raise Sim2RealError(f"unknown distribution {kind!r}{nearest(kind, _KINDS)}")
    cls = _KINDS[kind]
    fields = {name: value for name, value in data.items() if name != "kind"}
    known = set(cls.__dataclass_fields__)
    for name in fields:
        if name not in known:
            raise Sim2RealError(
                f"{kind} distribution: unknown field {name!r}{nearest(name, known)}"
            )
    try:
        if cls is Choice:
            return Choice(**{name: tuple(value) for name, value in fields.items()})
        numbers = {name: float(value) for name, value in fields.items()}
        if not all(math.isfinite(value) for value in numbers.values()):
            raise Sim2RealError(f"{kind} distribution: every field must be finite, got {numbers}")
        return cls(**numbers)
    except (TypeError, ValueError, OverflowError) as error:
        raise Sim2RealError(f"{kind} distribution: {error}") from None
