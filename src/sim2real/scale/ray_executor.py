"""Shards on a Ray cluster: one that runs already, or one of this machine's cores for a while."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sim2real
from sim2real.errors import Sim2RealError, explaining, one_line
from sim2real.scale.executor import Executor, News
from sim2real.scale.worker import ONE_THREAD, Order, Outcome, perform, whereabouts

_PATIENCE_S = 1.0
_ANSWER_S = 10.0
"""Time that a cluster may take to answer."""
_AHEAD = 2
"""Shards a core that Ray is given, so that no core waits for the driver."""
_OBJECTS = 100 * 2**20
"""Memory for Ray's objects in a cluster of ours: results go to the store, not through it [byte]."""
_NOT_SECRET = ("AWS_REGION", "AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP")
"""Environment that workers on other machines need beside their own credentials."""


class RayExecutor(Executor):
    """Shards as tasks of Ray, which places them; one core each.

    The package and the environment of a worker travel with the job. A task whose worker or machine
    dies is given to Ray again.
    """

    name = "ray"

    def __init__(
        self,
        address: str = "",
        workers: int = 0,
        *,
        retries: int = 3,
        ships: Sequence[str] = (),
        folder: Path | None = None,
    ) -> None:
        """Join the cluster at `address` (`host:port`, `auto`, or `ray://host:port`), or start one.

        `workers` are shards at once; 0 for all cores. `ships` are modules that shards need beside
        this package, and `folder` is one that workers get a copy of, and work in.
        """
        super().__init__(retries=retries)
        self.ray = _library()
        self.address, self.workers = address, workers
        self.remote = bool(address)
        if self.ray.is_initialized():
            raise Sim2RealError("Ray is in use in this process already: call ray.shutdown() first")
        if address not in ("", "auto"):
            _refuse_silent(address)
        self._running: dict[Any, str] = {}
        self._ray_prints = _hushed()
        self._join(_environment(ships, folder))
        remote = self.ray.remote
        self._perform = remote(num_cpus=1, max_retries=0)(_perform_and_tell)
        self._board = remote(num_cpus=0)(_Board).remote()
        self._told: Any = self._board.told.remote()
        self.cores = 0

    def room(self) -> int:
        """Shards that Ray may be given beside those it has."""
        if not self.workers and not len(self._running) < _AHEAD * self.cores:
            self.cores = int(self.ray.cluster_resources().get("CPU", 0))
            if not self.cores:
                raise Sim2RealError(f"the Ray cluster at {self.address} has no cores")
        most = self.workers or _AHEAD * self.cores
        return most - len(self._running)

    def begin(self, order: Order) -> None:
        """Give a shard to Ray."""
        self._running[self._perform.remote(self._board, order)] = order.shard.key

    def news(self) -> list[News]:
        """What workers said, and which have died."""
        waiting = [*self._running, *([self._told] if self._told is not None else [])]
        ready, rest = self.ray.wait(waiting, num_returns=1, timeout=_PATIENCE_S)
        if ready and rest:  # and whatever is ready by now
            ready += self.ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        found = self._begun() if self._told in ready else []
        for task in ready:
            if task in self._running:
                found.append(self._heard(task))
        return found

    def drop(self) -> None:
        """Cancel what Ray has been given."""
        for task in self._running:
            self.ray.cancel(task, force=True)
        self._running.clear()

    def close(self) -> None:
        """Leave the cluster; one of ours ends."""
        self.drop()
        self.ray.shutdown()
        _inside().print_to_stdstream = self._ray_prints

    def _join(self, environment: dict[str, object]) -> None:
        where = f"at {self.address}" if self.address not in ("", "auto") else "of this machine"
        how: dict[str, object] = {"runtime_env": environment}
        if self.address:
            how["address"] = self.address
        else:
            cores = self.workers or len(os.sched_getaffinity(0))
            how |= {
                "address": "local",
                "num_cpus": cores,
                "include_dashboard": False,
                "object_store_memory": _OBJECTS,
            }
        if not self.address.startswith("ray://"):
            how |= {"logging_level": "ERROR", "log_to_driver": False}
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        with explaining(f"cannot use the Ray cluster {where}"):
            self.ray.init(**how)

    def _begun(self) -> list[News]:
        try:
            said: list[tuple[str, str]] = self.ray.get(self._told)
        except self.ray.exceptions.RayError:  # its machine is gone: only this is not told any more
            self._told = None
            return []
        self._told = self._board.told.remote()
        return [News(key=key, begun=where) for key, where in said]

    def _heard(self, task: Any) -> News:
        key = self._running.pop(task)
        errors = self.ray.exceptions
        try:
            outcome: Outcome = self.ray.get(task)
        except errors.RuntimeEnvSetupError as error:
            outcome = Outcome(error=f"Ray cannot prepare workers: {one_line(error)}", fatal=True)
        except errors.RayTaskError as error:
            outcome = Outcome(error=one_line(error.cause or error), trace=str(error))
        except errors.RayError as error:  # of a worker, a machine or the cluster
            return News(key=key, died=one_line(error).partition(". ")[0])
        return News(key=key, ended=outcome)


class _Board:
    """An actor to which workers say that they begin, for the driver to hear at once."""

    def __init__(self) -> None:
        self._said: list[tuple[str, str]] = []
        self._new = asyncio.Event()

    async def tell(self, key: str, where: str) -> None:
        """A shard begins somewhere."""
        self._said.append((key, where))
        self._new.set()

    async def told(self) -> list[tuple[str, str]]:
        """What was said since the last time; waits for something."""
        await self._new.wait()
        self._new.clear()
        said, self._said = self._said, []
        return said


def _perform_and_tell(board: Any, order: Order) -> Outcome:
    board.tell.remote(order.shard.key, whereabouts())
    return perform(order)


def _library() -> Any:
    try:
        import ray
    except ImportError:
        raise Sim2RealError(
            "the executor 'ray' needs Ray: pip install 'sim2real[ray]'; 'local' needs nothing"
        ) from None
    return ray


def _inside() -> Any:
    return importlib.import_module("ray._private.worker")


def _hushed() -> Any:
    """Keep Ray from telling of dead workers on standard output, where verbs print their results;
    the run tells of them. What it printed with."""
    prints = getattr(_inside(), "print_to_stdstream", None)
    _inside().print_to_stdstream = lambda *said, **how: None
    return prints


def _refuse_silent(address: str) -> None:
    """Refuse an address where no cluster answers: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise Sim2RealError(f"{address!r} is no address of a Ray cluster: write host:port or auto")
    try:
        socket.create_connection((host, int(port)), timeout=_ANSWER_S).close()
        _speak(f"{host}:{port}")
    except (OSError, OverflowError) as error:
        raise Sim2RealError(
            f"no Ray cluster answers at {address}: {one_line(error) or 'no answer'}"
        ) from None


def _speak(target: str) -> None:
    """Wait for an answer in the protocol that Ray uses; a TimeoutError without."""
    import grpc

    with grpc.insecure_channel(target) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_ANSWER_S)
        except grpc.FutureTimeoutError:
            raise TimeoutError("something listens there, but it is not Ray") from None


def _environment(ships: Sequence[str], folder: Path | None) -> dict[str, object]:
    """What a worker gets from this machine: the package, modules, a folder, the environment."""
    shipped = [str(Path(sim2real.__file__).parent), *(_module_at(name) for name in ships)]
    named = {name: os.environ[name] for name in _NOT_SECRET if name in os.environ}
    found: dict[str, object] = {
        "py_modules": list(dict.fromkeys(shipped)),
        "env_vars": {**ONE_THREAD, **named},
        "excludes": [".git", "**/__pycache__"],
    }
    return found | ({"working_dir": str(folder)} if folder is not None else {})


def _module_at(name: str) -> str:
    """Folder or file of a module's outermost package."""
    spec = importlib.util.find_spec(name.partition(".")[0])
    if spec is not None and spec.submodule_search_locations:
        return next(iter(spec.submodule_search_locations))
    if spec is None or spec.origin is None:
        raise Sim2RealError(f"there is no module {name!r} to ship to workers")
    return spec.origin
