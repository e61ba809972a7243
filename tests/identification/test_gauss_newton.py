"""Descents with few simulations, and residuals that do not decide alone."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from sim2real.identification.gauss_newton import GaussNewton
from sim2real.identification.robust_loss import ROBUST, scale, tempered, weight


class Curve:
    """A problem with known derivatives: errors are a vector less a curved function of x."""

    def __init__(self, *, bend: float, high: float = 10.0, sharp: float = 0.3) -> None:
        fitted = 6
        rng = np.random.default_rng(3)
        self._slopes = rng.normal(size=(40, fitted))
        self._bend, self._sharp = bend, sharp
        self._aim = self.value(rng.uniform(0.5, 1.5, fitted)) + 0.01 * rng.normal(size=40)
        self.bounds = np.full(fitted, -high), np.full(fitted, high)
        self.simulated = 0

    def value(self, x):
        return self._slopes @ x + self._bend * (self._slopes @ x) ** 2 / 10

    def errors(self, x):
        self.simulated += len(x)
        return np.stack([self._aim - self.value(one) for one in x]).reshape(len(x), 4, 10, 1)

    def slopes(self, x, *, central=False):
        step = 1e-4
        points = np.concatenate([x[None], x + step * np.eye(len(x))])
        error = self.errors(points)
        return error[:1], (error[1:] - error[:1]) / step

    def whiten(self, error):
        return self._sharp * error.reshape(len(error), 4, 10)

    whiten_slopes = whiten

    def best(self):
        low, high = self.bounds
        return lsq_linear(self._slopes, self._aim, bounds=(low, high)).x


def test_a_straight_problem_is_solved_by_one_set_of_derivatives():
    problem = Curve(bend=0.0)
    descent = GaussNewton(problem, np.zeros(6), prior=False)
    descent.run(30)
    assert descent.x == pytest.approx(problem.best(), abs=0.1)
    assert descent.evaluations == problem.simulated <= 7 + 4


def test_a_bent_problem_takes_fewer_simulations_than_derivatives_at_every_step():
    problem = Curve(bend=1.0)
    descent = GaussNewton(problem, np.zeros(6), prior=False)
    first = descent.cost(problem.errors(np.zeros((1, 6))), np.zeros(6))
    cost = descent.run(40)
    assert cost < 1e-2 * first
    assert problem.simulated < 45


def test_bounds_hold_and_what_they_leave_is_solved():
    problem = Curve(bend=0.0, high=1.0)
    descent = GaussNewton(problem, np.zeros(6), prior=False)
    descent.run(40)
    assert (np.abs(descent.x) <= 1.0).all() and (descent.x == 1.0).any()
    ours = ((problem.errors(descent.x[None])) ** 2).sum()
    assert ours == pytest.approx((problem.errors(problem.best()[None]) ** 2).sum(), rel=0.02)


def test_a_world_that_diverged_is_a_step_too_far_and_not_the_end():
    problem = Curve(bend=0.0)
    plain = problem.errors

    def broken(x):
        found = plain(x)
        found[np.abs(x).max(axis=1) > 1.6] = np.inf
        return found

    problem.errors = broken
    problem.whiten = lambda e: np.where(np.isfinite(e), 30 * e, 1e3).reshape(len(e), 4, 10)
    problem.whiten_slopes = problem.whiten
    descent = GaussNewton(problem, np.full(6, -1.0), prior=False)
    descent.run(60)
    assert descent.x == pytest.approx(problem.best(), abs=0.05)


def test_a_small_promise_is_kept_without_a_simulation():
    problem = Curve(bend=0.0)
    descent = GaussNewton(problem, problem.best() + 1e-4, prior=False)
    descent.run(5)
    before = problem.simulated
    residual, slopes, promised = descent.polished(exact=False)
    assert problem.simulated == before and promised == 0.0
    assert residual == pytest.approx(problem.whiten(problem.errors(descent.x[None]))[0], abs=1e-4)
    assert slopes.shape == (6, 4, 10)


def test_tempered_residuals_are_a_huber_loss():
    small, large = np.array([0.5, -2.9]), np.array([3.5, -40.0])
    assert tempered(small) == pytest.approx(small)
    assert tempered(large) ** 2 == pytest.approx(2 * ROBUST * np.abs(large) - ROBUST**2)
    step = 1e-6
    for r in (1.0, 5.0, -7.0):
        slope = (tempered(np.array([r + step])) - tempered(np.array([r - step]))) / (2 * step)
        assert weight(np.array([r])) == pytest.approx(slope, rel=1e-4)


@pytest.mark.parametrize("kind", ["normal", "outliers", "heavy"])
def test_the_scale_is_of_most_residuals_and_lets_no_outlier_decide(kind):
    rng = np.random.default_rng(0)
    numbers = 2.0 * rng.normal(size=20_000)
    expected = (1.9, 2.1)
    if kind == "outliers":
        numbers[:400] *= 100
        expected = (1.9, 2.5)
    if kind == "heavy":  # where a tenth tells most: neither the middle nor the mean square
        numbers[:2000] *= 6
        expected = (2.5, 4.2)
    assert expected[0] < scale(numbers) < expected[1]
    assert scale(np.zeros(0)) == 1.0


def test_a_fit_without_a_prior_ignores_it():
    problem = SimpleNamespace(bounds=(np.zeros(1), np.ones(1)), whiten=lambda e: e)
    descent = GaussNewton(problem, np.ones(1), prior=False)
    assert descent.cost(np.zeros((1, 1, 1)), np.ones(1)) == 0.0
    assert GaussNewton(problem, np.ones(1)).cost(np.zeros((1, 1, 1)), np.ones(1)) == 0.5
