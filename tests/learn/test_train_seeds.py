"""Training seeds side by side: the policies of runs one by one, whatever is killed."""

import os
import signal
import threading
import time

import pytest

from sim2real.errors import Sim2RealError
from sim2real.evaluation import evaluate
from sim2real.learn import TrainedPolicy, train, train_seeds

SMALL = {"worlds": 16, "iterations": 4, "save_every": 1}


def test_options_that_are_not_for_several_runs_are_refused():
    for wrong in ("resume", "seed", "json"):
        with pytest.raises(Sim2RealError, match="not for several runs"):
            train_seeds("pendulum-swingup", [0], **{wrong: 1})
    with pytest.raises(Sim2RealError, match="did you mean 'worlds'"):
        train_seeds("pendulum-swingup", [0], world=3)
    with pytest.raises(Sim2RealError, match="unknown task"):
        train_seeds("pendulum-swngup", [0])


@pytest.mark.slow
def test_a_seed_gives_the_policy_of_a_run_alone_though_its_worker_is_killed(tmp_path):
    killed = []

    def kill_when_begun(event):
        if event.kind == "begun" and not killed:
            number = int(event.where.rpartition(":")[2])
            killed.append(number)
            threading.Thread(target=kill_after_a_checkpoint, args=(number,)).start()
        events.append(event.kind)

    def kill_after_a_checkpoint(number):
        end = time.monotonic() + 60
        while time.monotonic() < end and not list(tmp_path.rglob("checkpoint-000001.pt")):
            time.sleep(0.005)
        os.kill(number, signal.SIGKILL)

    events = []
    options = {"workers": 1, "store": tmp_path / "store", "out": tmp_path / "out", **SMALL}
    runs = train_seeds("pendulum-swingup", [3, 5], report=kill_when_begun, **options)
    assert events.count("retried") == 1
    assert [run.run for run in runs] == [
        tmp_path / "out" / "pendulum-swingup" / f"seed-{seed}" / "run" for seed in (3, 5)
    ]
    alone = train("pendulum-swingup", seed=3, threads=1, out=tmp_path / "alone", **SMALL)
    assert TrainedPolicy.open(runs[0].run).digest == TrainedPolicy.open(alone.run).digest
    assert TrainedPolicy.open(runs[1].run).digest != TrainedPolicy.open(alone.run).digest
    events.clear()
    again = train_seeds("pendulum-swingup", [5], report=kill_when_begun, **options)
    assert events == ["kept"] and again[0].to_dict() == runs[1].to_dict()
    (tmp_path / "store").rename(tmp_path / "elsewhere")  # the runs have all they need
    assert evaluate(runs[0], episodes=4).success.n == 4


@pytest.mark.slow
def test_a_run_whose_twin_was_given_as_a_value_may_be_moved(tmp_path):
    from sim2real.policy import open_twin

    twin = open_twin("src/sim2real/tasks/pendulum")
    found = train("pendulum-swingup", twin=twin, out=tmp_path / "a", worlds=16, iterations=1)
    moved = found.run.rename(tmp_path / "moved")
    assert evaluate(moved, episodes=2).trials.twin == twin.version
