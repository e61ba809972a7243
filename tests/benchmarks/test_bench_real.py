"""The benchmark on real recordings says what is missing, and what a number is against."""

from types import SimpleNamespace

import pytest

from benchmarks.__main__ import main
from benchmarks.real.bench import DATA_SETS, result
from tests.repository import REAL_DATA, skip_without_data


def test_recordings_that_are_not_there_are_said(tmp_path, capsys):
    assert main(["real", "--quick", "--data", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "bam_xl330/train of the folder that --data names" in said
    assert "nothing of 'real' can be tried here" in said.splitlines()[-1]


def test_a_result_stands_beside_its_target_and_what_was_published():
    arm = SimpleNamespace(
        folder="arm", published={"rms": (2.0, "theirs")}, targets={"rms": "<= 1.5"}
    )
    found = result(arm, "rms", 1.0, 3.0, "held-out recordings")
    assert (found.name, found.met, found.peer) == ("real.arm.rms", True, "2: theirs")
    assert found.note == "held-out recordings; 3 before the fit"
    assert result(arm, "lag", 1.0, None, "").met is None


@pytest.mark.parametrize("name", DATA_SETS)
def test_nothing_that_is_scored_was_fitted(name):
    module = DATA_SETS[name]
    train, test = module.train_files(REAL_DATA), module.test_files(REAL_DATA)
    if not train:
        skip_without_data(REAL_DATA / name)
    # A data set of one recording is scored as its authors do, on the record it was fitted to.
    assert len(train) == 1 or not set(train) & set(test)


def test_a_measure_with_a_remainder_has_its_own_target():
    found = result(DATA_SETS["bam_xl330"], "mae_mrad_remainder", 35.0, None, "")
    assert found.target == "<= 33" and found.met is False
