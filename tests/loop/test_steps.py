"""Steps of a loop: done once, named by what they are made from, and done again only if killed."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sim2real.errors import Sim2RealError
from sim2real.loop import RESULT_FILE, KeptStep, Store
from sim2real.loop.steps import ago


def counted(log, kind, inputs, needs=(), fail=False):
    """A step that notes its work, and gives the sum of its inputs and what it needs."""

    def work(folder, done):
        log.append(kind)
        if fail:
            (folder / "half").write_text("left behind")
            raise KeyboardInterrupt
        return {"sum": sum(inputs.values()) + sum(need.result["sum"] for need in done)}

    return KeptStep(kind=kind, inputs=inputs, needs=needs, work=work)


def test_a_step_and_what_it_needs_is_done_once_in_all_processes(tmp_path):
    log = []
    first = counted(log, "first", {"a": 1})
    both = counted(log, "both", {"b": 2}, (first, first))
    assert Store(tmp_path).run(both).result == {"sum": 4}
    again = Store(tmp_path).run(both)
    assert again.kept and again.result == {"sum": 4}
    assert log == ["first", "both"]


def test_other_inputs_or_needs_are_other_work(tmp_path):
    one, two = counted([], "first", {"a": 1}), counted([], "first", {"a": 2})
    assert one.key != two.key
    assert counted([], "both", {}, (one,)).key != counted([], "both", {}, (two,)).key
    store = Store(tmp_path)
    assert store.run(one).result != store.run(two).result


def test_an_interrupted_step_is_done_again_and_finished_ones_are_not(tmp_path):
    log = []
    first = counted(log, "first", {"a": 1})
    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path).run(counted(log, "second", {"b": 2}, (first,), fail=True))
    whole = counted(log, "second", {"b": 2}, (first,))
    assert Store(tmp_path).run(whole).result == {"sum": 3}
    assert log == ["first", "second", "second"]
    assert (tmp_path / whole.name / "half").exists()  # an attempt may use what is left


def test_two_who_want_the_same_step_do_it_once(tmp_path):
    log = []

    def work(folder, done):
        log.append(folder)
        time.sleep(0.2)
        return {"sum": 1}

    step = KeptStep(kind="slow", inputs={}, work=work)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: Store(tmp_path).run(step).result, range(2)))
    assert found == [{"sum": 1}] * 2 and len(log) == 1


def test_a_result_that_lacks_a_part_is_refused(tmp_path):
    step = counted([], "first", {"a": 1})
    Store(tmp_path).run(step)
    (tmp_path / step.name / RESULT_FILE).write_text(json.dumps({"key": step.key}))
    with pytest.raises(Sim2RealError, match="delete it"):
        Store(tmp_path).run(step)


def test_a_result_of_another_step_is_refused(tmp_path):
    step = counted([], "first", {"a": 1})
    Store(tmp_path).run(step)
    path = tmp_path / step.name / RESULT_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), "key": "f" * 64}))
    with pytest.raises(Sim2RealError, match="delete it"):
        Store(tmp_path).run(step)


def test_begin_and_end_of_a_step_are_reported_and_kept_ones_only_end(tmp_path):
    seen = []
    step = counted([], "first", {"a": 1})
    for _ in range(2):
        Store(tmp_path, report=lambda s, d: seen.append(d and d.kept)).run(step)
    assert seen == [None, False, True]


def versioned(kind, version=1, needs=(), **inputs):
    """A step of an algorithm of a version."""
    return KeptStep(
        kind=kind, inputs=inputs, needs=needs, algorithms={"fit": version},
        work=lambda folder, done: {},
    )  # fmt: skip


def begun(folder, *steps):
    """Why each step was made again, of those that were made."""
    said = {}
    store = Store(folder, report=lambda step, done: done or said.update({step.kind: step.why}))
    for step in steps:
        store.run(step)
    return said


def test_a_raised_version_makes_a_step_again_and_says_so(tmp_path):
    assert begun(tmp_path, versioned("identify", 2)) == {"identify": ""}
    assert begun(tmp_path, versioned("identify", 2)) == {}
    why = "its algorithm fit is version 3, the kept result is of version 2"
    assert begun(tmp_path, versioned("identify", 3)) == {"identify": why}


def test_the_first_thing_that_changed_is_the_reason(tmp_path):
    first = versioned("train", code="a")
    begun(tmp_path, versioned("evaluate", needs=(first,), episodes=5))
    other = versioned("train", code="b")
    said = begun(tmp_path, versioned("evaluate", needs=(other,), episodes=5))
    assert said == {"train": "its task's code changed", "evaluate": "its policy changed"}
    said = begun(tmp_path, versioned("evaluate", 2, needs=(other,), episodes=6))
    assert said["evaluate"].startswith("its algorithm fit")
    said = begun(tmp_path, versioned("evaluate", 2, needs=(other,), episodes=7))
    assert said == {"evaluate": "its episodes changed"}


def test_other_work_and_what_the_loop_uses_already_is_no_reason(tmp_path):
    nominal, known = versioned("train", source="nominal"), versioned("train", source="posterior")
    begun(tmp_path, nominal)
    assert begun(tmp_path, known) == {"train": ""}
    one, two = versioned("trials", needs=(nominal,)), versioned("trials", needs=(known,))
    assert begun(tmp_path, one, two) == {"trials": ""}


def test_each_step_is_held_against_the_one_in_whose_place_it_is(tmp_path):
    """The second evaluation is not compared with the first, which has the same inputs."""

    def both(version):
        trained = [versioned("train", version, source=source) for source in ("nominal", "adr")]
        return [versioned("evaluate", needs=(one,), episodes=5) for one in trained]

    begun(tmp_path, *both(1))
    said = []
    store = Store(tmp_path, report=lambda step, done: done or said.append((step.kind, step.why)))
    for step in both(2):
        store.run(step)
    why = "its algorithm fit is version 2, the kept result is of version 1"
    assert said == [("train", why), ("evaluate", "its policy changed")] * 2


def test_a_damaged_result_of_the_same_kind_does_not_stop_a_step(tmp_path):
    begun(tmp_path, versioned("train", code="a"))
    for path in tmp_path.rglob(RESULT_FILE):
        path.write_text('{"kind": "train", "inputs": 3}')
    assert begun(tmp_path, versioned("train", code="b")) == {"train": ""}


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "just now"), (59, "just now"), (150, "2 min ago"), (7300, "2 h ago"), (3e5, "3 days ago")],
)
def test_a_time_that_has_passed_is_said_in_one_unit(seconds, said):
    assert ago(seconds) == said
