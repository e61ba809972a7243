"""A policy knows the episodes it comes from, from the twin to the bundle and the lake."""

import json
from dataclasses import replace

import pytest

from sim2real.data import Lake
from sim2real.learn import Run, TrainConfig
from sim2real.policy import Bundle, write_bundle
from sim2real.tasks import Starts, find_task
from sim2real.twin import Twin
from tests.repository import BUNDLES

TASK = "pendulum-swingup"


def begun(folder, **options):
    """A run that has not trained yet."""
    config = TrainConfig(task=TASK, worlds=16, out=folder, **options)
    return Run.plan(config, learner_threads=1).create()


def identified(folder, *episodes, checked=()):
    twin = replace(
        Twin.load(find_task(TASK).twin), identified_on=tuple(episodes), checked_on=tuple(checked)
    )
    return twin.save(folder)


def test_a_run_comes_from_its_twin_its_starts_and_the_run_it_begins_with(tmp_path):
    first = begun(tmp_path, twin=identified(tmp_path / "one", "a", "b", checked=("c",)).folder)
    assert first.made_from == {"identified_on": ["a", "b"], "checked_on": ["c"]}
    Starts(qpos=[[0.0]], qvel=[[9.0]], command=[[0.0]], episodes=("d",)).save(tmp_path / "s.json")
    second = begun(
        tmp_path, twin=identified(tmp_path / "two", "b", "e").folder, starts=tmp_path / "s.json",
        begin=first.folder,
    )  # fmt: skip
    assert Run.open(second.folder).made_from == {
        "identified_on": ["a", "b", "e"], "checked_on": ["c"], "trained_on": ["d"],
    }  # fmt: skip


def test_a_run_in_a_twin_as_written_comes_from_no_episode(tmp_path):
    run = begun(tmp_path)
    assert run.made_from == {} and [path.name for path in run.folder.iterdir()] == ["config.json"]


def test_episodes_are_no_part_of_a_twin_s_version(tmp_path):
    plain = Twin.load(find_task(TASK).twin)
    saved = identified(tmp_path / "twin", "a", checked=("b",))
    found = Twin.load(tmp_path / "twin")
    assert found.version == replace(saved, identified_on=(), checked_on=()).version
    assert (found.identified_on, found.checked_on) == (("a",), ("b",))
    assert found.with_parameters(*plain.parameters).identified_on == ("a",)
    plain.save(tmp_path / "plain")
    assert not (tmp_path / "plain" / "episodes.json").exists()


@pytest.fixture
def bundle(tmp_path) -> Bundle:
    """A bundle of a policy that was identified on two episodes and started in a third."""
    old = Bundle.open(BUNDLES / TASK)
    return write_bundle(
        tmp_path / "bundle",
        contract=old.contract,
        limits=old.limits,
        graphs={name: old.graph(name) for name in ("observe", "policy", "act", "rest")},
        twin=Twin.load(old.twin),
        provenance={**old.provenance, "identified_on": ["a", "b"], "trained_on": ["c"]},
    )


def test_a_lake_says_which_policies_come_from_an_episode(bundle, tmp_path):
    lake = Lake.create(tmp_path / "lake")
    for _ in range(2):
        bundle.keep_origin(lake)
    found = lake.query("select episode, purpose, policy from origins order by episode").to_pylist()
    assert [(row["episode"], row["purpose"]) for row in found] == [
        ("a", "identification"), ("b", "identification"), ("c", "training"),
    ]  # fmt: skip
    assert {row["policy"] for row in found} == {bundle.policy}
    assert lake.query("select * from policies").num_rows == 2


def test_a_bundle_from_before_comes_from_nothing_that_is_known(tmp_path):
    lake = Lake.create(tmp_path / "lake")
    Bundle.open(BUNDLES / TASK).keep_origin(lake)
    assert lake.query("select * from origins").num_rows == 0


def test_a_bundle_was_tested_on_what_its_ladder_recorded(bundle):
    bundle.records.mkdir()
    for number, (step, ids) in enumerate(
        [("replay", ["a"]), ("shadow", ["s"]), ("full", ["f", ""]), ("full", ["f", "g"])]
    ):
        record = {"step": step, "episodes": ids}
        (bundle.records / f"{number}-{step}.json").write_text(json.dumps(record))
    assert Bundle.open(bundle.folder).tested_on == ("s", "f", "g")
