"""Fair shares of a whole among its causes, where causes act together."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from sim2real.arrays import Bools, Floats

_MAX_EXACT_PLAYERS = 6
"""Most players for which every order of joining is taken."""
_RANDOM_ORDERS = 32
"""Random orders of joining for more players."""


def game(players: int, *, seed: int = 0) -> tuple[Bools, Floats]:
    """(coalitions (n, players) bool, weights (players, n)): weights @ worth are Shapley values.

    A player's share is what it adds when it joins, averaged over orders of joining: over all of
    them for few players, else over some random ones, each with its reverse, which cancels most of
    the sampling error. The first coalition is empty, the last is complete, and shares sum to the
    difference of their worths either way; a player that never adds anything gets none.
    """
    if players <= _MAX_EXACT_PLAYERS:
        orders = np.array(list(permutations(range(players))))
    else:
        rng = np.random.default_rng(seed)
        orders = np.array([rng.permutation(players) for _ in range(_RANDOM_ORDERS // 2)])
        orders = np.concatenate([orders, orders[:, ::-1]])
    joined = np.pad(np.cumsum(1 << orders, axis=1), ((0, 0), (1, 0)))
    chosen, places = np.unique(joined, return_inverse=True)
    places = places.reshape(joined.shape)
    joins = np.zeros((players, len(chosen)), dtype=int)
    np.add.at(joins, (orders, places[:, 1:]), 1)
    np.add.at(joins, (orders, places[:, :-1]), -1)
    return (chosen[:, None] >> np.arange(players)) & 1 == 1, joins / len(orders)
