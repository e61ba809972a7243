"""The double pendulum's twin against recordings; where there are none, nothing is tested."""

import pytest

from benchmarks.real import double_pendulum as bench
from benchmarks.real.segments import segment_rms
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


def test_the_twin_as_it_stands_is_what_was_published():
    found = bench.score(
        Twin.load(REAL_EXAMPLES / bench.TWIN), episodes(bench.test_files(REAL_DATA))[:1]
    )
    assert found["over_published"] == 1.0
    assert 0.03 < found["angle_rmse_rad"] < 0.2


@pytest.mark.slow
def test_a_run_tells_of_inertias_and_friction_that_predict_another_run_better():
    twin = Twin.load(REAL_EXAMPLES / bench.TWIN)
    first, second = episodes(bench.train_files(REAL_DATA)[:2])
    fitted = ("body/upper/inertia", "joint/elbow/armature", "joint/elbow/frictionloss")
    problem = LeastSquares(twin, [aligned(first, twin)], 0.5, fitted=fitted)
    found = dict(zip(problem.names, fit(problem).values.tolist(), strict=True))
    values = twin.best_guess()
    for column, parameter in enumerate(twin.parameters):
        values[column] = found.get(parameter.name, values[column])
    before = bench.score(twin, [second])
    after = segment_rms(twin, [second], values, horizon_s=0.5)
    assert after["elbow_angle"] < 0.7 * before["elbow_rmse_rad"]
    assert after["shoulder_angle"] < 0.9 * before["shoulder_rmse_rad"]
