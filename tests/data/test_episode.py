"""Episodes: immutable, known by their content, and traceable."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sim2real.data import Consent, Episode, Origin, Provenance, Signal
from sim2real.data.episode import held
from sim2real.errors import Sim2RealError

PERSON = Consent(participant="p1", scope=("training",), expires="2027-12-31")
REAL = Provenance(kind=Origin.REAL, robot="so101", serial="7", consent=(PERSON,))


def episode(**changes) -> Episode:
    times = np.arange(50) * 0.02
    channels = {
        "q": Signal(times, np.sin(times)[:, None] * [1.0, 2.0], "rad"),
        "torque": Signal(times[::5], np.ones(10), "N m"),
    }
    return Episode(**{"channels": channels, "provenance": REAL, "outcome": "success", **changes})


def test_the_same_content_has_the_same_id_in_any_order_and_byte_order():
    one = episode()
    swapped = dict(reversed(list(one.channels.items())))
    big = {n: Signal(s.times, s.values.astype(">f8"), s.unit) for n, s in swapped.items()}
    assert episode(channels=swapped).id == episode(channels=big).id == one.id
    assert episode() == one and len({episode(), one}) == 1


def test_every_part_of_the_content_changes_the_id():
    base = episode()
    q = base["q"]
    others = [
        episode(outcome="failure"),
        episode(provenance=Provenance(kind="simulated")),
        episode(channels={**base.channels, "q": Signal(q.times, q.values, "deg")}),
        episode(channels={**base.channels, "q": Signal(q.times + 1e-9, q.values, "rad")}),
        episode(channels={**base.channels, "q": Signal(q.times, q.values + 1e-12, "rad")}),
        episode(channels={**base.channels, "q": Signal(q.times, q.values.astype("f4"), "rad")}),
        episode(channels={"p": q, "torque": base["torque"]}),
    ]
    assert len({base.id, *(other.id for other in others)}) == 8


def test_an_episode_cannot_be_changed():
    one = episode()
    with pytest.raises(ValueError, match="read-only"):
        one["q"].values[0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        one["q"].times[0] = 5.0
    with pytest.raises(TypeError):
        one.channels["x"] = one["q"]


def test_an_episode_does_not_follow_the_arrays_it_was_made_from():
    times, values = np.arange(3.0), np.zeros(3)
    signal = Signal(times, values)
    values[0] = times[0] = 9.0
    assert signal.values[0] == 0.0 and signal.times[0] == 0.0


def test_a_derived_episode_knows_its_parent():
    one = episode()
    half = one.derive("first half", channels={"q": one["q"].between(0.0, 0.5)})
    assert half.provenance.parents == (one.id,)
    assert half.provenance.process == "first half"
    assert half.provenance.robot == "so101"
    assert len(half["q"].times) == 25
    with pytest.raises(Sim2RealError, match="needs a process"):
        one.derive("")


def test_durations_and_rates_come_from_the_time_stamps():
    one = episode()
    assert one.duration_s == pytest.approx(0.98)
    assert one["q"].rate_hz == pytest.approx(50.0)
    assert np.isnan(Signal([0.0], [1.0]).rate_hz)


def test_lying_time_stamps_are_kept_as_recorded():
    signal = Signal([0.0, 0.1, 0.1, 0.05], [1, 2, 3, 4])
    assert signal.times.tolist() == [0.0, 0.1, 0.1, 0.05]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Signal([0.0, 1.0], [1.0]), "do not fit"),
        (lambda: Signal([[0.0]], [1.0]), "must have one axis"),
        (lambda: Signal([0.0], ["a"]), "must be numbers"),
        (lambda: Signal([0.0], [object()]), "must be numbers"),
        (lambda: episode(channels={}), "at least one channel"),
        (lambda: episode(channels={"../x": episode()["q"]}), "not a name like"),
        (lambda: episode(channels={"q": 3}), "not a Signal"),
        (lambda: episode(outcome="sucess"), "outcome is"),
        (lambda: episode()["torqe"], "'torque'"),
        (lambda: Provenance(kind="simulatd"), "'simulated'"),
        (lambda: Provenance(kind="real", parameters={"m": float("nan")}), "must be a number"),
        (lambda: Provenance.from_dict({"kind": "real", "sreial": "7"}), "'serial'"),
        (lambda: Provenance.from_dict({}), "needs 'kind'"),
        (lambda: Provenance.from_dict({"kind": "real", "parents": "abc"}), "must be a list"),
        (lambda: Provenance.from_dict({"kind": "real", "software": [1]}), "must be a table"),
        (lambda: Provenance.from_dict([]), "must be a table"),
    ],
)
def test_what_is_no_episode_is_one_clear_error(make, words):
    with pytest.raises(Sim2RealError, match=words):
        make()


text = st.text(max_size=12)


@given(
    st.sampled_from(list(Origin)),
    st.dictionaries(text, st.floats(allow_nan=False, allow_infinity=False), max_size=4),
    st.lists(st.text(min_size=1, max_size=8), max_size=3),
    text,
)
def test_provenance_survives_json(kind, parameters, parents, site):
    one = Provenance(kind=kind, parameters=parameters, parents=tuple(parents), site=site)
    again = Provenance.from_dict(json.loads(one.to_json()))
    assert again == one and again.to_json() == one.to_json()


@given(
    hnp.arrays(
        dtype=st.sampled_from(["f8", "f4", "i8", "i4", "u1", "?"]),
        shape=hnp.array_shapes(min_dims=1, max_dims=3, max_side=5),
    )
)
def test_a_signal_keeps_its_numbers_and_type(values):
    signal = Signal(np.arange(len(values)), values)
    assert signal.values.dtype == values.dtype
    assert signal.values.tobytes() == values.tobytes()
    assert signal == Signal(np.arange(len(values)), values.copy())


def test_provenance_does_not_follow_what_it_was_made_from():
    draw, facts = {"body/pole/mass": 1}, {"offsets": [1, 2]}
    source = Provenance(kind="real", parameters=draw, calibration=facts)
    text = source.to_json()
    draw["body/pole/mass"] = 2.0
    facts["offsets"].append(3)
    assert source.to_json() == text
    assert Provenance.from_dict(json.loads(text)) == source
    with pytest.raises(TypeError):
        source.parameters["x"] = 1.0


@pytest.mark.parametrize(
    "wrong",
    [{"task": 5}, {"calibration": {"a": float("inf")}}, {"parameters": {"m": "x"}},
     {"seed": 1.5}, {"site": "\udcff"}, {"parents": ("",)}],
)  # fmt: skip
def test_provenance_that_cannot_be_kept_is_refused(wrong):
    with pytest.raises(Sim2RealError):
        Provenance(kind="real", **wrong)


@pytest.mark.parametrize(
    ("times", "index"),
    [([0, 1, 2, 3], [0, 1, 2, 3]), ([0, np.nan, 1, 2, 3], [0, 2, 3, 4]),
     ([0, 1e9, 1, 2, 3], [0, 2, 3, 4]), ([0, 1, 1, 3], [0, 2, 2, 3])],
)  # fmt: skip
def test_a_sample_is_held_until_the_next_whatever_the_clock_did(times, index):
    assert held(np.array(times, float), np.arange(4.0)).tolist() == index
