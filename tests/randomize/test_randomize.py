"""Where an episode's parameters come from, and what disturbs it."""

import json

import numpy as np
import pytest
import torch

from sim2real.errors import Sim2RealError
from sim2real.params import DrawTable, GaussianPosterior
from sim2real.randomize import AutomaticRanges, Events, make_sampler
from sim2real.tasks import TaskEnv, find_task
from sim2real.twin import Twin
from sim2real.worlds import open_worlds

PENDULUM = find_task("pendulum-swingup")


def draws(twin: Twin, source: str, count: int = 4000, seed: int = 0) -> np.ndarray:
    sampler = make_sampler(twin, source, worlds=count, seed=seed)
    worlds, episodes = torch.arange(count), torch.zeros(count, dtype=torch.int64)
    p = DrawTable(sampler.streams, seed=seed).draw(worlds, episodes)
    return sampler.values(p, worlds, episodes).numpy()


def test_nominal_draws_are_the_nominal_twin():
    twin = Twin.load(PENDULUM.twin)
    assert (draws(twin, "nominal") == [p.nominal for p in twin.parameters]).all()


def test_prior_draws_fill_the_priors():
    twin = Twin.load(PENDULUM.twin)
    drawn = draws(twin, "prior")
    for column, parameter in enumerate(twin.parameters):
        low, high = parameter.prior.support
        assert low <= drawn[:, column].min() < low + 0.01 * (high - low)
        assert high - 0.01 * (high - low) < drawn[:, column].max() <= high


def test_posterior_draws_keep_their_correlation(tmp_path):
    twin = Twin.load(PENDULUM.twin)
    names = ("body/pole/mass", "joint/hinge/damping")
    posterior = GaussianPosterior(
        names=names, mean=(0.6, 0.05), covariance=((1e-4, 4e-5), (4e-5, 2.5e-5)),
        low=(0.2, 0.0), high=(1.2, 0.2),
    )  # fmt: skip
    drawn = draws(twin.with_posterior(posterior), "posterior")
    columns = [[p.name for p in twin.parameters].index(name) for name in names]
    assert np.corrcoef(drawn[:, columns].T)[0, 1] == pytest.approx(0.8, abs=0.05)
    with pytest.raises(Sim2RealError, match="no posterior yet"):
        make_sampler(twin, "posterior", worlds=1, seed=0)


def test_a_file_of_ranges_moves_what_it_names_and_leaves_the_rest(tmp_path):
    twin = Twin.load(PENDULUM.twin)
    file = tmp_path / "ranges.toml"
    file.write_text(
        '"joint/hinge/damping" = 0.1\n'
        '[parameters]\n"body/pole/mass" = { kind = "uniform", low = 0.9, high = 1.0 }\n'
        '"joint/hinge/damping" = 0.1\n'
    )
    drawn = draws(twin, str(file))
    names = [p.name for p in twin.parameters]
    assert drawn[:, names.index("body/pole/mass")].min() >= 0.9
    assert (drawn[:, names.index("joint/hinge/damping")] == 0.1).all()
    rest = names.index("joint/hinge/frictionloss")
    assert (drawn[:, rest] == twin.parameters[rest].nominal).all()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"body/pole/mas": 0.5}, "'body/pole/mass'"),
        ({"body/pole/mass": 99.0}, "outside its bounds"),
        ({"body/pole/mass": {"kind": "uniform"}}, "needs 'low'"),
        ([1, 2], "must be a table"),
    ],
)
def test_a_malformed_file_of_ranges_is_one_clear_error(tmp_path, content, words):
    file = tmp_path / "ranges.json"
    file.write_text(json.dumps(content))
    with pytest.raises(Sim2RealError, match=words):
        make_sampler(Twin.load(PENDULUM.twin), str(file), worlds=1, seed=0)
    with pytest.raises(Sim2RealError, match="'prior'"):
        make_sampler(Twin.load(PENDULUM.twin), "piror", worlds=1, seed=0)


def test_every_episode_has_parameters_of_its_own_and_a_seed_repeats_them():
    def values(seed: int) -> torch.Tensor:
        env = TaskEnv(PENDULUM, worlds=4, seed=seed)
        first = env.worlds.values.clone()
        env.reset()
        return torch.stack([first, env.worlds.values.clone()])

    one, again, other = values(1), values(1), values(2)
    assert torch.equal(one, again)
    assert not (one[0] == one[1]).any()
    assert not (one == other).any()


def adr_round(ranges: AutomaticRanges, episode: int, passes) -> None:
    worlds = torch.arange(400)
    episodes = torch.full((400,), episode)
    p = DrawTable(ranges.streams, seed=0).draw(worlds, episodes)
    values = ranges.values(p, worlds, episodes)
    ranges.observe(worlds, passes(values))


def test_automatic_ranges_widen_while_success_holds_and_stop_where_it_ends():
    twin = Twin.load(PENDULUM.twin)
    ranges = AutomaticRanges(twin.parameters, worlds=400)
    mass = [p.name for p in twin.parameters].index("body/pole/mass")
    assert (ranges.width() == 0).all()
    # A robot that fails above 0.61 kg and nowhere else.
    for episode in range(200):
        adr_round(ranges, episode, lambda values: values[:, mass] < 0.61)
    assert 0.59 < float(ranges.high[mass]) < 0.64
    others = [k for k in range(len(twin.parameters)) if k != mass]
    assert (ranges.width()[others] > 0.95).all()
    low, high = twin.parameters[mass].prior.support
    assert float(ranges.low[mass]) == pytest.approx(low, abs=0.01)
    assert float(ranges.high[mass]) < high


def test_automatic_ranges_narrow_again_when_success_goes():
    ranges = AutomaticRanges(Twin.load(PENDULUM.twin).parameters, worlds=400)
    for episode in range(30):
        adr_round(ranges, episode, lambda values: torch.ones(len(values), dtype=torch.bool))
    wide = ranges.width().clone()
    for episode in range(30, 60):
        adr_round(ranges, episode, lambda values: torch.zeros(len(values), dtype=torch.bool))
    assert (wide > 0).all() and (ranges.width() < wide).all()


EVENTS = """
[events.push]
body = "arm"
force = 3.0
duration = 0.1
interval = 0.5
[events.breeze]
kind = "wind"
body = "fore"
speed = 4.0
gust = 1.0
area = 0.02
[parameters."environment/push/force"]
prior = { kind = "uniform", low = 1.0, high = 5.0 }
[parameters."environment/breeze/speed"]
prior = { kind = "uniform", low = 0.0, high = 8.0 }
"""


def test_pushes_come_at_their_rate_with_their_force_and_wind_blows_on(make_twin):
    worlds = open_worlds(Twin.load(make_twin(EVENTS)), count=200, period_s=0.02)
    values = torch.tensor([[2.0, 5.0]], dtype=torch.float64).repeat(200, 1)
    worlds.set_parameters(values, torch.arange(200))
    events = Events(worlds, seed=0)
    arm, fore = (worlds.model.body(name).id for name in ("arm", "fore"))
    pushed, wind = [], []
    for _ in range(400):
        worlds.tick += 1
        events.apply()
        force = worlds.state("xfrc_applied")
        pushed.append(force[:, arm, :3].norm(dim=1).numpy().copy())
        wind.append(force[:, fore, 0].numpy().copy())
    pushed = np.stack(pushed)
    assert set(np.round(np.unique(pushed), 5)) == {0.0, 2.0}
    # One push of 0.1 s in every 0.1 + 0.5 s on average.
    assert (pushed > 0).mean() == pytest.approx(0.1 / 0.6, abs=0.03)
    drag = 0.5 * 1.2 * 0.02 * (5.0**2 + 1.0**2)
    assert np.stack(wind).mean() == pytest.approx(drag, rel=0.05)
