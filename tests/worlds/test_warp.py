"""Worlds on MuJoCo Warp, on its CPU device: the same motions as on the engine of this machine.

The first run compiles kernels, for a minute or two; later ones find them in `~/.cache/warp`.
"""

import pytest
import torch

from sim2real.errors import Sim2RealError
from sim2real.evaluation import evaluate
from sim2real.learn import train
from sim2real.tasks import TaskEnv, find_task
from sim2real.testing import check_engine
from sim2real.twin import JointRemainder, Remainder, Twin
from sim2real.worlds import Worlds, open_worlds
from tests.repository import want

pytest.importorskip("mujoco_warp", reason=want("mujoco-warp", "pip install 'sim2real[gpu]'"))
pytestmark = pytest.mark.slow


def test_it_does_all_that_is_asked_of_engines_but_time_steps_of_each_worlds_own():
    found = check_engine("warp")
    assert found.passed, list(found.sentences())
    left_out = [one.name for one in found.requirements if one.outcome == "left out"]
    assert left_out == ["gives worlds their own time steps"]


def test_a_device_that_is_not_there_is_an_error():
    missing = f"cuda:{torch.cuda.device_count() + 7}"
    with pytest.raises(Sim2RealError, match=f"'warp' finds no device '{missing}'"):
        open_worlds(find_task("pendulum-swingup").twin, 1, engine="warp", device=missing)


def moved(engine: str, task: str, seconds: float) -> tuple[torch.Tensor, Worlds]:
    """(periods, worlds, numbers) positions and velocities of worlds with other parameters each."""
    twin, rate_hz = Twin.load(find_task(task).twin), find_task(task).rate_hz
    worlds, everyone = open_worlds(twin, 3, engine=engine, rate_hz=rate_hz), torch.arange(3)
    low, high = (torch.tensor([p.prior.support[k] for p in twin.parameters]) for k in (0, 1))
    shares = torch.tensor([[0.5], [0.25], [0.8]])
    worlds.set_parameters((low + shares * (high - low)).double(), everyone)
    worlds.reset(everyone)
    worlds.state("qpos")[:, 0] += 0.3
    worlds.begin(everyone)
    phase = 0.7 * torch.arange(worlds.model.nu) + everyone[:, None]
    found = []
    for period in range(round(seconds * rate_hz)):
        assert not worlds.step(0.6 * torch.sin(0.4 * period + phase)).any()
        found.append(torch.cat([worlds.state("qpos"), worlds.state("qvel")], dim=1).clone())
    return torch.stack(found), worlds


@pytest.mark.parametrize(
    ("task", "seconds", "rad", "rad_s"),
    [
        ("pendulum-swingup", 0.5, 1e-6, 5e-6),
        ("arm-reach", 0.5, 2e-6, 5e-5),
        # A cube that falls on the table: the moment of its landing is sharper than float32.
        ("arm-push", 0.5, 2e-5, 2e-3),
    ],
)
def test_motions_agree_with_the_engine_of_this_machine(task, seconds, rad, rad_s):
    ours, worlds = moved("cpu", task, seconds)
    theirs, _ = moved("warp", task, seconds)
    apart, at = (ours - theirs).abs(), worlds.model.nq
    assert float(apart[..., :at].max()) < rad
    assert float(apart[..., at:].max()) < rad_s
    assert float((ours[:, 0] - ours[:, 1]).abs().max()) > 1e3 * rad
    assert float(ours[..., at:].abs().max()) > 0.5


def test_a_task_does_on_it_what_it_does_on_the_engine_of_this_machine():
    """The same draws, noise and episodes; only rounding differs."""
    task = find_task("arm-push")
    ours, theirs = (TaskEnv(task, worlds=4, seed=3, engine=engine) for engine in ("cpu", "warp"))
    ages = ours.steps - 3 * (torch.arange(4) + 1)
    for env in (ours, theirs):
        env.age.copy_(ages)
    actions, ended = torch.rand(8, 4, 5, generator=torch.manual_seed(0)) * 2 - 1, 0
    for action in actions:
        one, other = ours.step(action), theirs.step(action)
        assert torch.equal(one.ended, other.ended)
        torch.testing.assert_close(one.actor, other.actor, atol=1e-4, rtol=0)
        torch.testing.assert_close(one.reward, other.reward, atol=1e-4, rtol=0)
        ended += len(one.ended)
    assert ended == 2


def test_a_policy_is_trained_and_evaluated_on_it(tmp_path):
    changes = {"name": "short-swingup", "episode_s": 0.4}
    task = type("Short", (find_task("pendulum-swingup"),), changes)
    done = train(task, worlds=4, iterations=1, engine="warp", out=tmp_path)
    assert done.finished
    result = evaluate(done.run, episodes=2, engine="warp", lake=tmp_path / "lake")
    assert result.success.n == 2


SPHERES = """
<mujoco>
  <custom><numeric name="warp_{name}" data="{size}"/></custom>
  <worldbody>
    <geom type="plane" size="1 1 .1"/>
    <body name="a" pos="0 0 .09"><freejoint/><geom size=".1"/></body>
    <body name="b" pos=".5 0 .09"><freejoint/><geom size=".1"/></body>
  </worldbody>
  <sensor><framepos name="a" objtype="body" objname="a"/></sensor>
</mujoco>
"""


def test_contacts_beyond_the_room_for_them_are_an_error_or_a_divergence(make_twin):
    nothing = torch.zeros(2, 0)
    few = Twin.load(make_twin("", SPHERES.format(name="nconmax", size=1), "few"))
    with pytest.raises(Sim2RealError, match=r"more contacts than the 1 each .*warp_nconmax"):
        open_worlds(few, 2, engine="warp").step(nothing)
    short = Twin.load(make_twin("", SPHERES.format(name="njmax", size=3), "short"))
    assert open_worlds(short, 2, engine="warp").step(nothing).tolist() == [True, True]
    enough = Twin.load(make_twin("", SPHERES.format(name="njmax", size=30), "enough"))
    assert open_worlds(enough, 2, engine="warp").step(nothing).tolist() == [False, False]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("<worldbody>", '<option solver="PGS"/><worldbody>', "mjSOL_PGS"),
        (
            "<worldbody>",
            '<option><flag midphase="disable"/></option><worldbody>',
            "mjDSBL_MIDPHASE",
        ),
        ("<worldbody>", '<option actuatorgroupdisable="2"/><worldbody>', "groups of actuators"),
    ],
)
def test_what_it_does_not_simulate_is_refused_by_name(before, after, words, make_twin):
    xml = SPHERES.format(name="njmax", size=30).replace(before, after)
    with pytest.raises(Sim2RealError, match=f"'warp' cannot simulate this model: .*{words}"):
        open_worlds(Twin.load(make_twin("", xml)), 1, engine="warp")


@pytest.mark.parametrize(
    ("name", "range_", "words"),
    [
        ("option/timestep", (0.001, 0.002), "values of opt.timestep, which option/timestep moves"),
        ("option/density", (0.0, 2.0), "leaves opt.density out where the model has only zeros"),
    ],
)
def test_a_parameter_it_cannot_move_is_refused_and_never_ignored(name, range_, words, make_twin):
    prior = 'kind = "uniform", low = {}, high = {}'.format(*range_)
    twin = Twin.load(make_twin(f'[parameters."{name}"]\nprior = {{ {prior} }}'))
    with pytest.raises(Sim2RealError, match=words):
        open_worlds(twin, 1, engine="warp")


def test_a_learned_remainder_and_switches_act_as_on_the_engine_of_this_machine():
    bump = JointRemainder(
        joint="hinge",
        scales=(1.0, 1.0, 1.0, 1.0),
        centres=((0.3, None, None, None), (None, 0.5, None, None)),
        widths=(0.5, 1.0),
        weights=(0.4, -0.3),
        seen=((0.3, 0.0, 0.0, 0.0),),
        reach=5.0,
    )
    twin = Twin.load(find_task("pendulum-swingup").twin)
    twin = twin.with_remainder(Remainder(joints=(bump,)))
    sent = torch.tensor([[0.5], [float("nan")]])

    def pushed(engine: str, remainder: bool) -> torch.Tensor:
        worlds = open_worlds(twin, 2, engine=engine, switches=True, remainder=remainder)
        for _ in range(10):
            worlds.step(sent)
        return torch.cat([worlds.state("qpos"), worlds.state("qvel")], dim=1).clone()

    ours, theirs, without = pushed("cpu", True), pushed("warp", True), pushed("warp", False)
    torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=0)
    assert float((theirs - without).abs().min(dim=0).values.max()) > 0.01
