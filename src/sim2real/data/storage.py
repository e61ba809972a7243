"""The files under a lake: a folder on disk, or a prefix on object storage."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs

from sim2real.errors import Sim2RealError
from sim2real.files import atomic_path

_CHUNK = 1 << 22


class Storage:
    """Named files below one root; a write is whole or not at all."""

    def __init__(self, uri: str, options: Mapping[str, str] | None = None) -> None:
        """Files below `uri`.

        `options` are the credentials of object storage (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`,
        …); environment variables of these names stand in for what is not given.
        """
        self.local = "://" not in uri
        self.uri = str(Path(uri).absolute()) if self.local else uri.rstrip("/")
        self.options = dict(options) if options else None
        try:
            self.files, self.root = _filesystem(self.uri, dict(options or {}))
        except (OSError, ValueError) as error:
            raise Sim2RealError(f"{uri} is no place for a lake: {_line(error)}") from None

    def path(self, name: str) -> str:
        """Path of a file, as `self.files` takes it."""
        return f"{self.root}/{name}"

    def read(self, name: str) -> bytes:
        """Content of a file; one that cannot be read is a `Sim2RealError`."""
        try:
            with self.files.open_input_stream(self.path(name)) as file:
                content: bytes = file.read()
                return content
        except OSError as error:
            raise Sim2RealError(f"cannot read {self.uri}/{name}: {_line(error)}") from None

    def write(self, name: str, content: bytes) -> None:
        """Put a file there, replacing one of that name."""
        if self.local:
            with atomic_path(self.path(name)) as temporary:
                temporary.write_bytes(content)
            return
        try:
            with self.files.open_output_stream(self.path(name)) as file:
                file.write(content)
        except OSError as error:
            raise Sim2RealError(f"cannot write {self.uri}/{name}: {_line(error)}") from None

    def delete(self, name: str) -> None:
        """Remove a file; one that is gone already is no error."""
        try:
            self.files.delete_file(self.path(name))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise Sim2RealError(f"cannot delete {self.uri}/{name}: {_line(error)}") from None

    def delete_folder(self, name: str) -> None:
        """Remove a folder and all in it."""
        try:
            self.files.delete_dir(self.path(name))
        except OSError as error:
            raise Sim2RealError(f"cannot delete {self.uri}/{name}: {_line(error)}") from None

    def exists(self, name: str) -> bool:
        """Whether there is a file of that name."""
        found: bool = self.files.get_file_info(self.path(name)).type == pafs.FileType.File
        return found

    def names(self, folder: str) -> list[str]:
        """Names of all files below a folder, sorted; none where there is no such folder."""
        chosen = pafs.FileSelector(self.path(folder), recursive=True, allow_not_found=True)
        found = self.files.get_file_info(chosen)
        start = len(self.root) + 1
        return sorted(info.path[start:] for info in found if info.type == pafs.FileType.File)

    def size(self) -> int:
        """Bytes of all files."""
        chosen = pafs.FileSelector(self.root, recursive=True)
        return sum(info.size or 0 for info in self.files.get_file_info(chosen))

    def digest(self, name: str) -> str:
        """SHA-256 of a file's content."""
        hasher = hashlib.sha256()
        try:
            with self.files.open_input_stream(self.path(name)) as file:
                while chunk := file.read(_CHUNK):
                    hasher.update(chunk)
        except OSError as error:
            raise Sim2RealError(f"cannot read {self.uri}/{name}: {_line(error)}") from None
        return hasher.hexdigest()


def _filesystem(uri: str, options: dict[str, str]) -> tuple[Any, str]:
    if "://" not in uri:
        return pafs.LocalFileSystem(), uri
    if not uri.startswith("s3://"):
        files, root = pafs.FileSystem.from_uri(uri)
        return files, str(root)
    named = {key: value for key, value in os.environ.items() if key.startswith("AWS_")} | options
    given = {key.upper().removeprefix("AWS_"): value for key, value in named.items()}
    endpoint = given.get("ENDPOINT_URL", "")
    scheme, _, host = endpoint.rpartition("://")
    chosen = {
        "access_key": given.get("ACCESS_KEY_ID"),
        "secret_key": given.get("SECRET_ACCESS_KEY"),
        "session_token": given.get("SESSION_TOKEN"),
        "region": given.get("REGION"),
        "endpoint_override": host or None,
        "scheme": scheme or None,
    }
    said = {key: value for key, value in chosen.items() if value is not None}
    return pafs.S3FileSystem(**said), uri.removeprefix("s3://")


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
