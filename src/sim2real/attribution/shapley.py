"""Fair shares of a whole among its causes, where causes act together."""

from __future__ import annotations

import math

import numpy as np

from sim2real.arrays import Bools, Floats

_MOST_EXACT = 6
"""Most players for which every coalition is formed."""
_ORDERS = 32
"""Random orders of joining for more players."""


def coalitions(players: int) -> Bools:
    """(2**players, players) bool: who is in each coalition; row c has the bits of c."""
    rows = np.arange(2**players)[:, None]
    return np.asarray((rows >> np.arange(players)) & 1 == 1)


def shapley(worth: Floats) -> Floats:
    """(players, …) Shapley values of games in which coalition c of `coalitions` is worth worth[c].

    A player's share is what it adds when it joins, averaged over all orders of joining. The shares
    sum to the worth of all players minus that of none; a player that never adds anything gets none.
    """
    players = len(worth).bit_length() - 1
    if len(worth) != 2**players:
        raise ValueError(f"{len(worth)} coalitions: their number must be a power of two")
    inside = coalitions(players)
    size = inside.sum(axis=1)
    shares = []
    for player in range(players):
        without = np.flatnonzero(~inside[:, player])
        orders = [
            math.factorial(int(k)) * math.factorial(players - int(k) - 1) for k in size[without]
        ]
        gained = worth[without + (1 << player)] - worth[without]
        shares.append(np.tensordot(np.array(orders) / math.factorial(players), gained, axes=1))
    return np.array(shares)


def game(players: int, *, seed: int = 0) -> tuple[Bools, Floats]:
    """(coalitions (n, players) bool, weights (players, n)): weights @ worth are Shapley values.

    All coalitions of few players; of more, those of some random orders of joining, each with its
    reverse, which cancels most of the sampling error. The first coalition is empty, the last is
    complete, and shares sum to the difference of their worths either way.
    """
    if players <= _MOST_EXACT:
        inside = coalitions(players)
        return inside, shapley(np.eye(len(inside)))
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(players) for _ in range(_ORDERS // 2)]
    orders += [order[::-1] for order in orders]
    numbers = np.zeros((len(orders), players + 1), dtype=np.int64)
    for row, order in zip(numbers, orders, strict=True):
        row[1:] = np.cumsum(1 << order)
    chosen, places = np.unique(numbers, return_inverse=True)
    places = places.reshape(numbers.shape)
    weights = np.zeros((players, len(chosen)))
    for row, order in zip(places, orders, strict=True):
        np.add.at(weights, (order, row[1:]), 1.0 / len(orders))
        np.add.at(weights, (order, row[:-1]), -1.0 / len(orders))
    return (chosen[:, None] >> np.arange(players)) & 1 == 1, weights
