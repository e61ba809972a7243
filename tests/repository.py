"""Where things stand in the repository and beside it, and what a test is skipped for.

A test of what a machine may lack is skipped `for want of` it, and named in the last line of a run.
"""

import os
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parents[1]
BUNDLES = ROOT / "examples" / "bundles"
REAL_EXAMPLES = ROOT / "examples" / "real"
REAL_DATA = ROOT / os.environ.get("SIM2REAL_REAL_DATA", "../shared/real")
"""Recordings of real robots, a folder for each; they are no part of the repository."""
WANT = "for want of "


def want(what: str, remedy: str) -> str:
    """The reason of a skip: what is missing, and where it would come from."""
    return f"{WANT}{what}: {remedy}"


def skip_without_data(place: Path) -> NoReturn:
    """Skip a test whose recordings are not at a place in REAL_DATA; its data set is named."""
    data_set = REAL_DATA / place.relative_to(REAL_DATA).parts[0]
    pytest.skip(want("data", os.path.relpath(data_set, ROOT)))
