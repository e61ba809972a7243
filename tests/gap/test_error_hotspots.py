"""Where a twin is wrong: a planted place is found, and none where there is none."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sim2real.gap.error_hotspots import find_hotspots, neighbour_blocks, ranked
from sim2real.gap.replayed_pairs import make_pairs
from tests.gap_recordings import recorded
from tests.simulated import bundle_and_twin


@pytest.fixture(scope="module")
def twin():
    return bundle_and_twin("pendulum-swingup")[1]


def short(twin, logs, seed=100):
    return make_pairs(twin, logs, horizon_s=0.1, most=1600, apart=False, seed=seed, threads=1)


@pytest.mark.slow
def test_a_push_in_one_region_is_found_there(twin):
    def push(angle, speed):
        return 0.15 * ((angle > 0.1) & (angle < 0.2))

    places = ranked(find_hotspots(short(twin, recorded(twin, seconds=30, torque=push))))
    first = places[0]
    assert first.along == "hinge_pos" and first.unit == "rad"
    assert min(first.high, 0.2) - max(first.low, 0.1) > 0.5 * min(0.1, first.high - first.low)
    assert first.p_value < 0.01 and first.excess_low > 0 and first.excess > 3 * first.elsewhere
    assert first.error > first.floor


@pytest.mark.slow
def test_friction_that_is_higher_at_low_speed_is_found_at_low_speed(twin):
    def bump(angle, speed):
        return -0.3 * torch.sign(speed) * torch.exp(-((speed / 0.3) ** 2))

    places = ranked(find_hotspots(short(twin, recorded(twin, seconds=30, torque=bump))))
    assert "speed" in places[0].along and places[0].high < 0.6
    assert places[0].p_value < 0.01


@pytest.mark.slow
def test_a_change_between_recordings_shows_once_it_had_time_to_grow(twin):
    same = recorded(twin, count=3, seconds=30)
    other = recorded(twin, count=1, seconds=30, seed=9, values={"joint/hinge/damping": 0.2})
    logs = [*same[:2], *other, same[2]]
    long = make_pairs(twin, logs, horizon_s=0.5, most=400, seed=100, threads=1)
    places = find_hotspots(short(twin, logs), long)
    assert {round(place.horizon_s, 3) for place in places} == {0.1, 0.5}
    found = [place for place in ranked(places) if place.along == "recording"]
    assert found and {place.low for place in found} == {3.0}
    assert found[-1].horizon_s == pytest.approx(0.5) and found[-1].words == "in recording 3"


@pytest.mark.slow
def test_places_of_a_right_twin_are_rare_however_many_are_looked_at(twin):
    found = 0
    for seed in range(8):
        places = find_hotspots(short(twin, recorded(twin, seconds=8, seed=seed), seed=200 + seed))
        assert len(places) > 80
        found += bool(ranked(places))
    assert found <= 2  # three of eight would be one chance in 170


def test_blocks_are_neighbours_of_one_recording(twin):
    pairs = short(twin, recorded(twin, count=2, seconds=5))
    many = replace(pairs, recording=np.repeat([0, 1, 2], [250, 100, 150]))
    blocks = neighbour_blocks(many)
    assert (np.diff(blocks) >= 0).all()
    assert len(np.unique(blocks)) == 50  # of ten segments each, which is a second
    for block in np.unique(blocks):
        assert len(np.unique(many.recording[blocks == block])) == 1
