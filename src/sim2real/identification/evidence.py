"""What shows how good an identification is: densities, replays, and the posterior's calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError
from sim2real.gap import PRIOR_SHARES, RangeCoverage, range_coverage
from sim2real.identification.cma_es import CmaSearch
from sim2real.identification.identifiability import Identifiability
from sim2real.identification.identification import IdentifiedParameter
from sim2real.identification.most_probable import Fit
from sim2real.identification.posterior import Posterior
from sim2real.logs import ControlLog
from sim2real.params import Empirical
from sim2real.replay import ReplayedNumbers, Replayer, replayed_numbers
from sim2real.twin import Twin

_CHECKED_S = 60.0
"""Time of held-back recordings to check calibration with [s]."""


def estimates(
    fit: Fit | CmaSearch, posterior: Posterior, known: Identifiability, scatter: Floats
) -> tuple[IdentifiedParameter, ...]:
    """What is known of each fitted parameter; `scatter` (fitted, fitted) is between segments."""
    mean, std, spread = posterior.mean, posterior.std, np.sqrt(np.diag(scatter))
    found = []
    for k, parameter in enumerate(fit.problem.parameters):
        one = IdentifiedParameter(
            name=parameter.name,
            unit=parameter.unit,
            operation=parameter.operation,
            before=float(fit.problem.center[k]),
            value=float(mean[k]),
            std=float(std[k]),
            scatter=float(spread[k]),
            shrinkage=float(known.shrinkage[k]),
            at_bound=parameter.name in fit.at_bounds,
            bounds=parameter.bounds,
            prior_median=float(parameter.prior.quantiles(0.5)),
            prior_std=parameter.prior_std,
            prior_curve=parameter.prior.quantiles(PRIOR_SHARES),
            density=None,
        )
        if isinstance(posterior.distribution, Empirical):
            one = replace(one, density=_density(posterior.distribution, k, one.span))
        found.append(one)
    return tuple(found)


def before_and_after(
    twins: Sequence[Twin], logs: Sequence[ControlLog], horizon_s: float
) -> ReplayedNumbers:
    """Segments of logs as the best guesses of two twins, the old one first, predict them."""
    guesses = np.stack([twin.best_guess() for twin in twins])
    before, after = (
        Replayer(twin, ControlLog.join(logs), horizon_s=horizon_s, values=guesses)(guess[None])
        for twin, guess in zip(twins, guesses, strict=True)
    )
    return replayed_numbers(before, after)


def calibration(
    twin: Twin, logs: Sequence[ControlLog], *, draws: int
) -> tuple[RangeCoverage | None, str]:
    """How readings lie among predictions drawn from a twin's posterior, or why it is not known."""
    chosen: list[ControlLog] = []
    seconds = 0.0
    for log in logs:
        if chosen and seconds > _CHECKED_S:
            break
        chosen.append(log)
        seconds += float(np.ptp(log.times))
    try:
        return range_coverage(twin, chosen, source="posterior", draws=draws), ""
    except Sim2RealError as error:
        return None, str(error)


def _density(distribution: Empirical, k: int, at: Floats) -> Floats:
    """Smoothed density of draws at some values; its maximum is one."""
    values = np.array(distribution.samples)[:, k]
    weights = np.array(distribution.weights) / sum(distribution.weights)
    mean = weights @ values
    width = 1.06 * max(float(np.sqrt(weights @ (values - mean) ** 2)), 1e-12)
    width *= float(1.0 / (weights**2).sum()) ** -0.2
    density = np.exp(-0.5 * ((at[:, None] - values) / width) ** 2) @ weights
    return np.asarray(density / max(float(density.max()), 1e-300))
