"""The loop on stand-in hardware: it ends with a summary and a page, and resumes after a kill."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from sim2real.errors import Sim2RealError
from sim2real.loop import stages
from sim2real.loop.config import LoopConfig
from sim2real.loop.loop import Round, _met, loop, lower_bound
from sim2real.loop.steps import Done
from sim2real.report.loop import write_loop

TINY = {"iterations": 3, "budget": "4", "first": 2, "seconds": 18.0, "force": True}
_ID = re.compile(r"\b(?=[0-9]*[a-f])(?:[0-9a-f]{8}|[0-9a-f]{32})\b")
"""Ids of episodes: they have the time of their recording in them."""


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
    whole = numbers(tmp_path / "whole")
    for seconds in (7.0, 12.0):
        process = subprocess.Popen(command(tmp_path / "cut"), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert numbers(tmp_path / "cut") == whole


def command(out):
    """A loop of its own process."""
    return [
        sys.executable, "-m", "sim2real.cli", "loop", "pendulum-swingup", "--robot", "unit:3",
        "--iterations", "3", "--budget", "3", "--first", "1", "--seconds", "18", "--force",
        "--no-explain", "--json", "--out", str(out),
    ]  # fmt: skip


def numbers(out):
    """The summary of a loop that is run, or gone on with, to its end; without ids of episodes."""
    ran = subprocess.run(command(out), capture_output=True, text=True, timeout=250, check=False)
    assert ran.returncode == 1, ran.stderr  # such a policy never meets its target
    return {**json.loads(_ID.sub("", ran.stdout)), "folder": ""}


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
