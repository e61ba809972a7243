"""A Delta table with sealed files, so that any later change in them is detected.

A data file is named after the hash of its content. Each file of the log gets a seal: its hash, in a
separate file written right after it. The next `verify` seals what a killed writer left without one.
The log holds names, sizes and counts, and none of the data.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from sim2real.errors import Sim2RealError, explaining, one_line
from sim2real.storage import Storage

_PART = re.compile(r"part-([0-9a-f]{64})\.parquet$")
_COMMIT = re.compile(r"_delta_log/(\d{20})\.json$")
_CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint\.parquet$")
_SEAL = re.compile(r"^[0-9a-f]{64}\n$")
_COMMITS_PER_CHECKPOINT = 100
_MAX_COMMIT_RETRIES = 1000
_KEEP_LOG = {
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.enableExpiredLogCleanup": "false",
}
_DELTA_ERRORS = (DeltaError, OSError, ValueError, OverflowError)


@dataclass(frozen=True, kw_only=True)
class Damage:
    """A file or episode that has changed since it was written."""

    file: str
    """Name of the file or episode."""
    message: str


class TableVersion(TypedDict):
    """One version of a table."""

    version: int
    when: str
    """Time of the commit."""
    rows: int


class SealedTable:
    """A table with a fixed schema; rows are added, never changed."""

    def __init__(
        self,
        storage: Storage,
        name: str,
        schema: pa.Schema,
        *,
        key: tuple[str, ...],
        group: int,
        late: bool = False,
    ) -> None:
        """The table `name` of a lake; no two rows have the same values in the columns `key`.

        `group` is the number of rows in a Parquet row group. A `late` table is not there before its
        first row, since older lakes do not have it.
        """
        self.storage, self.name, self.schema = storage, name, schema
        self._key, self._group, self.late = key, group, late
        self._newest: DeltaTable | None = None
        self._rewritten = b""
        self._seen: dict[tuple[str, str], set[str]] = {}
        self._uri, self._seals = f"{storage.url}/{name}", f"seals/{name}"
        # This file changes when history is rewritten, so that open tables are read again.
        self._mark = f"{self._seals}.rewritten"

    @property
    def _exists(self) -> bool:
        return self.storage.exists(_commit_name(self.name, 0))

    def create(self) -> None:
        """Create the table if it does not exist."""
        if self._exists:
            return
        with explaining(f"cannot create a lake at {self.storage.uri}", *_DELTA_ERRORS):
            DeltaTable.create(
                self._uri,
                self.schema,
                mode="ignore",
                configuration=_KEEP_LOG,
                storage_options=self.storage.options,
            )
        self._seal(_commit_name(self.name, 0))

    @property
    def version(self) -> int:
        """Number of the newest version."""
        return self._open().version()

    def files(self, version: int | None = None) -> list[str]:
        """Names of the data files of a version; the newest if none is given."""
        if self.late and not self._exists:
            return []
        paths = self._open(version).file_uris()
        return sorted(f"{self.name}/{path.rsplit('/', 1)[-1]}" for path in paths)

    def history(self) -> list[TableVersion]:
        """Every version, the oldest first."""
        found: list[TableVersion] = []
        counts: dict[str, int] = {}
        for version in range(self.version + 1):
            when = 0
            for action in self._actions(_commit_name(self.name, version)):
                when = action.get("commitInfo", {}).get("timestamp", when)
                if "add" in action:
                    stats = json.loads(action["add"]["stats"])
                    counts[action["add"]["path"]] = int(stats["numRecords"])
                if "remove" in action:
                    counts.pop(action["remove"]["path"], None)
            moment = datetime.fromtimestamp(when / 1000, UTC).isoformat(timespec="seconds")
            found.append({"version": version, "when": moment, "rows": sum(counts.values())})
        return found

    def known(self, column: str, values: Iterable[str]) -> set[str]:
        """Which of the values occur in a column of texts, or of lists of texts.

        Each data file is read once and cached.
        """
        given, found = set(values), set()
        for file in self.files():
            if (file, column) not in self._seen:
                cells = self.rows(file, [column])[column].combine_chunks()
                texts = cells.flatten() if pa.types.is_list(cells.type) else cells
                self._seen[file, column] = set(texts.to_pylist())
            found |= given & self._seen[file, column]
        return found

    def append(self, rows: pa.Table | Sequence[Mapping[str, object]]) -> None:
        """Add rows as one commit: all of them or none. A row without `created` is of now."""
        if not isinstance(rows, pa.Table):
            now = {"created": datetime.now(UTC)}
            rows = pa.Table.from_pylist([{**now, **row} for row in rows], schema=self.schema)
        if self.late:
            self.create()
        self._commit([self._write(rows)], [])

    def rows(self, file: str, columns: list[str] | None = None) -> pa.Table:
        """Rows of one data file; a damaged one is a `Sim2RealError`."""
        with explaining(f"cannot read {self.storage.uri}/{file}", pa.ArrowException, OSError):
            return pq.read_table(
                file,
                filesystem=self.storage.files,
                schema=self.schema,
                columns=columns,
            )

    def compact(self, *, most_bytes: int) -> int:
        """Merge small files into large ones, with sorted rows and each key once.

        Older versions keep their files. Returns by how many files the table has shrunk.
        """
        sizes = {file: self.storage.files.get_file_info(file).size for file in self.files()}
        small = [file for file, size in sizes.items() if size < most_bytes / 2]
        groups: list[list[str]] = [[]]
        filled = 0
        for file in small:
            if filled + sizes[file] > most_bytes:
                groups.append([])
                filled = 0
            groups[-1].append(file)
            filled += sizes[file]
        fewer = 0
        for group in groups:
            if len(group) > 1:
                merged = pa.concat_tables([self.rows(file) for file in group])
                added = self._write(_once(merged, self._key))
                # Where the other files only repeat the rows of one, that one stays as it is.
                others = [file for file in group if not file.endswith(added.path)]
                self._commit([added] if others == group else [], others)
                fewer += len(group) - 1
        return fewer

    def all_rows(self, *columns: str) -> pa.Table:
        """Some columns of every data file, of all versions and of killed writers."""
        empty = self.schema.empty_table().select(columns)
        return pa.concat_tables([empty, *(self.rows(file, [*columns]) for file in self._parts())])

    def rewrite(self, change: Callable[[pa.Table], pa.Table]) -> None:
        """Replace the rows of every data file by `change(rows)`, in every version.

        This rewrites history: all versions remain, but what `change` removes is in no file any
        more. `change` returns its argument where there is nothing to change. Hold the exclusive
        lock; after an interruption, call it again.
        """
        renamed, replaced = {}, []
        for file in self._parts():
            rows = self.rows(file)
            changed = change(rows)
            if changed is not rows:
                renamed[file.rsplit("/", 1)[-1]] = self._write(changed)
                replaced.append(file)
        if not renamed:
            return
        self.storage.write(self._mark, _fresh_mark())
        logs = [name for name in self._log() if _COMMIT.search(name)]
        for log in logs:
            old = self.storage.read(log)
            new = b"".join(_renamed(line, renamed) for line in old.splitlines(keepends=True))
            if new != old:
                self.storage.write(log, new)
            if any(action.path.encode() in new for action in renamed.values()):
                self._seal(log)  # also if an earlier attempt was killed before sealing
        for name in self._log():
            if _CHECKPOINT.search(name):  # they hold the old names
                self.storage.delete(name)
                self.storage.delete(self._seal_of(name))
        self.storage.write(self._mark, _fresh_mark())
        for file in replaced:
            self.storage.delete(file)

    def verify(self) -> Iterator[Damage]:
        """What has changed since it was written; hashes every file again."""
        # In the reverse order of writing, so that nothing is missed that is being written.
        sealed = {
            name.rsplit("/", 1)[-1].removesuffix(".sha256")
            for name in self.storage.names(self._seals)
        }
        log = self._log()
        parts = self._parts()
        present = {name.rsplit("/", 1)[-1] for name in log}
        for lost in sorted(sealed - present):
            yield Damage(file=f"{self.name}/_delta_log/{lost}", message="is missing")
        sound = True
        for name in log:
            if not (_COMMIT.search(name) or _CHECKPOINT.search(name)):
                continue
            problem = self._log_problem(name)
            if problem:
                sound = False
                yield Damage(file=name, message=problem)
        commits = sorted(int(m[1]) for name in log if (m := _COMMIT.search(name)))
        if commits != list(range(len(commits))):
            sound = False
            yield Damage(file=f"{self.name}/_delta_log", message="a version is missing")
        for file in parts:
            named = _PART.search(file)
            if named is None or self.storage.digest(file) != named[1]:
                yield Damage(file=file, message="has changed since it was written")
        if self.storage.exists(self._mark):
            mark, _, seal = self.storage.read(self._mark).partition(b" ")
            if hashlib.sha256(mark).hexdigest().encode() != seal:
                yield Damage(file=self._mark, message="has changed since it was written")
        if sound:
            referenced = {
                f"{self.name}/{action['add']['path']}"
                for name in log
                if _COMMIT.search(name)
                for action in self._actions(name)
                if "add" in action
            }
            for lost in sorted(referenced - set(parts)):
                yield Damage(file=lost, message="is missing")

    def _log_problem(self, name: str) -> str:
        seal = self._seal_of(name)
        if not self.storage.exists(seal):
            if _COMMIT.search(name) and not _is_log(self.storage.read(name)):
                return "is not a log file, and has no seal"
            self._seal(name)
            return ""
        content = self.storage.read(seal)
        if content != f"{self.storage.digest(name)}\n".encode():
            if not _SEAL.match(content.decode("ascii", "replace")):
                return f"its seal {seal} has changed since it was written"
            return "it or its seal has changed since it was written"
        return ""

    def _actions(self, log: str) -> list[dict[str, Any]]:
        """What a file of the log says was done."""
        return [json.loads(line) for line in self.storage.read(log).splitlines()]

    def _parts(self) -> list[str]:
        """All data files, including those that a killed writer left in no version."""
        return [
            name
            for name in self.storage.names(self.name)
            if name.endswith(".parquet") and name.count("/") == 1
        ]

    def _log(self) -> list[str]:
        return self.storage.names(f"{self.name}/_delta_log")

    def _write(self, rows: pa.Table) -> AddAction:
        buffer = io.BytesIO()
        with explaining("cannot store these rows", pa.ArrowException):
            pq.write_table(
                rows.cast(self.schema),
                buffer,
                row_group_size=self._group,
                compression="zstd",
                compression_level=1,
            )
        content = buffer.getbuffer()
        path = f"part-{hashlib.sha256(content).hexdigest()}.parquet"
        self.storage.write(f"{self.name}/{path}", bytes(content))
        return AddAction(
            path=path,
            size=len(content),
            partition_values={},
            modification_time=int(time.time() * 1000),
            data_change=True,
            stats=json.dumps({"numRecords": rows.num_rows}),
        )

    def _commit(self, added: list[AddAction], removed: list[str]) -> None:
        gone = [
            RemoveAction(
                path=file.rsplit("/", 1)[-1],
                deletion_timestamp=int(time.time() * 1000),
                data_change=False,
            )
            for file in removed
        ]
        for action in added:
            action.data_change = not removed
        table = self._open()
        begin = table.version() + 1
        with explaining(f"cannot write to {self.storage.uri}", *_DELTA_ERRORS):
            table.create_write_transaction(
                [*added, *gone],
                mode="append",
                schema=self.schema,
                commit_properties=CommitProperties(max_commit_retries=_MAX_COMMIT_RETRIES),
                post_commithook_properties=PostCommitHookProperties(
                    create_checkpoint=False, cleanup_expired_logs=False
                ),
            )
        version = self._version_with((added or gone)[0].path, begin)
        self._seal(_commit_name(self.name, version))
        if version % _COMMITS_PER_CHECKPOINT == 0:
            self._checkpoint(version)

    def _version_with(self, path: str, begin: int) -> int:
        """The version that added a file; others may have committed since `begin`."""
        version = begin
        while path.encode() not in self.storage.read(_commit_name(self.name, version)):
            version += 1
        return version

    def _checkpoint(self, version: int) -> None:
        """Write a checkpoint, so that opening the table is fast; nothing is lost if it fails."""
        try:
            self._open(version).create_checkpoint()
        except _DELTA_ERRORS:
            return
        self._seal(f"{self.name}/_delta_log/{version:020d}.checkpoint.parquet")
        self.storage.delete(f"{self.name}/_delta_log/_last_checkpoint")

    def _seal(self, name: str) -> None:
        self.storage.write(self._seal_of(name), f"{self.storage.digest(name)}\n".encode())

    def _seal_of(self, name: str) -> str:
        return f"{self._seals}/{name.rsplit('/', 1)[-1]}.sha256"

    def _open(self, version: int | None = None) -> DeltaTable:
        if version is not None:
            return self._load(version)
        mark = self.storage.read(self._mark) if self.storage.exists(self._mark) else b""
        if self._newest is None or mark != self._rewritten:
            self._newest, self._rewritten = self._load(None), mark
        else:
            try:
                self._newest.update_incremental()
            except _DELTA_ERRORS:
                self._newest = self._load(None)
        return self._newest

    def _load(self, version: int | None) -> DeltaTable:
        try:
            return DeltaTable(self._uri, version=version, storage_options=self.storage.options)
        except TableNotFoundError:
            raise Sim2RealError(f"no lake at {self.storage.uri}") from None
        except _DELTA_ERRORS as error:
            wanted = f" version {version} of" if version is not None else ""
            raise Sim2RealError(
                f"cannot read{wanted} {self.storage.uri}: {one_line(error)}"
            ) from None


def _fresh_mark() -> bytes:
    name = uuid.uuid4().hex.encode()
    return name + b" " + hashlib.sha256(name).hexdigest().encode()


def _commit_name(table: str, version: int) -> str:
    return f"{table}/_delta_log/{version:020d}.json"


def _once(rows: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """The rows sorted by key, each key once."""
    order = rows.select(key).append_column("row", pa.array(range(rows.num_rows)))
    first = order.group_by(list(key), use_threads=False).aggregate([("row", "min")])
    first = first.sort_by([(name, "ascending") for name in key])
    return rows.take(first["row_min"])


def _renamed(line: bytes, renamed: dict[str, AddAction]) -> bytes:
    """A line of the log, with the new name of a data file that was rewritten."""
    action = json.loads(line)
    entry = action.get("add") or action.get("remove") or {}
    new = renamed.get(entry.get("path", ""))
    if new is None:
        return line
    for field in {"path", "size", "stats"} & set(entry):
        entry[field] = getattr(new, field)
    return json.dumps(action, separators=(",", ":")).encode() + b"\n"


def _is_log(content: bytes) -> bool:
    try:
        return all(isinstance(json.loads(line), dict) for line in content.splitlines())
    except ValueError:
        return False
