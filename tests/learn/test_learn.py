"""Training: repeatable, resumable bit for bit, and safe against damaged files."""

import json
from pathlib import Path

import pytest
import torch

from sim2real.errors import Sim2RealError
from sim2real.learn import Run, TrainConfig, TrainedPolicy, Trainer, train
from sim2real.learn.checkpoint import latest_checkpoint, load_checkpoint, save_checkpoint
from sim2real.report.plots import plot_run
from tests.golden.cases import MADE


def trainer(out: Path, **changes) -> Trainer:
    options = {"task": "pendulum-swingup", "worlds": 16, "iterations": 6, "out": out, **changes}
    return Trainer(Run.plan(TrainConfig(**options), learner_threads=2).create())


def weights(done: Trainer) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in done.ppo.actor.parameters()])


def iterated(out: Path, times: int, **changes) -> Trainer:
    made = trainer(out, **changes)
    for _ in range(times):
        made.iterate()
    return made


@pytest.mark.slow
def test_a_seed_repeats_a_run_and_another_does_not(tmp_path):
    one, again = iterated(tmp_path / "a", 3, seed=4), iterated(tmp_path / "b", 3, seed=4)
    other = iterated(tmp_path / "c", 3, seed=5)
    assert torch.equal(weights(one), weights(again))
    assert not torch.equal(weights(one), weights(other))


@pytest.mark.slow
@pytest.mark.parametrize("source", ["prior", "adr"])
@pytest.mark.parametrize("task", ["pendulum-swingup", "arm-push"])
def test_a_resumed_run_goes_on_as_if_it_had_not_stopped(tmp_path, task, source):
    whole = iterated(tmp_path / "whole", 6, task=task, source=source)
    stopped = iterated(tmp_path / "stopped", 3, task=task, source=source)
    stopped.save()
    resumed = Trainer(Run.open(stopped.run.folder))
    resumed.load()
    for _ in range(3):
        resumed.iterate()
    assert resumed.iteration == 6
    assert torch.equal(weights(resumed), weights(whole))
    assert torch.equal(resumed.env.worlds.state("qpos"), whole.env.worlds.state("qpos"))
    assert torch.equal(resumed.env.worlds.values, whole.env.worlds.values)


def test_a_run_may_begin_with_another_ones_networks(tmp_path):
    first = iterated(tmp_path / "first", 2)
    first.save()
    learned = TrainedPolicy.open(first.run.folder)
    again, fresh = trainer(tmp_path / "again", seed=9), trainer(tmp_path / "fresh", seed=9)
    again.begin_with(first.run.folder)
    assert again.iteration == 0
    for made, same in ((again, True), (fresh, False)):
        made.save()
        seen = torch.randn(64, learned.width)
        assert torch.allclose(TrainedPolicy.open(made.run.folder)(seen), learned(seen)) == same
    noise = again.ppo.get_policy().distribution.log_std_param.exp()
    assert (noise > 0).all() and (noise < again.run.training.noise).all()
    with pytest.raises(Sim2RealError, match="arm-push"):
        trainer(tmp_path / "push", task="arm-push").begin_with(first.run.folder)


def test_train_writes_a_whole_run_and_resumes_it(tmp_path):
    config = TrainConfig(task="pendulum-swingup", worlds=16, iterations=3, out=tmp_path)
    seen = []
    result = train(config, report=seen.append)
    assert result.finished and result.iterations == 3
    assert [progress.iteration for progress in seen] == [1, 2, 3]
    written = json.loads((result.run / "result.json").read_text())
    assert written["steps"] == 3 * 16 * 24
    assert list((result.run / "tensorboard").iterdir())
    plot_run(result.run)
    assert (result.run / "training.png").stat().st_size > 1000
    again = train(TrainConfig(resume=result.run))
    assert again.finished and again.iterations == 3


def test_automatic_ranges_are_plotted(tmp_path):
    config = TrainConfig(
        task="pendulum-swingup", worlds=16, iterations=2, out=tmp_path, source="adr"
    )
    result = train(config)
    plot_run(result.run)
    assert (result.run / "ranges.png").stat().st_size > 1000


def test_a_policy_of_a_run_is_the_average_of_its_last_updates(tmp_path):
    made = iterated(tmp_path, 1)
    first = weights(made)
    made.iterate()
    made.save()
    policy = TrainedPolicy.open(made.run.folder)
    found = torch.cat([p.detach().flatten() for p in policy.network.parameters()])
    assert torch.allclose(found, 0.5 * (first + weights(made)))


def test_only_the_newest_checkpoints_are_kept(tmp_path):
    for iteration in range(1, 6):
        save_checkpoint(tmp_path, iteration, {"x": torch.tensor(iteration)})
    assert latest_checkpoint(tmp_path).name == "checkpoint-000005.pt"
    assert len(list(tmp_path.glob("*.pt"))) == len(list(tmp_path.glob("*.sha256"))) == 2


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "no digest"])
def test_a_damaged_checkpoint_is_one_clear_error(tmp_path, damage):
    save_checkpoint(tmp_path, 1, {"x": torch.zeros(100)})
    path = save_checkpoint(tmp_path, 2, {"x": torch.zeros(100)})
    data = bytearray(path.read_bytes())
    if damage == "truncate":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "flip":
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.with_suffix(".sha256").unlink()
    with pytest.raises(Sim2RealError, match="checkpoint") as caught:
        load_checkpoint(path)
    assert "\n" not in str(caught.value)


def test_resuming_with_other_options_is_refused(tmp_path):
    with pytest.raises(Sim2RealError, match="leave out all others"):
        train(TrainConfig(resume=tmp_path, worlds=8))


def test_a_file_of_ranges_is_kept_with_the_run(tmp_path):
    file = tmp_path / "ranges.json"
    file.write_text(json.dumps({"body/pole/mass": 0.9}))
    made = iterated(tmp_path / "run", 1, source=str(file))
    made.save()
    file.unlink()
    again = Trainer(Run.open(made.run.folder))
    again.load()
    assert (again.env.worlds.values[:, 0] == 0.9).all()


def test_a_checkpoint_with_code_in_it_is_refused(tmp_path):
    class Evil:
        def __reduce__(self):
            return (print, ("gotcha",))

    path = save_checkpoint(tmp_path, 1, {"x": Evil()})
    with pytest.raises(Sim2RealError, match="damaged"):
        load_checkpoint(path)


def test_resuming_in_a_changed_twin_is_refused(tmp_path, make_twin):
    from sim2real.tasks import find_task
    from sim2real.twin import Twin

    copy = Twin.load(find_task("pendulum-swingup").twin).save(tmp_path / "twin")
    made = iterated(tmp_path / "run", 1, twin=copy.folder)
    made.save()
    file = copy.folder / "twin.toml"
    file.write_text(file.read_text().replace("0.66", "0.65"))
    changed = Trainer(Run.open(made.run.folder))
    with pytest.raises(Sim2RealError, match="twin version"):
        changed.load()


@pytest.mark.slow
def test_a_tenth_of_a_minute_teaches_a_pendulum_to_swing_much_higher(tmp_path):
    """How often it stands up after a whole training is a benchmark's, `train.success`."""
    from sim2real.evaluation import evaluate

    trained = train(TrainConfig(task="pendulum-swingup", out=tmp_path, iterations=30))
    assert trained.diverged == 0

    def reward(run):
        return evaluate(run, episodes=100).trials.reward.mean()

    assert reward(trained.run) > 10 * reward(MADE / "run") > 0
