"""The checks on recordings of real robots: their known faults are found, and nothing else."""

from collections import Counter

import numpy as np
import pytest

from sim2real.data import Episode, Provenance
from sim2real.data.check import check_episode, repair_episode
from sim2real.data.formats import ChannelMap, read_episodes
from tests.check_logs import changed
from tests.repository import REAL_DATA, REAL_EXAMPLES, skip_without_data

pytestmark = pytest.mark.slow

FOLDERS = {
    "xl330": "bam_xl330",
    "cartpole": "cartpole_qcp",
    "cube": "contactnets_cube",
    "double-pendulum": "double_pendulum",
    "emps": "emps",
    "kinova": "kinova_gap",
    "qube": "qube",
    "so101": "sage_so101",
}


def recordings(name: str, most: int = 1000) -> list[Episode]:
    """Episodes of a data set, through the channel map of its example."""
    mapped = REAL_EXAMPLES / name / "channels.toml"
    folder = REAL_DATA / FOLDERS[name] / "train"
    if not folder.is_dir():
        skip_without_data(folder)
    found = []
    base = Provenance(kind="real")
    for episode in read_episodes(folder, base=base, channels=ChannelMap.load(mapped)):
        found.append(episode)
        if len(found) == most:
            break
    assert found
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xl330", "cartpole", "cube", "emps", "qube", "so101"])
def test_a_clean_recording_raises_nothing(name):
    for episode in recordings(name):
        assert [f"{f.kind}: {f.message}" for f in check_episode(episode)] == []


@pytest.mark.slow
def test_the_double_pendulum_has_only_the_first_stamp_of_its_noise_files_twice():
    kinds: Counter[str] = Counter()
    for episode in recordings("double-pendulum"):
        for finding in check_episode(episode):
            kinds[finding.kind] += 1
            assert (finding.kind, finding.span.first) == ("time-repeated", 1), finding.message
    assert kinds["time-repeated"] == 7


@pytest.mark.slow
def test_only_the_simulations_that_exploded_are_absurd():
    exploded = 0
    for episode in recordings("kinova"):
        largest = max(float(np.abs(s.values).max()) for s in episode.signals.values())
        kinds = {finding.kind for finding in check_episode(episode)}
        if largest > 1e9:
            exploded += 1
            assert "absurd" in kinds
        else:
            assert not kinds
    assert exploded >= 20


@pytest.mark.slow
def test_degrees_put_into_a_real_arm_are_found_and_taken_out():
    for episode in recordings("so101", 8):
        position = episode["position"]
        wrong = changed(episode, "position", values=np.degrees(position.values))
        units = [f for f in check_episode(wrong) if f.kind == "unit"]
        assert units and units[0].channel == "position"
        assert not [f for f in check_episode(repair_episode(wrong, units)) if f.kind == "unit"]


@pytest.mark.slow
def test_a_real_motion_played_at_another_rate_is_found():
    for episode in recordings("qube", 8):
        slow = Episode(
            channels={
                n: type(s)(s.times * 1.25, s.values, s.unit) for n, s in episode.signals.items()
            },
            provenance=episode.provenance,
        )
        rates = [f for f in check_episode(slow) if f.kind == "time-rate"]
        assert len(rates) == 1
        assert rates[0].amount == pytest.approx(0.8, abs=0.03)


@pytest.mark.slow
def test_commands_logged_much_too_late_are_found_in_most_real_motions():
    found = []
    for episode in recordings("so101"):
        values = np.roll(episode["command"].values, 30, axis=0)  # 0.6 s; the arm lags by 0.1 s
        values[:30] = values[30]
        shifted = changed(episode, "command", values=values)
        found.append(
            any(f.kind == "shift" and f.channel == "command" for f in check_episode(shifted))
        )
    assert np.mean(found) > 0.75


@pytest.mark.slow
def test_a_frozen_span_of_a_real_motion_is_found():
    found = []
    for name in ("double-pendulum", "xl330"):
        for episode in recordings(name):
            if "position" not in episode.channels or len(episode["position"].times) < 1000:
                continue
            signal = episode["position"]
            values = signal.values.reshape(len(signal.times), -1).copy()
            size = int(0.4 * signal.rate_hz)
            travel = np.abs(values[size:] - values[:-size])[:, 0]
            at = int(np.argmax(travel))
            if travel[at] > 0.5:
                values[at : at + size, 0] = values[at, 0]
                frozen = changed(episode, "position", values=values.reshape(signal.values.shape))
                stuck = [f.span for f in check_episode(frozen) if f.kind == "stuck"]
                found.append(any(p.first <= at and p.last >= at + size - 1 for p in stuck))
    # In a log of six seconds a span of 0.4 s may hide the only motion there is.
    assert len(found) > 8 and np.mean(found) > 0.7
