"""The SO-101's twin on motions of the real arm."""

import numpy as np
import pytest

from benchmarks.real import so101 as bench
from sim2real.data import Episode
from sim2real.twin import Twin
from tests.repository import REAL_DATA, REAL_EXAMPLES, skip_without_data

pytestmark = pytest.mark.slow


def motion(name: str, seconds: float) -> Episode:
    """The begin of a motion."""
    path = REAL_DATA / bench.FOLDER / "train" / name
    if not path.is_dir():
        skip_without_data(path)
    (whole,) = bench.read(path, REAL_EXAMPLES)
    start = whole.start_s
    parts = {n: s.between(start, start + seconds) for n, s in whole.signals.items()}
    return whole.derive("cut", channels=parts)


def test_a_shift_in_time_is_found_as_a_lag():
    times = np.arange(0.0, 20.0, 0.02)
    early = np.stack([np.sin(3.0 * times), np.sin(1.7 * times)], axis=1)
    late = np.stack([np.sin(3.0 * (times - 0.03)), np.sin(1.7 * (times + 0.011))], axis=1)
    assert bench.lags_s([(early, late)], 0.02) == pytest.approx([0.03, -0.011], abs=5e-4)


def test_a_lag_planted_in_a_real_motion_is_found():
    measured = motion("static_holding", 60.0)["position"]
    late = [np.interp(measured.times - 0.01, measured.times, q) for q in measured.values.T]
    found = bench.lags_s([(measured.values, np.stack(late, axis=1))], 0.02006)
    assert found == pytest.approx(np.full(5, 0.01), abs=1e-3)


def test_a_joint_that_rests_has_no_wild_lag():
    still = np.zeros((500, 1))
    assert abs(bench.lags_s([(still, still)], 0.02)[0]) <= 7 * 0.02


def test_no_motion_is_fitted_and_scored():
    train, test = bench.train_files(REAL_DATA), bench.test_files(REAL_DATA)
    if not test:
        skip_without_data(REAL_DATA / bench.FOLDER)
    assert train and not set(train) & set(test)


def test_only_jammed_motions_are_left_out_of_the_fit():
    jammed, free = motion("single_joint_wrist_roll", 80.0), motion("prbs_excitation", 80.0)
    assert bench.fit_episodes([jammed, free]) == [free]


def test_the_prior_arm_is_closer_to_the_motion_than_the_command_is():
    episode = motion("prbs_excitation", 10.0)
    taken = episode["command"].values - episode["position"].values
    found = bench.score(Twin.load(REAL_EXAMPLES / bench.TWIN), [episode])
    assert found["rms_mrad"] < 0.6 * 1e3 * float(np.sqrt(np.mean(taken**2)))
    assert found["lag_ms"] < 60
