"""Killing the runner, the robot or the link at random moments, in real time."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from benchmarks.benchmark import Result, report
from benchmarks.deploy.craft import BUNDLES, Plan
from sim2real.data.formats.recording import read_recording
from sim2real.errors import Sim2RealError
from sim2real.robot import DeployConfig, StandIn, deploy

_KINDS = ("runner", "robot", "link")
_WATCHDOG_S = 0.25
_SETTLE_S = 0.75
_LOST_S = 1.0
_TOO_LATE = "it had ended before"


def measure_kills(plan: Plan) -> Iterator[Result]:
    """Kill one of the three, again and again; what the robot and the disk say afterwards."""
    rng = np.random.default_rng([plan.seed, 1])
    done: Counter[str] = Counter()
    safe: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as made:
        # A copy, for what is tried leaves records in the bundle's folder.
        bundle = Path(shutil.copytree(BUNDLES / "arm-reach", Path(made) / "bundle"))
        for number in range(plan.kills):
            kind = _KINDS[number % len(_KINDS)]
            folder = Path(made) / f"{number:04d}"
            why = _TOO_LATE
            for attempt in range(5):  # a machine that is busy may stop a run before its time
                if why == _TOO_LATE:
                    moment = float(rng.uniform(0.0, 1.5))
                    why = _kill(bundle, kind, number, moment, folder / f"{attempt}")
            done[kind] += 1
            safe[kind] += not why
            if why:
                wrong.append(f"{kind}: {why}")
            if number % 20 == 19:
                report(f"{number + 1} of {plan.kills} kills, {safe.total()} safe")
    kinds = ", ".join(f"{kind} {safe[kind]}/{done[kind]}" for kind in _KINDS)
    yield Result(name="deploy.kills", value=done.total(), unit="kills", note=kinds)
    yield Result(
        name="deploy.kills_safe",
        value=safe.total(),
        unit="kills",
        target=f">= {done.total()}",
        note="the robot at rest in its safe stop, and the recording readable up to a second before"
        " the end. " + "; ".join(wrong[:3]),
    )


def _kill(bundle: Path, kind: str, number: int, after_s: float, folder: Path) -> str:
    """One kill `after_s` into the motion; what was not safe, '' if all was."""
    file = folder / "trial-0001.arrow"
    with StandIn(200 + number % 20, "arm-reach", virtual=False) as robot:
        runner = _fork(bundle, robot.address.removeprefix("tcp://"), number, folder)
        end = time.monotonic() + 30.0
        while not file.exists() or file.stat().st_size == 0:
            if os.waitpid(runner, os.WNOHANG)[0]:
                return _TOO_LATE
            if time.monotonic() > end:
                os.kill(runner, signal.SIGKILL)
                os.waitpid(runner, 0)
                return "it did not start"
            time.sleep(0.01)
        time.sleep(after_s)
        if os.waitpid(runner, os.WNOHANG)[0]:
            return _TOO_LATE
        if kind == "runner":
            os.kill(runner, signal.SIGKILL)
        elif kind == "robot":
            robot.end()
        else:
            robot.fault("dropped link")
        time.sleep(_WATCHDOG_S + _SETTLE_S)
        _, status = os.waitpid(runner, 0)
        if kind != "robot":
            for _ in range(20):  # a busy machine simulates late
                robot.get_observation()
                if robot.at_rest:
                    break
                time.sleep(0.1)
            if robot.state != "tripped" or not robot.at_rest:
                return f"the robot is {robot.state}, not at rest in its safe stop"
        if kind != "runner" and os.waitstatus_to_exitcode(status) != 0:
            return "the runner did not end in order"
    try:
        episode = read_recording(file)
    except Sim2RealError as error:
        return str(error)
    if episode.end_s < after_s - _LOST_S:
        return f"the recording ends at {episode.end_s:.2f} s, it was killed after {after_s:.2f} s"
    return ""


def _fork(bundle: Path, address: str, number: int, folder: Path) -> int:
    """A runner in a process of its own, flying until it is stopped; its process number.

    A fork, because a fresh interpreter takes longer to start than a flight takes.
    """
    runner = os.fork()
    if runner:
        return runner
    code = 1
    with suppress(BaseException):
        found = deploy(
            DeployConfig(
                bundle=bundle,
                robot=address,
                execute=True,
                force=True,
                person="bench",
                seconds=20.0,
                seed=number,
                out=folder,
                lake="",
            )
        )
        code = 0 if found.trials[0].stopped else 2
    os._exit(code)
