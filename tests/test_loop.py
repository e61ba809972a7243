"""The loop on stand-in hardware: it ends with a summary and a page, and resumes after a kill."""

import json
import re
from functools import partial

import pytest

from sim2real.bench.loop_kills import ended, killed, started
from sim2real.errors import Sim2RealError
from sim2real.learn.policy import Policy
from sim2real.loop import stages
from sim2real.loop.config import LoopConfig
from sim2real.loop.loop import Round, _met, loop, lower_bound
from sim2real.loop.steps import Done, Store
from sim2real.report.loop import write_loop

TINY = {"iterations": 3, "budget": "4", "first": 2, "seconds": 18.0, "force": True}


@pytest.mark.slow
def test_a_loop_ends_with_all_it_promises(tmp_path, monkeypatch):
    few = {"attribute_success": {"draws": 2, "each": 4}, "explain_failures": {"worlds": 64}}
    for name, options in few.items():
        monkeypatch.setattr(stages, name, partial(getattr(stages, name), **options))
    closed = loop(LoopConfig(task="pendulum-swingup", robot="unit:3", out=tmp_path, **TINY))
    write_loop(tmp_path / "report.html", closed)
    found = json.loads((tmp_path / "summary.json").read_text())
    for name in ("sim_success", "real_success_before", "real_success_after"):
        assert {"value", "low", "high", "n"} <= set(found[name])
    assert found["trials"] == 4 and found["recorded_s"] <= 22
    assert found["attribution"]["success"]["shares"] and len(found["rounds"]) == 2
    page = (tmp_path / "report.html").read_text()
    assert "http" not in re.sub(r"data:[^'\"]*", "", page)  # nothing from the network
    for episode in re.findall(r"href='#([0-9a-f]+)'", page):
        assert f"id='{episode}'" in page
    for link in re.findall(r"href='(steps/[^']+)'", page):
        assert (tmp_path / link).is_file()


@pytest.mark.slow
def test_a_killed_loop_goes_on_to_the_same_numbers(tmp_path):
    whole = ended(started(tmp_path / "whole", "--no-explain"))
    for seconds in (7.0, 12.0):
        assert killed(started(tmp_path / "cut", "--no-explain"), seconds)
    assert ended(started(tmp_path / "cut", "--no-explain")) == whole


def test_where_no_remainder_is_worth_keeping_a_policy_is_trained_without(tmp_path):
    steps = stages.Stages(task="pendulum-swingup", robot="", person="", threads=1)
    trained = Store(tmp_path).run(steps.train("nominal", iterations=1, remainder=True))
    assert not Policy.open(stages.run_of(trained)).run.remainder


def test_a_bound_is_for_all_attempts():
    assert lower_bound([True] * 29) >= 0.9 > lower_bound([True] * 28)
    assert lower_bound([False] * 5) == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"robot": "localhost:5555"}, "--execute"),
        ({"robot": "unit:1", "target": 1.5}, "--target"),
        ({"robot": "unit:1", "budget": "many"}, "40-trials"),
        ({"robot": "unit:1", "first": 50}, "--first"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_moves(tmp_path, options, words):
    with pytest.raises(Sim2RealError, match=words):
        loop(LoopConfig(task="pendulum-swingup", out=tmp_path, **options))
    assert not list(tmp_path.iterdir())


def test_a_loop_ends_early_only_where_nothing_could_change_the_answer(tmp_path):
    done = Done(None, tmp_path, {"success": [True] * 10}, 0.0, kept=False)
    one = Round(policy=done, known=None, sim=done, ladder=done, batches=[done])
    assert _met(one, 0.7, left=0) and not _met(one, 0.7, left=20)
    assert _met(one, 0.3, left=5)  # ten of fifteen would do
