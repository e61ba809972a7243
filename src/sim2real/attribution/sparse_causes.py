"""What is off at all: draws of what was identified in which the rest is right.

A posterior moves every parameter a little, and where recordings tell only a combination (a mass and
a motor's gain) it moves all of them, as the prior likes it. A dimension that is right would so get
a share of the blame, and where a robot lies outside of what anybody wrote down, the prior would
decide which.

Here a dimension is believed to be right or off, with equal chances before the recordings; if it is
off, any number of its parameters is, and any of them. A parameter that is right is so up to a small
part of its prior's width; one that is off is one, two, four or eight times as far off as its prior
says, for ranges are written by people; what recordings do not tell, even if all else were known, is
off by no more than its prior says. Values beyond their bounds cannot be, so states that would need
them count as much less. How much the recordings speak for each of these states is
the evidence of the twin refitted in it: it pays for a better fit, and charges for every parameter
that would have had room to move and did not. With a Gaussian posterior the evidence of every state
follows from the one fit of everything, and states are drawn by it (Gibbs). Where recordings cannot
tell two parameters apart, draws move now one and now the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from sim2real.arrays import Bools, Floats, Ints
from sim2real.attribution.attribution import Dimensions
from sim2real.params import Empirical, GaussianPosterior, JointDistribution
from sim2real.replay import best_guess, prior_std
from sim2real.twin import Twin

_WIDTHS = np.array([0.1, 1.0, 2.0, 4.0, 8.0])
"""Spread of what is right, and of what is off, against that of its prior."""
_DECLARED = 1
"""Place of the prior's own spread among them."""
_LEAST = 1e-4
"""Standard deviation, against that of the prior, below which no posterior is believed to be."""
_TOLD = 0.05
"""What recordings tell along a direction, against the prior, below which it is nothing: the last
digits of a posterior that is as wide as its prior are chance, and would be taken for a pull."""
_CHAIN, _SETTLING, _SWAPS = 2048, 256, 8
"""Sweeps that are kept, sweeps before them, and exchanges of two parameters' states in a sweep."""
_FARTHEST = 10.0
"""Distance, in widths of the prior, beyond which no value is drawn."""


@dataclass(frozen=True, kw_only=True)
class SparseCauses:
    """Draws of who is off, and how far."""

    values: Floats
    """(draws, parameters) values of all parameters."""
    off: Bools
    """(draws, dimensions) bool: which dimensions are off in each draw."""
    chance: Floats
    """(dimensions,) probability that each dimension is off."""
    moved: Floats
    """(parameters,) probability that each parameter is off."""
    ranges: Floats
    """(3, parameters) low end, median and high end of 95 % of its values where it is off; as it was
    where it never is."""


def plausible(
    before: Twin, posterior: JointDistribution, who: Dimensions, *, draws: int, seed: int = 0
) -> SparseCauses:
    """Draws of the identified values in which a dimension may be right; see the module.

    'Right' is as in `before`, whose priors are those that the posterior was found with; a draw has
    a dimension that is right exactly there.
    """
    base = best_guess(before)
    columns = np.array([column for mine in who.columns for column in mine])
    parameters = [before.parameters[column] for column in columns]
    scales = np.array([prior_std(parameter) for parameter in parameters])
    order = [posterior.names.index(parameter.name) for parameter in parameters]
    mean, covariance, rows = _moments(posterior)
    mean = (mean[order] - base[columns]) / scales
    covariance = covariance[np.ix_(order, order)] / np.outer(scales, scales)
    of = np.repeat(np.arange(len(who.names)), [len(mine) for mine in who.columns])
    rng = np.random.default_rng(seed)
    told = Likelihood.of(mean, covariance, rows)
    chain = StateChain(told, of, rng)
    states = np.array([chain.sweep() for _ in range(_SETTLING + _CHAIN)])[_SETTLING:]
    off = np.stack([(states[:, of == k] > 0).any(axis=1) for k in range(len(who.names))], axis=1)
    low, high = np.array([parameter.bounds for parameter in parameters]).T
    low = np.maximum((low - base[columns]) / scales, -_FARTHEST)
    high = np.minimum((high - base[columns]) / scales, _FARTHEST)
    drawn = [told.draw(_WIDTHS[s], some[of], rng) for s, some in zip(states, off, strict=True)]
    x = np.array(drawn)
    within = ((states == 0) | ((x >= low) & (x <= high))).all(axis=1)
    if within.sum() >= draws:  # else there is nothing better than the nearest that can be
        states, off, x = states[within], off[within], x[within]
    rows = base[columns] + scales * x.clip(low, high)
    # Evenly spaced along where they differ most, so that a chance of one half is half of the draws.
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
    """What recordings say of parameters by themselves, in units of their priors' widths."""

    precision: Floats
    pull: Floats
    """Precision times mean."""

    @classmethod
    def of(cls, mean: Floats, covariance: Floats, samples: float) -> Likelihood:
        """From a posterior under priors of width one around zero; if its covariance is that of so
        many samples, chance in them is no information."""
        count = len(mean)
        whole = np.linalg.inv(covariance + _LEAST**2 * np.eye(count))
        chance = _TOLD
        if samples > 1:
            # The inverse of a sampled covariance is too large on average, its largest eigenvalue
            # even more so: Hartlap's factor, and the edge of Marchenko and Pastur.
            whole *= max((samples - count - 2) / (samples - 1), 1 / samples)
            chance += 1 / max(1 - math.sqrt(min(count / samples, 0.9)), 0.05) ** 2 - 1
        values, vectors = np.linalg.eigh(whole - np.eye(count))
        kept = values > chance
        along = vectors[:, kept]
        return cls((along * values[kept]) @ along.T, along @ (along.T @ (whole @ mean)))

    def log_evidence(self, widths: Floats) -> float:
        """Of priors of those widths, but for a constant."""
        whole = self.precision + np.diag(1 / widths**2)
        _, size = np.linalg.slogdet(whole)
        fit = self.pull @ np.linalg.solve(whole, self.pull)
        return float(0.5 * fit - 0.5 * size - np.log(widths).sum())

    def draw(self, widths: Floats, some: Bools, rng: np.random.Generator) -> Floats:
        """(parameters,) a draw with priors of those widths; zero where `some` is not."""
        x = np.zeros(len(widths))
        if some.any():
            precision = self.precision[np.ix_(some, some)] + np.diag(1 / widths[some] ** 2)
            values, vectors = np.linalg.eigh(precision)
            middle = vectors @ (vectors.T @ self.pull[some] / values)
            x[some] = middle + vectors @ (rng.normal(size=len(values)) / np.sqrt(values))
        return x


class StateChain:
    """States of parameters, places in `_WIDTHS`, drawn by their chances one after the other."""

    def __init__(self, told: Likelihood, of: Ints, rng: np.random.Generator) -> None:
        """`of` (parameters,) is the dimension of each; all are right at first."""
        self._told, self._of, self._rng = told, of, rng
        self._chances = [_chances_of_numbers(int(size)) for size in np.bincount(of)]
        # What nothing is told of is off by no more than its prior says.
        known = np.diag(told.precision) >= 1.0
        self._widths = np.where(known, len(_WIDTHS), _DECLARED + 1)
        self.state = np.zeros(len(of), dtype=int)

    def sweep(self) -> Floats:
        """(parameters,) the state after each of them was drawn anew."""
        self._resample()
        for _ in range(max(_SWAPS, len(self.state))):
            self._exchange()
        return self.state.copy()

    def _resample(self) -> None:
        """Draw each parameter's state, given those of all others."""
        state, of = self.state, self._of
        covariance = np.linalg.inv(self._told.precision + np.diag(1 / _WIDTHS[state] ** 2))
        mean = covariance @ self._told.pull
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
        """Let one that is off exchange its state with another that is right or otherwise off, as
        often as the evidence says (Metropolis): what stands in for another is found so."""
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
        """Log of a state's chance, but for a constant."""
        numbers = np.bincount(self._of, weights=state > 0).astype(int)
        found = sum(log[number] for log, number in zip(self._chances, numbers, strict=True))
        found -= np.log(self._widths[state > 0] - 1).sum()
        return float(found) + self._told.log_evidence(_WIDTHS[state])


def _chances_of_numbers(size: int) -> Floats:
    """(size + 1,) log chance of a set of so many parameters that are off, in a dimension of `size`:
    half for none, and half shared out evenly among numbers, then among sets of a number."""
    numbers = np.arange(1, size + 1)
    sets = gammaln(size + 1) - gammaln(numbers + 1) - gammaln(size - numbers + 1)
    return np.concatenate([[np.log(0.5)], np.log(0.5 / size) - sets])


def _moments(posterior: JointDistribution) -> tuple[Floats, Floats, float]:
    """(mean, covariance, samples that they are of) of a posterior; no samples where they are its
    own."""
    if isinstance(posterior, GaussianPosterior):
        return np.array(posterior.mean), np.array(posterior.covariance), 0.0
    assert isinstance(posterior, Empirical)
    rows, weights = np.array(posterior.samples), np.array(posterior.weights)
    weights = weights / weights.sum()
    mean = weights @ rows
    covariance = (rows - mean).T @ (weights[:, None] * (rows - mean))
    return mean, covariance, float(1 / (weights**2).sum())
