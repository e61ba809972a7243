"""The double pendulum's twin against recordings; where there are none, nothing is tested."""

import os
from pathlib import Path

import pytest

from sim2real.bench.real import double_pendulum as bench
from sim2real.bench.real.segments import segment_rms
from sim2real.gap.unknowns import best_guess
from sim2real.identify.align import aligned
from sim2real.identify.fit import fit
from sim2real.identify.problem import Problem
from sim2real.twin import Twin

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples" / "real"
DATA = Path(os.environ.get("SIM2REAL_REAL_DATA", ROOT.parent / "shared" / "real"))


def episodes(files):
    if not files:
        pytest.skip(f"no recordings of it in {DATA}; SIM2REAL_REAL_DATA says where they are")
    return [episode for file in files for episode in bench.read(file, EXAMPLES)]


def test_no_recording_is_both_fitted_and_scored():
    episodes(bench.test_files(DATA))
    assert not set(bench.train_files(DATA)) & set(bench.test_files(DATA))


def test_the_twin_as_it_stands_is_what_was_published():
    found = bench.score(Twin.load(EXAMPLES / bench.TWIN), episodes(bench.test_files(DATA))[:1])
    assert found["over_published"] == 1.0
    assert 0.03 < found["angle_rmse_rad"] < 0.2


@pytest.mark.slow
def test_a_run_tells_of_inertias_and_friction_that_predict_another_run_better():
    twin = Twin.load(EXAMPLES / bench.TWIN)
    first, second = episodes(bench.train_files(DATA)[:2])
    fitted = ("body/upper/inertia", "joint/elbow/armature", "joint/elbow/frictionloss")
    problem = Problem(twin, [aligned(first, twin)], 0.5, fitted=fitted)
    found = dict(zip(problem.names, fit(problem).values.tolist(), strict=True))
    values = best_guess(twin)
    for column, parameter in enumerate(twin.parameters):
        values[column] = found.get(parameter.name, values[column])
    before = bench.score(twin, [second])
    after = segment_rms(twin, [second], values, horizon_s=0.5)
    assert after["elbow_angle"] < 0.7 * before["elbow_rmse_rad"]
    assert after["shoulder_angle"] < 0.9 * before["shoulder_rmse_rad"]
