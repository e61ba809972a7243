"""Named files in a folder on disk, or below a prefix on object storage."""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as pafs

from sim2real.errors import Sim2RealError, explaining, one_line
from sim2real.files import atomic_path

_FILE_ERRORS = (OSError, ValueError, pa.ArrowException)
_S3 = {
    "ACCESS_KEY_ID": "access_key",
    "SECRET_ACCESS_KEY": "secret_key",
    "SESSION_TOKEN": "session_token",
    "REGION": "region",
}


class Storage:
    """Named files below one root; each is written completely or not at all."""

    def __init__(self, uri: str, options: Mapping[str, str] | None = None) -> None:
        """Files below `uri`.

        `options` holds the credentials of object storage (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`,
        …); what is not given is taken from environment variables of the same names.
        """
        if not uri.isprintable():
            raise Sim2RealError(f"{uri!r} cannot hold files: unprintable characters")
        self.local = "://" not in uri
        if not self.local and not uri.partition("://")[2].strip("/"):
            raise Sim2RealError(f"{uri} cannot hold files: it names no bucket")
        self.uri = str(Path(uri).absolute()) if self.local else uri.rstrip("/")
        self.options = dict(options) if options else None
        with explaining(f"{uri} cannot hold files", *_FILE_ERRORS):
            self.files = _filesystem(self.uri, self.options or {})
        self._holding = threading.local()

    @property
    def url(self) -> str:
        """The root as a URL, so that a percent sign in a path is not read as an escape."""
        return Path(self.uri).as_uri() if self.local else self.uri

    @contextmanager
    def lock(self, *, alone: bool) -> Iterator[None]:
        """A lock on the files: shared, or exclusive (`alone`) for rewriting history.

        A process that dies releases it. A waiting exclusive lock goes before later shared ones. A
        lock inside a lock does nothing. There are no locks on object storage: before a rewrite,
        make sure there that nobody else writes.
        """
        if not self.local or getattr(self._holding, "yes", False):
            yield
            return
        how = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        with self._locked("gate", how) as gate, self._locked("room", how):
            if gate is not None and not alone:
                fcntl.flock(gate, fcntl.LOCK_UN)
            self._holding.yes = True
            try:
                yield
            finally:
                self._holding.yes = False

    def turn(self) -> AbstractContextManager[int | None]:
        """A short exclusive lock, to look something up and then write."""
        return self._locked("turn", fcntl.LOCK_EX) if self.local else nullcontext()

    @contextmanager
    def _locked(self, name: str, how: int) -> Iterator[int | None]:
        """A file with a lock on it; None where the folder cannot be written to."""
        folder = self.path("locks")
        try:
            folder.mkdir(exist_ok=True)
            file = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            yield None
            return
        try:
            fcntl.flock(file, how)
            yield file
        finally:
            os.close(file)

    def _trying(self, what: str) -> AbstractContextManager[None]:
        return explaining(f"cannot {what}", *_FILE_ERRORS)

    def path(self, name: str) -> Path:
        """Path of a file on disk; of a folder on disk only."""
        return Path(self.uri) / name

    def read(self, name: str) -> bytes:
        """Content of a file; one that cannot be read is a `Sim2RealError`."""
        with self._trying(f"read {self.uri}/{name}"), self.files.open_input_stream(name) as file:
            content: bytes = file.read()
        return content

    def read_if_there(self, name: str) -> bytes | None:
        """Content of a file; None where there is none."""
        try:
            with self.files.open_input_stream(name) as file:
                content: bytes = file.read()
        except FileNotFoundError:
            return None
        except _FILE_ERRORS as error:
            raise Sim2RealError(f"cannot read {self.uri}/{name}: {one_line(error)}") from None
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a file, replacing one of the same name."""
        if self.local:
            with atomic_path(self.path(name)) as temporary:
                temporary.write_bytes(content)
            return
        with self._trying(f"write {self.uri}/{name}"), self.files.open_output_stream(name) as file:
            file.write(content)

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""
        with self._trying(f"delete {self.uri}/{name}"), suppress(FileNotFoundError):
            self.files.delete_file(name)

    def delete_folder(self, name: str) -> None:
        """Delete a folder with everything in it."""
        with self._trying(f"delete {self.uri}/{name}"):
            self.files.delete_dir(name)

    def exists(self, name: str) -> bool:
        """Whether a file of that name exists."""
        with self._trying(f"list {self.uri}"):
            found: bool = self.files.get_file_info(name).type == pafs.FileType.File
        return found

    def names(self, folder: str) -> list[str]:
        """Names of all files below a folder, sorted; none if there is no such folder.

        Temporary files of writers that are at work, or have died, are left out.
        """
        found = [info.path for info in self._infos(folder)]
        return sorted(name for name in found if not _is_temporary(name))

    def leftovers(self) -> list[str]:
        """Names of temporary files; without writers at work, of those that died."""
        return [info.path for info in self._infos("") if _is_temporary(info.path)]

    def _infos(self, folder: str) -> list[pafs.FileInfo]:
        chosen = pafs.FileSelector(folder, recursive=True, allow_not_found=True)
        with self._trying(f"list {self.uri}"):
            found = self.files.get_file_info(chosen)
        return [info for info in found if info.type == pafs.FileType.File]

    def size(self) -> int:
        """Bytes of all files."""
        return sum(info.size or 0 for info in self._infos(""))

    def digest(self, name: str) -> str:
        """SHA-256 of a file's content."""
        with self._trying(f"read {self.uri}/{name}"), self.files.open_input_stream(name) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()


def _is_temporary(name: str) -> bool:
    """Whether the name is one of a file that is still being written."""
    return any(part.startswith(".") for part in name.split("/")) or name.endswith(".json.tmp")


def _filesystem(uri: str, options: dict[str, str]) -> pafs.FileSystem:
    """The file system whose root is the address."""
    if uri.startswith("/"):
        return pafs.SubTreeFileSystem(uri, pafs.LocalFileSystem())
    if not uri.startswith("s3://"):
        files, root = pafs.FileSystem.from_uri(uri)
        return pafs.SubTreeFileSystem(root, files)
    named = {key: value for key, value in os.environ.items() if key.startswith("AWS_")}
    given = {key.upper().removeprefix("AWS_"): value for key, value in (named | options).items()}
    said = {name: given[key] for key, name in _S3.items() if key in given}
    if endpoint := given.get("ENDPOINT_URL"):
        scheme, _, said["endpoint_override"] = endpoint.rpartition("://")
        said |= {"scheme": scheme} if scheme else {}
    return pafs.SubTreeFileSystem(uri.removeprefix("s3://"), pafs.S3FileSystem(**said))
