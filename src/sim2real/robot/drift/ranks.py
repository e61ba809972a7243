"""Evidence that a stream of numbers has moved, from ranks alone, valid whenever one looks.

As long as nothing changes, the numbers are exchangeable: each new one is equally likely to take any
place among all so far, whatever their distribution. A gambler who starts at some episode and bets
from then on that the new number is among the most extreme (as many of them as there were since the
start) plays a fair game. The evidence is the mean wealth of gamblers who start at every episode, in
both directions, so it is a martingale that begins at 1, and by Ville's inequality

    P(evidence ever reaches 1 / a) <= a.

Ties count against the gambler. Nothing is assumed of the numbers but their exchangeability.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_KEPT = 0.2
"""Share of its wealth that a gambler does not risk, so that one lost bet is not the end."""


class RankEvidence:
    """The evidence of one stream, grown number by number after a baseline."""

    def __init__(self, baseline: Sequence[float]) -> None:
        """Numbers that are not finite are left out, here and later."""
        self._seen = np.array([value for value in baseline if np.isfinite(value)])
        self._wealth = np.zeros((0, 2))
        """(starts, directions) log wealth of each gambler, the one who started first in front."""
        self.log = 0.0
        """Natural logarithm of the evidence."""
        self.most = 0.0
        """Its highest so far."""

    def add(self, value: float) -> float:
        """Take in the next number; the log of the evidence."""
        if not np.isfinite(value):
            return self.log
        self._seen = np.append(self._seen, value)
        self._wealth = np.concatenate([self._wealth, np.zeros((1, 2))])
        count, starts = len(self._seen), len(self._wealth)
        places = np.array([(self._seen >= value).sum(), (self._seen <= value).sum()])
        since = np.arange(starts, 0, -1)[:, None]
        won = places <= since
        self._wealth += np.log(_KEPT + (1 - _KEPT) * won * count / since)
        # Those who have not started yet keep what they have; the shares sum to one.
        share = 1.0 / (np.arange(1, starts + 1) * np.arange(2, starts + 2))
        waiting = 1.0 / (starts + 1)
        parts = np.log(share)[:, None] + self._wealth - np.log(2)
        top = max(float(parts.max()), 0.0)
        self.log = top + float(np.log(np.exp(parts - top).sum() + waiting * np.exp(-top)))
        self.most = max(self.most, self.log)
        return self.log
