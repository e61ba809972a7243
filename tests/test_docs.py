"""What the documentation shows runs: its Python, its commands and their options, its TOML.

Every block of Python runs in a folder of the reader's, with the names its page takes for granted.
Every command of the package is parsed; those of `RUN` are run. In a sentence a command may leave
arguments out, so its verb and its options are looked up in the help.
"""

import contextlib
import gzip
import io
import re
import shlex
import shutil
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import sim2real
from benchmarks.__main__ import main as benchmarks
from benchmarks.catalogue import BENCHMARKS
from sim2real.cli import main
from sim2real.cli.main import parse
from sim2real.errors import Sim2RealError, options_as
from sim2real.identification import IdentifyThresholds
from sim2real.loop import LoopConfig
from sim2real.reality.__main__ import main as reality
from tests.doc_pages import (
    COMMENTED,
    PAGES,
    Block,
    Command,
    blocks,
    commands,
    commented,
    mentions,
    name_of,
    past_front_doors,
)
from tests.repository import BUNDLES, ROOT

MADE = ROOT / "tests" / "golden" / "made"
RUN = {
    "sim2real twin lint my-robot": "the twin that the page shows, with a model of two lines",
    "sim2real twin show my-robot": "likewise",
    "sim2real deploy examples/bundles/arm-reach --robot unit:7": "a dry run on stand-in hardware",
    "sim2real doctor examples/bundles/arm-reach --logs runs/first": "reads one short recording",
    "sim2real data import log.csv --robot so101": "three seconds of a log",
    "sim2real data check": "of that log",
    "sim2real data ls": "of that log",
    'sim2real data query "select robot, outcome, count(*) from episodes group by all"': "likewise",
    "sim2real compare trials.csv@a trials.csv@b": "two tables of thirty trials",
    "sim2real predict sim.csv --real real.csv": "likewise",
    "sim2real power --from 0.6 --to 0.9": "reads nothing",
}
"""Commands that are run, and why each may be: quick, and in the reader's folder alone."""
SLOW = ("deploy", "doctor")


def shown(kind, pages=PAGES):
    """What pages show, as parameters of a test."""
    return [pytest.param(one, id=one.name) for page in pages for one in kind(page)]


def words_of(command: Command) -> list[str]:
    return command.variants()[0]


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """A folder as a reader has it who did what the pages say, and is in it."""
    shutil.copytree(
        ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("*.mp4")
    )
    for made, place in (
        ("arm", "runs/first"), ("log.csv", "log.csv"), ("simulated.csv", "sim.csv"),
        ("real.csv", "real.csv"), ("motions", "runs/motions"),
    ):  # fmt: skip
        copy = shutil.copytree if (MADE / made).is_dir() else shutil.copy
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        copy(MADE / made, tmp_path / place)
    rows = [f"{name},c{k},{int(name == 'b' or k % 3 == 0)}" for name in "ab" for k in range(30)]
    (tmp_path / "trials.csv").write_text("\n".join(["policy,condition,success", *rows]) + "\n")
    monkeypatch.delenv("SIM2REAL_LAKE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(call, *words) -> tuple[int, str]:
    """Exit code of a command line, and what it printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            given = call(list(words))  # an exit code, or what a parser has read
            code = given if isinstance(given, int) else int(given is None)
        except SystemExit as end:
            code = int(end.code or 0)
        except Sim2RealError as error:  # which the program tells in a line
            out.write(f"{error}\n")
            code = 2
    return code, out.getvalue()


# --- Commands ---


@pytest.mark.parametrize("command", shown(commands) + shown(commented, COMMENTED))
def test_a_command_of_a_page_is_one(command):
    program, *_ = words_of(command)
    if program == "make":
        known = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        known |= {f"bench-{one.name}" for one in BENCHMARKS}
        assert set(words_of(command)[1:]) <= known
    elif program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        for asked in re.findall(r"sim2real\[([\w,]+)\]", command.text):
            assert set(asked.split(",")) <= set(extras["optional-dependencies"])
    elif program in ("python", "sim2real-reality"):
        assert_in_help(command)
    else:
        for _, *words in command.variants():
            code, error = said(parse, *words)
            assert code == 0, error
            for word in words:
                assert not word.startswith("examples/") or (ROOT / word).exists(), word


@pytest.mark.parametrize("command", shown(mentions))
def test_a_command_in_a_sentence_has_a_verb_and_options_that_exist(command):
    if words_of(command)[0] in ("make", "pip"):
        test_a_command_of_a_page_is_one(command)
    else:
        assert_in_help(command)


def assert_in_help(command: Command) -> None:
    """The verb has a help of its own, and every option stands in it."""
    for program, *words in command.variants():
        given = words[2:] if program == "python" else words  # without `-m benchmarks`
        until = [k for k, word in enumerate(given) if not re.fullmatch(r"[a-z][a-z0-9-]*", word)]
        verb = given[: min(until, default=len(given))]
        text = help_of(program, verb)
        for option in (word for word in given if word.startswith("--")):
            assert re.search(rf"{re.escape(option)}\b", text), f"{option} of {verb}: {text}"


def help_of(program: str, verb: list[str]) -> str:
    """What `--help` says of a verb; of the benchmarks, if all that is named is one."""
    if program == "python":
        assert set(verb) <= {"algorithms", "check", "tables", *(one.name for one in BENCHMARKS)}
        runs, verb = benchmarks, []
    elif program == "sim2real-reality":
        runs = reality
    else:
        runs = parse if verb else main
    code, text = said(runs, *verb, "--help")
    assert code == 0, text
    return text


RUNNABLE = {
    words: command
    for page in PAGES
    for command in commands(page)
    for words in [" ".join(shlex.quote(w) for w in command.variants()[0])]
}


@pytest.mark.parametrize(
    "text", [pytest.param(t, marks=[pytest.mark.slow] * (t.split()[1] in SLOW)) for t in RUN]
)
def test_a_command_that_is_quick_runs(text, reader, capsys):
    words = shlex.split(text)
    assert " ".join(shlex.quote(w) for w in words) in RUNNABLE, "no page shows it any more"
    if "my-robot" in words:
        my_robot(reader)
    if words[1] == "data" and words[2] != "import":
        assert main(["data", "import", "log.csv", "--robot", "so101"]) == 0
    assert main(words[1:]) in (0, 1), capsys.readouterr().err


def test_a_comparison_prints_what_its_page_shows(reader, capsys):
    (block,) = (b for b in blocks(ROOT / "docs" / "evaluate.md") if "$ sim2real compare" in b.text)
    command, *lines = block.text.splitlines()
    assert main(shlex.split(command)[2:]) == 0
    assert capsys.readouterr().out.splitlines()[: len(lines)] == lines


def test_commands_that_are_wrong_are_found():
    def wrong(text, check):
        with pytest.raises((AssertionError, Sim2RealError)):
            check(Command(page="p", line=1, text=text))

    for text in ("sim2real deplyo BUNDLE", "sim2real deploy BUNDLE --robt R", "make tset",
                 "sim2real compare A B c", "sim2real twin show examples/nothing"):  # fmt: skip
        wrong(text, test_a_command_of_a_page_is_one)
    for text in (
        "sim2real data imprt …",
        "sim2real deploy --robt",
        "sim2real twin shw|lint FOLDER",
        "sim2real-reality serv",
        "python -m benchmarks doctr",
        "python -m benchmarks doctor --qick",
    ):
        wrong(text, assert_in_help)


# --- Python ---


def my_robot(folder: Path) -> None:
    """The twin of README, with a model that has what it names."""
    (text,) = (b.text for b in blocks(ROOT / "README.md") if b.language == "toml")
    model = """<mujoco><worldbody><body name="forearm"><joint name="elbow" frictionloss="0.1"/>
    <geom size="0.02" fromto="0 0 0 0.2 0 0" type="capsule" mass="0.11"/></body></worldbody>
    <actuator><motor name="elbow" joint="elbow" ctrlrange="-1 1"/></actuator></mujoco>"""
    (folder / "my-robot").mkdir()
    (folder / "my-robot" / "robot.xml").write_text(model)
    (folder / "my-robot" / "twin.toml").write_text(text)


def pendulum() -> dict:
    """A twin in a folder of the reader's."""
    shutil.copytree(BUNDLES / "pendulum-swingup" / "twin", "my-robot")
    return {}


def recording() -> dict:
    """Numbers of an arm's recording, and the episode that they make."""
    from sim2real.data import Episode, Provenance, Signal

    times = np.arange(50) / 50.0
    names = {
        "times": times, "slower_times": times[::5], "frame_times": times[::5],
        "positions": np.sin(times)[:, None] * np.ones(5), "commands": np.ones((50, 5)),
        "torques": np.zeros((10, 5)), "pictures": np.zeros((10, 32, 32, 3), np.uint8),
    }  # fmt: skip
    channels = {"joint_pos": Signal(times, names["positions"], "rad")}
    source = Provenance(kind="simulated", robot="so101")
    return names | {"episode": Episode(channels=channels, provenance=source)}


def faulty() -> dict:
    """An episode with faults that can be repaired."""
    from sim2real.data import Provenance
    from sim2real.data.formats import ChannelMap, read_episodes

    channels = ChannelMap.load(MADE / "channels.toml")
    base = Provenance(kind="real")
    (episode,) = read_episodes(MADE / "faulty.csv", base=base, channels=channels)
    return {"episode": episode}


def mixed() -> dict:
    """A simulated episode beside the real one of the block before."""
    from sim2real.data import Lake, Provenance

    lake = Lake.open("lake")
    (real,) = lake.read(lake.query("select id from episodes")["id"].to_pylist())
    lake.append(replace(real, provenance=Provenance(kind="simulated", robot="so101", seed=1)))
    return {"lake": lake}


def motion() -> dict:
    """A motion of an SO-101, in the files of its recorder, and a lake to put it into."""
    from sim2real.data import Lake

    folder = Path("recordings/static_holding")
    folder.mkdir(parents=True)
    measured = ("positions", "velocities", "torques")
    for name, columns in (("control", measured[:1]), ("state_motor", measured)):
        with gzip.open(folder / f"{name}.csv.gz", "wt") as file:
            file.write(",".join(("type", "timestamp", *columns)) + "\n")
            for k in range(100):
                joints = [f'"[{k / 100}, 0.1, 0.5, 0.0, 0.0, 0.5]"'] * len(columns)
                file.write(",".join((name, f"{20_060 * k}", *joints)) + "\n")
    return {"lake": Lake.create("lake"), "episodes": [recording()["episode"]]}


def worlds() -> dict:
    """Parameters and commands of a pendulum's worlds."""
    import torch

    from sim2real.twin import Twin

    pendulum()
    nominal = torch.tensor([p.nominal for p in Twin.load("my-robot").parameters]).double()
    return {"values": nominal.repeat(1024, 1), "command": torch.zeros(1024, 1)}


def loads() -> dict:
    """Parameter files of loads, as `sim.csv` is made of."""
    for mass in (0.5, 0.6):
        Path("loads").mkdir(exist_ok=True)
        Path(f"loads/{mass}kg.toml").write_text(f'"body/pole/mass" = {mass}\n')
    return {}


def task() -> dict:
    """A file with a task, beside a twin."""
    return pendulum() | {"__file__": str(Path("my-robot/task.py").resolve())}


def study() -> dict:
    """The module of the block before, where workers find it."""
    (block,) = (b for b in PYTHON["scale.md"] if "def success" in b.text)
    Path("study.py").write_text(block.text)
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return {"__name__": "__main__"}


BEFORE = {
    "check.md": [faulty],
    "data.md": [recording, dict, mixed],
    "evaluate.md": [loads],
    "formats.md": [motion],
    "worlds.md": [worlds, dict],
    "scale.md": [dict, dict, study, study],
    "tasks.md": [task, dict],
    "twin.md": [pendulum],
    "identify.md": [pendulum],
}
"""What a page takes for granted before each of its blocks; nothing where it is not named."""
QUICK = {
    "identify": {
        "starts": 1,
        "parameters": ("joint/hinge/damping", "actuator/hinge/delay"),
        "thresholds": IdentifyThresholds(segments=16),
    },
    "train": {"iterations": 2, "worlds": 64},
    "evaluate": {"episodes": 20},
    "attribute": {"draws": 2, "each": 2, "segments": 6},
    "export": {"observations": 100},
    "deploy": {"seconds": 2.0},
}
"""Options of functions that take minutes as pages have them."""
SAYS = {"testing.md": ["actuation is right: 0.0 % of the error", "sign flipped"]}
"""What the Python of a page prints, where that is what the page promises."""
PYTHON = {name_of(page): [b for b in blocks(page) if b.language == "python"] for page in PAGES}


@pytest.mark.parametrize(
    "block", [pytest.param(b, id=b.name) for found in PYTHON.values() for b in found]
)
def test_the_python_of_a_page_imports_through_front_doors(block):
    assert not past_front_doors(block.text)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", [name for name, found in PYTHON.items() if found])
def test_the_python_of_a_page_runs(page, reader, monkeypatch, capsys):
    for name, options in QUICK.items():
        monkeypatch.setattr(sim2real, name, quicker(getattr(sim2real, name), **options))
    monkeypatch.setattr(sim2real, "close_the_loop", loop_as_asked)
    names: dict[str, object] = {"__name__": page}
    before = BEFORE.get(page, [dict] * len(PYTHON[page]))
    for prepare, block in zip(before, PYTHON[page], strict=True):
        names |= prepare()
        run(block, names)
    if page in SAYS:
        assert capsys.readouterr().out.splitlines() == SAYS[page]


def quicker(function, **options):
    """The function with options of ours, whatever it is given."""
    return lambda *given, **named: function(*given, **(named | options))


def loop_as_asked(task, **options):
    """How a loop would end whose options are right; the examples walk one."""
    options_as(LoopConfig, task=task, **options).check(simulated=True)
    return SimpleNamespace(why="the target is met")


@pytest.mark.slow
def test_the_task_of_its_page_takes_a_step(reader):
    from sim2real.tasks import TaskEnv

    names = task()
    run(PYTHON["tasks.md"][0], names)
    env = TaskEnv(names["MyTask"], worlds=4)
    env.step(names["torch"].zeros(4, 1))


def run(block: Block, names: dict[str, object]) -> None:
    """Run a block where names are known; a traceback shows its page and line."""
    code = "\n" * block.line + block.text
    exec(compile(code, str(ROOT / "docs" / block.page), "exec"), names)


def test_toml_and_sql_of_pages_are_read(reader):
    from sim2real.data import Lake
    from sim2real.data.formats.channel_map import ChannelMap

    found = [b for page in PAGES for b in blocks(page) if b.language in ("toml", "sql")]
    for block in found:
        if block.language == "sql":
            shutil.copytree(MADE / "lake", "lake", dirs_exist_ok=True)
            Lake.open("lake").query(block.text)
            continue
        table = tomllib.loads(block.text)
        if block.page == "formats.md":
            Path("channels.toml").write_text(block.text)
            (known,) = ChannelMap.load("channels.toml").recordings
            assert list(known.channels) == list(table["channels"])
