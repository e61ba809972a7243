"""Gaps that are planted in twins: values of a world, its recordings, and what is believed of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from sim2real.attribute.attribution import dimensions_of
from sim2real.bench.identify.known_truth import recordings
from sim2real.data import Episode
from sim2real.evaluate.trials import run_trials
from sim2real.gap.log import Log
from sim2real.gap.sensitivity import open_parameters
from sim2real.identify.fit import fit
from sim2real.identify.posterior import posterior_of
from sim2real.identify.problem import Problem
from sim2real.params import Empirical
from sim2real.policy import Bundle
from sim2real.policy.make import twin_contract
from sim2real.policy.runtime import Runtime
from sim2real.tasks import find_task
from sim2real.twin import Twin

HORIZON_S = 0.5
_FITTED = 24
"""Segments that a fit looks at."""
_EPISODES = 2
"""Episodes of the bundled policy that are recorded beside a multisine."""


def plant(
    twin: Twin, rng: np.random.Generator
) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
    """(values, dimensions that are off, dimensions that are right); at least one of each."""
    who = dimensions_of(twin, [p.name for p in open_parameters(twin)])
    count = int(rng.integers(1, len(who.names)))
    off = set(rng.choice(len(who.names), size=count, replace=False).tolist())
    values = np.array([p.nominal for p in twin.parameters])
    for dimension in off:
        for column in who.columns[dimension]:
            chance = torch.tensor([rng.uniform()], dtype=torch.float64)
            values[column] = float(twin.parameters[column].prior.quantile(chance)[0])
    return (
        values,
        tuple(name for k, name in enumerate(who.names) if k in off),
        tuple(name for k, name in enumerate(who.names) if k not in off),
    )


def planted_twin(twin: Twin, values: np.ndarray) -> Twin:
    """The twin as one would know it who knows the world's values."""
    names = [parameter.name for parameter in twin.parameters]
    open_ = [parameter.name for parameter in open_parameters(twin)]
    samples = (tuple(float(values[names.index(name)]) for name in open_),)
    return twin.with_posterior(Empirical(names=tuple(open_), samples=samples))


def recorded(
    bundle: Bundle, twin: Twin, values: np.ndarray, *, seconds: float, seed: int
) -> list[Log]:
    """A multisine and a few episodes of the policy in the world with those values, with noise."""
    task = find_task(bundle.contract.task)
    runtime = Runtime(bundle)
    episodes: list[Episode] = []
    run_trials(
        task,
        lambda seen: torch.from_numpy(runtime.policy(seen.numpy())),
        episodes=_EPISODES,
        each=_EPISODES,
        seed=seed,
        source="nominal",
        rows=values[None],
        twin=twin,
        keep=episodes.extend,
    )
    contract = twin_contract(twin, task.rate_hz)
    return [
        *recordings(twin, values[None], seconds=seconds, rate_hz=task.rate_hz, seed=seed),
        *(Log.of(episode, contract, twin.channels) for episode in episodes),
    ]


def believed(twin: Twin, logs: Sequence[Log], *, seed: int) -> Twin:
    """The twin after an identification that knows nothing of what was planted."""
    problem = Problem(twin, logs, HORIZON_S).part(_FITTED)
    return twin.with_posterior(
        posterior_of(problem, fit(problem, seed=seed), seed=seed).distribution
    )
