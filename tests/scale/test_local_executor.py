"""Shards in processes: kept, retried, refused, killed, resumed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sim2real.cli import main
from sim2real.errors import Sim2RealError
from sim2real.scale import FailedShardsError, Shard, ShardStore, each, open_executor
from tests.repository import ROOT
from tests.scale import work

DRIVER = Path(__file__).with_name("driver.py")
pytestmark = pytest.mark.slow


def ran(shards, store, executor="local", **options):
    """(results by key, kinds of events)."""
    events = []
    with open_executor(executor, workers=2) as workers:
        done = list(workers.run(shards, ShardStore(store), events.append, **options))
    return {one.key: one for one in done}, [event.kind for event in events]


def driver(executor, store, function, count):
    return subprocess.Popen(
        [sys.executable, DRIVER, executor, str(store), function, str(count)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip


def heard(process, kind):
    """The next event of a kind that a driver tells: (key, process of the worker)."""
    for line in process.stdout:
        said, key, where = [*line.strip().split(" "), ""][:3]
        if said == kind:
            return key, int(where.rpartition(":")[2] or 0)
    raise AssertionError(process.stderr.read())


def alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().split(") ")[1][0] != "Z"
    except FileNotFoundError:
        return False


def test_results_come_are_kept_and_are_done_again_when_asked(tmp_path):
    shards = [Shard.of(work.squares, args=(3, k)) for k in range(5)]
    done, kinds = ran([*shards, shards[0]], tmp_path)
    assert [done[one.key].result for one in shards] == [work.squares(3, k) for k in range(5)]
    assert sorted(kinds) == ["begun"] * 5 + ["done"] * 5
    file = next(tmp_path.rglob(f"{shards[0].key}.json"))
    file.write_text("damaged")
    again, kinds = ran(shards, tmp_path)
    assert sorted(kinds) == ["begun", "done"] + ["kept"] * 4
    assert {key: one.digest for key, one in again.items()} == {
        key: one.digest for key, one in done.items()
    }
    assert sorted(ran(shards[:2], tmp_path, again=True)[1]) == ["begun"] * 2 + ["done"] * 2


def test_one_that_fails_lets_the_others_go_on_and_is_told_in_one_line(tmp_path):
    shards = [Shard.of(work.refused, args=(k,), name=f"n{k}") for k in range(4)]
    shards.append(Shard.of(work.broken, args=(7,), name="bug"))
    with pytest.raises(FailedShardsError) as error:
        ran(shards, tmp_path)
    said = str(error.value)
    assert "\n" not in said and "3 shards failed, 2 are done and kept" in said
    failures = {failure.shard.name: failure for failure in error.value.failures}
    assert failures["n1"].line == "1 is odd" and not failures["n1"].trace
    assert failures["bug"].line == "KeyError: 7" and "in broken" in failures["bug"].trace
    assert len(ShardStore(tmp_path).keys()) == 2


def test_a_worker_that_is_killed_is_replaced_and_one_that_always_is_fails(tmp_path):
    marks = [str(tmp_path / f"mark-{k}") for k in range(3)]
    shards = [Shard.of(work.killed_once, args=(mark, k)) for k, mark in enumerate(marks)]
    done, kinds = ran(shards, tmp_path / "store")
    assert [done[one.key].result for one in shards] == [0.0, 1 / 7, 2 / 7]
    assert kinds.count("retried") == 3
    with pytest.raises(FailedShardsError, match=r"died 4 times: its process was ended by SIGKILL"):
        ran([Shard.of(work.killed, args=(0,)), *shards], tmp_path / "store")


def test_a_full_disk_ends_the_run_with_one_line(tmp_path):
    shards = [Shard.of(work.on_a_full_disk, args=(k,)) for k in range(20)]
    with pytest.raises(Sim2RealError, match=r"cannot write .*: No space left on device") as error:
        ran(shards, tmp_path)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.rglob("results/**/*.json")) and not list(tmp_path.rglob(".*"))


def test_a_driver_that_is_killed_takes_its_workers_along_and_is_resumed(tmp_path):
    with driver("local", tmp_path, "slow", 12) as first:
        heard(first, "done")
        _, worker = heard(first, "begun")
        first.kill()
    end = time.monotonic() + 20
    while alive(worker) and time.monotonic() < end:
        time.sleep(0.05)
    assert not alive(worker)
    before = ShardStore(tmp_path).keys()
    assert 0 < len(before) < 12
    shards = [Shard.of(work.slow, args=(k,)) for k in range(12)]
    done, kinds = ran(shards, tmp_path)
    assert [done[one.key].result for one in shards] == [k / 7 for k in range(12)]
    assert kinds.count("kept") == len(before) and kinds.count("done") == 12 - len(before)


def test_a_worker_killed_from_outside_costs_nothing_but_time(tmp_path):
    with driver("local", tmp_path, "slow", 6) as process:
        key, worker = heard(process, "begun")
        os.kill(worker, signal.SIGKILL)
        assert heard(process, "retried")[0] == key
        _, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    assert len(ShardStore(tmp_path).keys()) == 6


def test_workers_have_one_thread_and_the_driver_keeps_its_own(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    names = ["OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OPENBLAS_NUM_THREADS"]
    (found,) = each(work.environment, [{"names": names}], workers=1)
    assert found == dict(zip(names, ["1", "passive", "1"], strict=True))
    assert os.environ["OMP_NUM_THREADS"] == "5"


def test_a_long_list_is_taken_as_there_is_room(tmp_path):
    taken = []

    def shards():
        for k in range(1000):
            taken.append(k)
            yield Shard.of(work.slow, args=(k, 0.0))

    with open_executor("local", workers=1) as workers:
        results = workers.run(shards(), ShardStore(tmp_path))
        next(results)
        results.close()
    assert len(taken) < 5


def test_other_software_is_refused(tmp_path, monkeypatch):
    """A worker that finds another version than its driver's would give other results."""
    monkeypatch.setattr("sim2real.scale.worker.software", lambda: {"numpy": "0.0.1"})
    with pytest.raises(Sim2RealError, match="results would differ; use one image"):
        ran([Shard.of(work.slow, args=(0, 0.0))], tmp_path)


BUNDLE = ROOT / "examples" / "bundles" / "pendulum-swingup"


@pytest.mark.parametrize(
    "words, said",
    [
        (["--executor", "locla"], "no executor 'locla'; did you mean 'local'?"),
        (["--executor", "ray:auto"], "a store that all its machines see"),
        (["--executor", "local", "--workers", "-1"], "-1 workers"),
        (["--executor", "local", "--lake", "lake"], "leave --executor out"),
        (["--executor", "local", "--store", str(ROOT / "docs")], "choose an empty place"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_two(words, said, capsys):
    assert main(["evaluate", str(BUNDLE), "--episodes", "8", *words]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error and "\n" not in error


def test_without_ray_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(Sim2RealError, match=r"pip install 'sim2real\[ray\]'"):
        open_executor("ray")


def test_an_evaluation_in_parts_is_the_one_in_a_piece(tmp_path):
    import numpy as np

    from sim2real.evaluation import evaluate

    whole = evaluate(BUNDLE, episodes=12, each=600, threads=2)
    options = {"episodes": 12, "each": 600, "executor": "local", "workers": 1}
    parts = evaluate(BUNDLE, store=str(tmp_path), **options)
    assert parts.to_dict() == whole.to_dict() and parts.policy == whole.policy
    for name in ("values", "success", "reward", "diverged"):
        assert np.array_equal(getattr(parts.trials, name), getattr(whole.trials, name))
