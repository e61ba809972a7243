"""The cube's twin against recorded tosses; where there are none, nothing is tested."""

import numpy as np
import pytest

from benchmarks.real import cube as bench
from sim2real.identification.cma_es import gradients_mislead
from sim2real.identification.whole_recordings import WholeRecordings
from sim2real.logs.alignment import aligned
from sim2real.twin import Twin
from tests.repository import REAL_DATA, REAL_EXAMPLES, skip_without_data


@pytest.fixture(scope="module")
def twin():
    return Twin.load(REAL_EXAMPLES / bench.TWIN)


def tosses(files, count):
    if not files:
        skip_without_data(REAL_DATA / bench.FOLDER)
    return [toss for file in files[:count] for toss in bench.read(file, REAL_EXAMPLES)]


def test_no_toss_is_both_fitted_and_scored():
    tosses(bench.test_files(REAL_DATA), 1)
    assert bench.train_files(REAL_DATA)
    assert not set(bench.train_files(REAL_DATA)) & set(bench.test_files(REAL_DATA))


def test_a_path_names_its_own_toss():
    first, second = tosses(bench.test_files(REAL_DATA), 2)
    assert bench.test_files(REAL_DATA)[0].name in first.provenance.source
    assert first.id != second.id


def test_a_toss_is_scored_from_its_first_row_to_its_last(twin):
    pair = tosses(bench.test_files(REAL_DATA), 2)
    both = bench.toss_errors(twin, pair)
    alone = np.concatenate([bench.toss_errors(twin, [toss]) for toss in pair])
    assert np.allclose(both, alone)
    assert bench.score(twin, pair)["position_percent"] == pytest.approx(both[:, 0].mean())


def test_held_back_tosses_are_predicted_better_than_with_published_parameters(twin):
    errors = bench.toss_errors(twin, tosses(bench.test_files(REAL_DATA), 24))
    assert errors[:, 0].mean() < bench.PUBLISHED["position_percent"][0]
    assert errors[:, 1].mean() < bench.PUBLISHED["rotation_deg"][0]


@pytest.mark.slow
def test_gradients_mislead_where_the_cube_hits_the_table(twin):
    logs = [aligned(toss, twin) for toss in tosses(bench.train_files(REAL_DATA), 8)]
    fitted = ("geom/corner_*/friction", "geom/corner_*/damping", "body/cube/ipos[2]")
    assert gradients_mislead(WholeRecordings(twin, logs, fitted=fitted, threads=1))
    # While it flies nothing touches.
    flight = [log.part(slice(0, 6)) for log in logs]
    fitted = ("option/gravity[2]",)
    assert not gradients_mislead(WholeRecordings(twin, flight, fitted=fitted, threads=1))
    assert len(twin.best_guess()) == len(twin.parameters)
