"""Shares of a whole: fair, complete, and nothing for those who add nothing."""

import numpy as np
import pytest

from sim2real.attribution.shapley import coalitions, shapley


def test_shares_of_an_additive_game_are_what_each_brings():
    brought = np.array([3.0, -1.0, 0.0, 2.5])
    assert np.allclose(shapley(coalitions(4) @ brought), brought)


def test_two_gloves_are_shared_and_a_bystander_gets_nothing():
    # Worth one only where both 0 and 1 are in.
    worth = coalitions(3)[:, :2].all(axis=1).astype(float)
    assert np.allclose(shapley(worth), [0.5, 0.5, 0.0])


def test_shares_sum_to_the_whole_in_many_games_at_once():
    games = np.random.default_rng(0).normal(size=(16, 5))
    assert np.allclose(shapley(games).sum(axis=0), games[-1] - games[0])


def test_a_game_that_misses_coalitions_is_refused():
    with pytest.raises(ValueError, match="coalitions"):
        shapley(np.zeros(5))
