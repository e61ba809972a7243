"""A second process explains a gap beside the loop, does nothing else, and never stays."""

import subprocess
import sys

import pytest

from sim2real.loop import KeptStep, LoopConfig, Store, explanation_process
from sim2real.loop.explanation_process import ExplainingStore, ExplanationProcess
from sim2real.report.live_view import Live


def step(kind, log):
    def work(folder, done):
        log.append(kind)
        return {}

    return KeptStep(kind=kind, inputs={}, work=work)


def config(out, **options):
    return LoopConfig(task="pendulum-swingup", robot="unit:3", out=out, **options)


@pytest.mark.parametrize("kind", ("train", "record", "ladder", "trials", "identify"))
def test_it_never_trains_and_never_moves_a_robot(tmp_path, kind):
    log = []
    with pytest.raises(SystemExit):
        ExplainingStore(tmp_path, asked=1).run(step(kind, log))
    assert not log


def test_it_reads_what_is_done_explains_and_ends(tmp_path):
    log = []
    trained, explained = step("train", log), step("attribute", log)
    Store(tmp_path).run(trained)
    store = ExplainingStore(tmp_path, asked=2)
    store.run(trained)
    store.explain([])
    with pytest.raises(SystemExit):
        store.explain([explained])
    assert log == ["train", "attribute"] and Store(tmp_path).has([trained, explained])


@pytest.mark.slow
def test_where_nothing_is_done_yet_it_does_nothing_and_ends_by_itself(tmp_path):
    with ExplanationProcess(config(tmp_path), Store(tmp_path / "steps")) as found:
        found.begin([step("attribute", [])])
        assert found.walks[0].wait(timeout=60) == 0
    assert not list(tmp_path.rglob("result.json"))


def test_it_ends_with_the_loop(tmp_path):
    with ExplanationProcess(config(tmp_path), Store(tmp_path / "steps")) as found:
        found.begin([step("attribute", [])])
    assert found.walks[0].poll() is not None


def test_it_ends_where_the_loop_is_killed():
    code = (
        "import time; from sim2real.loop import explanation_process as beside;"
        " beside.sys.stdin.readline();"
        " beside.threading.Thread(target=beside.end_with_loop, daemon=True).start();"
        " print(flush=True); time.sleep(60)"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], text=True, **pipes) as walk:
        walk.stdin.write("a line\n")
        walk.stdin.flush()
        walk.stdout.readline()
        assert walk.poll() is None
        walk.stdin.close()
        assert walk.wait(timeout=30) == 1


def test_with_one_core_nothing_is_done_beside(tmp_path, monkeypatch):
    found = ExplanationProcess(config(tmp_path, threads=1), Store(tmp_path / "steps"))
    found.begin([step("attribute", [])])
    assert not found.walks
    monkeypatch.setattr(explanation_process.os, "cpu_count", lambda: 1)
    found = ExplanationProcess(config(tmp_path), Store(tmp_path / "steps"))
    found.begin([step("attribute", [])])
    assert not found.walks


def test_a_live_view_tells_once_that_a_step_begins_and_keeps_no_step_of_its_own(capsys, tmp_path):
    live = Live(quiet=False)
    store, done = Store(tmp_path, report=live), step("scatter", [])
    store.announce(done)  # begun beside the loop
    Store(tmp_path).run(done)
    store.run(done)
    Store(tmp_path, report=Live(quiet=False)).run(done)
    begun, ended, kept = capsys.readouterr().out.splitlines()
    assert begun.endswith("…") and "(0 s)" in ended and "(kept, just now)" in kept
