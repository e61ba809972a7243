"""Keyed draws: pure functions of their key and counter."""

import numpy as np
import pytest
import torch
from scipy import stats

from sim2real.params import DrawTable, Key, normal_block, uniform, uniform_block
from sim2real.params.draws import key_schedule, philox


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (
            (0xFFFFFFFF,) * 4,
            (0xFFFFFFFF, 0xFFFFFFFF),
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_known_answers_of_its_authors(counter, key, expected):
    schedule = key_schedule([Key(*key)], device="cpu")
    words = philox(tuple(torch.tensor([c]) for c in counter), schedule)
    assert tuple(int(word) for word in words) == expected


def test_a_draw_depends_on_its_world_and_episode_alone():
    key = Key.of(3, "body/pole/mass")
    many = uniform(key, worlds=torch.arange(1000), episodes=torch.full((1000,), 7))
    order = torch.randperm(1000, generator=torch.manual_seed(0))
    shuffled = uniform(key, worlds=order, episodes=torch.full((1000,), 7))
    assert torch.equal(shuffled, many[order])
    assert uniform(key, worlds=torch.tensor([431]), episodes=torch.tensor([7])) == many[431]


def test_adding_a_parameter_changes_no_other_draw():
    worlds, episodes = torch.arange(64), torch.arange(64) % 5
    few = DrawTable(["a", "c"], seed=1).draw(worlds, episodes)
    more = DrawTable(["a", "b", "c"], seed=1).draw(worlds, episodes)
    assert torch.equal(few, more[:, [0, 2]])


def test_a_table_gives_what_single_draws_give():
    worlds, episodes = torch.arange(64), torch.arange(64) % 5
    table = DrawTable(["a", "b"], seed=9).draw(worlds, episodes)
    for column, name in enumerate("ab"):
        single = uniform(Key.of(9, name), worlds=worlds, episodes=episodes)
        assert torch.equal(table[:, column], single)


def test_long_draws_are_the_same_in_pieces():
    key, worlds = Key.of(0, "x"), torch.arange(100_000)
    whole = uniform(key, worlds=worlds, episodes=torch.zeros(1, dtype=torch.int64))
    part = uniform(key, worlds=worlds[70_000:70_010], episodes=torch.zeros(1, dtype=torch.int64))
    assert torch.equal(whole[70_000:70_010], part)


def test_seeds_names_worlds_and_episodes_all_matter():
    worlds, episodes = torch.arange(100), torch.zeros(100, dtype=torch.int64)
    base = uniform(Key.of(0, "x"), worlds=worlds, episodes=episodes)
    for other in (
        uniform(Key.of(1, "x"), worlds=worlds, episodes=episodes),
        uniform(Key.of(0, "y"), worlds=worlds, episodes=episodes),
        uniform(Key.of(0, "x"), worlds=worlds, episodes=episodes + 1),
    ):
        assert not (base == other).any()
        assert abs(np.corrcoef(base, other)[0, 1]) < 0.35
    assert len(torch.unique(base)) == 100


def test_draws_are_uniform_and_strictly_inside():
    u = uniform(Key.of(5, "x"), worlds=torch.arange(200_000), episodes=torch.tensor([0]))
    assert stats.kstest(u.numpy(), "uniform").pvalue > 1e-3
    assert float(u.min()) > 0 and float(u.max()) < 1


def test_noise_depends_on_world_and_tick_alone():
    key = Key.of(0, "noise")
    whole = normal_block(key, worlds=torch.arange(50), ticks=torch.arange(40), channels=7)
    part = normal_block(key, worlds=torch.tensor([13]), ticks=torch.tensor([29]), channels=7)
    assert torch.equal(part[0, 0], whole[29, 13])
    wider = uniform_block(key, worlds=torch.arange(5), ticks=torch.arange(3), channels=9)
    narrow = uniform_block(key, worlds=torch.arange(5), ticks=torch.arange(3), channels=4)
    assert torch.equal(wider[..., :4], narrow)


def test_noise_is_standard_normal_and_uncorrelated():
    block = normal_block(
        Key.of(1, "n"), worlds=torch.arange(500), ticks=torch.arange(64), channels=5
    )
    assert stats.kstest(block.flatten().numpy(), "norm").pvalue > 1e-3
    correlation = np.corrcoef(block.reshape(-1, 5).T.numpy())
    assert np.abs(correlation - np.eye(5)).max() < 0.03
