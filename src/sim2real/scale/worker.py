"""What a worker does with a shard: call the function, and keep what it gives."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from pathlib import Path

from sim2real import __version__
from sim2real.errors import Sim2RealError, one_line
from sim2real.plain import plain
from sim2real.scale.shard import Shard, canonical, function_at
from sim2real.scale.shard_store import ShardResult, ShardStore

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
}
"""Environment of a worker: side by side, libraries that share cores wait for each other."""
FOLDER = "folder"
"""Argument by which a function asks for a folder of its own, whose files are kept."""
_SMALL = 64 * 1024
"""Size of a result that travels with the news of it [byte]."""
_DECIDING = ("numpy", "torch", "mujoco", "scipy", "onnxruntime")
"""Packages whose versions decide the last bits of a result."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a worker is given: small, for it travels."""

    shard: Shard
    store: str
    software: Mapping[str, str]
    """Versions that the driver has."""

    @classmethod
    def of(cls, shard: Shard, store: ShardStore) -> Order:
        """The order to do a shard and keep it; its files are brought to the store."""
        store.bring(shard)
        assert shard.key  # known from here on: a worker has the files in another place
        return cls(shard=shard, store=store.uri, software=software())


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How an attempt ended; without an error its result is in the store."""

    done: ShardResult | None = None
    """The result as it was kept, unless it is large: the driver need not fetch it."""
    error: str = ""
    """One line; '' if there was none."""
    trace: str = ""
    """Where it was raised, if it was no mistake that explains itself."""
    fatal: bool = False
    """Whether no other shard could be done or kept either."""


@cache
def software() -> dict[str, str]:
    """Versions that decide what a result is, to the last bit."""
    found = {"sim2real": __version__, "python": ".".join(platform.python_version_tuple()[:2])}
    for package in _DECIDING:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def whereabouts() -> str:
    """Machine and process, as people read it."""
    return f"{platform.node()}:{os.getpid()}"


def perform(order: Order) -> Outcome:
    """Do what was ordered and keep it; nothing is raised."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    shard = order.shard
    try:
        refuse_other_software(order.software)
        store = ShardStore(order.store)
        files = store.brought(shard.digests)
        with store.folder(shard) if _wants_folder(shard) else nullcontext() as folder:
            begin = time.perf_counter()
            result, problem = _called(shard, files, folder)
            seconds = time.perf_counter() - begin
            if problem is not None:
                return problem
            done = store.put(shard, result, seconds=seconds, where=whereabouts(), made=folder)
    except (Sim2RealError, OSError, ValueError) as error:  # wrong for every shard
        return Outcome(error=one_line(error), fatal=True)
    return Outcome(done=done if len(canonical(result)) <= _SMALL else None)


def refuse_other_software(expected: Mapping[str, str]) -> None:
    """Refuse to give results that the driver's software would not give."""
    mine = software()
    for package, wanted in expected.items():
        if mine.get(package) != wanted:
            raise Sim2RealError(
                f"{platform.node()} has {package} {mine.get(package, 'not at all')} and the driver"
                f" {wanted}: results would differ; use one image for all machines"
            )


def _wants_folder(shard: Shard) -> bool:
    try:
        asked = signature(function_at(shard.work)).parameters
    except (Sim2RealError, TypeError, ValueError):  # said when it is called; or it is built in
        return False
    return FOLDER in asked and FOLDER not in {**shard.inputs, **shard.files}


def _called(
    shard: Shard, files: Mapping[str, Path], folder: Path | None
) -> tuple[object, Outcome | None]:
    """What the function gave, as plain data; or what was wrong with it."""
    mine = {} if folder is None else {FOLDER: folder}
    given = shard.given
    try:
        found = plain(function_at(shard.work)(*given["args"], **given["inputs"], **files, **mine))
        found = json.loads(canonical(found))
    except Sim2RealError as error:
        return None, Outcome(error=str(error))
    except Exception as error:  # whatever it is, other shards can be done
        said = f"{type(error).__name__}: {one_line(error)}"
        return None, Outcome(error=said, trace=traceback.format_exc())
    return found, None
