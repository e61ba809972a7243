"""The EMPS drive against its recording; where there is none, nothing is tested."""

import pytest

from benchmarks.real import emps as bench
from sim2real.data import Episode
from sim2real.twin import Twin
from tests.repository import REAL_DATA, REAL_EXAMPLES, skip_without_data


@pytest.fixture(scope="module")
def recording() -> Episode:
    files = bench.train_files(REAL_DATA)
    if not files:
        skip_without_data(REAL_DATA / bench.FOLDER)
    return bench.read(files[0], REAL_EXAMPLES)[0]


def cut(episode: Episode, end_s: float) -> Episode:
    channels = {name: s.between(0.0, end_s) for name, s in episode.signals.items()}
    return episode.derive("cut", channels=channels)


@pytest.mark.slow
def test_forces_give_the_published_parameters_and_less_error_than_the_published_models(recording):
    found = bench.estimation(Twin.load(REAL_EXAMPLES / bench.TWIN), [recording])
    assert found["worst_deviation"] < 2
    assert found["symmetric_error_pct"] == pytest.approx(4.083, abs=0.05)
    assert found["force_error_pct"] <= 3.1


@pytest.mark.slow
def test_the_closed_loop_is_simulated_to_within_the_published_errors(recording):
    found = bench.score(Twin.load(REAL_EXAMPLES / bench.TWIN), [cut(recording, 6.0)])
    assert found["sim_position_pct"] < 0.01375
    assert found["sim_force_pct"] < 10.0
