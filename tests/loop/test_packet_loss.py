"""Packets that a link loses, and the attempts it ends by that."""

from dataclasses import replace

import numpy as np
import pytest

from sim2real.data import Episode, Provenance, Signal
from sim2real.loop.packet_loss import link_stops
from sim2real.policy import Bundle
from tests.repository import BUNDLES

BUNDLE = Bundle.open(BUNDLES / "pendulum-swingup")
PERIODS = 50 * 50
"""Of fifty seconds."""


def recorded(share: float, seed: int = 0) -> Episode:
    """A pendulum at rest whose readings stay away now and then."""
    times = np.arange(PERIODS) / 50.0
    came = np.random.default_rng(seed).random(PERIODS) >= share
    return Episode(
        channels={
            "command": Signal(times, np.zeros((PERIODS, 1))),
            "sensor/hinge_pos": Signal(times[came], np.zeros(came.sum())),
            "sensor/hinge_vel": Signal(times[came], np.zeros(came.sum())),
        },
        provenance=Provenance(kind="real"),
    )


@pytest.mark.parametrize("share", [0.01, 0.03])
def test_attempts_end_as_often_as_too_many_packets_in_a_row_are_lost(share):
    strict = replace(BUNDLE, limits=replace(BUNDLE.limits, reaction_s=0.03))  # two at 50 Hz
    lost = np.random.default_rng(1).random((20_000, 250)) < share
    truth = (lost[:, 1:] & lost[:, :-1]).any(axis=1).mean()
    found = link_stops(strict, [recorded(share, seed) for seed in range(8)], seconds=5.0)
    assert found.mean() == pytest.approx(truth, rel=0.2)
    one = link_stops(strict, [recorded(share)], seconds=5.0)
    assert one.min() < truth < one.max()


def test_a_link_that_lost_nothing_ends_hardly_an_attempt():
    assert link_stops(BUNDLE, [recorded(0.0)], seconds=5.0).max() < 1e-3


def test_limits_that_wait_longer_end_fewer():
    hasty = replace(BUNDLE, limits=replace(BUNDLE.limits, reaction_s=0.03))
    log = [recorded(0.05)]
    assert link_stops(BUNDLE, log, seconds=5.0).max() < 0.02
    assert link_stops(hasty, log, seconds=5.0).min() > 0.3
