"""These tests need an environment of their own: they run only where they are asked for by name."""

from pathlib import Path

import pytest

from tests.repository import want

HERE = Path(__file__).parent
PEERS = {"test_object_storage": "an S3 server"}


def pytest_collection_modifyitems(config, items):
    if any("interop" in str(argument) for argument in config.args):
        return
    for item in items:
        if HERE in item.path.parents:
            what = PEERS.get(item.path.stem, "LeRobot")
            item.add_marker(pytest.mark.skip(reason=want(what, "run `make test-interop`")))
