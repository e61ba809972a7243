"""A script that reads HDF5 files for another process, and answers requests until its input ends.

The HDF5 library may crash or hang on a damaged file; here it takes nothing else down with it. The
script imports only numpy and h5py, so that it starts quickly.

A request is a line of JSON, {"open": path, "limit": bytes} or {"read": name, "start": row, "end":
row}. The answer is a line of JSON, followed by as many bytes as its "bytes" says. Only hard links
inside the file are followed; data in other files are refused.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path
from typing import TypedDict

os.environ["HDF5_PLUGIN_PRELOAD"] = "::"  # no file may load code

import h5py
import numpy as np

OBJECTS_MAX = 200_000
DEPTH_MAX = 8
ATTRIBUTE_BYTES_MAX = 2**24
MEMORY_MAX = 12 * 2**30


Attributes = dict[str, str | bool | int | float]


class Dataset(TypedDict):
    """What a dataset holds."""

    shape: list[int]
    dtype: str
    numbers: bool


class FileContent(TypedDict):
    """What a file holds: datasets and the plain attributes of groups, by path."""

    datasets: dict[str, Dataset]
    attributes: dict[str, Attributes]


class Request(TypedDict, total=False):
    """Open a file, or read some rows of one of its datasets."""

    open: str
    limit: int
    read: str
    start: int
    end: int


class RefusedError(Exception):
    """What is wrong with the file, in words."""


def describe(file: h5py.File, limit: int) -> FileContent:
    """What an open file holds; one that declares more than `limit` bytes is refused."""
    datasets: dict[str, Dataset] = {}
    attributes = {"": _attributes(file)}
    total, seen = 0, 0
    waiting = [("", file, 0)]
    while waiting:
        path, group, depth = waiting.pop()
        for name in group:
            seen += 1
            inside = f"{path}/{name}" if path else name
            if seen > OBJECTS_MAX or depth > DEPTH_MAX:
                raise RefusedError("more nested groups than any log has")
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise RefusedError(f"{inside[:80]!r} is a link; links are not followed")
            item = group[name]
            if isinstance(item, h5py.Group):
                attributes[inside] = _attributes(item)
                waiting.append((inside, item, depth + 1))
            elif isinstance(item, h5py.Dataset):
                datasets[inside] = _dataset(item, inside)
                total += item.dtype.itemsize * int(np.prod(item.shape or (0,), dtype=object))
                if total > limit:
                    raise RefusedError(
                        f"{inside[:80]!r} declares far more data than the file can hold"
                    )
    return {"datasets": datasets, "attributes": attributes}


def _dataset(item: h5py.Dataset, path: str) -> Dataset:
    if item.external or item.is_virtual:
        raise RefusedError(f"{path[:80]!r}: its data are in another file")
    if item.shape is None or item.dtype.kind not in "biufS" or item.dtype.itemsize > 2**20:
        return {"shape": [], "dtype": str(item.dtype)[:80], "numbers": False}
    numbers = item.dtype.kind != "S" and item.dtype.itemsize <= 8
    return {"shape": list(item.shape), "dtype": item.dtype.str, "numbers": numbers}


def _attributes(item: h5py.Group) -> Attributes:
    found: Attributes = {}
    for name in item.attrs:
        if item.attrs.get_id(name).get_storage_size() > ATTRIBUTE_BYTES_MAX:
            raise RefusedError(f"attribute {name[:80]!r} is too large")
        value = item.attrs[name]
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.size == 1):
            value = value.item()
        if isinstance(value, bytes):
            value = value.decode("utf-8", errors="replace")
        if isinstance(value, str | bool | int | float):
            found[name] = value
    return found


def _limit_memory(limit: int) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    soft = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, most))


def serve() -> None:
    """Answer requests from standard input on standard output."""
    file = None
    for line in sys.stdin.buffer:
        request: Request = json.loads(line)
        content = b""
        told: FileContent | dict[str, int]
        try:
            if "open" in request:
                if file is not None:
                    file.close()
                file = None
                size = Path(request["open"]).stat().st_size
                _limit_memory(min(MEMORY_MAX, 2**30 + 4 * size))
                file = h5py.File(request["open"], "r")
                told = describe(file, request["limit"])
            elif file is None:
                raise RefusedError("no file is open")
            else:
                part = file[request["read"]][request["start"] : request["end"]]
                content = np.ascontiguousarray(part).tobytes()
                told = {"bytes": len(content)}
            head = json.dumps(told)
        # The library raises all kinds of errors on damaged bytes.
        except Exception as error:
            content = b""
            words = " ".join(str(error).split())[:300] or type(error).__name__
            head = json.dumps({"error": words})
        sys.stdout.buffer.write(head.encode() + b"\n" + content)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    serve()
