"""Steps of work whose results are stored under a hash of their inputs.

A step is named by a hash of its kind, its inputs, the steps it needs and the versions of its
algorithms, so the same work is done once, and work with other inputs has another name. Its folder
holds a result only when all of it is done: a killed step is done again, and may use what it had
written.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sim2real.errors import Sim2RealError
from sim2real.files import read_json, write_json
from sim2real.loop.remade import RESULT_FILE, closest, stored_steps

_HASH_DIGITS = 12
"""Digits of a step's hash in the name of its folder."""


StepResult = dict[str, Any]
"""What a step found, as JSON; its form depends on the kind of step."""


@dataclass(frozen=True)
class KeptResult:
    """A step that is done."""

    step: KeptStep
    folder: Path
    result: StepResult
    seconds: float
    """Time that it took [s]."""
    kept: bool
    """Whether it had been done before."""
    age_s: float = 0.0
    """How long ago that was [s]."""

    @property
    def how(self) -> str:
        """How it came about, as 'kept, 2 h ago' or '31 s'."""
        return f"kept, {ago(self.age_s)}" if self.kept else f"{self.seconds:.0f} s"


@dataclass(frozen=True, kw_only=True)
class KeptStep:
    """Work that is determined by its kind, its inputs and the steps before it."""

    kind: str
    """Such as `train`; the folder's name begins with it."""
    inputs: Mapping[str, object]
    """Plain data that the result depends on."""
    needs: tuple[KeptStep, ...] = ()
    algorithms: Mapping[str, int] = field(default_factory=dict)
    """Version of each algorithm that makes the result; its own first."""
    why: str = field(default="", repr=False, compare=False)
    """Why it is made again though a result of the same work is kept; said by a store."""
    work: Callable[[Path, tuple[KeptResult, ...]], StepResult] = field(repr=False, compare=False)
    """Does the work in a folder, with the results it needs, and returns its result.

    The folder may hold what an interrupted run has left.
    """

    @cached_property
    def key(self) -> str:
        """Hash of everything that decides the result."""
        content = {
            "kind": self.kind,
            "inputs": self.inputs,
            "needs": [need.key for need in self.needs],
            "algorithms": self.algorithms,
        }
        text = json.dumps(content, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def name(self) -> str:
        """Name of its folder."""
        return f"{self.kind}-{self.key[:_HASH_DIGITS]}"


class Store:
    """A folder of steps and their results."""

    def __init__(
        self,
        folder: Path,
        *,
        report: Callable[[KeptStep, KeptResult | None], None] = lambda step, done: None,
    ) -> None:
        """`report` gets (step, None) when a step begins and (step, result) when it ends."""
        self.folder = folder
        self._reports = [report]
        self._done: dict[str, KeptResult] = {}
        self._replaced: dict[str, str] = {}
        """By the name of a step that is made again, that of the kept one in whose place it is."""

    def listen(self, report: Callable[[KeptStep, KeptResult | None], None]) -> None:
        """Also call `report` from now on."""
        self._reports.append(report)

    def run(self, step: KeptStep) -> KeptResult:
        """The step's result; the step and those it needs run only if they are not done yet."""
        if step.key in self._done:
            return self._done[step.key]
        needs = tuple(self.run(need) for need in step.needs)
        folder = self.folder / step.name
        kept = self.has([step])
        if not kept:
            self.announce(step)
            with _alone(folder):
                if not self.has([step]):
                    self._do(step, needs, folder)
        content = read_json(folder / RESULT_FILE)
        parts = ("key", "result", "seconds")
        if not isinstance(content, dict) or any(part not in content for part in parts):
            raise Sim2RealError(f"{folder / RESULT_FILE} is not the result of a step; delete it")
        if content["key"] != step.key:
            raise Sim2RealError(f"{folder / RESULT_FILE} is not the result of this step; delete it")
        age_s = max(0.0, time.time() - (folder / RESULT_FILE).stat().st_mtime)
        done = KeptResult(step, folder, content["result"], content["seconds"], kept, age_s)
        self._done[step.key] = done
        self._tell(step, done)
        return done

    def announce(self, step: KeptStep) -> None:
        """Report that a step begins, and why it is made again if it is."""
        self._tell(replace(step, why=self.why(step)), None)

    def why(self, step: KeptStep) -> str:
        """Why a step that is not done is made again; '' where no result of that work is kept."""
        used = {done.folder.name for done in self._done.values()} | set(self._replaced.values())
        used.discard(self._replaced.get(step.name, ""))
        stored = stored_steps(self.folder, step.kind)
        found = closest(step, stored, used, self._replaced)
        if found is None:
            return ""
        self._replaced[step.name] = found[0].name
        return found[1]

    def has(self, steps: Iterable[KeptStep]) -> bool:
        """Whether all of some steps are done."""
        return all((self.folder / step.name / RESULT_FILE).is_file() for step in steps)

    def _tell(self, step: KeptStep, done: KeptResult | None) -> None:
        for report in self._reports:
            report(step, done)

    def _do(self, step: KeptStep, needs: tuple[KeptResult, ...], folder: Path) -> None:
        begin = time.perf_counter()
        result = step.work(folder, needs)
        seconds = time.perf_counter() - begin
        written = {
            "kind": step.kind,
            "key": step.key,
            "inputs": step.inputs,
            "needs": [need.step.name for need in needs],
            "algorithms": step.algorithms,
            "seconds": seconds,
            "result": result,
        }
        write_json(folder / RESULT_FILE, written)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a step's folder; it is released when the process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def ago(seconds: float) -> str:
    """A time that has passed, as '2 h ago'."""
    for unit, length in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= (2 if unit == "days" else 1) * length:
            return f"{seconds / length:.0f} {unit} ago"
    return "just now"
