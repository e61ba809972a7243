"""Distributions: quantiles, densities and round trips agree with each other."""

import json
import tomllib

import numpy as np
import pytest
import tomli_w
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sim2real.errors import Sim2RealError
from sim2real.params import (
    Choice,
    Dimension,
    Distribution,
    Empirical,
    Fixed,
    GaussianPosterior,
    JointDistribution,
    Key,
    LogUniform,
    Normal,
    Parameter,
    TruncatedNormal,
    Uniform,
)

CASES = [
    (Uniform(low=-1.0, high=3.0), stats.uniform(-1, 4)),
    (LogUniform(low=0.1, high=10.0), stats.loguniform(0.1, 10)),
    (Normal(mean=2.0, std=0.5), stats.norm(2, 0.5)),
    (TruncatedNormal(mean=1.0, std=1.0, low=0.0, high=1.5), stats.truncnorm(-1, 0.5, 1, 1)),
    (TruncatedNormal(mean=0.0, std=1.0, low=4.0, high=6.0), stats.truncnorm(4, 6, 0, 1)),
    (TruncatedNormal(mean=0.0, std=1.0, low=-6.0, high=-4.0), stats.truncnorm(-6, -4, 0, 1)),
]
ALL = [case[0] for case in CASES] + [Fixed(value=2.0), Choice(values=(1.0, 2.0), weights=(1, 3))]


@pytest.mark.parametrize(("ours", "theirs"), CASES, ids=lambda case: getattr(case, "kind", ""))
def test_quantiles_match_scipy(ours, theirs):
    p = torch.linspace(0.001, 0.999, 101, dtype=torch.float64)
    np.testing.assert_allclose(ours.quantile(p), theirs.ppf(p), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("distribution", ALL, ids=lambda d: d.kind)
def test_samples_follow_the_distribution_and_repeat(distribution):
    worlds, zero = torch.arange(20_000), torch.zeros(20_000, dtype=torch.int64)
    key = Key.of(0, "p")
    drawn = distribution.sample(key, worlds=worlds, episodes=zero)
    again = distribution.sample(key, worlds=worlds, episodes=zero)
    assert torch.equal(drawn, again)
    low, high = distribution.support
    assert float(drawn.min()) >= low and float(drawn.max()) <= high
    middle = float(distribution.quantile(torch.tensor([0.5], dtype=torch.float64)))
    if distribution.kind == "choice":
        assert float((drawn == 2.0).double().mean()) == pytest.approx(0.75, abs=0.02)
    elif distribution.kind != "fixed":
        assert float((drawn < middle).double().mean()) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("distribution", ALL, ids=lambda d: d.kind)
def test_json_and_toml_give_the_distribution_back(distribution):
    data = distribution.to_dict()
    assert Distribution.from_dict(json.loads(json.dumps(data))) == distribution
    assert Distribution.from_dict(tomllib.loads(tomli_w.dumps(data))) == distribution


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.floats(0.0005, 0.9995))
def test_a_quantile_stays_inside_any_uniform_range(low, width, p):
    uniform = Uniform(low=low, high=low + width)
    value = float(uniform.quantile(torch.tensor(p, dtype=torch.float64)))
    assert uniform.low <= value <= uniform.high


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"kind": "unifrom", "low": 0, "high": 1}, "uniform"),
        ({"kind": "uniform", "low": 2, "high": 1}, "below"),
        ({"kind": "uniform", "low": 0, "hihg": 1}, "high"),
        ({"kind": "uniform", "low": "a", "high": 1}, "low must be a number"),
        ({"kind": "uniform", "low": 0}, "high"),
        ({"kind": "normal", "mean": 0, "std": 0}, "positive"),
        ({"kind": "normal", "mean": float("nan"), "std": 1}, "mean must be a number"),
        ({"kind": "log-uniform", "low": 0, "high": 1}, "above 0"),
        ({"kind": "choice", "values": [2, 1]}, "increasing"),
        ({"kind": "choice", "values": []}, "not be empty"),
        ({"kind": "truncated-normal", "mean": 0, "std": 1, "low": 99, "high": 100}, "outside"),
        ("uniform", "table"),
    ],
)
def test_a_malformed_distribution_is_one_clear_error(data, words):
    with pytest.raises(Sim2RealError, match=words):
        Distribution.from_dict(data)


POSTERIOR = GaussianPosterior(
    names=("a", "b"), mean=(1.0, -2.0), covariance=((0.04, 0.03), (0.03, 0.09)),
    low=(0.0, -5.0), high=(2.0, 5.0),
)  # fmt: skip
SAMPLES = Empirical(names=("a", "b"), samples=((1.0, 2.0), (3.0, 4.0)), weights=(1.0, 3.0))


def test_a_gaussian_posterior_keeps_its_correlation():
    worlds = torch.arange(20_000)
    drawn = POSTERIOR.sample(0, worlds=worlds, episodes=worlds * 0)
    np.testing.assert_allclose(drawn.mean(0), POSTERIOR.mean, atol=0.01)
    np.testing.assert_allclose(np.cov(drawn.T), POSTERIOR.covariance, atol=0.003)


def test_a_gaussian_posterior_stays_inside_its_bounds():
    tight = GaussianPosterior(
        names=("a",), mean=(0.0,), covariance=((1.0,),), low=(-0.1,), high=(3.0,)
    )
    drawn = tight.sample(0, worlds=torch.arange(5000), episodes=torch.zeros(1, dtype=torch.int64))
    assert float(drawn.min()) >= -0.1 and float(drawn.max()) <= 3.0


def test_an_empirical_posterior_draws_its_samples_by_weight():
    worlds = torch.arange(8000)
    drawn = SAMPLES.sample(0, worlds=worlds, episodes=worlds * 0)
    second = (drawn == torch.tensor([3.0, 4.0])).all(1).double().mean()
    assert float(second) == pytest.approx(0.75, abs=0.02)
    assert SAMPLES.quantile(torch.tensor([0.1, 0.9])).tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("joint", [POSTERIOR, SAMPLES], ids=lambda j: j.kind)
def test_joint_distributions_round_trip(joint):
    assert JointDistribution.from_dict(json.loads(json.dumps(joint.to_dict()))) == joint
    assert JointDistribution.from_dict(tomllib.loads(tomli_w.dumps(joint.to_dict()))) == joint


def test_a_covariance_that_is_none_is_refused():
    with pytest.raises(Sim2RealError, match="positive definite"):
        GaussianPosterior(
            names=("a",), mean=(0.0,), covariance=((-1.0,),), low=(-1.0,), high=(1.0,)
        )


def test_bounds_that_exclude_the_nominal_are_refused():
    with pytest.raises(Sim2RealError, match="exclude the nominal"):
        Parameter.of_table("body/pole/mass", {"nominal": 1.0, "bounds": [2.0, 3.0]})


def test_a_prior_outside_the_bounds_is_refused():
    prior = {"kind": "uniform", "low": 0.0, "high": 9.0}
    with pytest.raises(Sim2RealError, match="outside the bounds"):
        Parameter.of_table("body/pole/mass", {"nominal": 1.0, "bounds": [0.5, 3.0], "prior": prior})


def test_dimensions_follow_from_the_path():
    expected = {
        "body/pole/mass": Dimension.DYNAMICS,
        "geom/finger/friction": Dimension.CONTACT,
        "actuator/hinge/kp": Dimension.ACTUATION,
        "actuator/hinge/delay": Dimension.LATENCY,
        "actuator/hinge/backlash": Dimension.ACTUATION,
        "sensor/imu/bias": Dimension.SENSING,
        "camera/wrist/fovy": Dimension.VISUAL,
        "object/cube/mass": Dimension.OBJECT,
        "environment/push/force": Dimension.ENVIRONMENT,
        "option/gravity[2]": Dimension.ENVIRONMENT,
        "human/hand/speed": Dimension.HUMAN,
        "option/timestep": Dimension.NUMERICS,
    }
    for name, dimension in expected.items():
        assert Parameter.of_table(name, {"nominal": 1.0}).dimension == dimension
    assert len(Dimension) == 10


@pytest.mark.parametrize("name", ["mass", "body/pole", "Body/pole/mass", "body/pole/mass[x]", ""])
def test_a_path_that_is_none_is_refused(name):
    with pytest.raises(Sim2RealError, match="not a parameter path"):
        Parameter.of_table(name, {"nominal": 1.0})
