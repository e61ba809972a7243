"""Make the golden net anew: the artefacts in `made/` and the outputs in `expected/`.

    .venv/bin/python -m tests.golden.make_golden --made --force      # artefacts, then all outputs
    .venv/bin/python -m tests.golden.make_golden --force             # outputs of all cases
    .venv/bin/python -m tests.golden.make_golden NAME … --force      # outputs of some cases

Both are of the version they were made with, and are there to show that later versions do the same:
make them anew only where a result was meant to change, and look at the difference git shows. What
exists is not overwritten without --force. Making everything takes about five minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
from pathlib import Path

from tests.golden.cases import (
    EXAMPLES,
    EXPECTED,
    MADE,
    call,
    inside,
    load_cases,
    run_case,
    without_ignored,
)

PENDULUM = EXAMPLES / "bundles" / "pendulum-swingup"
LOOP = (
    "loop", "pendulum-swingup", "--robot", "unit:3", "--iterations", "3", "--budget", "4",
    "--first", "2", "--seconds", "18", "--force", "--threads", "1", "--no-explain", "--json",
)  # fmt: skip
"""The kept loop; the options of the cases that go on with it are the same."""
CHANNELS = """\
# A log of a pendulum, in degrees.
time = { from = "stamp", unit = "ms" }

[channels.joint_pos]
from = "angle"
unit = "deg"

[channels.joint_vel]
from = "speed"
unit = "rad/s"

[channels.command]
from = "torque"
unit = "N m"

[provenance]
robot = "pendulum"
"""
CONSENT = """\
[[consent]]
participant = "{who}"
scope = ["training", "evaluation"]
expires = 2099-12-31
"""


def say(text: str) -> None:
    """Tell how far it is."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def do(*words: str | Path) -> dict:
    """Run a command that has to succeed; what it printed."""
    argv = tuple(str(word) for word in words)
    say("sim2real " + " ".join(argv))
    code, out, err = call((*argv, "--json") if "--json" not in argv else argv)
    if code not in (0, 1):
        raise SystemExit(f"exit code {code}: {err}")
    found = json.loads(out)
    return found if isinstance(found, dict) else {"list": found}


def make_run() -> None:
    """A training run of two updates, and the bundle it exports."""
    made = do("train", "pendulum-swingup", "--worlds", "16", "--iterations", "2", "--threads", "1",
              "--out", "runs")  # fmt: skip
    shutil.move(made["run"], "run")
    shutil.rmtree("runs")
    Path("run/training.png").unlink(missing_ok=True)
    do("export", "run", "--out", "bundle", "--observations", "128")


def make_recordings() -> None:
    """Motions of a stand-in unit, and attempts of a good and of an untrained policy on it."""
    robot = ("--robot", "unit:7", "--execute", "--person", "ana")
    shutil.copytree(PENDULUM, "good")
    do("record", "good", *robot, "--seconds", "3", "--out", "motions")
    do("deploy", "good", *robot, "--force", "--trials", "8", "--out", "flown")
    shutil.copytree("bundle", "poor")
    do("deploy", "poor", *robot, "--force", "--trials", "4", "--out", "failed")
    arm = ("--robot", "unit:7", "--execute", "--person", "ana", "--motion", "chirp")
    do("record", EXAMPLES / "bundles" / "arm-reach", *arm, "--seconds", "2", "--out", "arm")
    for folder in ("motions", "arm"):
        for picture in Path(folder).glob("*.png"):
            picture.unlink()


def make_identified() -> None:
    """A twin identified from the motions, with its posterior."""
    do("identify", "good", "--logs", "motions", "--starts", "2", "--threads", "1",
       "--out", "identified")  # fmt: skip
    Path("identified/report.html").unlink()


def make_trials() -> None:
    """Simulated trials of a policy, and tables of trials."""
    do("evaluate", "good", "--episodes", "40", "--each", "4", "--threads", "1",
       "--out", "evaluated")  # fmt: skip
    for picture in Path("evaluated").glob("*.png"):
        picture.unlink()
    rows = ["policy,condition,unit,success"]
    for name in ("a", "b"):
        rows += [f"{name},c{k},u{k % 5},{int(k % 3 == 0 or (name == 'b' and k % 4 != 1))}"
                 for k in range(30)]  # fmt: skip
    Path("trials.csv").write_text("\n".join(rows) + "\n")
    rows = ["condition,unit,source,success"]
    rows += [f"c{k},{k % 20},sim,{int(k % 5 != 0)}" for k in range(200)]
    Path("simulated.csv").write_text("\n".join(rows) + "\n")
    rows = ["condition,source,success"]
    rows += [f"c{k},real,{int(k % 5 != 0 and k % 7 != 0)}" for k in range(16)]
    Path("real.csv").write_text("\n".join(rows) + "\n")
    rows = ["policy,task,sim,real,n_real"]
    rows += [f"p{k},{'reach' if k < 5 else 'push'},{0.1 * k:.2f},{0.09 * k + 0.03 * (k % 2):.2f},20"
             for k in range(10)]  # fmt: skip
    Path("ranks.csv").write_text("\n".join(rows) + "\n")


def log(path: Path, *, seconds: float, phase: float, fault: bool = False) -> None:
    """A CSV log of a swinging joint at 100 Hz, with two faults if asked for."""
    rows = ["stamp,angle,speed,torque"]
    for k in range(int(100 * seconds)):
        stamp = 10 * (k - 1 if fault and k == 120 else k)
        angle = math.degrees(0.8 * math.sin(3.0 * 0.01 * k + phase))
        speed = 2.4 * math.cos(3.0 * 0.01 * k + phase)
        text = "nan" if fault and k in (200, 201) else f"{speed:.6f}"
        rows.append(f"{stamp},{angle:.6f},{text},{0.4 * math.sin(3.0 * 0.01 * k):.6f}")
    path.write_text("\n".join(rows) + "\n")


def make_lake() -> None:
    """Logs, and a lake with real and simulated episodes, labels, consent, a repair, a withdrawal.

    Everything that an id hashes comes from files, so the ids of imported episodes stay.
    """
    Path("channels.toml").write_text(CHANNELS)
    for name, phase in (("log", 0.0), ("other", 1.0), ("gone", 2.0)):
        log(Path(f"{name}.csv"), seconds=3.0, phase=phase)
    log(Path("faulty.csv"), seconds=3.0, phase=0.5, fault=True)
    for who in ("p7", "p8"):
        Path(f"{who}.toml").write_text(CONSENT.format(who=who))
    lake = ("--lake", "lake")
    read = ("--channels", "channels.toml", *lake)
    ids = {"plain": do("data", "import", "log.csv", "--task", "swing", *read)["episodes"][0]}
    ids["person"] = do("data", "import", "other.csv", "--provenance", "p7.toml", *read)["episodes"][
        0
    ]
    do("data", "import", "gone.csv", "--provenance", "p8.toml", *read)
    ids["faulty"] = do("data", "import", "faulty.csv", *read)["episodes"][0]
    checked = do("data", "check", ids["faulty"], "--repair", *lake)
    ids["repaired"] = checked["episodes"][0]["repaired"]
    do("evaluate", "good", "--episodes", "3", "--threads", "1", "--out", "thrown", *lake)
    robot = ("--robot", "unit:7", "--execute", "--person", "ana")
    do("record", "good", *robot, "--motion", "hold", "--seconds", "1", "--out", "held", *lake)
    label = do("data", "label", ids["plain"], "note", "--value", "first", "--who", "ana", *lake)
    do("data", "label", ids["plain"], "note", "--value", "better", "--who", "ana", "--supersedes",
       label["label"], *lake)  # fmt: skip
    do("data", "label", ids["person"], "failure", "--who", "ben", "--start", "0.5", "--end", "1.0",
       *lake)  # fmt: skip
    do("data", "consent", "grant", "p7", "--scope", "training", "sharing", "--who", "ana", *lake)
    do("data", "consent", "withdraw", "p8", *lake)
    ids["label"] = label["label"]
    from sim2real.data import Lake

    known = Lake.open("lake").query("select id from episodes order by id")["id"].to_pylist()
    Path("ids.json").write_text(json.dumps({**ids, "episodes": " ".join(known)}, indent=2) + "\n")
    for name in ("thrown", "held"):
        shutil.rmtree(name)
    Path("gone.csv").unlink()


def make_loop() -> None:
    """A loop that was walked to its end, without its page."""
    do(*LOOP, "--out", "loop")
    for path in [*Path("loop").rglob("*.html"), *Path("loop").rglob("*.png")]:
        path.unlink()
    for path in Path("loop").rglob("tensorboard"):
        shutil.rmtree(path)


def make(force: bool) -> None:
    """All artefacts, in a folder that takes the place of `made/` once it is complete."""
    if MADE.exists() and not force:
        raise SystemExit(f"{MADE} exists; --force makes it anew")
    with tempfile.TemporaryDirectory() as folder, inside(Path(folder)):
        make_run()
        make_recordings()
        make_identified()
        make_trials()
        make_lake()
        make_loop()
        shutil.rmtree("good")
        shutil.rmtree("poor")
        if MADE.exists():
            shutil.rmtree(MADE)
        shutil.copytree(folder, MADE)


def expect(names: list[str], force: bool) -> None:
    """Outputs of cases."""
    EXPECTED.mkdir(exist_ok=True)
    cases = [case for case in load_cases() if not names or case.name in names]
    there = [case.name for case in cases if (EXPECTED / f"{case.name}.json").exists()]
    if there and not force:
        raise SystemExit(f"{len(there)} outputs exist ({there[0]}, …); --force makes them anew")
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            found = without_ignored(case, run_case(case, Path(folder)))
        text = json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True)
        (EXPECTED / f"{case.name}.json").write_text(text + "\n", encoding="utf-8")
        say(f"{case.name}: exit code {found['exit']}, {len(text)} characters")


def main() -> None:
    """Make what the command line asks for."""
    parser = argparse.ArgumentParser(description="Make the golden net anew.")
    parser.add_argument("names", nargs="*", help="cases; all by default")
    parser.add_argument("--made", action="store_true", help="make the artefacts anew too")
    parser.add_argument("--only-made", action="store_true", help="make the artefacts alone")
    parser.add_argument("--force", action="store_true", help="overwrite what exists")
    options = parser.parse_args()
    if options.made or options.only_made:
        make(options.force)
    if not options.only_made:
        expect(options.names, options.force)


if __name__ == "__main__":
    main()
