"""The Qube's twin against recordings of the real one; where there are none, nothing is tested."""

import pytest

from benchmarks.real import qube as bench
from sim2real.identification.most_probable import fit
from sim2real.logs.alignment import aligned
from sim2real.replay.least_squares import LeastSquares
from sim2real.twin import Twin
from tests.repository import REAL_DATA, REAL_EXAMPLES, skip_without_data


def episodes(files):
    if not files:
        skip_without_data(REAL_DATA / bench.FOLDER)
    return [episode for file in files for episode in bench.read(file, REAL_EXAMPLES)]


def test_no_recording_is_both_fitted_and_scored():
    episodes(bench.test_files(REAL_DATA))
    assert not set(bench.train_files(REAL_DATA)) & set(bench.test_files(REAL_DATA))


@pytest.mark.slow
def test_the_delay_is_found_and_held_out_chirps_are_predicted_better():
    twin = Twin.load(REAL_EXAMPLES / bench.TWIN)
    train, test = (
        episodes(bench.train_files(REAL_DATA))[:1],
        episodes(bench.test_files(REAL_DATA))[:1],
    )
    fitted = (
        "actuator/motor/delay",
        "joint/arm/armature",
        "joint/arm/frictionloss",
        "body/pendulum/ipos[2]",
        "sensor/arm_velocity/delay",
    )
    problem = LeastSquares(twin, [aligned(e, twin) for e in train], 0.5, fitted=fitted)
    found = fit(problem)
    values = dict(zip(problem.names, found.values.tolist(), strict=True))
    assert 0.002 < values["actuator/motor/delay"] < 0.012
    assert 0.012 < values["sensor/arm_velocity/delay"] < 0.02
    before, after = bench.score(twin, test), _scored(twin, values, test)
    assert after["arm_angle"] < 0.8 * before["arm_rmse_rad"]
    assert after["arm_angle"] < 0.069 and after["arm_velocity"] < 0.56


def _scored(twin, values, test):
    whole = twin.best_guess()
    for column, parameter in enumerate(twin.parameters):
        whole[column] = values.get(parameter.name, whole[column])
    return bench.segment_rms(twin, test, whole, horizon_s=0.5, skip=25)
