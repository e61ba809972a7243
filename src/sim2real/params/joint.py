"""Joint distributions: what identification knows of several parameters at once.

A joint distribution samples like independent ones: a keyed draw for each (world, episode) gives a
row of values, a column per parameter, with their correlations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError
from sim2real.params.draws import DrawTable, Key, uniform
from sim2real.plain import PlainData

_TRIES = 16
"""Draws of a row until it lies inside the bounds."""


@lru_cache(maxsize=64)
def _table(names: tuple[str, ...], seed: int, device: torch.device) -> DrawTable:
    return DrawTable([f"joint/{name}" for name in names], seed=seed, device=device)


@dataclass(frozen=True, kw_only=True)
class JointDistribution(PlainData, ABC):
    """A probability distribution over several named parameters."""

    kind: ClassVar[str] = ""
    names: tuple[str, ...]
    """Parameters, in the order of the columns."""

    @abstractmethod
    def sample(self, seed: int, *, worlds: Tensor, episodes: Tensor) -> Tensor:
        """(worlds, names) values, each row a function of (seed, world, episode) alone."""

    @abstractmethod
    def quantile(self, p: Tensor) -> Tensor:
        """(len(p), names) marginal quantiles."""

    def quantiles(self, shares: ArrayLike) -> Floats:
        """The same for numpy arrays."""
        return np.asarray(self.quantile(torch.from_numpy(np.asarray(shares, float))))

    @property
    def effective_samples(self) -> float:
        """Number of equally weighted samples that would determine its moments as well; 0 if it is
        defined by its moments."""
        return 0.0

    @abstractmethod
    def moments(self) -> tuple[Floats, Floats]:
        """(mean (names,), covariance (names, names)), without regard to bounds."""

    @abstractmethod
    def support(self) -> list[tuple[float, float]]:
        """Smallest and largest possible value of each parameter."""


@dataclass(frozen=True, kw_only=True)
class GaussianPosterior(JointDistribution):
    """A Gaussian with full covariance, cut at the parameters' bounds."""

    kind: ClassVar[str] = "gaussian"
    mean: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        n = len(self.names)
        shapes = {len(self.mean), len(self.low), len(self.high), len(self.covariance)}
        if shapes != {n} or any(len(row) != n for row in self.covariance):
            raise Sim2RealError(
                f"gaussian posterior: every field must have {n} entries, one per name"
            )
        matrix = torch.tensor(self.covariance, dtype=torch.float64)
        if not torch.allclose(matrix, matrix.T, rtol=1e-8, atol=0.0):
            raise Sim2RealError("gaussian posterior: the covariance is not symmetric")
        if torch.linalg.cholesky_ex(matrix).info.item() != 0:
            raise Sim2RealError("gaussian posterior: the covariance is not positive definite")

    def _tensors(self, device: torch.device) -> Iterator[Tensor]:
        """Mean, covariance and bounds."""
        for values in (self.mean, self.covariance, self.low, self.high):
            yield torch.tensor(values, dtype=torch.float64, device=device)

    def sample(self, seed: int, *, worlds: Tensor, episodes: Tensor) -> Tensor:
        """Rows inside the bounds by rejection; a row still outside after 16 tries is clamped."""
        device = worlds.device
        mean, covariance, low, high = self._tensors(device)
        root = torch.linalg.cholesky(covariance)
        drawn = _table(self.names, seed, device).draw_several(worlds, episodes, _TRIES)
        rows = mean + torch.special.ndtri(drawn) @ root.T
        inside = ((rows >= low) & (rows <= high)).all(-1)
        inside[-1] = True
        first = inside.to(torch.uint8).argmax(dim=0)  # of equal ones the first
        result = rows[first, torch.arange(len(worlds), device=device)]
        return torch.clamp(result, low, high)

    def quantile(self, p: Tensor) -> Tensor:
        """Marginal quantiles of the uncut Gaussian, clamped to the bounds."""
        mean, covariance, low, high = self._tensors(p.device)
        std = torch.sqrt(torch.diagonal(covariance))
        return torch.clamp(mean + torch.special.ndtri(p)[:, None] * std, low, high)

    def moments(self) -> tuple[Floats, Floats]:
        return np.array(self.mean), np.array(self.covariance)

    def support(self) -> list[tuple[float, float]]:
        return list(zip(self.low, self.high, strict=True))


@dataclass(frozen=True, kw_only=True)
class Empirical(JointDistribution):
    """A weighted set of samples; a draw is one of them."""

    kind: ClassVar[str] = "empirical"
    samples: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        weights = self.weights or (1.0,) * len(self.samples)
        object.__setattr__(self, "weights", weights)
        if not self.samples or any(len(row) != len(self.names) for row in self.samples):
            raise Sim2RealError(
                f"empirical posterior: samples must be rows of {len(self.names)} values"
            )
        if len(weights) != len(self.samples) or min(weights) < 0 or sum(weights) <= 0:
            raise Sim2RealError(
                "empirical posterior: weights must be one per sample, none negative, not all zero"
            )

    def _tensors(self, device: torch.device) -> tuple[Tensor, Tensor]:
        weights = torch.tensor(self.weights, dtype=torch.float64, device=device)
        samples = torch.tensor(self.samples, dtype=torch.float64, device=device)
        return samples, weights / weights.sum()

    def sample(self, seed: int, *, worlds: Tensor, episodes: Tensor) -> Tensor:
        samples, weights = self._tensors(worlds.device)
        p = uniform(Key.of(seed, "joint/empirical"), worlds=worlds, episodes=episodes)
        index = torch.searchsorted(torch.cumsum(weights, 0), p).clamp(max=len(self.samples) - 1)
        return samples[index]

    def quantile(self, p: Tensor) -> Tensor:
        samples, weights = self._tensors(p.device)
        values, order = samples.sort(dim=0)
        edges = torch.cumsum(weights[order], dim=0).T.contiguous()
        index = torch.searchsorted(edges, p.double().expand(len(edges), -1).contiguous())
        return values.gather(0, index.clamp(max=len(self.samples) - 1).T)

    @property
    def effective_samples(self) -> float:
        return float(1 / (self._tensors(torch.device("cpu"))[1] ** 2).sum())

    def moments(self) -> tuple[Floats, Floats]:
        rows, weights = (tensor.numpy() for tensor in self._tensors(torch.device("cpu")))
        mean = weights @ rows
        return mean, (rows - mean).T @ (weights[:, None] * (rows - mean))

    def support(self) -> list[tuple[float, float]]:
        return [(min(column), max(column)) for column in zip(*self.samples, strict=True)]
