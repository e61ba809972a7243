"""Where the results of shards are kept: a folder, or a prefix on object storage."""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim2real.errors import Sim2RealError
from sim2real.files import atomic_folder, atomic_path, write_text
from sim2real.plain import PlainData
from sim2real.scale.shard import Shard, canonical, files_in
from sim2real.storage import Storage

_MARK = "store.json"
_FORM = {"holds": "results of shards", "form": 1}
_RESULT = re.compile(r"results/[0-9a-f]{2}/([0-9a-f]{64})\.json")


@dataclass(frozen=True, kw_only=True)
class ShardResult(PlainData, without=("kept",)):
    """A shard that is done."""

    key: str
    result: Any
    """What the function gave, as JSON has it: the same bit for bit wherever it was done."""
    digest: str
    """Hash of the result, by which a damaged file is known."""
    seconds: float
    """Time it took when it was done."""
    where: str
    """Machine and process that did it."""
    work: str
    name: str = ""
    files: tuple[str, ...] = ()
    """Names of files that were made beside the result."""
    kept: bool = False
    """Whether it had been done before."""


class ShardStore:
    """Results by the keys of their shards; each is written whole or not at all."""

    def __init__(self, uri: str | Path) -> None:
        """A store in a folder or below `s3://bucket/prefix`; nothing is written yet."""
        self.storage = Storage(str(uri))
        self.uri = self.storage.uri
        self._brought: set[str] = set()

    def open(self) -> None:
        """Make the store, if there is none yet; a place that holds other files is refused."""
        if self.storage.exists(_MARK):
            known = self.storage.read(_MARK)
            if known != canonical(_FORM):
                raise Sim2RealError(f"{self.uri} is no store of shards that this version reads")
            return
        if self.storage.names(""):
            raise Sim2RealError(f"{self.uri} holds other files; choose an empty place as store")
        self.storage.write(_MARK, canonical(_FORM))

    def keys(self) -> set[str]:
        """Keys of all results that are kept."""
        names = self.storage.names("results")
        return {found[1] for name in names if (found := _RESULT.fullmatch(name))}

    def get(self, key: str) -> ShardResult | None:
        """The result of a key; None if there is none, or only a damaged one.

        A file that holds the result of another shard is a `Sim2RealError`.
        """
        name = _name(key)
        content = self.storage.read_if_there(name)
        try:
            data = json.loads(content or b"")
            found = ShardResult.from_dict(data, name)
        except (ValueError, RecursionError, Sim2RealError):
            return None
        if found.key != key:
            raise Sim2RealError(
                f"{self.uri}/{name} is not the result of its shard; delete it to have it done again"
            )
        return found if _digest(found.result) == found.digest else None

    def put(
        self, shard: Shard, result: object, *, seconds: float, where: str, made: Path | None = None
    ) -> ShardResult:
        """Keep a result, and before it the files in the folder `made`."""
        files = files_in(made) if made is not None else {}
        if made is not None and not self._mine(made):
            for name, file in files.items():
                self.storage.write(f"files/{shard.key}/{name}", file.read_bytes())
        found = ShardResult(
            key=shard.key,
            result=result,
            digest=_digest(result),
            seconds=round(seconds, 3),
            where=where,
            work=shard.work,
            name=shard.name,
            files=tuple(files),
        )
        self.storage.write(_name(shard.key), canonical(found.to_dict()))
        return found

    @contextmanager
    def folder(self, shard: Shard) -> Iterator[Path]:
        """A folder for what a shard makes beside its result; nobody else has it meanwhile.

        In a store on disk it is kept, and may hold what a killed attempt has left. On object
        storage it is a temporary one, whose files `put` sends there.
        """
        if not self.storage.local:
            with tempfile.TemporaryDirectory(prefix="sim2real-shard-") as made:
                yield Path(made)
            return
        folder = self.storage.path(f"files/{shard.key}")
        lock = self.storage.path(f"locks/{shard.key}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = lock.open("w")
        except OSError as error:
            raise Sim2RealError(f"cannot write {folder}: {error.strerror}") from None
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield folder

    def fetch(self, result: ShardResult, into: Path) -> Path:
        """Copy the files that a shard made into a new folder, whole or not at all."""
        with atomic_folder(into) as temporary:
            for name in result.files:
                target = temporary / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(self.storage.read(f"files/{result.key}/{name}"))
        return into

    def bring(self, shard: Shard) -> None:
        """Put the files that a shard needs where its worker finds them, once for each content."""
        for name, path in shard.files.items():
            digest = shard.digests[name]
            if digest in self._brought:
                continue
            if not self.storage.exists(f"inputs/{digest}.json"):
                found = files_in(Path(path))
                for one, file in found.items():
                    self.storage.write(f"inputs/{digest}/{one}", file.read_bytes())
                whole = {"file": Path(path).is_file(), "names": list(found)}
                self.storage.write(f"inputs/{digest}.json", canonical(whole))
            self._brought.add(digest)

    def brought(self, digests: Mapping[str, str]) -> dict[str, Path]:
        """Paths of files that were brought; from object storage they are fetched once a machine."""
        return {name: self._input(digest) for name, digest in digests.items()}

    def _input(self, digest: str) -> Path:
        listed = json.loads(self.storage.read(f"inputs/{digest}.json"))
        if self.storage.local:
            place = self.storage.path(f"inputs/{digest}")
        else:
            place = Path(tempfile.gettempdir()) / "sim2real-inputs" / digest
            if not (place / ".whole").is_file():
                for name in listed["names"]:
                    target = place / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with atomic_path(target) as temporary:
                        temporary.write_bytes(self.storage.read(f"inputs/{digest}/{name}"))
                write_text(place / ".whole", digest)
        return place / listed["names"][0] if listed["file"] else place

    def _mine(self, folder: Path) -> bool:
        return self.storage.local and folder.is_relative_to(self.storage.path("files"))


def _name(key: str) -> str:
    return f"results/{key[:2]}/{key}.json"


def _digest(result: object) -> str:
    return hashlib.sha256(canonical(result)).hexdigest()
