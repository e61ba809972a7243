"""Coverage: ranges that are right, too narrow or too wide are told apart, sensor by sensor."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sim2real.cli.main import main
from sim2real.errors import Sim2RealError
from sim2real.gap.reading_coverage import (
    CoveredShare,
    covered_share,
    explained_share,
    farthest_off,
    range_coverage,
)
from sim2real.logs.control_log import ControlLog
from sim2real.params import GaussianPosterior
from tests.simulated import bundle_and_twin, simulate

ROBOTS = 10
NAMES = ("joint/hinge/damping", "body/pole/ipos[2]", "actuator/hinge/gain")


def posterior(twin, shift, widen, spread=0.1):
    """A Gaussian around the nominal values; `shift` and widths in `spread` of the bounds."""
    parameters = [twin.parameter(name) for name in NAMES]
    std = np.array([spread * np.ptp(p.prior.support) for p in parameters])
    mean = np.array([p.nominal for p in parameters]) + shift * std
    return GaussianPosterior(
        names=NAMES,
        mean=tuple(mean.tolist()),
        covariance=tuple(map(tuple, np.diag((widen * std) ** 2).tolist())),
        low=tuple(p.bounds[0] for p in parameters),
        high=tuple(p.bounds[1] for p in parameters),
    )


def only(twin):
    """The twin with nothing else that may differ."""
    return replace(twin, parameters=tuple(twin.parameter(name) for name in NAMES))


@pytest.fixture(scope="module")
def pendulum():
    """Robots drawn from a posterior, each with a recording, and their twin."""
    bundle, twin = bundle_and_twin("pendulum-swingup")
    right = posterior(twin, 0.0, 1.0).to_dict()
    episodes = simulate(bundle, only(twin), count=ROBOTS, values=right)
    return only(twin), [
        ControlLog.of(episode, bundle.contract, twin.channels) for episode in episodes
    ]


@pytest.mark.slow
def test_a_posterior_that_is_right_covers_about_95_percent(pendulum):
    twin, logs = pendulum
    found = range_coverage(twin.with_posterior(posterior(twin, 0.0, 1.0)), logs, threads=1)
    assert found.verdict == "fine" and found.recordings == ROBOTS and found.windows > 50
    for sensor in found.sensors:
        assert 0.90 < sensor.inside.value < 0.99, sensor
        assert sensor.inside.low < 0.97 and sensor.inside.high > 0.93, sensor
        assert 0.7 < sensor.width < 1.4, sensor
    assert found.explained.value > 0.85


@pytest.mark.slow
def test_one_that_is_sure_of_a_wrong_value_is_too_narrow(pendulum):
    twin, logs = pendulum
    found = range_coverage(twin.with_posterior(posterior(twin, 4.0, 0.1)), logs, threads=1)
    assert found.verdict == "too narrow"
    assert min(sensor.inside.value for sensor in found.sensors) < 0.8
    assert found.explained.value < 0.7


@pytest.mark.slow
def test_the_sentence_names_what_is_outside_and_what_to_do(pendulum):
    twin, logs = pendulum
    found = range_coverage(twin.with_posterior(posterior(twin, 4.0, 0.1)), logs, threads=1)
    shares = {"hinge_pos": (0.82, 0.75, 0.91), "hinge_vel": (0.79, 0.72, 0.84)}

    def with_shares(**shares):
        return replace(
            found,
            sensors=tuple(
                replace(s, inside=CoveredShare(value=v, low=low, high=high))
                for s in found.sensors
                for v, low, high in [shares[s.name]]
            ),
        )

    one = with_shares(**shares)
    assert [s.verdict for s in one.sensors] == ["perhaps too narrow", "too narrow"]
    assert "79 % of hinge_vel lie" in one.sentence and "again" in one.sentence
    assert "priors" in replace(one, source="prior").sentence
    unsure = with_shares(**shares | {"hinge_vel": (0.95, 0.93, 0.97)})
    assert unsure.verdict == "perhaps too narrow" and "82 % of hinge_pos" in unsure.sentence
    assert "hinge_vel" not in unsure.sentence


@pytest.mark.slow
def test_one_that_knows_far_less_than_the_logs_is_too_wide(pendulum):
    twin, logs = pendulum
    found = range_coverage(twin.with_posterior(posterior(twin, 0.0, 20.0)), logs, threads=1)
    assert "too wide" in {sensor.verdict for sensor in found.sensors}
    assert "too narrow" not in {sensor.verdict for sensor in found.sensors}


def test_a_band_needs_draws_and_a_posterior_needs_a_twin_that_has_one(pendulum):
    twin, logs = pendulum
    with pytest.raises(Sim2RealError, match="at least 20 draws"):
        range_coverage(twin, logs, draws=5)
    with pytest.raises(Sim2RealError, match="no posterior"):
        range_coverage(twin, logs, source="posterior")


def test_resampling_by_recording_is_wider_than_by_window_where_recordings_differ():
    rng = np.random.default_rng(0)
    inside = np.repeat([20, 20, 20, 20, 20, 5], 10)
    of = np.full(60, 20)
    by_recording = covered_share(inside, of, np.repeat(np.arange(6), 10), rng)
    by_window = covered_share(inside, of, np.arange(60), rng)
    assert by_recording.value == by_window.value == pytest.approx(0.875)
    wide, narrow = (s.high - s.low for s in (by_recording, by_window))
    assert wide > 1.5 * narrow


def test_a_real_window_among_its_like_is_explained_nineteen_times_of_twenty():
    rng = np.random.default_rng(0)
    pool = rng.standard_t(3, size=(65, 2000, 10, 1))  # no need to be normal
    far = farthest_off(pool[1:], pool[0], np.array([1e-9]))
    assert explained_share(far, np.arange(2000), rng).value == pytest.approx(0.954, abs=0.015)


def test_ranges_are_shown_with_what_goes_together(tmp_path, capsys):
    _, twin = bundle_and_twin("pendulum-swingup")
    names = ("body/pole/mass", "actuator/hinge/gain")
    std = np.array([0.02, 0.03])
    both = GaussianPosterior(
        names=names,
        mean=(0.57, 1.0),
        covariance=tuple(map(tuple, (np.outer(std, std) * [[1, 0.9], [0.9, 1]]).tolist())),
        low=(0.3, 0.5),
        high=(1.0, 1.5),
    )
    twin.with_posterior(both).save(tmp_path / "twin")
    words = [str(tmp_path / "twin"), "--out", str(tmp_path / "out"), "--json"]
    assert main(["randomize", "show", *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["source"] == "posterior" and told["coverage"] is None
    (pair,) = told["correlations"]
    assert set(pair["parameters"]) == set(names)
    assert pair["correlation"] == pytest.approx(0.9, abs=0.05)
    low, _, high = told["parameters"]["body/pole/mass"]["range"]
    assert high - low == pytest.approx(2 * 1.96 * 0.02, rel=0.1)
    # What the posterior does not know comes from its prior.
    entry = told["parameters"]["joint/hinge/damping"]
    assert entry["posterior"] is None
    assert entry["range"] == pytest.approx(entry["prior"], abs=2e-3)
    page = (tmp_path / "out" / "ranges.html").read_text()
    assert "Correlations" in page and "<h2>Coverage<" not in page
