"""Tasks: honest observations, no host transfers, and standard environments."""

import contextlib
from importlib.metadata import EntryPoint

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env
from torch.utils._python_dispatch import TorchDispatchMode

from sim2real.errors import Sim2RealError
from sim2real.tasks import PrivilegedTerm, TaskEnv, Term, find_task, registry, task_names
from sim2real.worlds import TwinWorlds
from sim2real.worlds.cpu import BatchPhysics

TASKS = ("pendulum-swingup", "arm-reach", "arm-push")
HOST = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "is_nonzero", "equal")


class NoHostTransfer(TorchDispatchMode):
    """Fails on any operation whose result Python must wait for, as a GPU would have to."""

    allowed = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        if not self.allowed:
            assert not name.startswith(HOST), f"{name} looks at a value from Python"
            if name in ("index", "index_put", "index_put_"):
                masks = [i for i in args[1] if i is not None and i.dtype == torch.bool]
                assert not masks, f"{name} with a mask waits for the count of its hits"
            if name == "_to_copy":
                device = (kwargs or {}).get("device")
                assert device is None or device == args[0].device, "a copy between devices"
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def guarded(monkeypatch):
    """No host transfer anywhere but in the engine's own methods, and no numpy at all."""
    guard = NoHostTransfer()

    def engine(method):
        def inner(*args, **kwargs):
            NoHostTransfer.allowed += 1
            try:
                return method(*args, **kwargs)
            finally:
                NoHostTransfer.allowed -= 1

        return inner

    with monkeypatch.context() as patch:
        # The hardware models run inside the engine's step, but must be clean themselves.
        for owner, names in (
            (TwinWorlds, ("ids", "reset", "set_parameters")),
            (BatchPhysics, ("advance", "forward")),
        ):
            for name in names:
                patch.setattr(owner, name, engine(getattr(owner, name)))
        for name in ("numpy", "tolist", "cpu", "__array__"):
            original = getattr(torch.Tensor, name)

            def refused(self, *args, original=original, name=name, **kwargs):
                assert NoHostTransfer.allowed, f"Tensor.{name} moves data to the host"
                return original(self, *args, **kwargs)

            patch.setattr(torch.Tensor, name, refused)
        with guard:
            yield


@pytest.mark.parametrize("source", ["prior", "adr"])
@pytest.mark.parametrize("name", TASKS)
def test_a_step_never_leaves_the_device(name, source, monkeypatch):
    env = TaskEnv(find_task(name), worlds=8, source=source)
    env.age.copy_(env.steps - 5 * (torch.arange(8) + 1))
    action = torch.zeros(8, len(env.task.actions))
    ended = 0
    with guarded(monkeypatch):
        for _ in range(22):
            ended += len(env.step(action).ended)
    assert ended == 4


def test_the_guard_itself_catches_a_transfer(monkeypatch):
    x = torch.ones(3)
    for leak in (
        lambda: float(x[0]),
        lambda: bool((x > 0).all()),
        lambda: x[x > 0],
        (x > 0).nonzero,
        lambda: torch.Tensor.numpy(x),
        lambda: torch.Tensor.tolist(x),
    ):
        with pytest.raises(AssertionError), guarded(monkeypatch):
            leak()


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_observations_are_finite_and_repeat_with_the_seed(name):
    def run(seed: int) -> torch.Tensor:
        env = TaskEnv(find_task(name), worlds=6, seed=seed)
        action = torch.rand(20, 6, len(env.task.actions), generator=torch.manual_seed(0)) * 2 - 1
        return torch.stack([env.step(a).actor for a in action])

    one, again, other = run(1), run(1), run(2)
    assert torch.isfinite(one).all()
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("name", TASKS)
def test_the_actor_sees_measurements_and_never_the_truth(name):
    """Noise that only the sensors have reaches the observation; truth without it would not."""
    task = find_task(name)
    env = TaskEnv(task, worlds=2, source="nominal")
    before = env.actor.clone()
    env.worlds.measured += 0.37
    actor, _ = env.observe(torch.arange(2))
    assert not torch.equal(actor, before)
    env.worlds.measured -= 0.37
    for field in ("qpos", "qvel"):
        env.worlds.state(field).add_(0.21)
    truth_moved, _ = env.observe(torch.arange(2))
    torch.testing.assert_close(truth_moved, before, atol=1e-5, rtol=0)


def cheating(**changes):
    """A pendulum task with some part replaced."""
    return type("Cheat", (find_task("pendulum-swingup"),), changes)


@pytest.mark.parametrize(
    ("term", "words"),
    [
        (Term(name="truth", unit="", sources=(), read=lambda m: m.action), "names no sensor"),
        (
            Term(name="base", unit="", sources=("base_velocity",), read=lambda m: m.action),
            "'base_velocity', which is not a sensor or goal",
        ),
        (
            Term(name="sly", unit="", sources=("action",), read=lambda m: m.sensor("hinge_vel")),
            "declares .* but reads",
        ),
    ],
)
def test_an_actor_that_reads_what_no_sensor_gives_is_refused(term, words):
    with pytest.raises(Sim2RealError, match=words):
        TaskEnv(cheating(actor=(term,)), worlds=1)


def test_a_privileged_term_cannot_stand_in_the_actor():
    spy = PrivilegedTerm(name="truth", read=lambda w: w.state("qpos"))
    with pytest.raises((Sim2RealError, AttributeError)):
        TaskEnv(cheating(actor=(spy,)), worlds=1)


def test_success_needs_the_goal_held_to_the_end():
    env = TaskEnv(find_task("pendulum-swingup"), worlds=2, source="nominal")
    angle = env.worlds.state("qpos")
    result = None
    for k in range(env.steps):
        # Both are put upright again and again; the second falls half a second before the end.
        angle[0], env.worlds.state("qvel")[0] = np.pi, 0.0
        if k < env.steps - 25:
            angle[1], env.worlds.state("qvel")[1] = np.pi, 0.0
        elif k == env.steps - 25:
            angle[1] = 0.0
        result = env.step(torch.zeros(2, 1))
    assert result.truncated.all()
    assert result.success.tolist() == [True, False]


def test_the_pendulum_cannot_be_lifted_at_once():
    """1.5 N m against 2.8 N m of weight: constant torque stalls far below the top."""
    env = TaskEnv(find_task("pendulum-swingup"), worlds=1, source="nominal")
    highest = 0.0
    env.worlds.state("qpos")[:] = 0.0
    env.worlds.state("qvel")[:] = 0.0
    for _ in range(env.steps - 1):
        env.step(torch.ones(1, 1))
        highest = max(highest, float(env.worlds.state("qpos").abs()))
    weight = 9.81 * sum((0.05 * 0.25, 0.52 * 0.5))
    assert weight > 1.5
    assert np.arcsin(1.5 / weight) < highest < 2.0


def test_a_pushed_cube_comes_to_rest_where_friction_says():
    """0.5 m/s against friction 0.4: v^2 / (2 mu g) = 32 mm, and then it stands still."""
    env = TaskEnv(find_task("arm-push"), worlds=1, source="nominal")
    worlds = env.worlds
    start = int(worlds.model.joint("cube").qposadr[0])
    dof = int(worlds.model.joint("cube").dofadr[0])
    worlds.state("qpos")[0, start : start + 7] = torch.tensor([0.3, 0.2, 0.02, 1, 0, 0, 0]).double()
    worlds.state("qvel")[0, dof] = 0.5
    for _ in range(25):
        env.step(torch.zeros(1, 5))
    travelled = float(worlds.state("qpos")[0, start]) - 0.3
    assert travelled == pytest.approx(0.032, abs=0.003)
    assert float(worlds.state("qvel")[0, dof : dof + 6].abs().max()) < 1e-3


def test_the_arm_follows_its_targets_and_sags_under_gravity():
    env = TaskEnv(find_task("arm-reach"), worlds=1, source="nominal")
    for _ in range(60):
        env.step(torch.zeros(1, 6))
    lead = env.worlds.memory["command"][0] - env.worlds.state("qpos")[0, :6]
    assert float(lead.abs().max()) < 0.08
    assert float(lead[1:4].abs().max()) > 0.003


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_gymnasium_accepts_the_single_environment(name):
    env = gymnasium.make(f"sim2real.tasks.gym:sim2real/{name}-v0")
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_make_vec_gives_many_worlds_with_final_observations(name):
    env = gymnasium.make_vec(f"sim2real.tasks.gym:sim2real/{name}-v0", num_envs=5)
    observation, _ = env.reset(seed=3)
    assert observation in env.observation_space
    again, _ = env.reset(seed=3)
    np.testing.assert_array_equal(observation, again)
    env.action_space.seed(0)
    for _ in range(env.unwrapped.env.steps):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert observation in env.observation_space
        assert reward.shape == terminated.shape == (5,)
    assert truncated.all() and info["_final_obs"].all()
    assert np.abs(np.stack(info["final_obs"]) - observation).max() > 0
    env.close()


def test_an_unknown_task_names_the_nearest():
    with pytest.raises(Sim2RealError, match="'pendulum-swingup'"):
        find_task("pendulum-swing")


def test_other_packages_register_tasks_by_entry_point(monkeypatch):
    point = EntryPoint(
        name="my-task", value="sim2real.tasks.pendulum:PendulumSwingup", group=registry.GROUP
    )
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    assert "my-task" in task_names()
    assert find_task("my-task").name == "pendulum-swingup"


def test_a_diverged_world_begins_anew_and_counts_as_a_failure():
    env = TaskEnv(find_task("arm-push"), worlds=3)
    env.worlds.state("qvel")[1] = 1e14
    step = env.step(torch.zeros(3, 5))
    assert step.terminated.tolist() == [False, True, False]
    assert not step.success.any()
    assert env.worlds.diverged == 1
    assert env.age.tolist() == [1, 0, 1]
    assert torch.isfinite(step.actor).all() and torch.isfinite(step.reward).all()
