"""The examples on the first pages of the rooms run, and print what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

import sim2real

ROOMS = sorted(path.parent.name for path in Path(sim2real.__file__).parent.glob("*/__init__.py"))


@pytest.mark.parametrize("room", ROOMS)
def test_the_example_on_a_rooms_first_page_runs(room):
    assert doctest.testmod(importlib.import_module(f"sim2real.{room}")).failed == 0
