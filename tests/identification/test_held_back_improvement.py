"""What is learned is kept only where held-back recordings say so, all of them and surely."""

import numpy as np
import pytest

from sim2real.identification.held_back_improvement import improvement

HORIZONS_S, SENSORS = (0.5, 2.0), ("angle", "speed")


def errors(*ways, recordings=6, scatter=0.02):
    """Mean squared errors without, and for ways given as ratios (horizons, sensors) of rms."""
    rng = np.random.default_rng(0)
    usual = np.array([[1e-4, 1e-2], [4e-4, 4e-2]])
    without = usual * rng.uniform(0.5, 2.0, (recordings, 2, 2))
    ratios = [np.broadcast_to(way, (recordings, 2, 2)) for way in ways]
    tried = [without * (r * rng.normal(1.0, scatter, without.shape)) ** 2 for r in ratios]
    return np.stack([without, *tried])


def judge(squares):
    return improvement(squares, HORIZONS_S, SENSORS)


def test_a_clear_gain_of_every_sensor_is_kept():
    found = judge(errors(0.7))
    assert found.why == "" and found.ratio == pytest.approx(0.7, abs=0.03)
    assert (found.after < found.before).all()


def test_a_gain_over_one_horizon_does_not_pay_for_a_loss_over_the_other():
    found = judge(errors([[1.4, 0.9], [0.5, 0.8]]))
    assert found.ratio < 0.97 and "error of angle over 0.5 s" in found.why


def test_a_gain_of_one_recording_alone_is_not_sure():
    squares = errors(np.full((6, 2, 2), 1.0), scatter=0.0)
    squares[1, 2] *= 0.01
    found = judge(squares)
    assert found.ratio < 0.97 and "too much to be sure" in found.why


def test_no_gain_is_no_gain():
    assert "not below" in judge(errors(0.99)).why


def test_of_ways_that_predict_alike_the_first_is_taken():
    alike = errors(0.9, 0.7, 0.69, scatter=0.1)
    assert judge(alike).choice == 1


def test_a_way_that_diverged_is_never_taken():
    squares = errors(0.8, 0.5)
    squares[2, 0, 1] = np.inf
    assert judge(squares).choice == 0
    assert "times as large" in judge(squares[[0, 2]]).why


def test_what_was_not_measured_does_not_count():
    squares = errors(0.7)
    squares[:, 0, 1] = np.nan
    squares[:, :, :, 1] = np.nan
    assert judge(squares).why == ""
    squares[:, 1:] = np.nan
    assert "too few" in judge(squares).why
