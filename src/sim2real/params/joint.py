"""Joint distributions: what identification knows of several parameters at once.

A joint distribution samples like an independent one: one keyed draw a (world, episode) gives a
row of values, one column a parameter, with their correlations kept.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import torch
from torch import Tensor

from sim2real.errors import Sim2RealError, nearest, table_at
from sim2real.params.draws import DrawTable, Key, uniform

_TRIES = 16


@lru_cache(maxsize=64)
def _table(names: tuple[str, ...], seed: int, device: torch.device) -> DrawTable:
    return DrawTable([f"joint/{name}" for name in names], seed=seed, device=device)


@dataclass(frozen=True, kw_only=True)
class JointDistribution(ABC):
    """A probability distribution over several named parameters."""

    kind: ClassVar[str]
    names: tuple[str, ...]
    """Parameters, in the order of the columns."""

    @abstractmethod
    def sample(self, seed: int, *, worlds: Tensor, episodes: Tensor) -> Tensor:
        """(worlds, names) values, each row a function of (seed, world, episode) alone."""

    @abstractmethod
    def log_prob(self, x: Tensor) -> Tensor:
        """(rows,) log density of (rows, names) values."""

    @abstractmethod
    def quantile(self, p: Tensor) -> Tensor:
        """(len(p), names) marginal quantiles."""

    @abstractmethod
    def support(self) -> list[tuple[float, float]]:
        """Smallest and largest possible value of each parameter."""

    @abstractmethod
    def to_dict(self) -> dict[str, object]:
        """Plain data for JSON or TOML."""


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
            raise Sim2RealError(f"gaussian posterior: every field needs {n} entries, one a name")
        matrix = torch.tensor(self.covariance, dtype=torch.float64)
        if not torch.allclose(matrix, matrix.T, rtol=1e-8, atol=0.0):
            raise Sim2RealError("gaussian posterior: the covariance is not symmetric")
        if torch.linalg.cholesky_ex(matrix).info.item() != 0:
            raise Sim2RealError("gaussian posterior: the covariance is not positive definite")

    def _root(self, device: torch.device) -> Tensor:
        matrix = torch.tensor(self.covariance, dtype=torch.float64, device=device)
        root: Tensor = torch.linalg.cholesky(matrix)
        return root

    def _row(self, values: tuple[float, ...], device: torch.device) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=device)

    def sample(self, seed: int, *, worlds: Tensor, episodes: Tensor) -> Tensor:
        """Rows inside the bounds by rejection; a row still outside after 16 tries is clamped."""
        device = worlds.device
        root, mean = self._root(device), self._row(self.mean, device)
        low, high = self._row(self.low, device), self._row(self.high, device)
        drawn = _table(self.names, seed, device).draw_several(worlds, episodes, _TRIES)
        rows = mean + torch.special.ndtri(drawn) @ root.T
        inside = ((rows >= low) & (rows <= high)).all(-1)
        inside[-1] = True
        first = inside.to(torch.uint8).argmax(dim=0)  # of equal ones the first
        result = rows[first, torch.arange(len(worlds), device=device)]
        return torch.clamp(result, low, high)

    def log_prob(self, x: Tensor) -> Tensor:
        """Density of the uncut Gaussian inside the bounds, -inf outside (not renormalised)."""
        root = self._root(x.device)
        z = torch.linalg.solve_triangular(root, (x - self._row(self.mean, x.device)).T, upper=False)
        norm = torch.log(torch.diagonal(root)).sum() + 0.5 * len(self.names) * math.log(2 * math.pi)
        inside = (x >= self._row(self.low, x.device)) & (x <= self._row(self.high, x.device))
        return torch.where(inside.all(-1), -0.5 * (z * z).sum(0) - norm, -math.inf)

    def quantile(self, p: Tensor) -> Tensor:
        """Marginal quantiles of the uncut Gaussian, clamped to the bounds."""
        matrix = torch.tensor(self.covariance, dtype=torch.float64, device=p.device)
        std = torch.sqrt(torch.diagonal(matrix))
        value = self._row(self.mean, p.device) + torch.special.ndtri(p)[:, None] * std
        return torch.clamp(value, self._row(self.low, p.device), self._row(self.high, p.device))

    def support(self) -> list[tuple[float, float]]:
        return list(zip(self.low, self.high, strict=True))

    def to_dict(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "names": list(self.names),
            "mean": list(self.mean),
            "covariance": [list(row) for row in self.covariance],
            "low": list(self.low),
            "high": list(self.high),
        }


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
            raise Sim2RealError(f"empirical posterior: needs rows of {len(self.names)} values")
        if len(weights) != len(self.samples) or min(weights) < 0 or sum(weights) <= 0:
            raise Sim2RealError("empirical posterior: needs one weight >= 0 a sample, not all zero")

    def _tensors(self, device: torch.device) -> tuple[Tensor, Tensor]:
        weights = torch.tensor(self.weights, dtype=torch.float64, device=device)
        samples = torch.tensor(self.samples, dtype=torch.float64, device=device)
        return samples, weights / weights.sum()

    def sample(self, seed: int, *, worlds: Tensor, episodes: Tensor) -> Tensor:
        samples, weights = self._tensors(worlds.device)
        p = uniform(Key.of(seed, "joint/empirical"), worlds=worlds, episodes=episodes)
        index = torch.searchsorted(torch.cumsum(weights, 0), p).clamp(max=len(self.samples) - 1)
        return samples[index]

    def log_prob(self, x: Tensor) -> Tensor:
        """Log probability of rows that are samples; -inf for any other row."""
        samples, weights = self._tensors(x.device)
        same = (x[:, None, :] == samples).all(-1).double()
        return torch.log(same @ weights)

    def quantile(self, p: Tensor) -> Tensor:
        samples, weights = self._tensors(p.device)
        values, order = samples.sort(dim=0)
        edges = torch.cumsum(weights[order], dim=0).T.contiguous()
        index = torch.searchsorted(edges, p.double().expand(len(edges), -1).contiguous())
        return values.gather(0, index.clamp(max=len(self.samples) - 1).T)

    def support(self) -> list[tuple[float, float]]:
        return [(min(column), max(column)) for column in zip(*self.samples, strict=True)]

    def to_dict(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "names": list(self.names),
            "samples": [list(row) for row in self.samples],
            "weights": list(self.weights),
        }


def joint_from_dict(data: object) -> JointDistribution:
    """The joint distribution that `to_dict` described; malformed data is a `Sim2RealError`."""
    kinds = {"gaussian": GaussianPosterior, "empirical": Empirical}
    table = table_at(data, "a posterior")
    kind = str(table.get("kind"))
    if kind not in kinds:
        raise Sim2RealError(f"unknown joint distribution {kind!r}{nearest(kind, kinds)}")
    try:
        names = tuple(str(name) for name in table["names"])
        if kind == "gaussian":
            mean, low, high = (
                tuple(float(value) for value in table[field]) for field in ("mean", "low", "high")
            )
            covariance = tuple(tuple(float(v) for v in row) for row in table["covariance"])
            return GaussianPosterior(
                names=names, mean=mean, covariance=covariance, low=low, high=high
            )
        return Empirical(
            names=names,
            samples=tuple(tuple(float(v) for v in row) for row in table["samples"]),
            weights=tuple(float(v) for v in table.get("weights", ())),
        )
    except KeyError as error:
        raise Sim2RealError(f"{kind} posterior: field {error} is missing") from None
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise Sim2RealError(f"{kind} posterior: {error}") from None
