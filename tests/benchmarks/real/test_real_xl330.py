"""The XL330's twin on the logs of the real servo."""

import numpy as np
import pytest

from benchmarks.real import xl330 as bench
from sim2real.logs.alignment import aligned
from sim2real.twin import Twin
from tests.repository import REAL_DATA, REAL_EXAMPLES, skip_without_data

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def logs():
    files = bench.test_files(REAL_DATA)
    if not files:
        skip_without_data(REAL_DATA / bench.FOLDER)
    return [episode for file in files for episode in bench.read(file, REAL_EXAMPLES)]


@pytest.fixture(scope="module")
def twin():
    return Twin.load(REAL_EXAMPLES / bench.TWIN)


def test_no_gain_is_fitted_and_scored(logs):
    train = [e for f in bench.train_files(REAL_DATA) for e in bench.read(f, REAL_EXAMPLES)]
    fitted = {e.provenance.calibration["kp"] for e in train}
    assert fitted and not fitted & {e.provenance.calibration["kp"] for e in logs}


def test_a_log_states_its_gain_and_when_its_drive_was_on(logs, twin):
    dropped = next(e for e in logs if e.provenance.task == "lift_and_drop")
    log = aligned(dropped, twin)
    volts = float(dropped.provenance.calibration["kp"]) * 4096 / (2 * np.pi) / (256 * 885) * 7.4
    assert log.known["actuator/servo/kp"][0] == pytest.approx(volts, rel=1e-3)
    assert log.enabled is not None and 0.2 < log.enabled.mean() < 0.5


def test_the_prior_servo_follows_logs_of_any_gain_roughly(logs, twin):
    assert bench.score(twin, logs)["mae_mrad"] < 150


def test_a_drive_that_is_taken_as_always_on_does_not_drop_its_load(logs, twin):
    dropped = next(e for e in logs if e.provenance.task == "lift_and_drop")
    channels = {n: c for n, c in dropped.channels.items() if n != "torque_enable"}
    driven = dropped.derive("without the switch", channels=channels)
    right, wrong = (bench.score(twin, [e])["mae_mrad"] for e in (dropped, driven))
    assert wrong > 2 * right
