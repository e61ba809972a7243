"""Sources of an episode's parameters.

A sampler gives a row of values for each (world, episode). Ranges, a twin's priors, a posterior and
the nominal twin are samplers. Draws are keyed: the same seed, world and episode give the same row,
whatever else is drawn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from sim2real.errors import Sim2RealError, nearest, number_at, table_at
from sim2real.files import read_table
from sim2real.params import (
    Distribution,
    DrawTable,
    Fixed,
    JointDistribution,
    Parameter,
    Uniform,
)
from sim2real.twin import Twin

SOURCES = ("nominal", "prior", "posterior", "adr")


class Sampler(ABC):
    """Gives the parameters of episodes; most samplers learn nothing and have no state."""

    streams: tuple[str, ...]
    """Names of the keyed draws that it needs."""

    @abstractmethod
    def values(self, p: Tensor, worlds: Tensor, episodes: Tensor) -> Tensor:
        """(n, parameters) float64 values for worlds (n,) at their episodes (n,).

        `p` (n, streams) are the keyed uniform draws of its streams.
        """

    def observe(self, worlds: Tensor, success: Tensor) -> None:  # noqa: B027
        """Learn that the episodes in `worlds` (n,) ended with `success` (n,)."""

    def state_dict(self) -> dict[str, Tensor]:
        """What a resumed run needs."""
        return {}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:  # noqa: B027
        """Continue from `state_dict`."""


class Independent(Sampler):
    """Every parameter from its own distribution."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        distributions: Sequence[Distribution],
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        self.streams = tuple(parameter.name for parameter in parameters)
        # Uniform and fixed parameters, which are nearly all, are drawn together.
        lines = [isinstance(one, Uniform | Fixed) for one in distributions]
        ends = [one.support if line else (0.0, 0.0)
                for one, line in zip(distributions, lines, strict=True)]  # fmt: skip
        low, high = torch.tensor(ends, dtype=torch.float64, device=device).view(-1, 2).unbind(1)
        self._start, self._span = low, high - low
        self._others = [(k, one) for k, one in enumerate(distributions) if not lines[k]]

    def values(self, p: Tensor, worlds: Tensor, episodes: Tensor) -> Tensor:
        """(n, parameters) values, each a function of (seed, name, world, episode) alone."""
        values = self._start + self._span * p
        for column, distribution in self._others:
            values[:, column] = distribution.quantile(p[:, column])
        return values


class FromPosterior(Independent):
    """Identified parameters jointly from a posterior, the others from their priors."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        posterior: JointDistribution,
        *,
        seed: int,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(parameters, [p.prior for p in parameters], device=device)
        columns = [
            _column(parameters, name, support, where="the posterior")
            for name, support in zip(posterior.names, posterior.support(), strict=True)
        ]
        self._columns = torch.tensor(columns, device=device)
        self._posterior = posterior
        self._seed = seed

    def values(self, p: Tensor, worlds: Tensor, episodes: Tensor) -> Tensor:
        """(n, parameters) values with the posterior's correlations."""
        values = super().values(p, worlds, episodes)
        values[:, self._columns] = self._posterior.sample(
            self._seed, worlds=worlds, episodes=episodes
        )
        return values


def make_sampler(
    twin: Twin, source: str, *, worlds: int, seed: int, device: torch.device | str = "cpu"
) -> Sampler:
    """The sampler named by `source`: nominal, prior, posterior, adr, or a file of ranges."""
    parameters = twin.parameters
    if source == "nominal":
        fixed = [Fixed(value=parameter.nominal) for parameter in parameters]
        return Independent(parameters, fixed, device=device)
    if source == "prior":
        priors = [parameter.prior for parameter in parameters]
        return Independent(parameters, priors, device=device)
    if source == "posterior":
        if twin.posterior is None:
            raise Sim2RealError(f"twin {twin.name!r} has no posterior yet; identify it first")
        return FromPosterior(parameters, twin.posterior, seed=seed, device=device)
    if source == "adr":
        from sim2real.randomize.adr import AutomaticRanges

        return AutomaticRanges(parameters, worlds=worlds, device=device)
    path = Path(source)
    if not path.is_file():
        raise Sim2RealError(
            f"{source!r} is neither a source of parameters nor a file{nearest(source, SOURCES)}"
        )
    return _from_file(twin, path, seed=seed, device=device)


def drawn(twin: Twin, source: str, *, count: int, seed: int = 0) -> Tensor:
    """(count, parameters) float64 rows from `source`: those of `count` worlds' first episodes."""
    sampler = make_sampler(twin, source, worlds=count, seed=seed)
    worlds, episodes = torch.arange(count), torch.zeros(count, dtype=torch.long)
    p = DrawTable(sampler.streams, seed=seed, device=worlds.device).draw(worlds, episodes)
    return sampler.values(p, worlds, episodes)


def _from_file(twin: Twin, path: Path, *, seed: int, device: torch.device | str) -> Sampler:
    """Ranges from a file: a table `name = distribution or number`, or a posterior.

    Parameters that the file does not name keep their nominal value.
    """
    table = read_table(path)
    data = table_at(table.get("parameters", table), f"{path}: parameters")
    if "names" in data:
        return FromPosterior(
            twin.parameters, JointDistribution.from_dict(data, f"{path}"), seed=seed, device=device
        )
    chosen: list[Distribution] = [Fixed(value=p.nominal) for p in twin.parameters]
    for name, value in data.items():
        if isinstance(value, int | float):
            given: Distribution = Fixed(value=number_at(value, f"{path}: {name}"))
        else:
            given = Distribution.from_dict(value, f"{path}: {name}")
        chosen[_column(twin.parameters, name, given.support, where=str(path))] = given
    return Independent(twin.parameters, chosen, device=device)


def _column(
    parameters: Sequence[Parameter], name: str, support: tuple[float, float], *, where: str
) -> int:
    """Column of a parameter that a file or posterior draws, if the draws are inside its bounds."""
    valid = [parameter.name for parameter in parameters]
    if name not in valid:
        raise Sim2RealError(f"{where}: the twin has no parameter {name!r}{nearest(name, valid)}")
    (least, most), (low, high) = support, parameters[valid.index(name)].bounds
    if least < low - 1e-9 or most > high + 1e-9:
        raise Sim2RealError(
            f"{where}: {name} reaches {least:g} .. {most:g}, outside its bounds {low:g} .. {high:g}"
        )
    return valid.index(name)
