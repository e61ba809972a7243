"""How a robot's parameters scatter from one stretch of motion to the next."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sim2real.identification.parameter_scatter import scatter_of, scattered
from sim2real.params import Empirical, GaussianPosterior
from sim2real.tasks import find_task
from sim2real.twin import Twin

NAMES = ("body/pole/mass", "actuator/hinge/gain")
BELIEF = {
    "gaussian": GaussianPosterior(
        names=NAMES,
        mean=(0.57, 0.9),
        covariance=((1e-4, 0.0), (0.0, 1e-4)),
        low=(0.2, 0.5),
        high=(1.2, 1.5),
    ),
    "empirical": Empirical(names=NAMES, samples=((0.57, 0.9), (0.59, 0.91)), weights=(1.0, 3.0)),
}


def linear_fit(spread, *, segments=200, readings=40):
    """Segments whose parameters scatter by `spread` around those of the fit."""
    rng = np.random.default_rng(5)
    slopes = rng.normal(size=(2, segments, readings))
    away = rng.multivariate_normal(np.zeros(2), spread, size=segments)
    residual = rng.normal(size=(segments, readings)) - np.einsum("psk,sp->sk", slopes, away)
    return SimpleNamespace(weighted_slopes=lambda: slopes, tempered=lambda: residual)


def test_scatter_between_segments_is_found():
    truth = np.array([[0.25, 0.1], [0.1, 0.16]])
    assert scatter_of(linear_fit(truth, segments=2000)) == pytest.approx(truth, rel=0.15)


def test_noise_is_no_scatter():
    found = scatter_of(linear_fit(np.zeros((2, 2))))
    # Readings alone tell a segment's parameters to 1 / sqrt(40), a variance of 0.025.
    assert np.diag(found).max() < 0.004


def test_few_segments_say_nothing():
    assert not scatter_of(linear_fit(np.eye(2), segments=3)).any()


@pytest.mark.parametrize("kind", BELIEF)
def test_a_scattered_twin_is_as_wide_as_both_together(kind):
    twin = Twin.load(find_task("pendulum-swingup").twin).with_posterior(BELIEF[kind])
    wider = scattered(twin, NAMES[::-1], np.diag([0.04**2, 0.03**2])).posterior
    ids = torch.arange(4000)
    before, after = (
        one.sample(3, worlds=ids, episodes=ids * 0).numpy() for one in (twin.posterior, wider)
    )
    added = after.var(axis=0) - before.var(axis=0)
    assert np.sqrt(added) == pytest.approx([0.03, 0.04], rel=0.1)
