"""What a benchmark measured is kept by shards, from clean commits, and is checked by a canary."""

import ast
import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import catalogue, machine
from benchmarks.__main__ import main
from benchmarks.benchmark import Benchmark, Measurement, Options, Result, Tolerance
from benchmarks.catalogue import BENCHMARKS
from benchmarks.check import check
from benchmarks.kept import shard_of, wholes_of
from benchmarks.run import Budget, Request, run, side_by_side
from benchmarks.tables import write_tables
from sim2real.errors import Sim2RealError
from sim2real.plain import of_plain, plain

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Sum:
    """What a shard of the invented benchmark gives."""

    value: float


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Its sizes."""

    size: int = 3


class Invented:
    """A benchmark of three shards whose values a test decides, in a repository of its own."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.results = folder, folder / "benchmarks" / "results"
        self.values = {"a": 1.0, "b": 2.0, "c": 3.0}
        self.ran, self.lacking = [], {}
        self.entry = Benchmark(
            name="invented",
            about="An invented benchmark",
            minutes=3,
            modules=("sim2real.room",),
            tolerance=Tolerance(relative=0.1),
        )
        self.work = Measurement(
            kind=Sum,
            shards=lambda options: tuple(self.values),
            run=self.measure,
            results=self.figures,
            plan=Plan(),
            lacking=lambda shard, options: self.lacking.get(shard, ""),
        )
        self.monkeypatch = monkeypatch
        monkeypatch.setattr(catalogue, "BENCHMARKS", (self.entry,))
        monkeypatch.setattr(machine, "ROOT", folder)
        monkeypatch.setattr(machine, "RESULTS", self.results)
        monkeypatch.setattr(machine, "PAGE", folder / "docs" / "benchmarks.md")
        self.offer()

    def offer(self, **changes):
        self.work = replace(self.work, **changes)
        module = SimpleNamespace(MEASUREMENT=self.work)
        self.monkeypatch.setitem(sys.modules, "benchmarks.invented", module)

    def measure(self, shard, options):
        self.ran.append(shard)
        if isinstance(self.values[shard], BaseException):
            raise self.values[shard]
        return Sum(value=self.values[shard])

    @staticmethod
    def figures(data, options):
        total = sum(part.value for part in data.values())
        return [Result(name="invented.sum", value=total, unit="ratio", target=">= 2", peer="none")]

    def write(self, text):
        (self.folder / "src" / "sim2real").mkdir(parents=True, exist_ok=True)
        (self.folder / "src" / "sim2real" / "room.py").write_text(text)

    def commit(self, text):
        self.write(text)
        for words in (("add", "-A"), ("commit", "-q", "-m", text)):
            self.git(*words)

    def git(self, *words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *words], cwd=self.folder, check=True, capture_output=True)

    def run(self, **options):
        self.ran.clear()
        quick = options.pop("quick", False)
        options = {"options": Options(quick=quick), "results": self.results} | options
        return run("invented", Request(**options))

    def check(self):
        self.ran.clear()
        return check(["invented"], Options(), results=self.results)


@pytest.fixture
def invented(tmp_path, monkeypatch):
    made = Invented(tmp_path, monkeypatch)
    made.git("init", "-q")
    made.commit("x = 1\n")
    return made


def test_what_was_measured_is_kept_and_not_measured_again(invented, capsys):
    assert invented.run() == 0 and invented.ran == ["a", "b", "c"]
    (whole,) = wholes_of("invented", invented.results)
    assert whole.results[0]["value"] == 6.0 and whole.results[0]["met"] is True
    assert set(json.loads((invented.results / "invented.json").read_text())) >= {
        "bench", "commit", "machine", "seconds", "date", "command", "results",
    }  # fmt: skip
    kept = shard_of("invented", "b", invented.results)
    assert kept.commit == whole.commit and kept.machine["cores"] and kept.data == {"value": 2.0}
    said = capsys.readouterr().err.splitlines()[0]
    assert said == "invented: 3 min on two idle cores (an estimate); 3 shards"
    assert invented.run() == 0 and invented.ran == []
    assert "3 of them measured with this code" in capsys.readouterr().err
    assert invented.run(again=True) == 0 and invented.ran == ["a", "b", "c"]


def test_a_run_goes_on_where_the_last_one_stopped(invented):
    invented.values["b"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        invented.run()
    assert not (invented.results / "invented.json").exists()
    invented.values["b"] = 2.0
    assert invented.run() == 0 and invented.ran == ["b", "c"]
    assert (invented.results / "invented.json").exists()


def test_no_figure_of_uncommitted_code_is_kept(invented, capsys):
    invented.write("x = 2\n")
    with pytest.raises(Sim2RealError, match=r"room.py is not committed"):
        invented.run()
    assert invented.ran == []
    assert invented.run(json=True) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["value"] == 6.0
    assert not invented.results.exists()


def test_a_quick_run_keeps_nothing(invented, capsys):
    assert invented.run(quick=True) == 0 and invented.ran == ["a", "b", "c"]
    assert not invented.results.exists() and "no figures" in capsys.readouterr().err


def test_shards_of_older_code_are_measured_again(invented):
    invented.run(shards=("a",))
    assert invented.ran == ["a"] and not (invented.results / "invented.json").exists()
    invented.commit("x = 2\n")
    assert invented.run() == 0 and invented.ran == ["a", "b", "c"]


def test_code_that_a_figure_does_not_depend_on_may_change(invented):
    invented.run()
    (invented.folder / "src" / "sim2real" / "other.py").write_text("y = 1\n")
    invented.commit("x = 1\n")
    assert invented.run() == 0 and invented.ran == []
    assert invented.check() == 0 and invented.ran == []


def test_shards_of_another_plan_are_measured_again(invented):
    invented.run()
    invented.offer(plan=Plan(size=4))
    assert invented.run() == 0 and invented.ran == ["a", "b", "c"]


def test_shards_of_several_commits_say_so(invented):
    invented.run(shards=("a",))
    first = shard_of("invented", "a", invented.results).commit
    (invented.folder / "notes.md").write_text("nothing")
    invented.commit("x = 1\n")
    invented.run()
    (whole,) = wholes_of("invented", invented.results)
    assert whole.commits[first] == ["a"] and whole.commits[whole.commit] == ["b", "c"]


def test_what_a_shard_lacks_is_said_and_left_to_another_machine(invented, capsys):
    invented.lacking["b"] = "a recording"
    assert invented.run() == 0 and invented.ran == ["a", "c"]
    said = capsys.readouterr().err
    assert "b is left out: it needs a recording" in said and "not measured yet: b;" in said
    assert not (invented.results / "invented.json").exists()


def test_no_shard_is_begun_that_would_not_end_in_time(invented, capsys):
    assert invented.run(minutes=1.5) == 0 and invented.ran == ["a", "b", "c"]
    invented.commit("x = 2\n")
    assert invented.run(minutes=0.0) == 0 and invented.ran == ["a"]
    assert "for another run" in capsys.readouterr().err


def test_a_canary_that_agrees_speaks_for_all(invented, capsys):
    invented.run()
    invented.commit("x = 2\n")
    invented.values["a"] = 1.05
    assert invented.check() == 0 and len(invented.ran) == 1
    assert "sim2real.room changed: a again" in capsys.readouterr().err
    (whole,) = wholes_of("invented", invented.results)
    assert whole.checked.canary == "a" and whole.results[0]["value"] == 6.0
    assert invented.run() == 0 and invented.ran == []
    assert invented.check() == 0 and invented.ran == []


def test_a_canary_that_left_its_tolerance_asks_for_the_rest(invented, capsys):
    invented.run()
    invented.commit("x = 2\n")
    invented.values["a"] = 1.5
    assert invented.check() == 1 and invented.ran == ["a"]
    said = capsys.readouterr().err
    assert "invented.sum was 1, is 1.5" in said and "to be measured again: invented" in said
    assert shard_of("invented", "a", invented.results).data == {"value": 1.5}
    assert invented.run() == 0 and invented.ran == ["b", "c"]


def test_a_check_asks_for_shards_that_are_missing(invented, capsys):
    invented.run(shards=("a",))
    assert invented.check() == 1 and invented.ran == []
    assert "not measured yet: b, c" in capsys.readouterr().err


def test_a_check_of_uncommitted_code_writes_nothing(invented):
    invented.run()
    invented.write("x = 2\n")
    before = (invented.results / "invented" / "a.json").read_text()
    assert invented.check() == 0 and invented.ran == ["a"]
    assert (invented.results / "invented" / "a.json").read_text() == before


def test_figures_without_shards_hold_while_their_code_is_the_same(invented):
    assert invented.check() == 1
    old = {
        "bench": "invented",
        "command": "old",
        "machine": {"cores": 2, "cpu": "x"},
        "results": [],
    }
    commit = machine.commit()
    invented.results.mkdir(parents=True)
    file = invented.results / "invented-part.json"
    file.write_text(json.dumps(old | {"commit": commit, "date": "2026-01-01"}))
    assert invented.check() == 0
    invented.commit("x = 2\n")
    assert invented.check() == 1 and invented.ran == []
    assert invented.run() == 0 and not file.exists()


def test_a_page_is_made_of_what_is_kept(invented):
    invented.run()
    page = invented.folder / "page.md"
    page.write_text("before\n<!-- invented -->\nold\n<!-- end -->\nafter\n<!-- end -->\n")
    write_tables(page, invented.results)
    text = page.read_text()
    assert "| `invented.sum` | 6× | >= 2 | yes | none |" in text and "old" not in text
    assert text.startswith("before\n<!-- invented -->\n`python -m benchmarks invented`, commit `")
    assert text.endswith("after\n<!-- end -->\n")
    write_tables(page, invented.results)
    assert page.read_text() == text


def test_a_mistake_is_one_line_and_exit_code_two(capsys):
    for words, said in ((["simm"], "'sim'"), (["sim", "data"], "one benchmark at a time"),
                        (["sim", "--quick", "--shards", "memry"], "'memory'")):  # fmt: skip
        assert main(words) == 2
        error = capsys.readouterr().err.strip()
        assert said in error and "\n" not in error and error.startswith("error: ")


def test_a_list_says_what_each_costs(capsys):
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [benchmark.name for benchmark in BENCHMARKS]
    assert all("min" in line or " h " in line for line in lines)


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_a_benchmark_names_the_modules_its_figures_depend_on(benchmark):
    """Each exists, and none that the benchmark's own files import is left out."""
    for name in benchmark.modules:
        folder = ROOT / ("src" if name.startswith("sim2real") else "") / name.replace(".", "/")
        assert folder.is_dir() or folder.with_suffix(".py").is_file(), name
    place = ROOT / benchmark.code.replace(".", "/")
    files = list(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    beside = {"sim2real.errors", "sim2real.files", "sim2real.arrays"}
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sim2real."):
                room = ".".join(node.module.split(".")[:2])
                assert room in beside or {room, "sim2real"} & set(benchmark.modules), (file, room)


def test_kept_data_comes_back_as_it_was():
    result = Result(name="a", value=1.0, unit="s", interval=(0.5, 1.5))
    data = json.loads(json.dumps(plain(result)))
    assert of_plain(Result, data) == result
    assert of_plain(Result, {"name": "a", "value": 2, "unit": "s"}).value == 2.0
    with pytest.raises(Sim2RealError, match="has no 'whatever'"):
        of_plain(Sum, {"value": 1.0, "whatever": 2})


@pytest.mark.slow
def test_shards_side_by_side_give_what_they_give_in_turn():
    budget = Budget(60, 2, 1)
    found = dict(side_by_side("shape", ("package",), Options(), budget))
    assert len(found["package"].data["results"]) == 12 and found["package"].seconds > 0
