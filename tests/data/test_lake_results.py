"""A lake keeps results beside what they were computed from, and forgets them with it."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from sim2real.arrays import Floats
from sim2real.data import Consent, Episode, Lake
from sim2real.data.overview import LakeKeeper
from sim2real.errors import Sim2RealError
from sim2real.results import Result
from tests.data.test_lake import episode
from tests.golden.cases import MADE


@dataclass(frozen=True, kw_only=True, eq=False)
class Twist(Result, kind="twist"):
    """A result of an array and a text."""

    angle: float
    rows: Floats
    said: str = ""


def twist(angle=1.0, said=""):
    return Twist(angle=angle, rows=np.arange(50.0) * angle, said=said)


def by_ana(k) -> Episode:
    return episode(k, kind="real", consent=(Consent(participant="p-ana", scope=("training",)),))


@pytest.fixture
def lake(tmp_path) -> Lake:
    lake = Lake.create(tmp_path / "lake")
    lake.append([episode(1), episode(2), by_ana(3)])
    return lake


def test_a_result_comes_back_and_sql_finds_it(lake):
    id_ = lake.keep_result(twist(), [episode(1).id, episode(2).id], twin="abc")
    assert lake.keep_result(twist(), [episode(1).id]) == id_  # it is there already
    lake.keep_result(twist(2.0), [episode(2).id])
    first, second = Lake.open(lake.uri).results("twist")
    assert first.restored(Twist) == twist() and second.restored(Twist) == twist(2.0)
    assert (first.twin, first.schema, len(first.episodes)) == ("abc", 1, 2)
    assert lake.results("gap") == []
    found = lake.query(
        "select json_extract(json, '$.angle')::double as angle from results"
        f" where list_contains(episodes, '{episode(1).id}')"
    )
    assert found["angle"].to_pylist() == [1.0]
    with pytest.raises(Sim2RealError, match="no episode 'f00' in"):
        lake.keep_result(twist(), ["f00"])


def test_results_of_who_withdraws_are_listed_and_erased_from_every_file(lake):
    hers = lake.keep_result(twist(3.0), [episode(1).id, by_ana(3).id])
    other = lake.keep_result(twist(4.0, said="p-ana was there"), [episode(1).id])
    lake.compact()
    gone = LakeKeeper(lake).withdraw("p-ana")
    assert gone.results == (hers,) and gone.to_dict()["results"] == [hers]
    assert [one.id for one in lake.results()] == [other]
    assert lake.results()[0].restored(Twist).said == "withdrawn was there"
    for path in Path(lake.uri).rglob("*"):
        assert not path.is_file() or hers.encode() not in path.read_bytes(), path
    assert LakeKeeper(lake).verify() == []


def test_a_lake_of_the_version_before_has_no_results_until_the_first_is_kept(tmp_path):
    shutil.copytree(MADE / "lake", tmp_path / "lake")
    lake = Lake.open(tmp_path / "lake")
    assert lake.results() == [] and LakeKeeper(lake).verify() == []
    assert lake.query("select count(*) as n from results")["n"].to_pylist() == [0]
    lake.compact()
    id_ = lake.query("select id from episodes limit 1")["id"][0].as_py()
    lake.keep_result(twist(), [id_])
    assert Lake.open(lake.uri).results()[0].episodes == [id_]
    assert LakeKeeper(lake).verify() == []


def test_a_result_of_a_newer_schema_is_one_clear_line(lake):
    lake.keep_result(twist(), [episode(1).id])
    (kept,) = lake.results()
    newer = {**json.loads(kept.json), "schema": 2}
    with pytest.raises(Sim2RealError, match="of schema 2, and this version reads up to 1: update"):
        Twist.restored(newer, "there")
