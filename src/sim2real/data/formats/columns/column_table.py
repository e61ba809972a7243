"""What a file of columns holds, whatever its format: arrays and scalars by name."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sim2real.data.formats.file_errors import naming
from sim2real.errors import Sim2RealError, nearest

LARGEST_BYTES = 8 * 2**30
"""Most that one file may unpack to."""


def unpacked_limit(packed_bytes: int) -> int:
    """Most bytes that a file of this size may unpack to; more is taken for a bomb."""
    return min(LARGEST_BYTES, max(64 * 2**20, 300 * packed_bytes))


@dataclass(frozen=True, kw_only=True)
class ColumnTable:
    """The columns of one file, each turned into numbers only when it is asked for."""

    loaders: Mapping[str, Callable[[str], np.ndarray]]
    """What gives each column; it takes the type that is wanted, '' for the file's own."""
    scalars: Mapping[str, Any] = field(default_factory=dict)
    """Single values that stand beside the columns."""
    texts: frozenset[str] = frozenset()
    """Columns that hold text."""
    sha256: str = ""
    """Hash of the file."""
    _loaded: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)

    def column(self, name: str, dtype: str = "") -> np.ndarray:
        """The column, (rows, ...); one that is not there is an error that names those that are."""
        if name in self.texts:
            raise Sim2RealError(f"column {name!r} holds text, not numbers")
        if name not in self.loaders:
            raise Sim2RealError(f"no column {name!r}{nearest(name, self.names) or self.listing()}")
        if (name, dtype) not in self._loaded:
            self._loaded[name, dtype] = self.loaders[name](dtype)
        return self._loaded[name, dtype]

    def forget(self) -> None:
        """Free the columns that were loaded; they are loaded again when asked for."""
        self._loaded.clear()

    @property
    def names(self) -> list[str]:
        """Names of the columns that hold numbers."""
        return [name for name in self.loaders if name and name not in self.texts]

    def listing(self) -> str:
        """A phrase with the columns there are."""
        shown = ", ".join(repr(name[:40]) for name in self.names[:12])
        return f"; there are {shown}{' …' if len(self.names) > 12 else ''}" if shown else ""


def channel_name(text: str) -> str:
    """A column's or dataset's name as that of a channel: what does not belong in one is '_'."""
    plain = re.sub(r"[^A-Za-z0-9_.:/\-]", "_", text)
    return plain if re.match(r"[A-Za-z0-9_]", plain) else f"_{plain}"


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Any error in the block as one line that names the file."""
    with naming(path):
        try:
            yield
        except Sim2RealError:
            raise
        except FileNotFoundError:
            raise Sim2RealError(f"no such file: {path}") from None
        # Damaged bytes raise whatever their decoder happens to trip over.
        except Exception as error:
            raise Sim2RealError(f"cannot be read: {str(error) or type(error).__name__}") from None


def read_bytes(path: Path) -> tuple[bytes, str]:
    """The file's bytes and their hash."""
    if path.stat().st_size > LARGEST_BYTES:
        raise Sim2RealError(f"{path} is larger than {LARGEST_BYTES >> 30} GiB: split it")
    data = path.read_bytes()
    return data, hashlib.sha256(data).hexdigest()
