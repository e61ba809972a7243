"""Results are values: files give them back, and pages are made of nothing but them."""

import json
import math
import subprocess
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim2real.arrays import Bools, Floats
from sim2real.cli import main
from sim2real.errors import Sim2RealError
from sim2real.evaluation import plan_trials
from sim2real.report import load_result, report_of
from sim2real.report.stored import KINDS, result_class
from sim2real.results import Result
from tests.golden.cases import EXAMPLES, MADE

NUMBERS = st.floats() | st.integers(-3, 3).map(float)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
SIMPLE = {
    float: NUMBERS, int: st.integers(-(2**60), 2**60), bool: st.booleans(), str: TEXTS,
    Path: st.just(Path("runs/loop")), type(None): st.none(),
}  # fmt: skip


def values(hint):
    """Any value that a field of this type may have."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return values(parts[0])
    if origin in (Union, types.UnionType):
        return st.one_of([values(part) for part in parts])
    if origin is Literal:
        return st.sampled_from(parts)
    if origin in (tuple, list):
        if parts[-1] is Ellipsis or origin is list:
            return st.lists(values(parts[0]), max_size=2).map(origin)
        return st.tuples(*map(values, parts))
    if origin in (dict, Mapping):
        return st.dictionaries(TEXTS, values(parts[1]), max_size=2)
    if origin is np.ndarray:
        kind = get_args(parts[1])[0]
        shapes = st.sampled_from([(0,), (3,), (2, 0), (2, 3), (50,)])
        return st.builds(
            lambda shape, seed, odd: array(kind, shape, seed, odd=odd),
            shapes, st.integers(0, 99), st.booleans(),
        )  # fmt: skip
    if is_dataclass(hint):
        return anything(hint)
    if isinstance(hint, type) and hasattr(hint, "__members__"):
        return st.sampled_from(list(hint))
    return SIMPLE[hint]


def array(kind, shape, seed, *, odd):
    found = np.random.default_rng(seed).normal(size=shape)
    if odd and found.size and kind is np.float64:
        found.flat[0] = (np.nan, np.inf, -np.inf)[seed % 3]
    return (100 * found).astype(kind) if kind is np.int64 else found.astype(kind)


def anything(kind):
    """Any value of a dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    parts = {part.name: values(hints[part.name]) for part in fields(kind) if part.compare}
    return st.builds(kind, **parts)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_what_is_read_is_what_was_written(kind, data, tmp_path_factory):
    found = data.draw(anything(result_class(kind)))
    told = json.loads(json.dumps({**found.stored()}, allow_nan=False))
    again = type(found).restored(told, "there")
    assert again == found and hash(again) == hash(found)


@dataclass(frozen=True, kw_only=True, eq=False)
class Shake(Result, kind="shake", version=2):
    """A result of two arrays."""

    hz: float
    angles: Floats
    seen: Bools


SHAKE = Shake(hz=math.inf, angles=np.array([[0.1, np.nan]]), seen=np.array([True]))


def test_a_value_is_equal_to_its_like_only(tmp_path):
    assert Shake.load(SHAKE.save(tmp_path)) == SHAKE == Shake.load(tmp_path)
    for other in (
        replace(SHAKE, hz=1.0),
        replace(SHAKE, angles=SHAKE.angles.T),
        replace(SHAKE, seen=np.array([1])),
        replace(SHAKE, angles=np.array([[0.1, -np.inf]])),
    ):
        assert other != SHAKE and other.id != SHAKE.id


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 3}, "is a shake of schema 3, and this version reads up to 2: update sim2real"),
        ({"kind": "gap"}, "is a result of kind 'gap', not 'shake'"),
        ({"fields": {"hz": 1.0}}, "needs 'angles'"),
        ({"fields": None}, "must be a table"),
        ({"angles": {"dtype": "<f8", "shape": [2], "values": "!"}}, "an array is damaged"),
        ({"angles": {"dtype": "<f8", "shape": [9], "values": [1.0]}}, "an array is damaged"),
        ({"angles": {"dtype": "O", "shape": [1], "values": [1.0]}}, "an array is damaged"),
    ],
)
def test_what_is_no_such_result_is_one_clear_line(tmp_path, change, words):
    path = SHAKE.save(tmp_path / "shake.json")
    told = json.loads(path.read_text())
    if "angles" in change:
        change = {"fields": told["fields"] | change}
    path.write_text(json.dumps(told | change))
    with pytest.raises(Sim2RealError, match=words) as caught:
        Shake.load(path)
    assert "\n" not in str(caught.value)


def test_an_older_summary_is_no_result_and_a_folder_of_two_needs_a_name(tmp_path):
    (tmp_path / "gap.json").write_text('{"twin": "arm"}')
    with pytest.raises(Sim2RealError, match="has no 'kind'; make it again"):
        load_result(tmp_path / "gap.json")
    with pytest.raises(Sim2RealError, match="holds 0 results"):
        load_result(tmp_path)
    for name in ("a.json", "b.json"):
        plan_trials(0.5, 0.9).save(tmp_path / name)
    with pytest.raises(Sim2RealError, match=r"holds 2 results: a\.json, b\.json"):
        load_result(tmp_path)
    assert load_result(tmp_path / "a.json") == plan_trials(0.5, 0.9)


def test_the_verb_makes_a_page_of_a_result(tmp_path, capsys):
    plan = plan_trials(0.5, 0.9)
    path = plan.save(tmp_path / "power.json")
    assert main(["report", str(path)]) == 0
    page = (tmp_path / "power.html").read_text()
    assert f"<td>{plan.unpaired}</td>" in page and "same conditions" in page
    capsys.readouterr()
    assert main(["report", str(path), "--json", "--out", str(tmp_path / "other.html")]) == 0
    assert json.loads(capsys.readouterr().out)["unpaired"] == plan.unpaired
    with pytest.raises(Sim2RealError, match="say where the page goes"):
        report_of(plan)
    assert main(["report", str(tmp_path / "none.json")]) == 2


WITHOUT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("mujoco", "torch"):
            raise ImportError(f"{name} is not installed")

sys.meta_path.insert(0, Blocked())
from sim2real.report import report_of
for result, page in zip(sys.argv[1::2], sys.argv[2::2]):
    report_of(result, page)
"""


def pages_without_simulation(results, folder):
    """The pages that a process makes in which neither MuJoCo nor torch can be imported."""
    pages = [folder / f"page-{k}.html" for k in range(len(results))]
    words = [str(word) for pair in zip(results, pages, strict=True) for word in pair]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [page.read_text() for page in pages]


PENDULUM = EXAMPLES / "bundles/pendulum-swingup"
FEW = ("--threads", "1", "--json")
MADE_OF = {
    "gap": ("gap", MADE / "identified/twin", "--logs", MADE / "flown/trial-0001.arrow"),
    "ranges": (
        "randomize", "show", MADE / "identified/twin", "--logs", MADE / "motions/targets.arrow",
        "--draws", "20",
    ),
    "report": (
        "identify", PENDULUM, "--logs", MADE / "motions/steps.arrow", MADE / "motions/chirp.arrow",
        "--parameters", "joint/hinge/damping", "joint/hinge/frictionloss", "--starts", "1",
    ),
    "shares": (
        "attribute", PENDULUM, "--identified", MADE / "identified", "--logs",
        MADE / "motions/steps.arrow", "--segments", "4", "--draws", "2",
    ),
}  # fmt: skip
"""Verbs by the page that they write (that of `attribute` is called report, too)."""


@pytest.mark.slow
def test_the_page_of_a_stored_result_is_the_same_where_nothing_can_be_simulated(tmp_path):
    for name, words in MADE_OF.items():
        assert main([*map(str, words), *FEW, "--out", str(tmp_path / name)]) in (0, 1)
    written = [
        next((tmp_path / name).glob("*.html")).read_text(encoding="utf-8") for name in MADE_OF
    ]
    made = pages_without_simulation([tmp_path / name for name in MADE_OF], tmp_path)
    assert made == written and all("<img" in page for page in made)
    for name in MADE_OF:
        found = load_result(tmp_path / name)
        assert type(found).restored(found.stored(), "again") == found
    with pytest.raises(Sim2RealError, match="open_twin opens the twin that was saved beside it"):
        _ = load_result(tmp_path / "report").twin
