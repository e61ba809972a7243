"""Episodes that start where a robot was seen."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sim2real.errors import Sim2RealError
from sim2real.identification.recorded_starts import seen_states, tells_state
from sim2real.learn import Run, TrainConfig, Trainer
from sim2real.logs.alignment import aligned
from sim2real.tasks import Starts, TaskEnv, find_task
from sim2real.tasks.starts import SHARE
from sim2real.twin import Twin
from tests.simulated import bundle_and_twin, simulate

FAST = Starts(
    qpos=np.array([[2.0], [3.0]]), qvel=np.array([[9.0], [-9.0]]), command=np.ones((2, 1))
)
"""Two states that no episode of the pendulum starts in by itself."""


def env(starts=None, task="pendulum-swingup", worlds=2000):
    return TaskEnv(find_task(task), worlds=worlds, seed=3, starts=starts, threads=1)


def test_a_share_of_the_episodes_starts_where_the_robot_was_seen_and_the_others_as_before():
    usual, some = env(), env(FAST)
    speed, was = (one.worlds.state("qvel")[:, 0] for one in (some, usual))
    moved = speed.abs() == 9.0
    assert abs(moved.double().mean().item() - SHARE) < 0.04  # four standard errors of 2000 draws
    assert 0.4 < (speed[moved] > 0).double().mean() < 0.6
    assert torch.equal(speed[~moved], was[~moved])
    assert torch.equal(some.worlds.values, usual.worlds.values)
    # The policy reads the state it starts in, and the delays hold what had been sent.
    assert (some.measurements.sensor("hinge_vel")[moved, 0].abs() > 8.0).all()
    assert torch.equal(some.worlds.memory["command"][:, 0], moved.float())
    assert torch.equal(some.worlds.state("ctrl")[:, 0], moved.double())


@pytest.mark.slow
def test_episodes_that_follow_start_there_too():
    some = env(FAST, worlds=500)
    for _ in range(some.steps):
        found = some.step(torch.zeros(500, 1))
    assert len(found.ended) == 500
    assert abs((some.worlds.state("qvel")[:, 0].abs() == 9.0).double().mean() - SHARE) < 0.08


@pytest.mark.slow
@pytest.mark.parametrize("task", ["pendulum-swingup", "arm-reach"])
def test_states_are_those_the_robot_was_in(task):
    bundle, twin = bundle_and_twin(task)
    episodes = simulate(bundle, twin, count=2)
    logs = [aligned(episode, twin) for episode in episodes]
    found = seen_states(twin, logs)
    truth = {
        part: np.concatenate([e.signals[f"truth/{part}"].values for e in episodes])
        for part in ("qpos", "qvel")
    }
    apart = {part: np.abs(getattr(found, part)[:, None] - truth[part]) for part in truth}
    # In units of what readings are good for: the nearest true state is as near as they are.
    far = np.maximum(apart["qpos"] / 0.01, apart["qvel"] / 0.25).max(axis=2).min(axis=1)
    assert len(far) > 0.9 * len(truth["qpos"])
    assert np.quantile(far, 0.9) < 1.0


@pytest.mark.slow
def test_a_clock_that_is_not_quite_even_tells_states_too():
    bundle, twin = bundle_and_twin("pendulum-swingup")
    (episode,) = simulate(bundle, twin, count=1)
    slow = {n: replace(s, times=1.003 * s.times) for n, s in episode.signals.items()}
    found = seen_states(twin, [aligned(replace(episode, channels=slow), twin)])
    assert len(found.qpos) > 200


def test_recordings_without_a_joint_tell_no_state():
    bundle, twin = bundle_and_twin("arm-reach")
    (episode,) = simulate(bundle, twin, count=1)
    kept = {name: s for name, s in episode.signals.items() if name != "sensor/elbow_flex_pos"}
    assert seen_states(twin, [aligned(replace(episode, channels=kept), twin)]) is None


def test_a_cube_that_nobody_saw_turn_leaves_the_state_untold():
    told = {
        task: tells_state(Twin.load(find_task(task).twin)) for task in ("arm-reach", "arm-push")
    }
    assert told == {"arm-reach": True, "arm-push": False}


def test_a_run_keeps_where_it_starts(tmp_path):
    FAST.save(tmp_path / "starts.json")
    config = TrainConfig(
        task="pendulum-swingup", starts=tmp_path / "starts.json", worlds=64, out=tmp_path
    )
    run = Run.plan(config, learner_threads=1).create()
    begun = Trainer(Run.open(run.folder)).env.worlds.state("qvel")[:, 0].abs()
    assert 0 < (begun == 9.0).sum() < 64


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "must be a table"),
        ('{"qpos": [[1]], "qvel": [[1]]}', "needs 'command'"),
        ('{"qpos": [[1]], "qvel": [[1], [2]], "command": [[0]]}', "rows of numbers"),
        ('{"qpos": [], "qvel": [], "command": []}', "rows of numbers"),
        ('{"qpos": [[null]], "qvel": [[1]], "command": [[0]]}', "rows of numbers"),
        ('{"qpos": [["a"]], "qvel": [[1]], "command": [[0]]}', "qpos must be numbers"),
    ],
)
def test_a_malformed_file_says_so(tmp_path, text, words):
    path = tmp_path / "starts.json"
    path.write_text(text)
    with pytest.raises(Sim2RealError, match=words):
        Starts.load(path)


def test_states_of_another_robot_are_refused():
    with pytest.raises(Sim2RealError, match="1 numbers of qpos, but the model has 6"):
        env(FAST, task="arm-reach")
