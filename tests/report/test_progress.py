"""Lines of progress where there is no terminal."""

import pytest

from sim2real.phases import phase
from sim2real.report import progress


@pytest.fixture
def seconds(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def reported(seconds, report, steps):
    for done, of in steps:
        seconds[0] += 20.0
        report(done, of)


def test_time_left_is_told_of_even_work_also_if_it_was_resumed(seconds, capsys):
    with progress.bar("train") as report:
        reported(seconds, report, [(201, 204), (202, 204), (203, 204), (204, 204)])
    assert capsys.readouterr().err.splitlines() == [
        "train: 201/204",
        "train: 202/204  40 s left",
        "train: 203/204  20 s left",
        "train: 204/204  0 s left",
    ]


@pytest.mark.parametrize("again", [[(1, 4), (2, 4)], [(3, 40), (4, 40)]])
def test_no_time_is_told_once_the_work_begins_again_or_grows(seconds, capsys, again):
    with progress.bar("loop") as report:
        reported(seconds, report, [(1, 4), (2, 4), *again])
    told = ["left" in line for line in capsys.readouterr().err.splitlines()]
    assert told == [False, True, False, False]


def test_each_part_of_the_work_has_its_name_and_no_time_left(seconds, capsys):
    with progress.bar("identify") as report:
        for name in ("fit", "posterior"):
            reported(seconds, phase(report, name), [(1, 2), (2, 2)])
    lines = ["identify, fit: 1/2", "identify, fit: 2/2"]
    lines += ["identify, posterior: 1/2", "identify, posterior: 2/2"]
    assert capsys.readouterr().err.splitlines() == lines


def test_a_plain_function_gets_the_progress_of_every_part():
    calls = []
    phase(lambda done, of: calls.append((done, of)), "fit")(1, 2)
    assert calls == [(1, 2)]
