"""An executor by its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sim2real.errors import Sim2RealError, nearest
from sim2real.scale.executor import Executor

EXECUTORS = ("local", "ray", "ray:auto", "ray:HOST:PORT", "ray://HOST:PORT")


def open_executor(
    name: str = "local",
    *,
    workers: int = 0,
    retries: int = 3,
    ships: Sequence[str] = (),
    folder: Path | None = None,
) -> Executor:
    """The executor of a name: `local` for processes here, `ray` for a cluster.

    `ray` starts a cluster of this machine and ends it; `ray:HOST:PORT` joins one from a machine of
    its network, `ray:auto` from one of its machines, `ray://HOST:PORT` from anywhere as a client.
    `workers` are shards at once, 0 for a core each. `ships` are modules that shards need and the
    cluster lacks, and `folder` is copied there for workers to work in.
    """
    if workers < 0 or retries < 0:
        raise Sim2RealError(f"{min(workers, retries)} workers or retries is not a number of them")
    if name == "local":
        from sim2real.scale.local_executor import LocalExecutor

        return LocalExecutor(workers, retries=retries)
    kind, _, address = name.partition(":")
    if kind != "ray" or (not address and name != "ray"):
        raise Sim2RealError(f"no executor {name!r}{nearest(name, EXECUTORS)}")
    from sim2real.scale.ray_executor import RayExecutor

    address = name if address.startswith("//") else address
    return RayExecutor(address, workers, retries=retries, ships=ships, folder=folder)


def opened_already(executor: Executor | str) -> Executor | None:
    """The executor, if it was given itself and not by its name."""
    return executor if isinstance(executor, Executor) else None


def is_remote(executor: Executor | str) -> bool:
    """Whether its workers may see other files than this machine."""
    given = opened_already(executor)
    return str(executor).startswith("ray:") if given is None else given.remote
