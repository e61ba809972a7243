"""The double pendulum's twin against recordings; where there are none, nothing is tested."""

import os
from pathlib import Path

import pytest

from sim2real.bench import real_double_pendulum as bench
from sim2real.bench.segments import segment_rms
from sim2real.gap.sensitivity import best_guess
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


@pytest.mark.slow
def test_friction_and_delay_alone_predict_a_held_out_run_better_than_what_was_published():
    twin = Twin.load(EXAMPLES / bench.TWIN)
    train, test = episodes(bench.train_files(DATA))[:1], episodes(bench.test_files(DATA))[:1]
    fitted = (
        "actuator/*/delay",
        "actuator/elbow/gain",
        "joint/shoulder/frictionloss",
        "joint/elbow/frictionloss",
    )
    problem = Problem(twin, [aligned(e, twin) for e in train], 0.5, fitted=fitted)
    found = dict(zip(problem.names, fit(problem).values.tolist(), strict=True))
    values = best_guess(twin)
    for column, parameter in enumerate(twin.parameters):
        values[column] = found.get(parameter.name, values[column])
    before = bench.score(twin, test)
    assert before["over_published"] == 1.0
    after = segment_rms(twin, test, values, horizon_s=0.5)
    assert after["elbow_angle"] < before["elbow_rmse_rad"]
    assert after["shoulder_angle"] < before["shoulder_rmse_rad"]
