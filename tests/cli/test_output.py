"""Tables fold between words, into the width of the terminal."""

import pytest

from sim2real.cli.output import print_table

JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")


@pytest.mark.parametrize("width", [80, 100, 200])
def test_names_never_break(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(("time (s)", *(f"{joint} (rad)" for joint in JOINTS)), [["0.00", *["-0.0990"] * 6]])
    said = capsys.readouterr().out
    assert all(joint in said for joint in JOINTS)
    assert max(map(len, said.splitlines())) <= width
    assert said.splitlines()[-1].split() == ["0.00", *["-0.0990"] * 6]


def test_a_wide_cell_folds_before_a_narrow_one(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    print_table(
        ("name", "text"), [("body/pole/mass", "a text of many words that folds"), ("b", "c")]
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("body/pole/mass  a text of") and lines[2].startswith(" " * 16)
    assert lines[-1] == f"b{' ' * 15}c"


def test_what_does_not_fit_side_by_side_gets_a_line_a_cell(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    print_table(("id", "hash"), [("a" * 30, "b" * 30)])
    assert capsys.readouterr().out == f"id: {'a' * 30}\nhash: {'b' * 30}\n\n"
