"""The page of an identification: units, warnings and calibration, readable with many parameters."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sim2real.gap import range_coverage
from sim2real.gap.reading_coverage import ranks_of
from sim2real.identification.evidence import before_and_after, estimates
from sim2real.identification.identifiability import from_information
from sim2real.identification.identification import HeldBackCheck, Identification
from sim2real.identification.posterior import Posterior
from sim2real.logs.alignment import aligned
from sim2real.params import Dimension, Empirical, GaussianPosterior, Parameter, Uniform
from sim2real.replay.replayed_number import numbers_shown
from sim2real.replay.replayer import Replayer
from sim2real.replay.unknowns import open_parameters
from sim2real.report.identification_page import write_page
from tests.simulated import bundle_and_twin, simulate

ARM = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll")


def identification(task, *, shift=0.5, draws=False, more=()):
    """What an identification might have found, without the work of finding it."""
    bundle, twin = bundle_and_twin(task)
    if more:
        kept = [p for p in twin.parameters if not p.name.startswith("joint/")]
        twin = replace(twin, parameters=(*kept, *more))
    logs = [aligned(e, twin) for e in simulate(bundle, twin, count=1)]
    parameters = open_parameters(twin)
    names = tuple(p.name for p in parameters)
    scales = np.array([p.prior_std for p in parameters])
    bounds = np.array([p.bounds for p in parameters]).T
    order = [p.name for p in twin.parameters]
    center = twin.best_guess()[[order.index(name) for name in names]]
    mean = np.clip(center + 0.02 * scales, *bounds)
    mean[0] = np.clip(center[0] + shift * scales[0], *bounds[:, 0])
    std = 0.1 * scales
    covariance = np.diag(std**2)
    distribution = GaussianPosterior(
        names=names, mean=tuple(mean), covariance=tuple(map(tuple, covariance)),
        low=tuple(bounds[0]), high=tuple(bounds[1]),
    )  # fmt: skip
    if draws:
        rows = np.clip(np.random.default_rng(0).normal(mean, std, (200, len(mean))), *bounds)
        distribution = Empirical(names=names, samples=tuple(map(tuple, rows)))
    sensors = tuple(spec.name for spec in logs[0].contract.sensors)
    information = np.diag(np.geomspace(1e4, 1e-8, len(names)))
    information[0, 1] = information[1, 0] = 0.9 * np.sqrt(information[0, 0] * information[1, 1])
    fit = SimpleNamespace(
        at_bounds=names[1:2], problem=SimpleNamespace(parameters=parameters, center=center)
    )
    posterior = Posterior(distribution=distribution, discrepancy=1.0, effective=1.0)
    known = from_information(names, information)
    scatter = np.zeros((len(names),) * 2)
    new = twin.with_posterior(distribution)
    return Identification(
        name=twin.name, version=new.version, parent=twin.version, promoted=True, why="",
        notes=("a note",), estimates=estimates(fit, posterior, known, scatter), scatter=scatter,
        identifiability=known, discrepancy=1.0, effective_draws=1.0, horizon_s=0.5, segments=1,
        evaluations=1, replays=before_and_after((twin, new), logs, 0.5),
        calibration=range_coverage(new, logs, source="posterior", draws=40),
        check=HeldBackCheck(
            horizon_s=0.5, recordings=(logs[0].episode,), by_time=False, sensors=sensors,
            units=tuple(spec.unit for spec in logs[0].contract.sensors),
            before=np.full(len(sensors), 2.0), after=np.full(len(sensors), 1.0), ratio=0.5,
        ),
    )  # fmt: skip


@pytest.mark.slow
def test_the_page_has_units_warnings_and_calibration(tmp_path):
    found = identification("pendulum-swingup", shift=6.0)
    write_page(tmp_path / "page.html", found)
    page = (tmp_path / "page.html").read_text()
    name = found.names[0]
    assert found.estimates[0].shift > 3 and re.search(
        f"outside the prior.*{re.escape(name)} ", page
    )
    assert "At a bound: " + found.names[1] in page
    for unit in ("[kg]", "[N m s/rad]", "rad/s"):
        assert unit in page
    assert "inside 95 %" in page and page.count("alt='calibration'") == 2
    assert page.count("prior and posterior of") == len(found.names)
    assert "http" not in page  # nothing is fetched


@pytest.mark.slow
def test_many_parameters_are_one_picture_and_some_sensors_are_drawn(tmp_path):
    kinds = ("damping", "frictionloss", "armature")
    more = [
        Parameter(
            name=f"joint/{joint}/{kind}", dimension=Dimension.DYNAMICS, operation="scale",
            nominal=1.0, bounds=(0.1, 10.0), prior=Uniform(low=0.5, high=2.0),
        )
        for kind in kinds
        for joint in ARM
    ]  # fmt: skip
    found = identification("arm-reach", draws=True, more=more)
    assert len(found.names) > 20
    write_page(tmp_path / "page.html", found)
    page = (tmp_path / "page.html").read_text()
    assert "posterior of every parameter" in page and "prior and posterior of" not in page
    assert page.count("measured, before and after") == 8 and "Not plotted: " in page
    assert len(page) < 4e6


@pytest.mark.slow
def test_ranks_of_draws_among_draws_are_even_and_numbers_take_turns():
    _, twin = bundle_and_twin("pendulum-swingup")
    bundle, _ = bundle_and_twin("pendulum-swingup")
    log = aligned(simulate(bundle, twin, count=1)[0], twin)
    values = np.repeat(twin.best_guess()[None], 40, axis=0)
    replay = Replayer(twin, log, horizon_s=0.2, values=values, randomness="all", threads=1)(values)
    column = replay.column("hinge_vel").start
    made, real = replay.predicted[1:, ..., column], replay.predicted[0, ..., column]
    ranks = ranks_of(made, real)
    assert abs(ranks.mean() - 0.5) < 0.05 and abs(ranks.std() - np.sqrt(1 / 12)) < 0.04
    assert numbers_shown(replay, 1) == [("hinge_pos", 0)]
    assert len(numbers_shown(replay, 9)) == 2
