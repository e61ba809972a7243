"""Why attempts failed: kinds, likeness, values that reproduce them, and the three complaints."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sim2real.attribution import explanation
from sim2real.attribution.advice import advise
from sim2real.attribution.attempt_behaviour import Behaviours, kinds
from sim2real.attribution.complaints import Attempt, complaints
from sim2real.attribution.explanation import explain_failures
from sim2real.attribution.failures import UNKNOWN, FailureKind, Failures
from sim2real.data import Signal
from sim2real.errors import Sim2RealError
from sim2real.evaluation import open_policy
from sim2real.logs.control_log import ControlLog
from sim2real.params import Empirical, Uniform
from sim2real.twin import twin_contract
from tests.golden.cases import MADE
from tests.simulated import bundle_and_twin, simulate

TASK = "pendulum-swingup"


def attempts(outcomes, *, units=None, angles=None, times=True):
    """Attempts that ended as given, without any log."""
    return [
        Attempt(
            log=None,
            won=won,
            unit="one" if units is None else units[k],
            recorded=f"2026-01-01T00:{k:02d}" if times else "",
            began={} if angles is None else {"angle": float(angles[k])},
        )
        for k, won in enumerate(outcomes)
    ]


def names(found):
    return [one.name for one in found]


def test_success_in_simulation_only_is_said():
    found = complaints(attempts([True] * 3 + [False] * 7, times=False), simulated=(98, 100))
    assert names(found) == ["works in simulation but not on hardware"]
    assert not complaints(attempts([True] * 9 + [False], times=False), simulated=(98, 100))


def test_failures_that_come_later_degrade():
    mixed = [True] * 12 + [False] * 8
    assert "degrades over time" in names(complaints(attempts(mixed), simulated=(12, 20)))
    turned = mixed[::-1]  # better with time is no complaint
    assert not complaints(attempts(turned), simulated=(12, 20))


def test_failures_in_one_place_name_it():
    won = np.tile([True, False], 10)
    found = complaints(attempts(won, angles=np.where(won, 0.1, 0.9)), simulated=(10, 20))
    assert names(found) == ["works in one place but not another"] and "angle" in found[0].why
    units = ["left" if w else "right" for w in won]
    found = complaints(attempts(won, units=units), simulated=(10, 20))
    assert names(found) == ["works in one place but not another"] and "right" in found[0].why
    assert not complaints(attempts(won, angles=np.arange(20) % 3), simulated=(10, 20))


def test_whole_turns_of_a_free_joint_are_no_other_place():
    won = np.tile([True, False], 10)
    angles = np.where(won, 3.1, 3.1 + 2 * np.pi)
    assert complaints(attempts(won, angles=angles), simulated=(10, 20))
    turning = [replace(a, turning=frozenset({"angle"})) for a in attempts(won, angles=angles)]
    assert not complaints(turning, simulated=(10, 20))
    moved = attempts(won, angles=angles + np.where(won, 0.0, 0.2))
    assert complaints([replace(a, turning=frozenset({"angle"})) for a in moved], simulated=(10, 20))


def test_kinds_are_groups_that_stand_apart():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(12, 2)) + np.repeat([[0, 0], [20, 0]], [8, 4], axis=0)
    between = np.linalg.norm(points[:, None] - points[None], axis=-1)
    assert [len(group) for group in kinds(between)] == [8, 4]
    alone = rng.normal(size=(12, 2))
    assert len(kinds(np.linalg.norm(alone[:, None] - alone[None], axis=-1))) == 1


def test_phases_end_where_the_motion_changes():
    _, twin = bundle_and_twin(TASK)
    times = np.arange(250) / 50.0
    angle = np.where(times < 2.0, np.sin(8 * times), np.sin(16.0))
    speed = np.where(times < 2.0, 8 * np.cos(8 * times), 0.0)
    log = ControlLog(
        contract=twin_contract(twin, 50.0),
        episode="e",
        times=times,
        readings=np.stack([angle, speed], axis=1),
        fresh=np.ones((250, 2), bool),
        command=np.where(times < 2.0, 1.5, 0.0)[:, None],
    )
    found = Behaviours(twin.compile().model, 5.0).phases(log)
    assert len(found) >= 2 and found[0].begin_s == 0.0
    assert any(abs(phase.end_s - 2.0) < 0.2 for phase in found)
    assert "rest" in found[-1].words and found[-1].end_s == pytest.approx(times[-1])


def test_failures_among_simulated_successes_are_not_reproduced():
    rng = np.random.default_rng(0)
    around = np.repeat([0.0, 10.0], [300, 100])  # successes, and failures far away
    simulated = around[:, None, None] + rng.normal(size=(400, 1, 2))
    trials = SimpleNamespace(
        success=around == 0.0, names=("a",), values=rng.normal(size=(400, 1)), each=1
    )

    def reproduced(place):
        real = place + rng.normal(size=(5, 1, 2))
        log = SimpleNamespace(log=SimpleNamespace(episode="e"), stopped="")
        steps = SimpleNamespace(phases=lambda log: ())
        parts = [[log] * 5, real, np.zeros((5, 5)), steps, (simulated, trials), (simulated, trials)]
        twin = bundle_and_twin(TASK)[1]
        return explanation.explained_kind(*parts, np.ones(2), twin).reproducible

    assert reproduced(10.0) and not reproduced(0.0)


def kind(**changes):
    values = {
        "episodes": ("0123456789",), "phases": (), "in_training": 0.0, "failed_alike": 0.0,
        "reproduced": 1.0, "values": (),
    }  # fmt: skip
    return FailureKind(**(values | changes))


def test_advice_on_failures_knows_what_nothing_reproduces_from_what_anything_does():
    def advised(one):
        found = Failures(tried=5, failed=1, kinds=(one,), diagnoses=())
        (advice,) = advise(bundle_and_twin(TASK)[1], failures=found)
        return advice.why

    assert "at any parameter values" in advised(kind())
    assert "nothing in the twin" in advised(kind(reproduced=0.0))


def test_values_of_an_identified_twin_are_taken_by_name():
    twin = bundle_and_twin(TASK)[1]
    gain = "actuator/hinge/gain"
    known = Empirical(names=(gain,), samples=((1.45,), (1.45,)))
    other = replace(twin, parameters=tuple(reversed(twin.parameters)), posterior=known)
    found = explanation.allowed_draws(twin, other, 64, 0)
    plain = explanation.allowed_draws(twin, None, 64, 0)
    moved = [p.name for k, p in enumerate(twin.parameters) if (found[:, k] != plain[:, k]).any()]
    assert moved == [gain]
    assert found[:, [p.name for p in twin.parameters].index(gain)].max() > 1.3


@pytest.fixture(scope="module")
def weak():
    """Attempts of the bundled policy with a weak motor, and what explains them."""
    bundle, twin = bundle_and_twin(TASK)
    gain = twin.parameter("actuator/hinge/gain")
    low, high = gain.bounds
    kept = simulate(bundle, twin, count=16, seed=5, values={gain.name: 1.02 * low})
    wide = replace(
        twin,
        parameters=tuple(
            replace(p, prior=Uniform(low=low, high=high)) if p.name == gain.name else p
            for p in twin.parameters
        ),
    )
    opened = replace(open_policy(bundle, params="nominal"), twin=wide)
    return kept, explain_failures(opened, kept, worlds=400).failures


@pytest.mark.slow
def test_a_weak_motor_is_found_from_its_failures(weak):
    episodes, found = weak
    assert found.failed >= 5 and "works in simulation but not on hardware" in names(found.diagnoses)
    kind = found.kinds[0]
    assert set(kind.episodes) <= {episode.id for episode in episodes}
    assert not kind.met_in_training and kind.dimension == "actuation"
    assert kind.values[0].parameter == "actuator/hinge/gain"
    assert kind.values[0].high < 0.8
    assert Failures.from_dict(found.to_dict()) == found
    said = [one.do for one in advise(bundle_and_twin(TASK)[1], failures=found)]
    assert any("actuator/hinge/gain" in do for do in said)


@pytest.mark.slow
def test_what_no_value_reproduces_is_unknown(weak):
    episodes, _ = weak
    bundle, twin = bundle_and_twin(TASK)
    rng = np.random.default_rng(0)

    def shaken(signal):
        return Signal(signal.times, signal.values + rng.normal(0, 8.0, signal.values.shape),
                      signal.unit, signal.rate_hz)  # fmt: skip

    odd = [
        replace(
            episode,
            channels={
                name: shaken(signal) if name.startswith("sensor/") else signal
                for name, signal in episode.channels.items()
            },
        )
        for episode in episodes
    ]
    opened = replace(open_policy(bundle, params="nominal"), twin=twin)
    found = explain_failures(opened, odd, worlds=200).failures
    assert {kind.dimension for kind in found.kinds} == {UNKNOWN}


def stopped(episode, why):
    source = replace(episode.provenance, stopped=why)
    return replace(episode, provenance=source, outcome="failure")


@pytest.mark.slow
def test_what_stopped_trials_is_the_cause_of_their_failure():
    bundle, twin = bundle_and_twin(TASK)
    flown = simulate(bundle, twin, count=6, seed=5)
    fast = [f"hinge at {speed} rad/s, limit 12.43" for speed in (-12.58, 13, 12.9)]
    ended = [
        stopped(e, why) for e, why in zip(flown[:4], [*fast, "the connection is lost"], strict=True)
    ]
    other = replace(flown[4], outcome="failure")
    opened = replace(open_policy(bundle, params="nominal"), twin=twin)
    found = explain_failures(opened, [*ended, other, flown[5]], worlds=16)
    by_speed, *others = found.failures.kinds
    assert len(by_speed.episodes) == 3 and by_speed.stopped in fast
    assert by_speed.cause == f"stopped: {by_speed.stopped}"
    assert {kind.cause for kind in others} >= {"stopped: the connection is lost"}
    assert len(found.failures.kinds) == 3 and "" in {kind.stopped for kind in others}
    assert by_speed.stopped in found.failures.causes()
    said = "\n".join(found.sentences())
    assert by_speed.stopped in said and "the connection is lost" in said
    assert not any("unknown" in line for line in by_speed.sentences())
    assert Failures.from_dict(found.failures.to_dict()) == found.failures


def test_recordings_without_outcomes_are_refused():
    with pytest.raises(Sim2RealError, match="how its trial ended"):
        explain_failures(bundle_and_twin(TASK)[0], [str(MADE / "motions")])
