"""`sim2real bench attribute`: gaps planted in twins, and to which dimensions they are attributed.

Each planted world has some dimensions off, drawn from their priors, and the others right. It is
recorded with noise, moving by a multisine and doing its task with the bundled policy; the twin is
identified from that, and the error attributed. Which dimension is truly the largest is known by the
same shares computed with the planted values themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from sim2real.attribute.attribution import Attribution, dimensions_of
from sim2real.attribute.trajectory import attribute_trajectory
from sim2real.bench.config import BenchAttribute
from sim2real.bench.identify.known_truth import recordings
from sim2real.bench.run import Report, Result
from sim2real.data import Episode
from sim2real.errors import Sim2RealError
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

_HORIZON_S = 0.5
_FITTED, _REPLAYED = 24, 20
"""Segments that a fit looks at, and that errors are attributed on."""
_CLEARLY = 1.5
"""Largest true share against the next, from which it is clear which is largest."""
_VISIBLE = 0.25
"""Excess error a reading [variances of its noise] from which a gap is there to be attributed."""
_TRIES = 20
"""Plants that are drawn at most until one has a largest."""
_EPISODES = 2
"""Episodes of the bundled policy that are recorded beside a multisine."""


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A world whose gap is known, and its recordings."""

    twin: Twin
    """The twin as it was, before any identification."""
    values: np.ndarray
    """(parameters,) of the world."""
    off: tuple[str, ...]
    """Dimensions that differ."""
    right: tuple[str, ...]
    """Dimensions that do not."""
    logs: tuple[Log, ...]
    truth: Attribution
    """Shares with the planted values themselves."""


def bench_attribute(config: BenchAttribute, report: Report) -> Iterator[Result]:
    """How often the largest planted dimension comes out largest, and a right one with zero."""
    hits: list[bool] = []
    covered: list[bool] = []
    misses: list[str] = []
    blamed: list[str] = []
    for number, name in enumerate(_tasks(config)):
        case = planted(name, config, seed=config.seed + number)
        found = attributed(case, seed=config.seed)
        hits.append(found.top.name == case.truth.top.name)
        if not hits[-1]:
            misses.append(f"{name} {case.truth.top.name} as {found.top.name}")
        zeros = [share for share in found.shares if share.name in case.right]
        covered += [not share.clear for share in zeros]
        blamed += [f"{name} {s.name} [{s.low:.1f}, {s.high:.1f}] %" for s in zeros if s.clear]
        report(f"{number + 1} of {config.combinations}: {name}: {_told(case, found)}")
    combinations = f"{len(hits)} combinations, {sum(hits)} right"
    yield Result(
        name="attribute.top1",
        value=float(np.mean(hits)),
        unit="share",
        target=">= 0.9",
        note=f"{combinations}; the largest by shares with the planted values"
        + (f"; missed: {', '.join(misses)}" if misses else ""),
    )
    yield Result(
        name="attribute.zero_covered",
        value=float(np.mean(covered)),
        unit="share",
        target=">= 0.9",
        note=f"{sum(covered)} of {len(covered)} planted zeros within their 95 % intervals"
        + (f"; blamed: {', '.join(blamed)}" if blamed else ""),
    )


def planted(task: str, config: BenchAttribute, *, seed: int) -> Planted:
    """A world with a gap of which one dimension is clearly the largest part, and its recordings."""
    bundle = Bundle.open(config.bundles / task)
    twin = Twin.load(bundle.twin, check=False)
    for attempt in range(_TRIES):
        rng = np.random.default_rng([seed, attempt])
        values, off, right = plant(twin, rng)
        logs = recorded(bundle, twin, values, seconds=config.seconds, seed=seed)
        known = twin.with_posterior(
            Empirical(
                names=tuple(p.name for p in open_parameters(twin)),
                samples=(tuple(_open_values(twin, values).tolist()),),
            )
        )
        try:
            truth = attribute_trajectory(
                twin, known, logs, horizon_s=_HORIZON_S, segments=_REPLAYED, draws=1
            )
        except Sim2RealError:  # too small a gap to be seen
            continue
        first, second = truth.shares[:2]
        if truth.before >= _VISIBLE and first.value >= _CLEARLY * max(second.value, 0.0):
            return Planted(
                twin=twin, values=values, off=off, right=right, logs=tuple(logs), truth=truth
            )
    raise Sim2RealError(f"no plant of {_TRIES} in twin {twin.name!r} has a largest dimension")


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


def attributed(case: Planted, *, seed: int) -> Attribution:
    """The shares after an identification that knows nothing of what was planted."""
    problem = Problem(case.twin, case.logs, _HORIZON_S).part(_FITTED)
    belief = posterior_of(problem, fit(problem, seed=seed), seed=seed).distribution
    after = case.twin.with_posterior(belief)
    return attribute_trajectory(
        case.twin, after, case.logs, horizon_s=_HORIZON_S, segments=_REPLAYED, seed=seed
    )


def _tasks(config: BenchAttribute) -> list[str]:
    """The task of each combination: in turn, the first ones once more often."""
    return [config.tasks[k % len(config.tasks)] for k in range(config.combinations)]


def _open_values(twin: Twin, values: np.ndarray) -> np.ndarray:
    """(open,) values of the parameters a prediction depends on."""
    names = [parameter.name for parameter in twin.parameters]
    return values[[names.index(parameter.name) for parameter in open_parameters(twin)]]


def _told(case: Planted, found: Attribution) -> str:
    truth = {share.name: share.value for share in case.truth.shares}
    parts = [
        f"{share.name} {share.value:.0f} [{share.low:.0f}, {share.high:.0f}]"
        f" ({truth[share.name]:.0f})"
        for share in found.shares
    ]
    return ", ".join(parts)
