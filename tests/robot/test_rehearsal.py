"""A replay judges what the policy would do, and not what others did with the robot."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sim2real.data import Signal
from sim2real.evaluation import open_policy
from sim2real.robot import deploy
from sim2real.robot.ladder import read_records
from sim2real.robot.rehearsal import drove, rehearse
from tests.repository import BUNDLES
from tests.simulated import bundle_and_twin, simulate

TASK = "arm-reach"


@pytest.fixture(scope="module")
def flown():
    bundle, twin = bundle_and_twin(TASK)
    return simulate(bundle, twin, count=2, seed=3)


@pytest.fixture
def policy(tmp_path):
    return open_policy(Path(shutil.copytree(BUNDLES / TASK, tmp_path / "bundle")))


def strange(episode, policy, *, by="", process="record: multisine"):
    """Its gripper lags far behind, in a motion that somebody made."""
    name = "sensor/gripper_pos"
    signal = episode[name]
    moved = Signal(signal.times, signal.values - 2.5, signal.unit)
    channels = {n: s for n, s in episode.signals.items() if n not in ("observation", "action")}
    source = replace(episode.provenance, kind="real", policy=by, process=process)
    return replace(episode, channels=channels | {name: moved}, provenance=source)


@pytest.mark.slow
def test_observations_that_the_policy_did_not_cause_are_a_note(flown, policy):
    others = rehearse(policy, [strange(e, policy) for e in flown], goals={})
    own = rehearse(
        policy, [strange(e, policy, by=policy.id, process="deploy: full") for e in flown], goals={}
    )
    assert others.agreement.outside > 0.02 and not others.trips and others.driven is None
    assert own.trips or own.driven.outside > 0.02
    without = replace(others, doctor=replace(others.doctor, findings=()))
    assert without.shortfall() is None
    (note,) = others.notes
    assert "%" in note and "most of them in joint" in note
    judged = replace(own, doctor=replace(own.doctor, findings=())).shortfall()
    assert judged is not None and judged.doubt and judged.to_pass and not own.notes


def test_a_shadow_only_watched(flown, policy):
    (one, *_) = flown
    made = {
        process: drove(policy, strange(one, policy, by=policy.id, process=process))
        for process in ("deploy: full", "deploy: limited", "deploy: shadow")
    }
    assert made == {"deploy: full": True, "deploy: limited": True, "deploy: shadow": False}
    assert not drove(policy, strange(one, policy, by="another", process="deploy: full"))


class Broken:
    """A runtime whose command is no number."""

    def __init__(self, runtime):
        self._runtime = runtime

    def __getattr__(self, name):
        return getattr(self._runtime, name)

    def act(self, *inputs):
        return np.full_like(self._runtime.act(*inputs), np.nan)


@pytest.mark.slow
def test_a_command_that_is_no_number_counts_whoever_drove(flown, policy):
    runtime = Broken(policy.runtime())
    broken = replace(policy, own_runtime=lambda: runtime)
    found = rehearse(broken, [strange(e, policy) for e in flown], goals={})
    short = replace(found, doctor=replace(found.doctor, findings=())).shortfall()
    assert found.agreement.absurd and "not a number" in short.why and not short.doubt


@pytest.mark.slow
def test_the_record_says_what_it_would_take(flown, policy):
    found = deploy(policy.place, step="replay", logs=[strange(flown[0], policy)])
    (record,) = read_records(policy)
    assert record.passed == found.record.passed and bool(record.to_pass) != record.passed
    assert record.figures["notes"]
