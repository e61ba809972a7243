"""Algorithms of the loop: none changes without a new version, or a reason why results are the same.

If the first test fails, it says what to do.
"""

import tomllib
from dataclasses import replace

import pytest

from benchmarks.algorithms import (
    FILE,
    RecordedCode,
    modules_of,
    record_algorithms,
    tree_hash,
    unexplained,
    unrecorded,
)
from sim2real.errors import Sim2RealError
from sim2real.loop import Algorithm, Stages
from sim2real.loop.algorithms import versions_of

CODE = '''"""A module."""
LIMIT = 3
"""A field."""


def half(x):
    """Half of it."""
    if x > LIMIT:
        raise ValueError(f"{x} is too much")
    return x / 2  # exact
'''


@pytest.mark.slow
def test_no_algorithm_has_changed_without_a_new_version_or_a_reason():
    before, now = RecordedCode.read(), RecordedCode.of()
    assert not unexplained(before, now), "\n".join(unexplained(before, now))
    left = unrecorded(before, now)
    assert not left, f"run `python -m benchmarks algorithms` to record {', '.join(left)}"


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("  # exact", "", True),
        ("Half of it.", "It, halved.", True),
        ("A field.", "A limit.", True),
        ("is too much", "must be at most 3", True),
        ("\n\n\ndef", "\n\ndef", True),
        ("x / 2", "x / 3", False),
        ("LIMIT = 3", "LIMIT = 4", False),
        ("ValueError", "TypeError", False),
        ("x > LIMIT", "x >= LIMIT", False),
    ],
)
def test_words_are_no_change_of_an_algorithm_and_code_is(old, new, same):
    assert old in CODE
    assert (tree_hash(CODE.replace(old, new)) == tree_hash(CODE)) == same


@pytest.fixture
def package(tmp_path):
    """A package of two rooms."""
    files = {
        "fit/__init__.py": "from some.fit.noise import noise\n",
        "fit/search.py": (
            "from typing import TYPE_CHECKING\nfrom some.fit import noise\n"
            "from some.data import read\nif TYPE_CHECKING:\n    from some.fit.page import Page\n"
        ),
        "fit/noise.py": "noise = 1\n",
        "fit/page.py": "class Page: ...\n",
        "data/__init__.py": "from some.data.read import read\n",
        "data/read.py": "read = 1\n",
    }
    for name, text in files.items():
        path = tmp_path / "some" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "some"


def test_what_a_module_imports_from_its_own_room_is_part_of_its_algorithm(package):
    search = Algorithm(name="search", modules=("fit.search",))
    assert modules_of(search, package) == ("fit.noise", "fit.search")
    whole = Algorithm(name="all", modules=("fit.*", "data.read"))
    assert modules_of(whole, package) == ("data.read", "fit.noise", "fit.page", "fit.search")
    with pytest.raises(Sim2RealError, match=r"fit\.serach"):
        modules_of(Algorithm(name="search", modules=("fit.serach",)), package)


def test_a_change_asks_for_a_version_or_a_reason(package):
    search = Algorithm(name="search", modules=("fit.search",))
    before = RecordedCode.of([search], package)
    (package / "fit" / "noise.py").write_text("noise = 2\n")
    now = RecordedCode.of([search], package)
    (line,) = unexplained(before, now)
    assert line.startswith("search: fit.noise changed") and "--same" in line
    raised = RecordedCode.of([replace(search, version=2)], package)
    assert not unexplained(before, raised) and unrecorded(before, raised) == ["search"]


@pytest.mark.slow
def test_a_reason_is_recorded_and_nothing_without_one(tmp_path, capsys):
    file = tmp_path / "algorithms.toml"
    module = next(iter(RecordedCode.read().algorithms["stand-in"].modules))
    text = FILE.read_text().replace(RecordedCode.read().modules[module], "0" * 16)
    file.write_text(text)
    assert record_algorithms(file=file) == 1 and file.read_text() == text
    assert "stand-in: " + module in capsys.readouterr().err
    assert record_algorithms("a name", file=file) == 0
    entry = tomllib.loads(file.read_text())["same"][-1]
    assert entry == {"reason": "a name", "modules": [module]}
    assert RecordedCode.read(file).modules == RecordedCode.read().modules
    with pytest.raises(Sim2RealError, match="--same"):
        record_algorithms("again", file=file)


def test_what_an_algorithm_builds_on_is_part_of_its_version():
    assert {"attribution", "identification", "replay", "simulation"} == set(
        versions_of("attribution")
    )
    with pytest.raises(Sim2RealError, match="did you mean 'training'"):
        versions_of("trainning")


def test_every_step_says_which_algorithm_makes_it():
    made = Stages(task="pendulum-swingup", robot="unit:3", person="me")
    recorded, policy = made.record(seconds=18.0), made.train("nominal")
    bundle, known = made.export(policy), made.identify((recorded,))
    ladder = made.ladder(bundle, recorded)
    tried = made.trials(bundle, ladder, first=0, count=2)
    steps = (
        recorded, policy, bundle, known, ladder, tried, made.evaluate(policy),
        made.predict(policy, recorded), made.scatter(known), made.seen(known, (recorded,)),
        made.remainder(known, (recorded,)), made.widen(lambda twin: twin),
        made.attribute(policy, known, recorded, (tried,)), made.failures(policy, None, (tried,)),
    )  # fmt: skip
    assert all(step.algorithms for step in steps)
