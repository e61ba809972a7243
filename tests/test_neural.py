"""A posterior learned from outcomes alone: the exact one comes back, and its ranks are even."""

import sys
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from sim2real.errors import Sim2RealError
from sim2real.gap.sensitivity import prior_std
from sim2real.identify.align import aligned
from sim2real.identify.fit import fit
from sim2real.identify.neural import learn, neural_posterior
from sim2real.identify.posterior import posterior_of
from sim2real.identify.problem import Problem
from sim2real.identify.summaries import Summaries, statistics
from sim2real.params import Fixed
from tests.repository import want
from tests.simulated import bundle_and_twin, simulate

NAMES = ("joint/hinge/damping", "body/pole/ipos[2]")
NOISE = 0.15
MIX = np.array([[1.0, 0.6], [-0.4, 1.0], [0.5, 0.5]])

needs_sbi = pytest.mark.skipif(
    find_spec("sbi") is None,
    reason=want("extra sbi", "pip install 'sim2real[sbi]'"),
)


@pytest.fixture(scope="module")
def twin():
    """The pendulum, with two parameters left open."""
    _, twin = bundle_and_twin("pendulum-swingup")
    return replace(
        twin,
        parameters=tuple(
            p if p.name in NAMES else p.with_prior(Fixed(value=p.nominal)) for p in twin.parameters
        ),
    )


class Linear:
    """Outcomes whose posterior is known: three mixtures of the two parameters, with noise."""

    def __init__(self, twin, seed=0):
        names = [p.name for p in twin.parameters]
        self.columns = [names.index(name) for name in NAMES]
        self.parameters = [twin.parameters[k] for k in self.columns]
        self.center = np.array(
            [float(p.prior.quantile(torch.tensor([0.5]))) for p in self.parameters]
        )
        self.scale = np.array([prior_std(p) for p in self.parameters])
        self.rng = np.random.default_rng(seed)

    def __call__(self, values):
        asked = (values[:, self.columns] - self.center) / self.scale
        found = asked @ MIX.T + self.rng.normal(0.0, NOISE, (len(values), len(MIX)))
        found[self.rng.random(len(found)) < 0.05] = np.nan  # worlds that diverged
        return np.concatenate(
            [found, np.ones((len(found), 1))], axis=1
        )  # and one that never varies

    def exact(self, outcomes):
        """Mean and standard deviation far from the edges of the prior."""
        information = MIX.T @ MIX / NOISE**2
        mean = np.linalg.solve(information, MIX.T @ outcomes[:3] / NOISE**2)
        std = np.sqrt(np.diag(np.linalg.inv(information)))
        return self.center + self.scale * mean, self.scale * std


@needs_sbi
@pytest.mark.slow
def test_the_exact_posterior_comes_back_and_ranks_are_even(twin, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model = Linear(twin)
    learned = learn(twin, model, fitted=NAMES, simulations=600)
    truth = model.center + 0.4 * model.scale * np.array([1.0, -1.0])
    outcomes = np.append(MIX @ ((truth - model.center) / model.scale), 1.0)
    found = learned.posterior(outcomes)
    mean, std = model.exact(outcomes)
    assert np.all(np.abs(found.mean - mean) < 0.7 * std)
    assert np.all(found.std > 0.7 * std) and np.all(found.std < 1.6 * std)
    assert found.outside == ()
    believing = twin.with_posterior(found.distribution)
    assert believing.parent == twin.version and believing.posterior.names == NAMES
    # Truths of the prior have even ranks among the draws of their posteriors.
    rng, ranks = np.random.default_rng(1), []
    values = np.array([[p.nominal for p in twin.parameters]])
    for _ in range(60):
        share = rng.random(2)
        for column, parameter, p in zip(model.columns, model.parameters, share, strict=True):
            values[0, column] = float(parameter.prior.quantile(torch.tensor([p])))
        seen = model(values)[0]
        if np.isfinite(seen).all():
            ranks.append((learned.sample(seen, draws=100) < share).mean(axis=0))
    ranks = np.array(ranks)
    even = np.sqrt(1 / 12 / len(ranks))
    assert np.all(np.abs(ranks.mean(axis=0) - 0.5) < 4 * even)
    assert np.all(np.abs(ranks.std(axis=0) - np.sqrt(1 / 12)) < 0.09)
    # Nothing is printed and nothing is left in the folder.
    assert capsys.readouterr().out == "" and not list(tmp_path.iterdir())


@needs_sbi
@pytest.mark.slow
def test_summaries_of_logs_tell_what_the_fit_tells(twin):
    bundle, _ = bundle_and_twin("pendulum-swingup")
    truth = {"joint/hinge/damping": 0.02, "body/pole/ipos[2]": -0.46}
    logs = [aligned(e, twin) for e in simulate(bundle, twin, count=1, values=truth)]
    problem = Problem(twin, logs, 0.5, fitted=NAMES, threads=1)
    gaussian = posterior_of(problem, fit(problem), check=False)
    seen = Summaries(twin, logs, horizon_s=0.5, threads=1)
    found = neural_posterior(twin, seen, seen.observed, fitted=NAMES, simulations=150)
    assert found.names == gaussian.names
    assert np.all(np.abs(found.mean - gaussian.mean) < 3 * np.hypot(found.std, gaussian.std))
    assert np.all(found.std < 0.6 * problem.scales)  # something was learned


@needs_sbi
@pytest.mark.slow
def test_one_parameter_is_learned_with_the_other_as_a_nuisance(twin):
    model = Linear(twin)
    outcomes = np.array([0.0, 0.0, 0.0, 1.0])
    found = neural_posterior(twin, model, outcomes, fitted=NAMES[1:], simulations=150, rounds=1)
    mean, std = model.exact(outcomes)
    assert found.names == NAMES[1:] and found.covariance.shape == (1, 1)
    assert abs(found.mean[0] - mean[1]) < 2 * std[1] and found.std[0] < 4 * std[1]


def test_statistics_leave_missing_readings_out():
    rng = np.random.default_rng(0)
    readings, command = rng.normal(size=(2, 40, 3)), rng.normal(size=(2, 40, 1))
    whole = statistics(readings, command, np.zeros_like(readings))
    assert np.isfinite(whole).all() and whole.shape[0] == 2
    readings[:, 7, 1] = np.nan
    holes = statistics(readings, command, np.zeros_like(readings))
    assert np.isfinite(holes).all() and np.abs(holes - whole).max() < 0.5
    assert np.array_equal(holes[:, 0], whole[:, 0])  # the mean of another number


def test_a_missing_library_is_named_with_its_command(twin, monkeypatch):
    monkeypatch.setitem(sys.modules, "sbi", None)
    monkeypatch.setitem(sys.modules, "sbi.inference", None)
    with pytest.raises(Sim2RealError, match=r"pip install 'sim2real\[sbi\]'"):
        learn(twin, Linear(twin))


@needs_sbi
def test_outcomes_of_another_shape_or_without_variation_are_refused(twin):
    with pytest.raises(Sim2RealError, match="a row a world"):
        neural_posterior(twin, lambda v: np.zeros((len(v), 2)), np.zeros(3), simulations=100)
    with pytest.raises(Sim2RealError, match="no outcome varies"):
        neural_posterior(twin, lambda v: np.ones((len(v), 2)), np.ones(2), simulations=100)
    with pytest.raises(Sim2RealError, match="diverges"):
        neural_posterior(twin, lambda v: np.full((len(v), 2), np.nan), np.ones(2), simulations=100)
    with pytest.raises(Sim2RealError, match="teach nothing"):
        neural_posterior(twin, lambda v: np.ones((len(v), 2)), np.ones(2), simulations=10)
    with pytest.raises(Sim2RealError, match=r"no parameter 'joint/hing/damping'.*did you mean"):
        learn(twin, Linear(twin), fitted=("joint/hing/damping",))
