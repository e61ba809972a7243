"""Shares of a whole: fair, complete, and nothing for those who add nothing."""

import numpy as np
import pytest

from sim2real.attribution.shapley import game


def test_shares_of_an_additive_game_are_what_each_brings():
    brought = np.array([3.0, -1.0, 0.0, 2.5])
    inside, weights = game(4)
    assert np.allclose(weights @ (inside @ brought), brought)


def test_two_gloves_are_shared_and_a_bystander_gets_nothing():
    # Worth one only where both 0 and 1 are in.
    inside, weights = game(3)
    assert np.allclose(weights @ inside[:, :2].all(axis=1), [0.5, 0.5, 0.0])


def test_shares_sum_to_the_whole_in_many_games_at_once():
    games = np.random.default_rng(0).normal(size=(16, 5))
    _, weights = game(4)
    assert np.allclose((weights @ games).sum(axis=0), games[-1] - games[0])


@pytest.mark.parametrize("players", [1, 3, 6])
def test_a_small_game_is_played_in_full(players):
    inside, _ = game(players)
    assert len(np.unique(inside, axis=0)) == 2**players
    assert not inside[0].any() and inside[-1].all()
