"""The loop on stand-in hardware: it ends with a summary and a page, and resumes after a kill."""

import json
import os
import re
import shutil
import signal
import time
from dataclasses import replace

import pytest
from playwright.sync_api import sync_playwright

from benchmarks.transfer.kills import started
from sim2real.data import Lake, read_recording
from sim2real.errors import Sim2RealError
from sim2real.identification import IdentifyThresholds
from sim2real.intervals import wilson
from sim2real.loop import (
    ALGORITHMS,
    KeptResult,
    LoopConfig,
    LoopResult,
    Stages,
    close_the_loop,
    lower_bound,
    plan_the_loop,
)
from sim2real.loop.stages import explanation as explanation_stages
from sim2real.loop.stages import policy as policy_stages
from sim2real.loop.stages import twin as twin_stages
from sim2real.policy import Bundle
from sim2real.report.loop_page import write_loop
from tests.report.test_results import pages_without_simulation
from tests.repository import want

TINY = {"iterations": 3, "budget": "4", "first": 2, "seconds": 18.0, "force": True}
FEW = {
    (policy_stages, "evaluate"): {"episodes": 50},
    (twin_stages, "identify"): {
        "parameters": ("joint/hinge/damping", "actuator/hinge/gain", "actuator/hinge/delay"),
        "starts": 1,
        "check_posterior": False,
        "thresholds": IdentifyThresholds(calibration_draws=0, segments=16),
    },
    (explanation_stages, "attribute"): {"draws": 2, "segments": 8, "each": 4},
    (explanation_stages, "explain_failures"): {"worlds": 64},
}
"""Options of stages that take longest."""


def walk(folder, **options):
    """A loop with little to do in each of its stages."""

    def fewer(function, few):
        return lambda *given, **named: function(*given, **(named | few))

    config = LoopConfig(
        task="pendulum-swingup", robot="unit:3", out=folder, threads=1,
        lake=str(folder / "lake"), **TINY, **options,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for (stages, name), few in FEW.items():
            patch.setattr(stages, name, fewer(getattr(stages, name), few))
        return close_the_loop(config)


def copied(whole, folder, *kinds):
    """A copy of a loop, with all its steps or those of some kinds."""
    shutil.copytree(whole, folder)
    for config in folder.rglob("config.json"):  # a run names the twin it was trained with
        config.write_text(config.read_text().replace(str(whole), str(folder)))
    for step in (folder / "steps").iterdir():
        if kinds and step.name.partition("-")[0] not in kinds:
            shutil.rmtree(step)
    return folder


@pytest.fixture(scope="module")
def whole(made_once):
    """Folder of a loop that was walked to its end, without explaining the gap."""
    return made_once("loop", lambda folder: walk(folder, explain=False))


@pytest.fixture(scope="module")
def walked(whole, tmp_path_factory):
    """Folder of a loop that went on until the gap was explained, with its page."""
    folder = copied(whole, tmp_path_factory.mktemp("walked") / "loop")
    write_loop(folder / "report.html", walk(folder))
    return folder


@pytest.mark.slow
def test_a_loop_ends_with_all_it_promises(walked):
    found = json.loads((walked / "summary.json").read_text())
    for name in ("sim_success", "real_success_before", "real_success_after"):
        assert {"value", "low", "high", "n"} <= set(found[name])
    assert found["trials"] == 4 and found["recorded_s"] <= 22
    assert found["attribution"]["success"]["shares"] and len(found["rounds"]) == 2
    page = (walked / "report.html").read_text()
    assert "http" not in re.sub(r"data:[^'\"]*", "", page)  # nothing from the network
    for episode in re.findall(r"href='#([0-9a-f]+)'", page):
        assert f"id='{episode}'" in page
    for link in re.findall(r"href='(steps/[^']+)'", page):
        assert (walked / link).is_file()


@pytest.mark.slow
def test_the_page_of_a_kept_loop_is_the_same_where_nothing_can_be_simulated(walked, tmp_path):
    (page,) = pages_without_simulation([walked], tmp_path)
    assert page == (walked / "report.html").read_text()
    closed = LoopResult.load(walked)
    assert closed == LoopResult.load(closed.save(walked / "again.json"))
    assert [film.problem for film in closed.evidence.films] == [""]


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason=want("Chromium", "it is not installed"))
@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_of_a_loop_opens_in_a_browser(walked, width):
    asked, said = [], []
    with sync_playwright() as tools:
        browser = tools.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": width, "height": 844})
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        address = (walked / "report.html").as_uri()
        page.goto(address)
        asked.remove(address)
        assert not said and all(url.startswith("data:") for url in asked)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        pictures = "[...document.images].map(i => i.complete && i.naturalWidth > 0)"
        assert all(page.evaluate(pictures)) and len(page.evaluate(pictures)) > 8
        films = "[...document.querySelectorAll('video')].map(v => v.error === null && v.duration)"
        page.wait_for_function("[...document.querySelectorAll('video')].every(v => v.readyState)")
        assert all(seconds > 1 for seconds in page.evaluate(films))
        assert page.pdf().startswith(b"%PDF")
        browser.close()


@pytest.mark.slow
def test_a_loop_keeps_its_recordings_and_what_its_policies_come_from(whole, walked):
    lake = Lake.open(walked / "lake")
    recorded = {read_recording(path).id for path in whole.rglob("steps/**/*.arrow")}
    assert set(lake.query("select id from episodes")["id"].to_pylist()) == recorded
    assert lake.version == Lake.open(whole / "lake").version  # the second walk added nothing
    summary = json.loads((walked / "summary.json").read_text())
    last = next((walked / "steps" / name) for name in summary["rounds"][1]["steps"]
                if name.startswith("ladder-"))  # fmt: skip
    bundles = {path.parent.name: Bundle.open(path) for path in walked.glob("steps/export-*/bundle")}
    needs = json.loads((last / "result.json").read_text())["needs"]
    bundle = bundles.pop(needs[0])
    motions = {read_recording(path).id for path in walked.glob("steps/record-*/**/*.arrow")}
    assert motions <= set(bundle.provenance["identified_on"]) <= recorded
    assert set(bundle.provenance["trained_on"]) <= set(bundle.provenance["identified_on"])
    assert bundle.provenance["checked_on"] and set(bundle.tested_on) < recorded
    (nominal,) = bundles.values()
    assert "identified_on" not in nominal.provenance
    for id_ in bundle.provenance["identified_on"]:
        made = [row for row in lake.lineage(id_).to_pylist() if row["process"] == "identification"]
        assert [row["id"] for row in made] == [bundle.policy]


def killed_at(process, folder, kind):
    """Kill a loop and its robot once it has begun a step of a kind."""
    while not list(folder.glob(f"steps/{kind}-*")):
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.slow
def test_a_killed_loop_goes_on_to_the_same_numbers(whole, tmp_path):
    """Killed as it trains and as it tries the robot; what takes longest was done before."""
    folder = copied(whole, tmp_path / "cut", "identify", "evaluate", "export", "predict")
    (folder / "summary.json").unlink()
    for kind in ("train", "trials"):
        killed_at(started(folder, "--no-explain"), folder, kind)
    found = without_ids(walk(folder, explain=False).to_dict())
    assert found == without_ids(LoopResult.load(whole).to_dict())


def without_ids(summary):
    """A summary without ids of recordings, which have their time in them."""
    ids = r"\b(?=[0-9]*[a-f])(?:[0-9a-f]{8}|[0-9a-f]{32})\b"
    return json.loads(re.sub(ids, "", json.dumps(summary)))


def test_a_bound_is_for_all_attempts():
    assert lower_bound([True] * 29) >= 0.9 > lower_bound([True] * 28)
    assert lower_bound([False] * 5) == 0.0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"robot": "localhost:5555"}, "--execute"),
        ({"robot": "unit:1", "target": 1.5}, "--target"),
        ({"robot": "unit:1", "budget": "many"}, "40-trials"),
        ({"robot": "unit:1", "first": 50}, "--first"),
        ({"robot": "unit:1", "seconds": float("nan")}, "--seconds"),
        ({"robot": "unit:1", "seconds": 1e12}, "--seconds"),
        ({"robot": "unit:1", "budget": "99999999999999999999"}, "40-trials"),
        ({"robot": "unit:1", "budget": "9"}, "--first .* not 10"),
        ({"robot": "unit:1", "again": float("inf")}, "--again"),
        ({"robot": "unit:1", "iterations": 0}, "--iterations"),
        ({"robot": "unit:1", "seed": -1}, "--seed"),
        ({"robot": "unit:one"}, "not a stand-in unit"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_moves(tmp_path, options, words):
    with pytest.raises(Sim2RealError, match=words):
        close_the_loop(LoopConfig(task="pendulum-swingup", out=tmp_path, **options))
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_robot_that_is_not_there_is_known_before_any_training(tmp_path):
    config = LoopConfig(
        task="pendulum-swingup", robot="127.0.0.1:9", execute=True, person="anna", out=tmp_path
    )
    with pytest.raises(Sim2RealError, match="does not answer"):
        close_the_loop(config)
    assert not list(tmp_path.rglob("checkpoint-*"))


@pytest.fixture
def played(monkeypatch):
    """A loop whose steps do nothing, with outcomes of its attempts that are given."""

    def play(out, outcomes, *, why="", kept=True, do=close_the_loop, **options):
        results = {
            "record": {"seconds": 1.0, "episodes": []},
            "evaluate": wilson(45, 50).to_dict(),
            "ladder": {"steps": [], "passed": True},
            "identify": {"why": why, "promoted": not why},
            "predict": {"won": [16] * 64, "tried": [16] * 64, "ended": [0.0]},
            "remainder": {"why": why, "promoted": not why, "remainder": {"kept": kept}},
        }

        def made(make):
            def step(self, *parts, **named):
                found = make(self, *parts, **named)
                result = results.get(found.kind, {"value": 1.0})
                if found.kind == "trials":
                    tried = outcomes[named["first"] : named["first"] + named["count"]]
                    result = {"success": tried, "episodes": []}
                return replace(found, work=lambda folder, done: result)

            return step

        kinds = ("train", "widen", "evaluate", "export", "record", "ladder", "trials", "identify")
        with monkeypatch.context() as patch:
            for kind in (*kinds, "scatter", "seen", "predict", "remainder"):
                patch.setattr(Stages, kind, made(getattr(Stages, kind)))
            config = {"task": "pendulum-swingup", "robot": "unit:3", "explain": False, "out": out}
            return do(LoopConfig(**(config | options)))

    return play


def of_another_version(folder, **changes):
    """Have a loop begun by another sim2real; what its plan says then."""
    plan = json.loads((folder / "plan.json").read_text()) | changes
    told = {name: value for name, value in plan.items() if value is not None}
    (folder / "plan.json").write_text(json.dumps(told))
    return told


def test_a_loop_that_another_version_began_goes_on_and_keeps_its_plan(played, tmp_path):
    options = {"strategy": "nominal", "budget": "10"}
    played(tmp_path, [True] * 10, **options)
    plan = of_another_version(tmp_path, software="0.9.0")
    made = sorted((tmp_path / "steps").iterdir())
    played(tmp_path, [False] * 10, **options)  # nothing is made again, so all succeed
    assert json.loads((tmp_path / "plan.json").read_text()) == plan
    assert sorted((tmp_path / "steps").iterdir()) == made
    assert json.loads((tmp_path / "summary.json").read_text())["real_success_after"]["value"] == 1


def test_a_loop_whose_steps_do_not_name_their_algorithms_is_refused(played, tmp_path):
    played(tmp_path, [True] * 10, strategy="nominal", budget="10")
    of_another_version(tmp_path, software="0.1.0", algorithms=None)
    with pytest.raises(Sim2RealError, match=r"earlier sim2real \(0\.1\.0\).*--out"):
        played(tmp_path, [True] * 10, strategy="nominal", budget="10")


def test_a_dry_run_of_a_new_loop_ends_where_outcomes_decide_and_writes_nothing(played, tmp_path):
    plan = played(tmp_path, [], do=plan_the_loop)
    kinds = ["record", "train", "evaluate", "export", "ladder", "trials"]
    assert [step.kind for step in plan.steps] == kinds
    assert {step.state for step in plan.steps} == {"new"} and "depends" in plan.ended
    assert not list(tmp_path.iterdir())


def test_a_dry_run_says_what_a_new_version_of_an_algorithm_makes_again(
    played, tmp_path, monkeypatch
):
    outcomes = [False] * 10 + [True] * 30
    played(tmp_path, outcomes)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    whole = played(tmp_path, [], do=plan_the_loop)
    assert {step.state for step in whole.steps} == {"kept"} and not whole.ended
    newer = tuple(
        replace(one, version=7) if one.name == "identification" else one for one in ALGORITHMS
    )
    monkeypatch.setattr("sim2real.loop.algorithms.ALGORITHMS", newer)
    plan = played(tmp_path, [], do=plan_the_loop)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    first = next(step for step in plan.steps if step.state != "kept")
    assert str(first) == (
        "identify: made again: its algorithm identification is version 7, the kept result is of"
        " version 1"
    )
    said = [(step.kind, step.state) for step in plan.steps]
    assert len(said) == len(whole.steps) and ("new" not in dict(said).values())
    assert said.count(("trials", "kept")) == 1 and said.count(("trials", "made again")) == 3
    assert str(plan.steps[0]) == "record: kept (just now)"


def test_a_dry_run_asks_for_nobody_at_the_robot(played, tmp_path):
    plan = played(tmp_path, [], do=plan_the_loop, robot="localhost:5555")
    assert plan.steps and not list(tmp_path.iterdir())


def test_a_policy_without_a_successor_keeps_its_failures(played, tmp_path):
    outcomes = [False] * 10 + [False] * 4 + [True] * 36
    closed = played(tmp_path, outcomes, strategy="wide", budget="50")
    assert [len(one.won) for one in closed.rounds] == [10, 40] and not closed.met


def test_a_hopeless_policy_of_an_identified_robot_is_followed_by_another(played, tmp_path):
    closed = played(tmp_path, [False] * 20 + [True] * 40, budget="60")
    assert [len(one.won) for one in closed.rounds] == [10, 10, 40] and closed.met


@pytest.mark.slow
def test_what_is_expected_in_the_end_knows_the_attempts_and_what_was_predicted_does_not(
    played, tmp_path
):
    told = played(tmp_path, [False] * 10 + [True] * 27 + [False] * 3, budget="40").to_dict()
    assert told["predicted"]["low"] > 0.99 and told["predicted"]["real"] == [0, 0]
    assert told["expected"]["low"] < 0.85 < told["expected"]["mean"] < 0.92
    assert told["expected"]["real"] == [27, 30]


@pytest.mark.parametrize("kept", (True, False))
def test_where_no_remainder_is_worth_keeping_the_identified_policy_is_taken(played, tmp_path, kept):
    options = {"strategy": "identified+remainder", "kept": kept}
    closed = played(tmp_path, [False] * 10 + [True] * 30, **options)
    assert closed.turns[-1].policy.step.inputs["remainder"] == kept


@pytest.mark.slow
def test_a_robot_that_cannot_be_identified_is_tested_on(played, tmp_path):
    closed = played(tmp_path, [False] * 5 + [True] * 35, why="the twin was right")
    assert [len(one.won) for one in closed.rounds] == [40] and not closed.met
    assert closed.why.endswith("the robot was not identified: the twin was right")


@pytest.mark.parametrize(
    ("budget", "target", "made"),
    [(10, 0.7, 10), (30, 0.7, 30), (15, 0.3, 10)],  # ten of fifteen would do
)
def test_a_loop_ends_early_only_where_nothing_could_change_the_answer(
    played, tmp_path, budget, target, made
):
    options = {"strategy": "nominal", "budget": str(budget), "target": target}
    closed = played(tmp_path, [True] * budget, **options)
    assert closed.met and sum(len(one.won) for one in closed.rounds) == made


def test_what_is_said_of_a_test_that_ended_early_holds_for_all_of_it(played, tmp_path):
    closed = played(tmp_path, [True] * 40, target=0.5, strategy="nominal")
    made = sum(len(one.won) for one in closed.rounds)
    assert closed.met and made < 40
    said = float(re.search(r"at least ([\d.]+) %", closed.why)[1])
    bound = 100 * lower_bound([True] * made + [False] * (40 - made))
    assert bound - 0.1 < said <= bound


@pytest.mark.slow
def test_a_test_is_not_made_longer_once_it_was_looked_at(played, tmp_path):
    played(tmp_path, [False] * 40, strategy="nominal")
    with pytest.raises(Sim2RealError, match="start another loop with --out"):
        played(tmp_path, [False] * 60, strategy="nominal", budget="60")
    with pytest.raises(Sim2RealError, match="another robot, again, seed"):
        played(tmp_path, [False] * 40, strategy="nominal", robot="unit:4", seed=1, again=2.0)


def test_forcing_a_later_step_does_not_undo_an_earlier_one():
    """Attempts that were made on a robot are not made again because another policy is forced."""
    keys = []
    for force in (False, True):
        made = Stages(task="pendulum-swingup", robot="unit:3", person="me", force=force)
        bundle = made.export(made.train("nominal"))
        ladder = made.ladder(bundle, made.record(seconds=18.0))
        keys.append(made.trials(bundle, ladder, first=0, count=10).key)
    assert keys[0] == keys[1]


def test_a_task_whose_code_changed_is_trained_again(monkeypatch):
    made = Stages(task="pendulum-swingup", robot="unit:3", person="me")
    before = made.train("nominal").key
    assert made.train("nominal").key == before
    monkeypatch.setattr(policy_stages.inspect, "getsource", lambda module: "another reward")
    assert made.train("nominal").key != before


def test_attempts_that_nobody_judged_do_not_end_the_loop(tmp_path):
    made = Stages(task="pendulum-swingup", robot="unit:3", person="me")
    policy = made.train("nominal")
    done = KeptResult(policy, tmp_path, {"run": "x"}, 0.0, kept=False)
    found = made.failures(policy, None, ()).work(tmp_path, (done,))
    assert found["tried"] == found["failed"] == 0
