"""The command line: help, JSON, and one clear line with exit code 2 for every mistake."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from sim2real.cli import main
from sim2real.cli.main import parse
from sim2real.tasks import find_task

PENDULUM = find_task("pendulum-swingup").twin


def run(*arguments: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "sim2real.cli", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, **options
    )


def test_help_names_every_verb():
    done = run("--help")
    assert done.returncode == 0
    for verb in ("demo", "train", "play", "evaluate", "twin", "doctor"):
        assert verb in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "pendulum-swing"], "pendulum-swingup"),
        (["train"], "name a task"),
        (["train", "pendulum-swingup", "--source", "piror"], "'prior'"),
        (["train", "pendulum-swingup", "--worlds", "0"], "at least 1"),
        (["train", "pendulum-swingup", "--twin", "nowhere"], "no twin at"),
        (["train", "--resume", "nowhere"], "not a training run"),
        (["evaluate", "nowhere"], "no policy at nowhere"),
        (["play", "nowhere"], "no policy at nowhere"),
        (["twin", "show", "nowhere"], "no twin at"),
        (["twin", "lint", "nowhere"], "no twin at"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_two(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err.strip()
    assert words in error and "\n" not in error and error.startswith("error: ")


def test_a_mistake_in_a_run_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "pendulum-swingup", "--source", "piror"]) == 2
    assert main(["train", "pendulum-swingup", "--twin", "nowhere"]) == 2
    assert not list(tmp_path.iterdir())


def test_a_demo_never_removes_what_is_not_a_demo(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("years of work")
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "not an earlier demo" in capsys.readouterr().err
    assert (tmp_path / "thesis.tex").exists()


def test_twin_show_prints_json(capsys):
    assert main(["twin", "show", str(PENDULUM), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["twin"]["name"] == "pendulum" and "body/pole/mass" in data["parameters"]


def test_twin_show_prints_parameters_effects_and_channels(capsys):
    assert main(["twin", "show", str(PENDULUM)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for begin in ("body/pole/mass", "joint/hinge coulomb_friction=0.002", "theta_dot sensor/hinge"):
        assert any(line.startswith(begin) for line in lines)


@pytest.mark.parametrize(
    "words",
    ["--goal a=1 b=2 --step replay", "--goal a=1 --goal b=2", "--goal=a=1 --seed 2 --goal b=2"],
)
def test_an_option_of_several_values_may_be_repeated(words):
    assert parse(["deploy", "bundle", *words.split()]).goal == ("a=1", "b=2")
    config = parse(["identify", "t", "--held_back", "c", "--logs", "a", "--held-back", "d"])
    assert (config.logs, config.held_back) == (("a",), ("c", "d"))


@pytest.mark.slow
def test_what_was_trained_is_evaluated_in_json_and_in_words(tmp_path, capsys):
    options = ["--worlds", "16", "--iterations", "2", "--out", str(tmp_path), "--json"]
    assert main(["train", "pendulum-swingup", *options]) == 0
    trained = json.loads(capsys.readouterr().out)
    assert trained["finished"] is True
    assert main(["evaluate", trained["run"], "--episodes", "12", "--json"]) == 0
    evaluated = json.loads(capsys.readouterr().out)
    assert evaluated["success"]["n"] == 12
    assert main(["evaluate", trained["run"], "--episodes", "12"]) == 0
    assert "body/pole/mass" in capsys.readouterr().out


def test_tasks_are_listed(capsys):
    assert main(["tasks", "--json"]) == 0
    assert {"pendulum-swingup", "arm-reach", "arm-push"} <= set(json.loads(capsys.readouterr().out))


@pytest.mark.slow
def test_interrupting_leaves_a_run_that_resumes(tmp_path, capsys):
    command = [sys.executable, "-m", "sim2real.cli", "train", "pendulum-swingup", "--worlds", "64",
               "--iterations", "100000", "--out", str(tmp_path)]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    events = tmp_path / "pendulum-swingup"
    deadline = time.time() + 60
    while time.time() < deadline and not list(events.glob("*/tensorboard/*")):
        time.sleep(0.2)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "continue with: sim2real train --resume" in out
    folder = next(events.iterdir())
    before = json.loads((folder / "result.json").read_text())["iterations"]
    config = json.loads((folder / "config.json").read_text())
    config["training"]["iterations"] = before + 2
    (folder / "config.json").write_text(json.dumps(config))
    assert main(["train", "--resume", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["iterations"] == before + 2


def full_disk() -> None:
    """No file may grow beyond 20 kB: what a full disk looks like to a process."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_no_half_file(tmp_path):
    done = run("train", "pendulum-swingup", "--worlds", "16", "--iterations", "1", "--out",
               str(tmp_path), preexec_fn=full_disk,
               env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1].startswith("error: cannot write")
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("*.pt")) and not list(tmp_path.rglob("*.sha256"))
    assert not [p for p in tmp_path.rglob(".*") if p.is_file()]
