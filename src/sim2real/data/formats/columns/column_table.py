"""The columns of a file in any format: arrays and scalars by name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sim2real.arrays import Array
from sim2real.errors import Sim2RealError, nearest

MAX_FILE_BYTES = 8 * 2**30
"""Most bytes that one file may unpack to."""


def unpacked_limit(packed_bytes: int) -> int:
    """Most bytes that a file of this size may unpack to; more is a decompression bomb."""
    return min(MAX_FILE_BYTES, max(64 * 2**20, 300 * packed_bytes))


@dataclass(frozen=True, kw_only=True)
class ColumnTable:
    """The columns of one file, each converted to numbers when it is first read."""

    loaders: Mapping[str, Callable[[str], Array]]
    """What gives each column; the argument is its type, '' for that of the file."""
    scalars: Mapping[str, object] = field(default_factory=dict)
    """Single values beside the columns."""
    texts: frozenset[str] = frozenset()
    """Columns that hold text."""
    sha256: str = ""
    """Hash of the file."""
    _loaded: dict[tuple[str, str], Array] = field(default_factory=dict)

    def column(self, name: str, dtype: str = "") -> Array:
        """The column, (rows, ...); for an unknown name, an error names the columns there are."""
        if name in self.texts:
            raise Sim2RealError(f"column {name!r} holds text, not numbers")
        if name not in self.loaders:
            raise Sim2RealError(f"no column {name!r}{nearest(name, self.names) or self.listing()}")
        if (name, dtype) not in self._loaded:
            self._loaded[name, dtype] = self.loaders[name](dtype)
        return self._loaded[name, dtype]

    def forget(self) -> None:
        """Free the loaded columns; they are loaded again when they are read."""
        self._loaded.clear()

    @property
    def names(self) -> list[str]:
        """Names of the columns that hold numbers."""
        return [name for name in self.loaders if name and name not in self.texts]

    def listing(self) -> str:
        """A phrase that lists the columns."""
        shown = ", ".join(repr(name[:40]) for name in self.names[:12])
        return f"; there are {shown}{' …' if len(self.names) > 12 else ''}" if shown else ""


def read_bytes(path: Path) -> tuple[bytes, str]:
    """The file's bytes and their hash."""
    if path.stat().st_size > MAX_FILE_BYTES:
        raise Sim2RealError(f"{path} is larger than {MAX_FILE_BYTES >> 30} GiB: split it")
    data = path.read_bytes()
    return data, hashlib.sha256(data).hexdigest()
