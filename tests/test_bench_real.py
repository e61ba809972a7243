"""The benchmark on real recordings says what is missing, and what a number is against."""

from types import SimpleNamespace

import pytest

from sim2real.bench.config import BenchReal
from sim2real.bench.real.bench import DATA_SETS, _result, bench_real
from sim2real.errors import Sim2RealError
from tests.repository import REAL_DATA, skip_without_data


def test_an_unknown_data_set_and_an_empty_folder_are_said(tmp_path):
    with pytest.raises(Sim2RealError, match="no data set qubee; there are emps, qube"):
        list(bench_real(BenchReal(data=tmp_path, sets=("qubee",)), lambda text: None))
    said = []
    with pytest.raises(Sim2RealError, match="no recordings to fit"):
        list(bench_real(BenchReal(data=tmp_path, sets=("qube",)), said.append))
    assert said == [f"qube: no recordings in {tmp_path / 'qube' / 'train'}, left out"]


def test_a_result_stands_beside_its_target_and_what_was_published():
    module = SimpleNamespace(PUBLISHED={"rms": (2.0, "theirs")}, TARGETS={"rms": "<= 1.5"})
    found = _result(module, "arm", "rms", 1.0, 3.0, "held-out recordings")
    assert (found.name, found.met, found.peer) == ("real.arm.rms", True, "2: theirs")
    assert found.note == "held-out recordings; 3 before the fit"
    assert _result(module, "arm", "lag", 1.0, None, "").met is None


@pytest.mark.parametrize("name", DATA_SETS)
def test_nothing_that_is_scored_was_fitted(name):
    module = DATA_SETS[name]
    train, test = module.train_files(REAL_DATA), module.test_files(REAL_DATA)
    if not train:
        skip_without_data(REAL_DATA / module.FOLDER)
    # A data set of one recording is scored as its authors do, on the record it was fitted to.
    assert len(train) == 1 or not set(train) & set(test)


def test_a_measure_with_a_remainder_has_its_own_target():
    module = DATA_SETS["bam_xl330"]
    found = _result(module, "bam_xl330", "mae_mrad_remainder", 35.0, None, "")
    assert found.target == "<= 33" and found.met is False
