"""Steps of work whose results are stored under a hash of their inputs.

A step is named by a hash of its kind, its inputs, the steps it needs and the software's version, so
the same work is done once, and work with other inputs has another name. Its folder holds a result
only when the step is complete: a killed step is run again, and may use what it had written.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sim2real import __version__
from sim2real.errors import Sim2RealError
from sim2real.files import read_json, write_json

RESULT_FILE = "result.json"
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
    """Whether it had been done before this run."""


@dataclass(frozen=True, kw_only=True)
class KeptStep:
    """Work that is determined by its kind, its inputs and the steps before it."""

    kind: str
    """Such as `train`; the folder's name begins with it."""
    inputs: Mapping[str, object]
    """Plain data that the result depends on."""
    needs: tuple[KeptStep, ...] = ()
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
            "software": __version__,
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
        self._report = report
        self._done: dict[str, KeptResult] = {}

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
        done = KeptResult(step, folder, content["result"], content["seconds"], kept)
        self._done[step.key] = done
        self._report(step, done)
        return done

    def announce(self, step: KeptStep) -> None:
        """Report that a step begins."""
        self._report(step, None)

    def has(self, steps: Iterable[KeptStep]) -> bool:
        """Whether all of some steps are done."""
        return all((self.folder / step.name / RESULT_FILE).is_file() for step in steps)

    def _do(self, step: KeptStep, needs: tuple[KeptResult, ...], folder: Path) -> None:
        begin = time.perf_counter()
        result = step.work(folder, needs)
        seconds = time.perf_counter() - begin
        written = {
            "kind": step.kind,
            "key": step.key,
            "inputs": step.inputs,
            "needs": [need.step.name for need in needs],
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
