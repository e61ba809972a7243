"""Today's version says what the version before the golden net was made said: see `cases.py`."""

import json

import pytest

from sim2real.tasks import registry
from tests.golden.cases import EXPECTED, Case, Renames, compare, load_cases, run_case

RENAMES = Renames.load()
CASES = [
    pytest.param(case, id=case.name, marks=[pytest.mark.slow] if case.slow else [])
    for case in load_cases()
]


@pytest.mark.parametrize("case", CASES)
def test_a_command_says_what_it_said(case: Case, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "ADDED", {})  # no tasks of other tests
    expected = json.loads((EXPECTED / f"{case.name}.json").read_text(encoding="utf-8"))
    got = run_case(case, tmp_path, RENAMES)
    differences = compare(case, expected, got, RENAMES)
    assert not differences, "\n".join(differences[:20])


def test_every_case_has_an_expected_output_and_the_other_way_round():
    assert {case.name for case in load_cases()} == {path.stem for path in EXPECTED.glob("*.json")}


def test_the_comparison_sees_a_changed_number_a_missing_key_and_a_new_sentence():
    case = Case(name="any", argv=())
    was = {"rate": 0.5, "n": 3, "why": "the pole is light"}
    assert not compare(case, was, {"rate": 0.5 + 1e-9, "n": 3, "why": was["why"]}, Renames())
    for wrong in ({**was, "rate": 0.501}, {**was, "n": 4}, {**was, "why": "it is heavy"},
                  {"rate": 0.5, "n": 3}, {**was, "more": 1}):  # fmt: skip
        assert compare(case, was, wrong, Renames())
    added = Renames(added={"files.*": ["more"]})
    file = {"files": {"a.json": {**was, "more": 1}}}
    assert not compare(case, {"files": {"a.json": was}}, file, added)
    assert compare(case, was, {**was, "more": 1}, added)
    renamed = Renames(keys={"n": "count"}, sentences={"the pole is light": "the pole is too light"})
    now = {"rate": 0.5, "count": 3, "why": "the pole is too light"}
    assert not compare(case, was, now, renamed)
