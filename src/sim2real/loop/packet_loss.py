"""How often lost packets will end an attempt, from the packets that recordings lack.

A supervisor bridges lost packets for a moment, and stops when too many are lost in a row. No twin
simulates that stop, so a prediction of success has to know it from here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import beta

from sim2real.arrays import Floats
from sim2real.data import Episode
from sim2real.logs import ControlLog
from sim2real.policy import Bundle
from sim2real.twin import Twin

_QUANTILES = 32
"""Quantiles of the uncertain loss rate."""


def link_stops(bundle: Bundle, episodes: Sequence[Episode], *, seconds: float) -> Floats:
    """(k,) equally likely shares of attempts of `seconds` that lost packets will end.

    It assumes that packets are lost independently, at one rate; a link that fails in bursts stops
    attempts more often.
    """
    channels = Twin.load(bundle.twin, check=False).channels
    logs = [ControlLog.of(episode, bundle.contract, channels) for episode in episodes]
    periods = sum(len(log.times) for log in logs)
    lost = sum(int((~log.fresh.any(axis=1)).sum()) for log in logs)
    places = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    share = beta.ppf(places, lost + 0.5, periods - lost + 0.5)
    in_a_row = math.floor(bundle.limits.reaction_s * bundle.contract.rate_hz) + 1
    begins = share**in_a_row * (1 - share)
    found: Floats = -np.expm1(seconds * bundle.contract.rate_hz * np.log1p(-begins))
    return found
