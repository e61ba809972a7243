"""Shards in processes of this machine, each on one thread."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait

from sim2real.scale.executor import Executor, News
from sim2real.scale.worker import ONE_THREAD, Order, Outcome, perform, whereabouts

_PATIENCE_S = 1.0


class LocalExecutor(Executor):
    """A process a core; they start when there is work, and end with their parent."""

    name = "local"

    def __init__(self, workers: int = 0, *, retries: int = 3) -> None:
        """`workers` processes; 0 for as many as there are cores."""
        super().__init__(retries=retries)
        self.count = workers or len(os.sched_getaffinity(0))
        self._idle: list[_Process] = []
        self._busy: dict[Connection, _Process] = {}
        self._begun: list[News] = []

    def room(self) -> int:
        """Processes that have nothing to do."""
        return self.count - len(self._busy)

    def begin(self, order: Order) -> None:
        """Give a shard to a process that has nothing to do; one that has died is replaced."""
        process = self._idle.pop() if self._idle else _Process()
        if not process.send(order):
            process.end()
            process = _Process()
            process.send(order)
        self._busy[process.connection] = process

    def news(self) -> list[News]:
        """What workers said, and which have died."""
        found: list[News] = []
        ready = wait(list(self._busy), timeout=_PATIENCE_S)
        for process in [self._busy[line] for line in list(self._busy) if line in ready]:
            found.append(process.heard())
            if not found[-1].begun:
                del self._busy[process.connection]
                if found[-1].died:
                    process.end()
                else:
                    self._idle.append(process)
        return found

    def drop(self) -> None:
        """Kill the processes that are at work."""
        for process in self._busy.values():
            process.end()
        self._busy.clear()

    def close(self) -> None:
        """Kill all processes."""
        self.drop()
        while self._idle:
            self._idle.pop().end()


class _Process:
    """A worker, and the line to it."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,))
        with _environment():
            self.process.start()
        theirs.close()
        self.key = ""

    def send(self, order: Order) -> bool:
        """Give it a shard; False if it has died."""
        self.key = order.shard.key
        try:
            self.connection.send(order)
        except OSError:
            return False
        return True

    def heard(self) -> News:
        """What it said, or that it has died."""
        try:
            said = self.connection.recv()
        except (EOFError, OSError):
            self.process.join(_PATIENCE_S)
            return News(key=self.key, died=_how(self.process.exitcode))
        if isinstance(said, Outcome):
            return News(key=self.key, ended=said)
        return News(key=self.key, begun=str(said))

    def end(self) -> None:
        """Kill it; what it does can be done again."""
        self.connection.close()
        self.process.kill()
        self.process.join()


def _how(code: int | None) -> str:
    """How a process ended, as people say it."""
    if code is None or code >= 0:
        return f"its process ended with exit code {code}"
    with suppress(ValueError):
        return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process was ended by signal {-code}"


@contextmanager
def _environment() -> Iterator[None]:
    """What a process that starts now finds in its environment."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _work(line: Connection) -> None:
    """Do shards until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent was asked to stop, and ends this one
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        while True:
            order: Order = line.recv()
            line.send(whereabouts())
            line.send(perform(order))


def _end_with_parent() -> None:
    """A worker whose driver was killed would work on for nobody."""
    owner = parent_process()
    assert owner is not None
    owner.join()
    os._exit(1)
