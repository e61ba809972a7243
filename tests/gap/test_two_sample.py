"""Two-sample tests: silent where nothing differs, and sure where something does."""

import numpy as np
import pytest

from sim2real.gap.replayed_pairs import make_pairs
from sim2real.gap.two_sample import MIN_PAIRS, classifier, distances, mmd
from sim2real.intervals import holm
from tests.gap_recordings import recorded
from tests.simulated import bundle_and_twin

FRICTION = "joint/hinge/frictionloss"


@pytest.fixture(scope="module")
def twin():
    return bundle_and_twin("pendulum-swingup")[1]


def samples(rng, *, segments=60, within=4, features=3):
    """Samples that go together within a segment: all scatter around one place."""
    place = rng.normal(size=(segments, 1, features))
    return place + 0.2 * rng.normal(size=(segments, within, features))


@pytest.mark.parametrize(
    "test", [lambda *a, **k: mmd(*a, **k)[1], lambda *a, **k: classifier(*a, **k)[3]]
)
def test_samples_that_depend_on_each_other_are_not_taken_for_more_than_they_are(test, monkeypatch):
    monkeypatch.setattr("sim2real.gap.two_sample.EXCHANGES", 199)
    rng = np.random.default_rng(0)
    p_values = [test(samples(rng), samples(rng), seed=k) for k in range(60)]
    # Of 60, three are expected below 5 %; ten would be one chance in a thousand.
    assert np.mean(np.array(p_values) <= 0.05) < 10 / 60
    assert 0.35 < np.mean(p_values) < 0.65


def test_a_shift_a_spread_and_a_relation_are_told():
    rng = np.random.default_rng(1)
    one, other = samples(rng, within=1, segments=200), samples(rng, within=1, segments=200)
    turned = other.copy()
    turned[..., 1] = 0.9 * turned[..., 0] + 0.45 * turned[..., 1]
    for changed in (other + np.array([0.7, 0, 0]), 1.8 * other, turned):
        apart, apart_p = mmd(one, changed)
        accuracy, low, high, accuracy_p = classifier(one, changed)
        assert apart > 0.005 and apart_p < 0.01
        assert 0.5 < low < accuracy < high and accuracy_p < 0.01


def test_a_feature_in_other_units_changes_nothing():
    rng = np.random.default_rng(2)
    one, other = samples(rng), samples(rng) + 0.3
    units = np.array([1000.0, 1.0, 1e-3])
    assert mmd(one * units, other * units)[0] == pytest.approx(mmd(one, other)[0])
    assert classifier(one * units, other * units) == pytest.approx(classifier(one, other))


def test_the_fewest_pairs_that_are_tested_can_show_a_difference():
    rng = np.random.default_rng(3)
    one, other = (samples(rng, segments=MIN_PAIRS) + far for far in (0.0, 30.0))
    looks = [mmd(one, other)[1], classifier(one, other)[3]] * 4
    assert min(holm(looks)) < 0.025


def test_many_looks_are_corrected_as_holm_does():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


@pytest.mark.slow
def test_a_twin_against_itself_is_not_told_from_it(twin, monkeypatch):
    monkeypatch.setattr("sim2real.gap.two_sample.EXCHANGES", 99)
    p_values = []
    for seed in range(8):
        logs = recorded(twin, seconds=8, seed=seed)
        pairs = make_pairs(twin, logs, horizon_s=0.5, most=400, seed=100 + seed, threads=1)
        p_values.append([p for d in distances(pairs) for p in (d.mmd_p, d.accuracy_p)])
    assert np.shape(p_values) == (8, 6)
    below = np.mean(np.array(p_values) <= 0.05, axis=0)
    assert (below <= 2 / 8).all()  # three of eight would be one chance in 170
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.15)


@pytest.mark.slow
def test_more_friction_is_told_by_both_tests(twin):
    logs = recorded(twin, seconds=20, values={FRICTION: 0.06})
    pairs = make_pairs(twin, logs, horizon_s=0.5, most=400, threads=1)
    found = {distance.of: distance for distance in distances(pairs)}
    assert list(found) == ["states", "transitions over 0.02 s", "transitions over 0.5 s"]
    far = found["transitions over 0.5 s"]
    assert far.mmd_p < 0.002 and far.accuracy_p < 0.002
    assert far.accuracy > 0.7 and far.accuracy > found["transitions over 0.02 s"].accuracy
