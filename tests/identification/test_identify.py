"""Identification: truths come back with honest intervals, and what cannot be told is said."""

from dataclasses import replace

import numpy as np
import pytest

from sim2real.data import Signal
from sim2real.errors import Sim2RealError
from sim2real.identification.identifiability import from_information
from sim2real.identification.identified_twin import identify
from sim2real.identification.most_probable import fit
from sim2real.logs.alignment import aligned
from sim2real.logs.control_log import ControlLog
from sim2real.replay.least_squares import LeastSquares
from tests.simulated import bundle_and_twin, simulate

TRUTH = {
    "joint/hinge/damping": 0.02,
    "actuator/hinge/delay": 0.018,
    "body/pole/ipos[2]": -0.46,
    "sensor/hinge_pos/bias": 0.01,
}


@pytest.fixture(scope="module")
def pendulum():
    bundle, twin = bundle_and_twin("pendulum-swingup")
    return bundle, twin, simulate(bundle, twin, count=3, values=TRUTH)


def logs_of(pendulum):
    bundle, twin, episodes = pendulum
    return [ControlLog.of(episode, bundle.contract, twin.channels) for episode in episodes]


@pytest.mark.slow
def test_planted_values_come_back_within_their_intervals(pendulum):
    problem = LeastSquares(pendulum[1], logs_of(pendulum), 0.4, fitted=tuple(TRUTH))
    found = fit(problem)
    assert found.at_bounds == ()
    covariance = np.linalg.inv(found.information() + np.eye(len(TRUTH)))
    std = np.sqrt(np.diag(covariance)) * problem.scales
    for name, value, spread in zip(problem.names, found.values, std, strict=True):
        assert abs(value - TRUTH[name]) < 5 * spread, name
        assert spread < 0.3 * problem.scales[problem.names.index(name)], name


@pytest.mark.slow
def test_a_prior_that_counts_more_keeps_a_fit_nearer_to_it(pendulum):
    problem = LeastSquares(pendulum[1], logs_of(pendulum), 0.4, fitted=tuple(TRUTH))
    free, once, often = (
        float(np.linalg.norm(fit(problem, prior=weight, exact=False).x))
        for weight in (0.0, 1.0, 1e5)
    )
    assert often < 0.5 * once < free


def test_noise_is_never_believed_below_the_rounding_of_a_reading(pendulum):
    problem = LeastSquares(pendulum[1], logs_of(pendulum), 0.4, fitted=tuple(TRUTH))
    quantum = pendulum[1].compile().effects.sensors["hinge_pos"].quantum
    assert problem.least_noise[0] == pytest.approx(quantum / np.sqrt(12))
    assert problem.least_noise[1] < problem.noise[1]  # speeds are not rounded


def test_how_far_chance_shifts_a_prediction_follows_the_delay(pendulum, monkeypatch):
    problem = LeastSquares(pendulum[1], logs_of(pendulum), 0.4, fitted=tuple(TRUTH))
    delay = problem.names.index("actuator/hinge/delay")
    here, there = np.zeros((2, len(TRUTH)))
    there[delay] = 0.3
    plain = problem.errors(np.stack([here, there]))

    def shifted(x, trials):
        predicted = problem.measured - plain[0]
        return np.repeat(predicted[None] + 0.1 + 0.5 * x[delay], trials, axis=0), predicted

    monkeypatch.setattr(problem, "predicted_randomly", shifted)
    shift = plain - problem.with_randomness(here).errors(np.stack([here, there]))
    told = np.isfinite(shift[0])
    assert np.allclose(shift[0][told], 0.1) and np.allclose(shift[1][told], 0.1 + 0.5 * 0.3)


@pytest.mark.slow
def test_mass_and_gain_are_told_only_together(pendulum):
    names = ("body/pole/mass", "actuator/hinge/gain")
    problem = LeastSquares(pendulum[1], logs_of(pendulum), 0.4, fitted=names)
    at = np.zeros(len(names))
    told = from_information(names, problem.prepared(at).information(at))
    assert told.combinations == (names,) or told.combinations == (names[::-1],)
    assert max(told.alone) < 0.1 < min(told.shrinkage)


def test_what_is_told_follows_from_the_information():
    names = ("a", "b", "c", "d")
    information = np.zeros((4, 4))
    information[0, 0] = 1e4  # well told
    information[1:3, 1:3] = 1e4  # only their sum
    told = from_information(names, information)
    assert told.identifiable == ("a",) and told.together == ("b", "c")
    assert told.combinations == (("b", "c"),) and told.without_effect == ("d",)


@pytest.mark.slow
def test_a_new_twin_knows_its_parent_and_predicts_better(pendulum):
    _, twin, episodes = pendulum
    found = identify(twin, episodes, parameters=tuple(TRUTH), starts=1, check_posterior=False)
    assert found.promoted and found.check.ratio < 1.0
    assert found.twin.parent == twin.version and found.twin.version != twin.version
    names = [parameter.name for parameter in found.twin.parameters]
    guess = dict(zip(names, found.twin.best_guess(), strict=True))
    assert guess["actuator/hinge/delay"] == pytest.approx(0.018, abs=0.003)
    assert found.check.by_time and len(found.check.recordings) == 3  # their ends
    ids = tuple(sorted(episode.id for episode in episodes))
    assert found.twin.identified_on == found.twin.checked_on == ids
    data = found.to_dict()
    assert data["parameters"]["joint/hinge/damping"]["shrinkage"] < 0.5


def test_uneven_clocks_become_even_without_a_delay(pendulum):
    _, twin, episodes = pendulum
    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(0.0185, 0.0215, 300))
    angle = np.sin(3.0 * times)
    channels = {
        "sensor/hinge_pos": Signal(times, angle[:, None], "rad"),
        "sensor/hinge_vel": Signal(times, 3.0 * np.cos(3.0 * times)[:, None], "rad/s"),
        "command": Signal(times, np.sign(angle)[:, None], "N m"),
    }
    log = aligned(replace(episodes[0], channels=channels), twin)
    steps = np.diff(log.times)
    assert np.allclose(steps, 0.02) and log.fresh.mean() > 0.95
    assert np.abs(log.readings[:, 0] - np.sin(3.0 * log.times))[1:-1].max() < 5e-4


def cut(episode, seconds):
    return replace(
        episode, channels={n: s.between(0.0, seconds) for n, s in episode.signals.items()}
    )


def without(episode, name):
    return replace(episode, channels={n: s for n, s in episode.signals.items() if n != name})


def backwards(episode):
    def turned(signal):
        times = signal.times.copy()
        times[10::4] -= 0.05
        return replace(signal, times=times)

    return replace(episode, channels={n: turned(s) for n, s in episode.signals.items()})


def still(episode):
    rng = np.random.default_rng(0)

    def resting(name, signal):
        noise = 1e-3 if name.startswith("sensor/") else 0.0
        return replace(signal, values=rng.normal(0.0, noise, signal.values.shape))

    return replace(episode, channels={n: resting(n, s) for n, s in episode.signals.items()})


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lambda e: replace(e, channels={"x": next(iter(e.signals.values()))}),
            "none of the readings",
        ),
        (lambda e: cut(e, 0.2), "at least 1 s"),
        (lambda e: without(e, "command"), "no commands"),
        (backwards, "step back"),
        (still, "robot rests|tell none of the parameters"),
    ],
)
@pytest.mark.slow
def test_logs_that_cannot_be_identified_from_say_why(pendulum, spoil, words):
    _, twin, episodes = pendulum
    with pytest.raises(Sim2RealError, match=words):
        identify(twin, [spoil(episode) for episode in episodes], starts=1)
