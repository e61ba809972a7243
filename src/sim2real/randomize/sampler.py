"""Where the parameters of an episode come from.

A sampler gives a row of values for each (world, episode). Ranges, a twin's priors and a posterior
are samplers; so is the nominal twin. Draws are keyed: the same seed, world and episode give the
same row, whatever else is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

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


class Sampler(Protocol):
    """Gives the parameters of episodes."""

    streams: tuple[str, ...]
    """Names of the keyed draws it needs."""

    def values(self, p: Tensor, worlds: Tensor, episodes: Tensor) -> Tensor:
        """(n, parameters) float64 values for worlds (n,) at their episodes (n,).

        `p` (n, streams) are the keyed uniform draws of its streams.
        """
        ...

    def observe(self, worlds: Tensor, success: Tensor) -> None:
        """Learn that the episodes in `worlds` (n,) ended with `success` (n,)."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """What a resumed run needs."""
        ...

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from `state_dict`."""
        ...


class KeyedSampler:
    """A sampler that learns nothing: its draws are keyed, so there is nothing to restore."""

    def observe(self, worlds: Tensor, success: Tensor) -> None:
        """Ignore how episodes ended."""

    def state_dict(self) -> dict[str, Tensor]:
        """Nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Nothing to restore."""


class Independent(KeyedSampler):
    """Every parameter from a distribution of its own."""

    def __init__(
        self,
        parameters: Sequence[Parameter],
        distributions: Sequence[Distribution],
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        self.streams = tuple(parameter.name for parameter in parameters)
        # Uniform and fixed parameters, nearly all of them, are drawn in one line together.
        start, span = [], []
        self._others: list[tuple[int, Distribution]] = []
        for column, distribution in enumerate(distributions):
            if isinstance(distribution, Uniform | Fixed):
                low, high = distribution.support
                start.append(low)
                span.append(high - low)
            else:
                start.append(0.0)
                span.append(0.0)
                self._others.append((column, distribution))
        self._start = torch.tensor(start, dtype=torch.float64, device=device)
        self._span = torch.tensor(span, dtype=torch.float64, device=device)

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
        valid = [parameter.name for parameter in parameters]
        for name in posterior.names:
            if name not in valid:
                raise Sim2RealError(
                    f"the posterior knows {name!r}, which the twin does not{nearest(name, valid)}"
                )
        for name, (least, most) in zip(posterior.names, posterior.support(), strict=True):
            low, high = parameters[valid.index(name)].bounds
            if least < low - 1e-9 or most > high + 1e-9:
                raise Sim2RealError(
                    f"the posterior of {name} reaches {least:g} .. {most:g}, outside its bounds"
                    f" {low:g} .. {high:g}"
                )
        self._columns = torch.tensor([valid.index(name) for name in posterior.names], device=device)
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
    """Ranges from a file: a table `name = distribution or number`, or a whole posterior.

    Parameters the file does not name keep their nominal value.
    """
    table = read_table(path)
    data = table_at(table.get("parameters", table), f"{path}: parameters")
    if "names" in data:
        return FromPosterior(
            twin.parameters, JointDistribution.from_dict(data, f"{path}"), seed=seed, device=device
        )
    chosen: list[Distribution] = [Fixed(value=p.nominal) for p in twin.parameters]
    valid = [parameter.name for parameter in twin.parameters]
    for name, value in data.items():
        if name not in valid:
            raise Sim2RealError(
                f"{path}: twin {twin.name!r} has no parameter {name!r}{nearest(name, valid)}"
            )
        column = valid.index(name)
        if isinstance(value, int | float):
            chosen[column] = Fixed(value=number_at(value, f"{path}: {name}"))
        else:
            chosen[column] = Distribution.from_dict(value, f"{path}: {name}")
        low, high = twin.parameters[column].bounds
        least, most = chosen[column].support
        if least < low - 1e-9 or most > high + 1e-9:
            raise Sim2RealError(
                f"{path}: {name} reaches {least:g} .. {most:g}, outside its bounds"
                f" {low:g} .. {high:g}"
            )
    return Independent(twin.parameters, chosen, device=device)
