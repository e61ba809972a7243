"""Two-sample tests of real against simulated motion.

`mmd` is the maximum mean discrepancy with a Gaussian kernel as wide as the median distance;
`classifier` is the accuracy of a classifier on held-out segments. Samples come in pairs of segments
that start alike (see `replayed_pairs`). If the twin is right the two of a pair are exchangeable, so
p-values come from exchanging whole pairs; samples of one segment, which are correlated, stay
together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sim2real.arrays import Floats, Ints
from sim2real.plain import PlainData

if TYPE_CHECKING:
    from sim2real.gap.replayed_pairs import ReplayedPairs
    from sim2real.replay import Replay

EXCHANGES = 1999
"""Random exchanges of pairs behind a p-value."""
_FOLDS = 5
_CHUNK = 250
"""Exchanges that are classified at once: a limit on memory."""
_MAX_PRODUCTS = 150
"""Most products of features for the classifier; beyond that it gets squares only."""
_CLIPPED_AT = 8.0
"""Robust standard deviations at which a feature is clipped."""
_MAX_FOR_MEDIAN = 1000
"""Most samples that the median distance is computed from."""
_STATES_PER_SEGMENT = 4
_RESAMPLES = 1000
MIN_PAIRS = 12
"""Fewest pairs: with fewer, no exchange could be significant at 5 % after correction."""


@dataclass(frozen=True, kw_only=True)
class Distance(PlainData):
    """How far apart real and simulated samples of one kind are."""

    of: str
    """'states', or 'transitions' over a time."""
    pairs: int
    """Pairs of segments compared."""
    mmd: float
    """Squared maximum mean discrepancy, unbiased: around 0 if there is no difference."""
    mmd_p: float
    accuracy: float
    """Share of samples that the classifier assigns correctly; 0.5 is guessing."""
    accuracy_low: float
    accuracy_high: float
    """95 % interval over segments."""
    accuracy_p: float


def distances(pairs: ReplayedPairs, *, seed: int = 0) -> tuple[Distance, ...]:
    """Distances of states, and of transitions over one period and over the whole horizon.

    States are readings along the segments. A transition is the reading at the start, the commands,
    and the outcome, relative to what the twin expects from that start. That expectation is the same
    for both of a pair; without it, the motion itself would hide small differences.
    """
    period_s, last = pairs.real.period_s, pairs.steps - 1
    steps = np.unique(np.linspace(0, last, _STATES_PER_SEGMENT + 1).round().astype(int)[1:])
    found = []
    for of, real, made in [
        ("states", _states(pairs.real, steps), _states(pairs.simulated, steps)),
        *(
            (
                f"transitions over {(step + 1) * period_s:.2g} s",
                _transitions(pairs, pairs.real, step),
                _transitions(pairs, pairs.simulated, step),
            )
            for step in sorted({0, last})
        ),
    ]:
        usable = _usable(real, made)
        if usable is None or len(usable[0]) < MIN_PAIRS:
            continue
        apart, apart_p = mmd(*usable, seed=seed)
        accuracy, low, high, accuracy_p = classifier(*usable, seed=seed)
        found.append(
            Distance(
                of=of,
                pairs=len(usable[0]),
                mmd=apart,
                mmd_p=apart_p,
                accuracy=accuracy,
                accuracy_low=low,
                accuracy_high=high,
                accuracy_p=accuracy_p,
            )
        )
    return tuple(found)


def mmd(real: Floats, made: Floats, *, seed: int = 0) -> tuple[float, float]:
    """Squared discrepancy of samples (segments, samples, features), and its p-value."""
    segments, samples, _ = real.shape
    both = _scaled(real, made)
    flat = both.reshape(2, segments * samples, -1)
    rng = np.random.default_rng(seed)
    some = rng.permutation(flat.reshape(-1, flat.shape[-1]))[:_MAX_FOR_MEDIAN]
    apart = _squares(some, some)[np.triu_indices(len(some), 1)]
    middle = float(np.median(apart)) if len(apart) else 1.0
    width = max(middle, 1e-12)

    def kernel(one: int, other: int) -> Floats:
        near = np.exp(-_squares(flat[one], flat[other]) / width)
        parts = near.reshape(segments, samples, segments, samples)
        return np.asarray(parts.mean(axis=(1, 3)))

    # Exchanging the two of a pair flips the sign of its row and its column.
    table = kernel(0, 0) + kernel(1, 1) - kernel(0, 1) - kernel(1, 0)
    np.fill_diagonal(table, 0.0)
    count = segments * (segments - 1)
    signs = _signs(rng, segments)
    values = np.einsum("ps,ps->p", signs @ table, signs) / count
    value = float(table.sum() / count)
    return value, _p_value(value, values)


def classifier(real: Floats, made: Floats, *, seed: int = 0) -> tuple[float, float, float, float]:
    """Accuracy of a classifier on samples (segments, samples, features), its interval, its p-value.

    It is a linear discriminant on the features, their squares and products, by ridge regression on
    the labels. Folds are of neighbouring segments, and both segments of a pair are in one fold.
    """
    segments, samples, _ = real.shape
    both = _scaled(real, made)
    seen = _with_products(both.reshape(2 * segments * samples, -1))
    fold = np.arange(segments) * min(_FOLDS, segments) // segments
    fold_of = np.tile(np.repeat(fold, samples), 2)
    truth = np.repeat([1.0, -1.0], segments * samples)
    ridge = float(seen.shape[1])
    parts = []
    for k in range(fold.max() + 1):
        inside, outside = seen[fold_of == k], seen[fold_of != k]
        gram = outside.T @ outside + ridge * np.eye(seen.shape[1])
        parts.append((fold_of == k, fold_of != k, inside, outside, np.linalg.inv(gram)))

    def right(labels: Floats) -> Floats:
        """(rows, exchanges) whether each row is assigned correctly; one half on a tie."""
        score = np.empty_like(labels)
        for mine, others, inside, outside, inverse in parts:
            score[mine] = inside @ (inverse @ (outside.T @ labels[others]))
        return 0.5 + 0.5 * np.sign(score * labels)

    hits = right(truth[:, None])[:, 0].reshape(2, segments, samples).mean(axis=(0, 2))
    rng = np.random.default_rng(seed)
    signs = np.tile(np.repeat(_signs(rng, segments), samples, axis=1), 2) * truth
    shares = [
        right(signs[first : first + _CHUNK].T).mean(axis=0)
        for first in range(0, len(signs), _CHUNK)
    ]
    accuracy = float(hits.mean())
    again = hits[rng.integers(segments, size=(_RESAMPLES, segments))].mean(axis=1)
    low, high = np.quantile(again, [0.025, 0.975])
    return accuracy, float(low), float(high), _p_value(accuracy, np.concatenate(shares))


def _states(replay: Replay, steps: Ints) -> Floats:
    """(segments, samples, numbers) newest readings at some steps."""
    return _newest(replay.measured)[:, steps]


def _transitions(pairs: ReplayedPairs, replay: Replay, step: int) -> Floats:
    """(segments, 1, features) of the transition from the start to a step."""
    sent = pairs.command[:, : step + 1].mean(axis=1)
    came = _newest(replay.errors[0])[:, step]
    return np.concatenate([pairs.at_start(replay), sent, came], axis=1)[:, None]


def _newest(values: Floats) -> Floats:
    """(segments, periods, numbers) with missing readings filled by the ones before."""
    filled = values.copy()
    for step in range(1, values.shape[1]):
        gone = np.isnan(filled[:, step])
        filled[:, step] = np.where(gone, filled[:, step - 1], filled[:, step])
    return filled


def _usable(real: Floats, made: Floats) -> tuple[Floats, Floats] | None:
    """Features that vary, in the segments in which all of them are known; None without any."""
    known = np.all(np.isfinite(real) & np.isfinite(made), axis=1)
    often = known.mean(axis=0) > 0.5
    good = known[:, often].all(axis=1)
    real, made = real[good][..., often], made[good][..., often]
    varies = np.ptp(np.concatenate([real, made]), axis=(0, 1)) > 0 if len(real) else np.zeros(0)
    if not np.any(varies):
        return None
    return real[..., varies], made[..., varies]


def _scaled(real: Floats, made: Floats) -> Floats:
    """(2, segments, samples, features) centred, scaled and clipped, regardless of the label."""
    both = np.stack([real, made])
    middle = np.median(both, axis=(0, 1, 2))
    spread = 1.4826 * np.median(np.abs(both - middle), axis=(0, 1, 2))
    spread = np.where(spread > 0, spread, both.std(axis=(0, 1, 2)))
    return np.clip((both - middle) / np.maximum(spread, 1e-300), -_CLIPPED_AT, _CLIPPED_AT)


def _with_products(rows: Floats) -> Floats:
    """Rows with a constant, squares and products, all standardised."""
    one, other = np.triu_indices(rows.shape[1])
    if len(one) > _MAX_PRODUCTS:
        one = other = np.arange(rows.shape[1])
    found = np.concatenate([rows, rows[:, one] * rows[:, other]], axis=1)
    found -= found.mean(axis=0)
    found /= np.maximum(found.std(axis=0), 1e-12)
    return np.concatenate([np.ones((len(rows), 1)), found], axis=1)


def _squares(one: Floats, other: Floats) -> Floats:
    """Squared distances between rows."""
    apart = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1) - 2 * one @ other.T
    return np.asarray(np.maximum(apart, 0.0))


def _signs(rng: np.random.Generator, segments: int) -> Floats:
    """(exchanges, segments) -1 where a pair is exchanged."""
    return rng.choice([-1.0, 1.0], size=(EXCHANGES, segments))


def _p_value(value: float, others: Floats) -> float:
    """Share of exchanges that differ at least as much, the observed one included."""
    return float((1 + (others >= value - 1e-12).sum()) / (1 + len(others)))
