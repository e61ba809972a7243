"""Explaining a gap beside the loop that closes it, in a process of its own.

Training again does not wait for an explanation, and takes one core. So a second process runs the
same loop in the same folder: it reads the steps that are done, and ends when it has explained all
there is. Locks keep the two processes from doing a step twice. What it leaves undone, because of an
error or because it was killed, the loop does itself; and it ends with the loop, however that ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from sim2real.loop.loop_config import LoopConfig
from sim2real.loop.steps import KeptResult, KeptStep, Store

_EXPLAINING = ("attribute", "failures")
"""Kinds of steps that it does."""


class ExplanationProcess:
    """Runs steps beside the loop, in processes of its own, if there is a spare core."""

    def __init__(self, config: LoopConfig, store: Store) -> None:
        self._config = config
        self._store = store
        self.walks: list[subprocess.Popen[str]] = []
        self._asked = 0

    def __enter__(self) -> ExplanationProcess:
        return self

    def __exit__(self, *_: object) -> None:
        """End what still runs: it is done, or no longer needed."""
        for walk in self.walks:
            walk.kill()
            walk.communicate()

    def begin(self, steps: list[KeptStep]) -> None:
        """Start on steps that the loop will ask for later."""
        self._asked += 1
        if self._config.threads == 1 or os.cpu_count() == 1 or self._store.has(steps):
            return
        for step in steps:
            self._store.announce(step)
        walk = subprocess.Popen(
            [sys.executable, "-m", "sim2real.loop.explanation_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        told = {
            "config": asdict(self._config) | {"out": str(self._config.folder), "judge": None},
            "store": str(self._store.folder),
            "asked": self._asked,
        }
        self.walks.append(walk)
        assert walk.stdin is not None
        with suppress(BrokenPipeError):
            walk.stdin.write(json.dumps(told) + "\n")
            walk.stdin.flush()


class ExplainingStore(Store):
    """Reads steps that are done, and does those that explain.

    Any other missing step ends the process: only the loop itself trains, or moves a robot.
    """

    def __init__(self, folder: Path, *, asked: int) -> None:
        """The process ends after `asked` calls of `explain`."""
        super().__init__(folder)
        self._left = asked

    def explain(self, steps: list[KeptStep]) -> None:
        """Do the steps."""
        for step in steps:
            self.run(step)
        self._left -= 1
        if not self._left:
            raise SystemExit

    def _do(self, step: KeptStep, needs: tuple[KeptResult, ...], folder: Path) -> None:
        if step.kind not in _EXPLAINING:
            raise SystemExit
        super()._do(step, needs, folder)


def main() -> None:
    """Run the loop that standard input describes, until it is explained or standard input ends."""
    from sim2real.loop.circle import walk

    told = json.loads(sys.stdin.readline())
    threading.Thread(target=end_with_loop, daemon=True).start()
    config = LoopConfig(**told["config"] | {"out": Path(told["config"]["out"])})
    store = ExplainingStore(Path(told["store"]), asked=told["asked"])
    walk(config, store, explain=store.explain)


def end_with_loop() -> None:
    """End this process, whatever it is doing, when standard input ends."""
    os.read(sys.stdin.fileno(), 1)  # not `sys.stdin`, which a waiting thread would lock
    os._exit(1)


if __name__ == "__main__":
    main()
