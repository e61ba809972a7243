"""One log goes through every verb, and each sees the same cleaned channels."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from sim2real.attribution import attribute, explain_failures
from sim2real.data import Episode, Signal
from sim2real.doctor import diagnose
from sim2real.errors import Sim2RealError
from sim2real.gap import measure_gap
from sim2real.identification import identify
from sim2real.logs import ControlLog, aligned
from sim2real.policy import Bundle
from sim2real.robot import deploy, watch_drift
from sim2real.twin import Twin
from tests.repository import BUNDLES
from tests.simulated import simulate


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return Bundle.open(
        shutil.copytree(BUNDLES / "pendulum-swingup", tmp_path_factory.mktemp("b") / "bundle")
    )


@pytest.fixture(scope="module")
def spoilt(bundle) -> Episode:
    """A recording with a value that is not finite, an impossible one, and a repeated stamp."""
    episode = simulate(bundle, Twin.load(bundle.twin), count=1)[0]
    channels = dict(episode.signals)
    for name, spot, value in (("sensor/hinge_pos", 40, np.nan), ("sensor/hinge_vel", 60, 1e9)):
        signal = channels[name]
        values = signal.values.copy()
        values[spot] = value
        channels[name] = replace(signal, values=values)
    position = channels["sensor/hinge_pos"]
    times = position.times.copy()
    times[81] = times[80]
    channels["sensor/hinge_pos"] = Signal(times, position.values, position.unit)
    source = replace(episode.provenance, kind="real", robot="bench", serial="1")
    return Episode(channels=channels, provenance=source, outcome="failure")


def test_what_was_left_out_is_on_record(bundle, spoilt):
    log = ControlLog.of(spoilt, bundle.contract)
    assert log.cleaning.bad_values == {"sensor/hinge_pos": 1, "sensor/hinge_vel": 1}
    assert log.cleaning.bad_stamps == {"sensor/hinge_pos": 1}
    assert log.left_out == 3 and not log.cleaning.faults and log.episode == spoilt.id


def test_what_is_too_wrong_is_a_fault_that_stays_and_stops_what_needs_motion(bundle, spoilt):
    signal = spoilt.signals["sensor/hinge_vel"]
    values = signal.values.copy()
    values[::3] = np.nan
    channels = {**spoilt.signals, "sensor/hinge_vel": replace(signal, values=values)}
    worse = replace(spoilt, channels=channels)
    log = ControlLog.of(worse, bundle.contract)
    assert "'sensor/hinge_vel' are not finite" in log.cleaning.faults[0]
    with pytest.raises(Sim2RealError, match="34% of the values of 'sensor/hinge_vel'"):
        aligned(worse, Twin.load(bundle.twin))


@pytest.mark.slow
def test_every_analysis_sees_the_same_cleaned_channels(bundle, spoilt, monkeypatch, tmp_path):
    seen: dict[str, set[str]] = {}
    verb = ""
    whole = ControlLog.of_cleaned.__func__

    def spy(cls, episode, contract, channels, cleaning):
        if episode.provenance.kind == "real":
            seen.setdefault(verb, set()).add(cleaning.content)
        return whole(cls, episode, contract, channels, cleaning)

    monkeypatch.setattr(ControlLog, "of_cleaned", classmethod(spy))
    twin, logs = Twin.load(bundle.twin), [spoilt]
    analyses = {
        "gap": lambda: measure_gap(twin, logs, horizon_s=0.2, threads=1),
        "identify": lambda: identify(
            twin, logs, parameters=("joint/hinge/damping",), starts=1, check_posterior=False
        ),
        "doctor": lambda: diagnose(bundle, logs),
        "drift": lambda: watch_drift(bundle, logs, baseline=5, state=tmp_path / "drift.json"),
        "attribute": lambda: attribute(twin, logs, identified=twin, segments=4, draws=2),
        "failures": lambda: explain_failures(bundle, logs, worlds=8),
        "replay": lambda: deploy(bundle, logs=logs, robot="unit:7", step="replay", person="me"),
    }
    for verb, analysis in analyses.items():
        try:
            analysis()
        except Exception as error:  # what it finds is another test's; it has seen the log by then
            assert verb in seen, (verb, error)
    assert set(seen) == set(analyses)
    assert len(set.union(*seen.values())) == 1


def test_bad_samples_are_no_faults_of_the_software(bundle, spoilt):
    log = ControlLog.of(spoilt, bundle.contract)
    assert np.flatnonzero(log.spoilt).tolist() == [
        40,
        60,
        80,
        81,
    ]  # of two with one stamp, one went
    assert diagnose(bundle.folder, [spoilt]).findings == ()
