"""The first page of each room shows an example that runs."""

import doctest
import importlib
from pathlib import Path

import pytest

import sim2real

ROOMS = sorted(path.parent.name for path in Path(sim2real.__file__).parent.glob("*/__init__.py"))


@pytest.mark.parametrize("room", ROOMS)
def test_the_example_of_a_room_runs(room, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = importlib.import_module(f"sim2real.{room}")
    if not doctest.DocTestFinder(recurse=False).find(page)[0].examples:
        pytest.skip(f"{room} has no example yet")
    found = doctest.testmod(page)
    assert found.attempted
    assert not found.failed
