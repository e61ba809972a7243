"""Gaps that are planted in a twin: some dimensions of a world are off, and the others right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim2real.attribution import dimensions_of
from sim2real.data import Episode
from sim2real.evaluation import run_trials
from sim2real.params import Empirical
from sim2real.policy import Bundle, BundlePolicy
from sim2real.replay import open_parameters
from sim2real.tasks import find_task
from sim2real.twin import Twin


@dataclass(frozen=True, kw_only=True)
class PlantedGap:
    """One world, as an analysis should find it."""

    values: np.ndarray
    """(parameters,) its values, in the twin's order."""
    off: tuple[str, ...]
    """Dimensions that differ from the twin."""
    right: tuple[str, ...]
    """Dimensions that do not."""


def plant(twin: Twin, rng: np.random.Generator) -> PlantedGap:
    """Draw some dimensions from their priors, and leave at least one as it is.

    Only parameters that a prediction depends on are drawn; all others are nominal.
    """
    who = dimensions_of(twin, [p.name for p in open_parameters(twin)])
    count = int(rng.integers(1, len(who.names)))
    off = set(rng.choice(len(who.names), size=count, replace=False).tolist())
    values = np.array([p.nominal for p in twin.parameters])
    for dimension in off:
        for column in who.columns[dimension]:
            values[column] = float(twin.parameters[column].prior.quantiles(rng.uniform()))
    return PlantedGap(
        values=values,
        off=tuple(name for k, name in enumerate(who.names) if k in off),
        right=tuple(name for k, name in enumerate(who.names) if k not in off),
    )


def truths_of(twin: Twin, count: int, seed: int) -> np.ndarray:
    """(count, parameters) draws of all a prediction depends on; the others at nominal values."""
    open_ = {parameter.name for parameter in open_parameters(twin)}
    rng = np.random.default_rng(seed)
    found = np.array([[p.nominal for p in twin.parameters]] * count)
    for column, parameter in enumerate(twin.parameters):
        if parameter.name in open_:
            found[:, column] = parameter.prior.quantiles(rng.uniform(size=count))
    return found


def planted_twin(twin: Twin, values: np.ndarray) -> Twin:
    """The twin as one would know it who knows the values (parameters,) of the world."""
    names = [parameter.name for parameter in twin.parameters]
    open_ = [parameter.name for parameter in open_parameters(twin)]
    samples = (tuple(float(values[names.index(name)]) for name in open_),)
    return twin.with_posterior(Empirical(names=tuple(open_), samples=samples))


def flown(
    bundle: Bundle, twin: Twin, values: np.ndarray, *, count: int, seed: int
) -> list[Episode]:
    """Episodes of a bundle's policy at its task, in the world with those values (parameters,)."""
    episodes: list[Episode] = []
    run_trials(
        find_task(bundle.contract.task),
        BundlePolicy(bundle),
        episodes=count,
        each=count,
        seed=seed,
        source="nominal",
        rows=values[None],
        twin=twin,
        threads=1,
        keep=episodes.extend,
    )
    return episodes
