"""What a shard is known by, and what a store keeps of it."""

import errno
import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim2real.errors import Sim2RealError
from sim2real.scale import Shard, ShardStore, open_store
from tests.scale import work

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(st.text(), parts, max_size=3),
    max_leaves=8,
)  # fmt: skip


def shard(number=1, **parts):
    return Shard(work="tests.scale.work:squares", args=(number,), **parts)


def put(store, one, result):
    store.open()
    return store.put(one, result, seconds=0.5, where="here:1")


def file_of(store, one):
    (found,) = Path(store.uri).rglob(f"{one.key}.json")
    return found


def test_the_key_is_of_what_decides_the_result_and_of_nothing_else(tmp_path):
    for name, text in (("a", "one"), ("b", "one"), ("c", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "input.txt").write_text(text)
    base = shard(inputs={"a": 1, "b": [2.5]}, files={"f": tmp_path / "a"})
    same = shard(inputs={"b": (2.5,), "a": 1}, files={"f": tmp_path / "b"}, name="for people")
    assert same.key == base.key
    others = [
        shard(2, inputs={"a": 1, "b": [2.5]}, files={"f": tmp_path / "a"}),
        shard(inputs={"a": 1, "b": [2.5000001]}, files={"f": tmp_path / "a"}),
        shard(inputs={"a": 1, "b": [2.5]}, files={"f": tmp_path / "c"}),
        shard(inputs={"a": 1, "b": [2.5]}, files={"f": tmp_path / "a"}, version="2"),
        Shard(work="tests.scale.work:slow", args=(1,), inputs={"a": 1, "b": [2.5]},
              files={"f": tmp_path / "a"}),
    ]  # fmt: skip
    assert len({base.key, *(one.key for one in others)}) == 6


def test_a_file_of_the_same_bytes_under_another_name_in_its_folder_is_another_input(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.txt").write_text("same")
    assert shard(files={"f": tmp_path / "a"}).key != shard(files={"f": tmp_path / "b"}).key


@pytest.mark.parametrize(
    "wrong", [object(), float("nan"), [float("inf")], {"a": object()}, b"bytes"]
)
def test_arguments_that_are_no_plain_data_are_refused(wrong):
    with pytest.raises(Sim2RealError, match="not plain data"):
        Shard(work="math:sin", args=(wrong,))


@pytest.mark.parametrize("place", ["", "math", "math.sin", "math:", ":sin", "a b:c"])
def test_work_that_names_no_function_is_refused(place):
    with pytest.raises(Sim2RealError, match="no function"):
        Shard(work=place)


def test_a_function_that_workers_cannot_find_is_refused():
    def inside():
        pass

    for function in (inside, lambda: 0):
        with pytest.raises(Sim2RealError, match="cannot be found by workers"):
            Shard.of(function)
    assert Shard.of(work.squares).work == "tests.scale.work:squares"


@given(result=PLAIN)
def test_what_is_put_is_got(result, tmp_path_factory):
    store = ShardStore(tmp_path_factory.mktemp("store"))
    one = shard()
    assert store.get(one.key) is None
    put(store, one, result)
    assert store.keys() == {one.key}
    found = ShardStore(store.uri).get(one.key)
    assert found.result == result and found.where == "here:1"


def test_equal_results_are_equal_bytes(tmp_path):
    first = put(ShardStore(tmp_path / "a"), shard(), {"b": 0.1 + 0.2, "a": [1, None]})
    second = put(ShardStore(tmp_path / "b"), shard(), {"a": [1, None], "b": 0.1 + 0.2})
    assert first.digest == second.digest
    one, two = (file_of(ShardStore(tmp_path / name), shard()).read_bytes() for name in "ab")
    assert one == two


@pytest.mark.parametrize("damage", ["", "{", "[]", "null", '{"key": 1}', "\x00" * 40])
def test_a_damaged_result_is_none(tmp_path, damage):
    store = ShardStore(tmp_path)
    put(store, shard(), {"a": 1.0})
    file_of(store, shard()).write_text(damage)
    assert store.get(shard().key) is None


def test_a_changed_digit_is_found(tmp_path):
    store = ShardStore(tmp_path)
    put(store, shard(), {"a": 1.25})
    file = file_of(store, shard())
    file.write_text(file.read_text().replace("1.25", "1.26"))
    assert store.get(shard().key) is None


def test_the_result_of_another_shard_is_refused(tmp_path):
    store = ShardStore(tmp_path)
    put(store, shard(1), 1)
    put(store, shard(2), 2)
    shutil.copy(file_of(store, shard(1)), file_of(store, shard(2)))
    with pytest.raises(Sim2RealError, match="is not the result of its shard; delete it"):
        store.get(shard(2).key)


def test_a_place_that_holds_something_else_is_no_store(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(Sim2RealError, match="holds other files"):
        ShardStore(tmp_path).open()
    (tmp_path / "new").mkdir()
    ShardStore(tmp_path / "new").open()
    (tmp_path / "new" / "store.json").write_text(json.dumps({"holds": "tea", "form": 9}))
    with pytest.raises(Sim2RealError, match="no store of shards"):
        ShardStore(tmp_path / "new").open()


def test_a_full_disk_is_one_line_and_leaves_nothing_half_written(tmp_path, monkeypatch):
    store = ShardStore(tmp_path)
    store.open()

    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Sim2RealError, match="No space left on device"):
        put(store, shard(), 1)
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["store.json"]


def test_files_go_to_a_worker_and_come_back(tmp_path):
    (tmp_path / "in.txt").write_text("text")
    store = ShardStore(tmp_path / "store")
    one = Shard.of(work.long_text, files={"file": tmp_path / "in.txt"})
    store.open()
    store.bring(one)
    store.bring(one)
    with store.folder(one) as folder:
        length = work.long_text(**store.brought(one.digests), folder=folder)
        done = store.put(one, length, seconds=0.1, where="here:1", made=folder)
    assert done.files == ("deep/text.txt",)
    back = store.fetch(done, tmp_path / "back")
    assert (back / "deep" / "text.txt").read_text() == "texttexttext"


def test_a_cluster_needs_a_store_that_its_machines_see():
    with pytest.raises(Sim2RealError, match="all its machines see"), open_store("", "ray:auto"):
        pass
