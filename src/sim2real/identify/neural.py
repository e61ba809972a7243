"""A posterior for simulators that give outcomes only: no likelihood, no derivative, any noise.

Parameters are drawn from the twin's priors, worlds run with them, and a normalising flow learns
which parameters belong to which outcomes (neural posterior estimation, by the library `sbi`). Asked
about the outcomes of the real robot it answers with draws. What is not asked about is drawn all the
same and forgotten, so that nuisances widen the answer as they should.

The flow sees shares of the priors (their cumulative probability) as standard normals: it has no
edge to leak over. A further round draws from the prior only where the round before left something,
which is the same posterior from fewer simulations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
import torch

from sim2real.errors import Sim2RealError, nearest
from sim2real.gap.sensitivity import best_guess, prior_std
from sim2real.identify.posterior import Posterior
from sim2real.identify.problem import Problem
from sim2real.identify.summaries import Summaries
from sim2real.params import Empirical, Key, Parameter, uniform
from sim2real.twin import Twin

Simulate = Callable[[np.ndarray], np.ndarray]
"""Outcomes (n, k) of worlds whose parameters are the rows (n, parameters) of the twin's order."""

_DRAWS = 1000
"""Draws that a posterior is kept as."""
_FEWEST = 100
"""Simulations with finite outcomes below which nothing is learned."""
_EDGE = 0.001
"""Share of a round's draws on each side that the next may leave out."""
_RATE, _PER_STEP = 1e-3, 100
"""Of the training: its rate, and the simulations that a step looks at."""
_BATCH = 256
"""Parameter vectors simulated between two reports."""


@dataclass(frozen=True, kw_only=True)
class NeuralPosterior(Posterior):
    """Beliefs learned from simulated outcomes."""

    simulations: int
    """Simulations that it was learned from."""
    outside: tuple[int, ...]
    """Outcomes of the robot that lie beyond those of all simulations: there it is a guess."""


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What a flow learned from simulations; it answers for any outcomes of the kind."""

    parameters: tuple[Parameter, ...]
    """What it may be asked about."""
    low: np.ndarray
    """(fitted,) share of each prior below which nothing was drawn."""
    high: np.ndarray
    """(fitted,) share above which nothing was drawn."""
    shares: np.ndarray
    """(simulations, fitted) of the priors that were drawn, those of earlier rounds too."""
    outcomes: np.ndarray
    """(simulations, k) what came of them; nan where nothing did."""
    flow: Any
    """Density of the shares within the bounds, as standard normals, given outcomes."""

    @property
    def used(self) -> np.ndarray:
        """(simulations,) which of them it was taught with."""
        inside = ((self.shares >= self.low) & (self.shares <= self.high)).all(axis=1)
        found: np.ndarray = inside & np.isfinite(self.outcomes).all(axis=1)
        return found

    def sample(self, observed: np.ndarray, *, draws: int = _DRAWS, seed: int = 0) -> np.ndarray:
        """(draws, fitted) shares of the priors that belong to outcomes `observed` (k,)."""
        asked = torch.from_numpy(_even(self.outcomes[self.used], observed[None])).float()
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(seed)
            drawn = self.flow.sample(torch.Size([draws]), condition=asked)
        drawn = drawn.reshape(draws, len(self.parameters)).double()
        if not torch.isfinite(drawn).all():
            raise Sim2RealError("the posterior could not be learned: take more simulations")
        found: np.ndarray = self.low + (self.high - self.low) * torch.special.ndtr(drawn).numpy()
        return found

    def posterior(self, observed: np.ndarray, *, seed: int = 0) -> NeuralPosterior:
        """Beliefs after outcomes `observed` (k,)."""
        shares = self.sample(observed, seed=seed)
        found = np.stack([_at(p, shares[:, k]) for k, p in enumerate(self.parameters)], axis=1)
        reached = self.outcomes[np.isfinite(self.outcomes).all(axis=1)]
        beyond = (observed < reached.min(axis=0)) | (observed > reached.max(axis=0))
        names = tuple(p.name for p in self.parameters)
        return NeuralPosterior(
            names=names,
            mean=found.mean(axis=0),
            covariance=np.atleast_2d(np.cov(found.T)),
            discrepancy=1.0,
            effective=float("nan"),
            distribution=Empirical(
                names=names, samples=tuple(tuple(float(v) for v in row) for row in found)
            ),
            simulations=int(self.used.sum()),
            outside=tuple(int(k) for k in np.flatnonzero(beyond)),
        )


def neural_posterior(
    twin: Twin,
    simulate: Simulate,
    observed: np.ndarray,
    *,
    fitted: Sequence[str] = (),
    simulations: int = 1000,
    rounds: int = 2,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> NeuralPosterior:
    """What outcomes `observed` (k,) of the robot tell of the twin's parameters.

    `fitted` are asked about, by default all whose prior leaves them open; the others are drawn from
    their priors too. Each of the `rounds` takes that many `simulations`.
    """
    seen = np.asarray(observed, dtype=float).ravel()
    if not np.isfinite(seen).all():
        raise Sim2RealError(f"outcome {int(np.isfinite(seen).argmin())} of the robot is no number")
    learned = None
    for round_ in range(rounds):
        done = round_ * simulations
        learned = learn(
            twin,
            simulate,
            fitted=fitted,
            simulations=simulations,
            earlier=learned,
            near=seen,
            seed=seed,
            report=lambda now, of, done=done: report(done + now, rounds * of),  # type: ignore[misc]
        )
    if learned is None:
        raise Sim2RealError("a neural posterior takes at least one round")
    return learned.posterior(seen, seed=seed)


def learn(
    twin: Twin,
    simulate: Simulate,
    *,
    fitted: Sequence[str] = (),
    simulations: int = 1000,
    earlier: Learned | None = None,
    near: np.ndarray | None = None,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Learned:
    """Learn from draws of the whole prior, to be asked about any outcomes.

    With an `earlier` one, only from where that believes outcomes `near` (k,) to come from; its
    simulations there count on.
    """
    npe = _library()
    if simulations < _FEWEST:
        raise Sim2RealError(f"{simulations} simulations teach nothing; take {_FEWEST} or more")
    asked = _asked(twin, fitted)
    low, high = np.zeros(len(asked)), np.ones(len(asked))
    width = None if near is None else len(near)
    if earlier is not None and near is not None:
        low, high = _box(earlier, near, seed)
    round_ = 0 if earlier is None else len(earlier.shares) // simulations
    shares, values = _drawn(twin, asked, low, high, simulations, seed=seed, round_=round_)
    parts = []
    for first in range(0, simulations, _BATCH):
        parts.append(_run(simulate, values[first : first + _BATCH], width))
        report(min(simulations, first + _BATCH), simulations)
    outcomes = np.concatenate(parts)
    if earlier is not None:
        shares = np.concatenate([earlier.shares, shares])
        outcomes = np.concatenate([earlier.outcomes, outcomes])
    found = Learned(
        parameters=asked, low=low, high=high, shares=shares, outcomes=outcomes, flow=None
    )
    used = found.used
    if used.sum() < _FEWEST:
        raise Sim2RealError(
            f"{int(used.sum())} of {simulations} simulations gave finite outcomes: the model"
            " diverges at most of the parameters that its priors allow"
        )
    even = _even(outcomes[used], outcomes[used])
    flow = _trained(npe, (shares[used] - low) / (high - low), even, seed)
    return Learned(
        parameters=asked, low=low, high=high, shares=shares, outcomes=outcomes, flow=flow
    )


def learned_from(
    problem: Problem,
    *,
    simulations: int = 1000,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> NeuralPosterior:
    """The posterior of a problem's parameters from summaries of its logs."""
    seen = Summaries(problem.twin, problem.logs, seed=seed, threads=problem.threads)
    return neural_posterior(
        problem.twin,
        seen,
        seen.observed,
        fitted=problem.names,
        simulations=simulations,
        seed=seed,
        report=report,
    )


def _library() -> Any:
    """The class of `sbi` that learns; a `Sim2RealError` where it is not installed."""
    try:
        from sbi.inference import NPE
    except ImportError:
        raise Sim2RealError(
            "a neural posterior needs the library sbi: pip install 'sim2real[sbi]'"
        ) from None
    return NPE


def _asked(twin: Twin, fitted: Sequence[str]) -> tuple[Parameter, ...]:
    open_ = {
        p.name: p
        for p in twin.parameters
        if prior_std(p) > 0 and not p.name.startswith("environment/")
    }
    for name in fitted:
        if name not in open_:
            twin.parameter(name)  # raises if there is none
            raise Sim2RealError(
                f"{name} cannot be learned: its prior is fixed, or no outcome depends on it"
                f"{nearest(name, open_)}"
            )
    if not open_:
        raise Sim2RealError(f"twin {twin.name!r} has no parameter whose prior is open")
    return tuple(open_[name] for name in fitted or open_)


def _drawn(
    twin: Twin,
    asked: Sequence[Parameter],
    low: np.ndarray,
    high: np.ndarray,
    count: int,
    *,
    seed: int,
    round_: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Shares (n, fitted) of the priors between low and high, and values (n, parameters)."""
    values = np.repeat(best_guess(twin)[None], count, axis=0)
    worlds, episodes = torch.arange(count), torch.full((count,), round_)
    places = {parameter.name: place for place, parameter in enumerate(asked)}
    shares = np.empty((count, len(asked)))
    for column, parameter in enumerate(twin.parameters):
        if prior_std(parameter) <= 0:
            continue
        key = Key.of(seed, f"neural/{parameter.name}")
        share = uniform(key, worlds=worlds, episodes=episodes).double().numpy()
        if parameter.name in places:
            place = places[parameter.name]
            share = low[place] + (high[place] - low[place]) * share
            shares[:, place] = share
        values[:, column] = _at(parameter, share)
    return shares, values


def _at(parameter: Parameter, share: np.ndarray) -> np.ndarray:
    """Values of the prior's quantiles."""
    p = torch.from_numpy(np.clip(share, 1e-9, 1 - 1e-9))
    return np.asarray(parameter.prior.quantile(p), dtype=float)


def _run(simulate: Simulate, values: np.ndarray, width: int | None) -> np.ndarray:
    found = np.asarray(simulate(values), dtype=float)
    if found.ndim != 2 or len(found) != len(values) or (width or found.shape[1]) != found.shape[1]:
        raise Sim2RealError(
            f"the simulator gave outcomes of shape {found.shape}, and should give"
            f" ({len(values)}, {'k' if width is None else width}): a row a world"
        )
    return found


def _even(outcomes: np.ndarray, some: np.ndarray) -> np.ndarray:
    """`some` (n, k) in widths around the middles of `outcomes`, long tails pulled in.

    Outcomes that never vary are left out.
    """
    low, middle, high = np.quantile(outcomes, [0.25, 0.5, 0.75], axis=0)
    width = np.where(high > low, 0.7413 * (high - low), outcomes.std(axis=0))
    varies = width > 1e-9 * (np.abs(middle) + 1e-9)
    if not varies.any():
        raise Sim2RealError(
            "no outcome varies with the parameters: every simulation ended alike; ask for other"
            " outcomes, or widen the priors"
        )
    found: np.ndarray = np.arcsinh((some - middle)[:, varies] / width[varies])
    return found


def _trained(npe: Any, shares: np.ndarray, outcomes: np.ndarray, seed: int) -> Any:
    """A flow that knows which shares (n, fitted) belong to which outcomes (n, k)."""
    from sbi.neural_nets import posterior_nn

    normal = torch.special.ndtri(torch.from_numpy(np.clip(shares, 1e-6, 1 - 1e-6))).float()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # Zuko's: in nflows' masked flows the first number is blind to the outcomes. In one
        # dimension an affine flow is a Gaussian and nothing else; a mixture is not.
        flow = posterior_nn("zuko_maf" if normal.shape[1] > 1 else "mdn")
        learner = npe(density_estimator=flow, tracker=_Silent(), show_progress_bars=False)
        learner.append_simulations(normal, torch.from_numpy(outcomes).float())
        with redirect_stdout(StringIO()):  # training ends with a printed remark
            return learner.train(learning_rate=_RATE, training_batch_size=_PER_STEP)


def _box(earlier: Learned, near: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Shares (fitted,) between which all lies that an earlier one leaves, and some room."""
    least, most = np.quantile(earlier.sample(near, seed=seed), [_EDGE, 1 - _EDGE], axis=0)
    room = 0.5 * (most - least)
    return np.maximum(earlier.low, least - room), np.minimum(earlier.high, most + room)


class _Silent:
    """Training leaves no files behind."""

    log_dir = None

    def log_metric(self, name: str, value: float, step: int | None = None) -> None: ...

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None: ...

    def log_params(self, params: dict[str, Any]) -> None: ...

    def add_figure(self, name: str, figure: Any, step: int | None = None) -> None: ...

    def flush(self) -> None: ...
