"""Every benchmark works: its `--quick` gives figures of the right names, and keeps none of them."""

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.catalogue import BENCHMARKS
from benchmarks.machine import RESULTS
from tests.repository import REAL_DATA, want


def kept(name):
    """Files of a benchmark's figures, and when each was written."""
    files = [*RESULTS.glob(f"{name}*.json"), *(RESULTS / name).rglob("*.json")]
    return {file: file.stat().st_mtime_ns for file in files}


@pytest.mark.slow
@pytest.mark.parametrize("name", [benchmark.name for benchmark in BENCHMARKS])
def test_a_quick_run_gives_figures_and_keeps_none(name, capsys):
    before = kept(name)
    code = main([name, "--quick", "--json", "--data", str(REAL_DATA)])
    said = capsys.readouterr()
    if code == 2 and "can be tried here" in said.err:
        pytest.skip(want("extra bench", said.err.splitlines()[0]))
    assert code == 0
    found = json.loads(said.out)
    assert found["bench"] == name and found["results"]
    for result in found["results"]:
        assert result["name"].startswith("tests." if name == "test-time" else f"{name}.")
        assert isinstance(result["value"], int | float)
    assert "no figures" in said.err
    assert kept(name) == before
