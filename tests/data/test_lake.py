"""The lake: what was appended is there, whole, once, in every version from then on."""

from dataclasses import replace

import numpy as np
import pytest

from sim2real.data import Episode, Label, Lake, Provenance, Signal
from sim2real.errors import Sim2RealError


def episode(k: int, kind: str = "simulated", **changes) -> Episode:
    times = np.arange(20) * 0.02
    channels = {
        "q": Signal(times, np.full((20, 3), float(k)), "rad"),
        "count": Signal(times, np.arange(20) + 2**60, ""),
        "small": Signal(times[:5], np.full((5, 2, 2), k % 200, dtype="u1"), ""),
        "single": Signal(times, np.sin(times + k).astype("f4"), "N"),
        "on": Signal(times, times > 0.1, ""),
    }
    source = Provenance(kind=kind, task="pendulum-swingup", seed=k, **changes)
    return Episode(channels=channels, provenance=source, outcome="success" if k % 2 else "failure")


def test_an_episode_comes_back_as_it_went_in(tmp_path):
    lake = Lake.create(tmp_path / "lake")
    given = [episode(k) for k in range(5)]
    ids = lake.append(given)
    assert ids == [e.id for e in given] and len(lake) == 5
    for one in given:
        again = lake.get(one.id)
        assert again == one
        for name, signal in one.channels.items():
            assert again[name].values.dtype == signal.values.dtype
            assert np.array_equal(again[name].values, signal.values)
    assert [e.id for e in lake.read(ids[::-1])] == ids[::-1]


def test_appending_twice_keeps_one(tmp_path):
    lake = Lake.create(tmp_path / "lake")
    lake.append(episode(1))
    lake.append([episode(1), episode(2), episode(2)])
    assert len(lake) == 2


def test_provenance_answers_sql(tmp_path):
    lake = Lake.create(tmp_path / "lake")
    lake.append([episode(k) for k in range(6)])
    lake.append(episode(7, kind="real", robot="so101", site="lab"))
    found = lake.query(
        "select kind, count(*) as n, avg((outcome = 'success')::int) as rate from episodes"
        " group by kind order by kind"
    ).to_pylist()
    assert found == [
        {"kind": "real", "n": 1, "rate": 1.0},
        {"kind": "simulated", "n": 6, "rate": 0.5},
    ]
    mean = lake.query(
        "select avg(v) as v from (select unnest(f64) as v from signals join episodes"
        " on episode = id where channel = 'q' and kind = 'real')"
    )
    assert mean["v"][0].as_py() == 7.0


def test_a_version_is_the_data_as_it_was(tmp_path):
    lake = Lake.create(tmp_path / "lake")
    lake.append(episode(1))
    then = lake.version
    lake.append(episode(2))
    assert lake.query("select count(*) as n from episodes", version=then)["n"][0].as_py() == 1
    assert len(lake) == 2
    with pytest.raises(Sim2RealError, match="no episode"):
        lake.get(episode(2).id, version=then)


def test_a_lake_is_opened_only_where_there_is_one(tmp_path):
    with pytest.raises(Sim2RealError, match="no lake at"):
        Lake.open(tmp_path / "nowhere")
    Lake.create(tmp_path / "lake").append(episode(1))
    assert len(Lake.open(tmp_path / "lake")) == 1
    assert len(Lake.create(tmp_path / "lake")) == 1


@pytest.mark.parametrize("sql", ["selct 1", "select nothing from episodes", "select 1 from xyz"])
def test_a_query_that_is_none_is_one_clear_error(tmp_path, sql):
    lake = Lake.create(tmp_path / "lake")
    with pytest.raises(Sim2RealError, match="query failed") as caught:
        lake.query(sql)
    assert "\n" not in str(caught.value)


def test_a_label_is_superseded_and_never_overwritten(tmp_path):
    lake = Lake.create(tmp_path / "lake")
    (one,) = lake.append(episode(1))
    (first,) = lake.label(Label(episode=one, tag="phase", value="grasp", start_s=0.1, end_s=0.2,
                                who="ana"))  # fmt: skip
    lake.label(Label(episode=one, tag="phase", value="lift", who="ben", supersedes=first))
    assert len(lake.query("select * from labels")) == 2
    current = lake.query("select value, who from current_labels").to_pylist()
    assert current == [{"value": "lift", "who": "ben"}]
    joined = lake.query(
        "select count(*) as n from episodes join current_labels on episode = episodes.id"
    )
    assert joined["n"][0].as_py() == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tag": "sucess"}, "'success'"),
        ({"who": ""}, "needs its author"),
        ({"tag": "note"}, "needs a value"),
        ({"start_s": 1.0}, "start and an end"),
        ({"start_s": 2.0, "end_s": 1.0}, "an interval must end"),
        ({"episode": "nobody"}, "no episode"),
    ],
)
def test_a_label_that_is_none_is_refused(tmp_path, changes, words):
    lake = Lake.create(tmp_path / "lake")
    (one,) = lake.append(episode(1))
    with pytest.raises(Sim2RealError, match=words):
        lake.label(Label(**{"episode": one, "tag": "success", "who": "ana", **changes}))
    assert len(lake.query("select * from labels")) == 0


def test_lineage_is_walked_both_ways(tmp_path):
    lake = Lake.create(tmp_path / "lake")
    raw = episode(1, kind="real")
    filtered = raw.derive("filter")
    cut = replace(filtered.derive("cut"), outcome="")
    other = raw.derive("resample")
    lost = episode(9).derive("repair")
    lake.append([raw, filtered, cut, other, lost])
    walk = {r["id"]: r["steps"] for r in lake.lineage(filtered.id).to_pylist()}
    assert walk == {raw.id: -1, filtered.id: 0, cut.id: 1}
    steps = {r["id"]: r["steps"] for r in lake.lineage(raw.id).to_pylist()}
    assert steps == {raw.id: 0, filtered.id: 1, other.id: 1, cut.id: 2}
    absent = {r["id"]: r["present"] for r in lake.lineage(lost.id).to_pylist()}
    assert absent == {episode(9).id: False, lost.id: True}
