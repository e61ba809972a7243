"""Which dimensions are off at all: draws of the posterior in which the others are exactly right.

A posterior moves every parameter a little, and where recordings determine only a combination (a
mass and a motor's gain), it moves all of them by as much as their priors allow. A dimension that is
right would then get a share of the blame.

Here each dimension is either right or off, with prior probability one half; if it is off, any of
its parameters may be. A parameter that is right still deviates by a small part of its prior's
width. One that is off deviates by one, two, four or eight widths, because people write priors; a
parameter that the recordings would not determine even with all others known gets one width only.
Values outside their bounds are ruled out. The evidence (marginal likelihood) of each of these
states rewards a better fit and penalises every parameter that was free to move and did not. With a
Gaussian posterior, the evidence of every state follows from the one fit of all parameters, and
states are drawn in proportion to it (Gibbs sampling). Where recordings cannot separate two
parameters, some draws move one and some the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from sim2real.arrays import Bools, Floats, Ints
from sim2real.attribution.attribution import Dimensions
from sim2real.params import JointDistribution
from sim2real.twin import Twin

_WIDTHS = np.array([0.1, 1.0, 2.0, 4.0, 8.0])
"""Spreads of a parameter that is right and of one that is off, relative to its prior's."""
_DECLARED = 1
"""Index of the prior's own spread among them."""
_MIN_RELATIVE_STD = 1e-4
"""Least standard deviation of a posterior, relative to the prior's."""
_MIN_INFORMATION = 0.05
"""Information along a direction, relative to the prior's, below which it counts as none: the last
digits of a posterior as wide as its prior are rounding, and would look like information."""
_KEPT_SWEEPS, _BURN_IN_SWEEPS, _SWAPS_PER_SWEEP = 2048, 256, 8
"""Sweeps that are kept, sweeps before them, and least exchanges of two parameters' states in a
sweep."""
_MAX_DISTANCE = 10.0
"""Distance, in widths of the prior, beyond which no value is drawn."""


@dataclass(frozen=True, kw_only=True)
class SparseCauses:
    """Draws of which parameters are off, and how far."""

    values: Floats
    """(draws, parameters) values of all parameters."""
    off: Bools
    """(draws, dimensions) bool: which dimensions are off in each draw."""
    chance: Floats
    """(dimensions,) probability that each dimension is off."""
    moved: Floats
    """(parameters,) probability that each parameter is off."""
    ranges: Floats
    """(3, parameters) median and ends of the 95 % interval of each parameter where it is off, low
    end first; its old value if it never is."""


def plausible(
    before: Twin, posterior: JointDistribution, who: Dimensions, *, draws: int, seed: int = 0
) -> SparseCauses:
    """Draws of the identified values in which a dimension may be right; see the module.

    A dimension that is right in a draw has exactly the values of `before`, whose priors are those
    that the posterior was found with.
    """
    base = before.best_guess()
    columns = np.array([column for mine in who.columns for column in mine])
    parameters = [before.parameters[column] for column in columns]
    scales = np.array([parameter.prior_std for parameter in parameters])
    order = [posterior.names.index(parameter.name) for parameter in parameters]
    mean, covariance = posterior.moments()
    mean = (mean[order] - base[columns]) / scales
    covariance = covariance[np.ix_(order, order)] / np.outer(scales, scales)
    of = np.repeat(np.arange(len(who.names)), [len(mine) for mine in who.columns])
    rng = np.random.default_rng(seed)
    likelihood = Likelihood.of(mean, covariance, posterior.effective_samples)
    chain = StateChain(likelihood, of, rng)
    states = np.array([chain.sweep() for _ in range(_BURN_IN_SWEEPS + _KEPT_SWEEPS)])[
        _BURN_IN_SWEEPS:
    ]
    off = np.stack([(states[:, of == k] > 0).any(axis=1) for k in range(len(who.names))], axis=1)
    low, high = np.array([parameter.bounds for parameter in parameters]).T
    low = np.maximum((low - base[columns]) / scales, -_MAX_DISTANCE)
    high = np.minimum((high - base[columns]) / scales, _MAX_DISTANCE)
    both = zip(states, off, strict=True)
    x = np.array([likelihood.draw(_WIDTHS[state], some[of], rng) for state, some in both])
    within = ((states == 0) | ((x >= low) & (x <= high))).all(axis=1)
    if within.sum() >= draws:  # else clip all of them
        states, off, x = states[within], off[within], x[within]
    rows = base[columns] + scales * x.clip(low, high)
    # Evenly spaced along their main direction: a probability of one half is half of the draws.
    _, _, directions = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    alike = np.lexsort([x @ directions[0], *off.T])
    levels = (np.arange(draws) + rng.uniform()) / draws
    chosen = rng.permutation(alike[(levels * len(states)).astype(int)])
    values = np.repeat(base[None], draws, axis=0)
    values[:, columns] = rows[chosen]
    moved, ranges = np.zeros(len(base)), np.repeat(base[None], 3, axis=0)
    for place, column in enumerate(columns):
        mine = states[:, place] > 0
        moved[column] = mine.mean()
        if mine.any():
            ranges[:, column] = np.percentile(rows[mine, place], [2.5, 50.0, 97.5])
    return SparseCauses(
        values=values, off=off[chosen], chance=off.mean(axis=0), moved=moved, ranges=ranges
    )


@dataclass(frozen=True)
class Likelihood:
    """What the recordings alone say about parameters, in units of their priors' widths."""

    precision: Floats
    pull: Floats
    """Precision times mean."""

    @classmethod
    def of(cls, mean: Floats, covariance: Floats, samples: float) -> Likelihood:
        """From a posterior under priors of width one around zero. If its covariance was estimated
        from a number of samples, their scatter does not count as information."""
        count = len(mean)
        whole = np.linalg.inv(covariance + _MIN_RELATIVE_STD**2 * np.eye(count))
        chance = _MIN_INFORMATION
        if samples > 1:
            # The inverse of a sampled covariance is too large on average, and its largest
            # eigenvalue even more so: Hartlap's factor, and the Marchenko-Pastur edge.
            whole *= max((samples - count - 2) / (samples - 1), 1 / samples)
            chance += 1 / max(1 - math.sqrt(min(count / samples, 0.9)), 0.05) ** 2 - 1
        values, vectors = np.linalg.eigh(whole - np.eye(count))
        kept = values > chance
        along = vectors[:, kept]
        return cls((along * values[kept]) @ along.T, along @ (along.T @ (whole @ mean)))

    def log_evidence(self, widths: Floats) -> float:
        """Log evidence under priors of those widths, up to a constant."""
        whole = self.precision + np.diag(1 / widths**2)
        _, size = np.linalg.slogdet(whole)
        fit = self.pull @ np.linalg.solve(whole, self.pull)
        return float(0.5 * fit - 0.5 * size - np.log(widths).sum())

    def draw(self, widths: Floats, some: Bools, rng: np.random.Generator) -> Floats:
        """(parameters,) a draw under priors of those widths; zero where `some` is False."""
        x = np.zeros(len(widths))
        if some.any():
            precision = self.precision[np.ix_(some, some)] + np.diag(1 / widths[some] ** 2)
            values, vectors = np.linalg.eigh(precision)
            middle = vectors @ (vectors.T @ self.pull[some] / values)
            x[some] = middle + vectors @ (rng.normal(size=len(values)) / np.sqrt(values))
        return x


class StateChain:
    """Gibbs sampler of the parameters' states, which are indices into `_WIDTHS`."""

    def __init__(self, likelihood: Likelihood, of: Ints, rng: np.random.Generator) -> None:
        """`of` (parameters,) is the dimension of each; all are right at first."""
        self._likelihood, self._of, self._rng = likelihood, of, rng
        self._chances = [_chances_of_numbers(int(size)) for size in np.bincount(of)]
        # A parameter that the recordings do not determine gets no more than its prior's width.
        known = np.diag(likelihood.precision) >= 1.0
        self._widths = np.where(known, len(_WIDTHS), _DECLARED + 1)
        self.state = np.zeros(len(of), dtype=int)
        self._known_chances: dict[bytes, float] = {}  # a chain comes back to few states

    def sweep(self) -> Floats:
        """(parameters,) the state after each of them was drawn again."""
        self._resample()
        for _ in range(max(_SWAPS_PER_SWEEP, len(self.state))):
            self._exchange()
        return self.state.copy()

    def _resample(self) -> None:
        """Draw each parameter's state, given those of all others."""
        state, of = self.state, self._of
        known = self._likelihood
        covariance = np.linalg.inv(known.precision + np.diag(1 / _WIDTHS[state] ** 2))
        mean = covariance @ known.pull
        for j in self._rng.permutation(len(state)):
            others = int((state[of == of[j]] > 0).sum()) - int(state[j] > 0)
            narrower = 1 / _WIDTHS**2 - 1 / _WIDTHS[state[j]] ** 2
            ratio = 1 + narrower * covariance[j, j]
            logs = -0.5 * np.log(ratio) - 0.5 * narrower * mean[j] ** 2 / ratio - np.log(_WIDTHS)
            logs[0] += self._chances[of[j]][others]
            logs[1:] += self._chances[of[j]][others + 1] - np.log(self._widths[j] - 1)
            logs[self._widths[j] :] = -np.inf
            weights = np.exp(logs - logs.max())
            new = int(self._rng.choice(len(_WIDTHS), p=weights / weights.sum()))
            if new != state[j]:
                state[j] = new
                step = narrower[new] / ratio[new]
                mean = mean - step * mean[j] * covariance[j]
                covariance = covariance - step * np.outer(covariance[j], covariance[j])

    def _exchange(self) -> None:
        """Exchange the state of a parameter that is off with that of another (Metropolis step);
        this finds parameters that can stand in for each other."""
        state = self.state
        if not state.any():
            return
        one = self._rng.choice(np.flatnonzero(state))
        others = np.flatnonzero(state != state[one])
        if not len(others):
            return
        other = self._rng.choice(others)
        swapped = state.copy()
        swapped[[one, other]] = state[[other, one]]
        if (swapped >= self._widths).any():
            return
        gain = self.log_chance(swapped) - self.log_chance(state)
        if np.log(self._rng.uniform()) < gain:
            self.state = swapped

    def log_chance(self, state: Ints) -> float:
        """Log probability of a state, up to a constant."""
        key = state.tobytes()
        if key not in self._known_chances:
            self._known_chances[key] = self._log_chance(state)
        return self._known_chances[key]

    def _log_chance(self, state: Ints) -> float:
        numbers = np.bincount(self._of, weights=state > 0).astype(int)
        found = sum(log[number] for log, number in zip(self._chances, numbers, strict=True))
        found -= np.log(self._widths[state > 0] - 1).sum()
        return float(found) + self._likelihood.log_evidence(_WIDTHS[state])


def _chances_of_numbers(size: int) -> Floats:
    """(size + 1,) log prior of a set of 0, 1, … parameters being off in a dimension of `size`: one
    half for none; the other half evenly among the numbers, then among the sets of a number."""
    numbers = np.arange(1, size + 1)
    sets = gammaln(size + 1) - gammaln(numbers + 1) - gammaln(size - numbers + 1)
    return np.concatenate([[np.log(0.5)], np.log(0.5 / size) - sets])
