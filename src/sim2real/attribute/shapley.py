"""Fair shares of a whole among its causes, where causes act together."""

from __future__ import annotations

import math

import numpy as np


def coalitions(players: int) -> np.ndarray:
    """(2**players, players) bool: who is in each coalition; row c has the bits of c."""
    rows = np.arange(2**players)[:, None]
    found: np.ndarray = (rows >> np.arange(players)) & 1 == 1
    return found


def shapley(worth: np.ndarray) -> np.ndarray:
    """(players, …) Shapley values of games; coalition c, as in `coalitions`, is worth worth[c].

    A player's share is what it adds when it joins, averaged over all orders of joining. The shares
    sum to what all together are worth above none, and a player that never adds anything gets
    nothing.
    """
    players = int(len(worth)).bit_length() - 1
    if len(worth) != 2**players:
        raise ValueError(f"{len(worth)} coalitions are not all of a number of players")
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
