"""One place for simulated and real episodes: Delta tables in a folder, SQL through DuckDB.

An append writes the samples first and the episode's row last, each as one Delta commit: an episode
is there when its row is, and never by half. Appends from many processes do not disturb each other.
Every commit of `episodes` is a version of the lake, and a query may ask for any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import DeltaError, TableNotFoundError

from sim2real.data.episode import Episode
from sim2real.data.labels import LABELS, Label, label_rows
from sim2real.data.tables import EPISODES, SIGNALS, episode_rows, read_episode, signal_rows
from sim2real.errors import Sim2RealError

_TABLES = {"episodes": EPISODES, "signals": SIGNALS, "labels": LABELS}
_ROWS_A_GROUP = {"episodes": 65_536, "signals": 256, "labels": 65_536}
_CURRENT = """create view current_labels as select * from labels where id not in
    (select supersedes from labels where supersedes <> '')"""
_LINEAGE = """
with recursive
    edges as (select id as child, unnest(parents) as parent from episodes),
    up as (
        select $id as id, 0 as steps
        union select edges.parent, up.steps - 1 from up join edges on edges.child = up.id
    ),
    down as (
        select $id as id, 0 as steps
        union select edges.child, down.steps + 1 from down join edges on edges.parent = down.id
    )
select id, steps, process, kind, episodes.id is not null as present
from (select * from up union select * from down) as walk left join episodes using (id)
order by steps, id
"""


class Lake:
    """Episodes on disk or object storage; safe to use from many processes at once."""

    def __init__(self, uri: str, *, storage_options: dict[str, str] | None = None) -> None:
        """The lake at a folder or an `s3://` address; see `create` and `open`."""
        self.uri = uri.rstrip("/")
        self._options = storage_options

    @classmethod
    def create(cls, uri: str | Path, *, storage_options: dict[str, str] | None = None) -> Lake:
        """The lake at `uri`, made there if there is none."""
        lake = cls(str(uri), storage_options=storage_options)
        for name, schema in _TABLES.items():
            try:
                DeltaTable.create(
                    lake._path(name), schema, mode="ignore", storage_options=storage_options
                )
            except (DeltaError, OSError) as error:
                raise Sim2RealError(f"cannot make a lake at {uri}: {_short(error)}") from None
        return lake

    @classmethod
    def open(cls, uri: str | Path, *, storage_options: dict[str, str] | None = None) -> Lake:
        """The lake that is already at `uri`."""
        lake = cls(str(uri), storage_options=storage_options)
        lake._table("episodes")
        return lake

    @property
    def version(self) -> int:
        """Number of the newest version: "the data this policy was trained on"."""
        return self._table("episodes").version()

    def append(self, episodes: Episode | Iterable[Episode]) -> list[str]:
        """Add episodes, all of them or none; those already there are left as they are.

        Returns their ids. When this returns, they are on disk.
        """
        given = [episodes] if isinstance(episodes, Episode) else list(episodes)
        fresh = {episode.id: episode for episode in given}
        for known in self._present(list(fresh)):
            del fresh[known]
        if fresh:
            chosen = list(fresh.values())
            self._write("signals", signal_rows(chosen))
            self._write("episodes", episode_rows(chosen))
        return [episode.id for episode in given]

    def get(self, id_: str, *, version: int | None = None) -> Episode:
        """The episode of an id, checked against it; an unknown id is a `Sim2RealError`."""
        for episode in self.read([id_], version=version):
            return episode
        raise Sim2RealError(f"no episode {id_!r} in {self.uri}")

    def read(self, ids: Sequence[str], *, version: int | None = None) -> Iterator[Episode]:
        """Episodes by id, in the order asked for; unknown ids are left out."""
        chosen = pa.table({"id": pa.array(list(ids), pa.string())})
        rows = self.query(
            "select episodes.* from episodes semi join chosen using (id)",
            version=version,
            chosen=chosen,
        )
        signals = self.query(
            "select signals.* from signals semi join chosen on signals.episode = chosen.id",
            chosen=chosen,
        )
        by_id = {row["id"]: row for row in rows.to_pylist()}
        for id_ in ids:
            if id_ in by_id:
                mine = signals.filter(pc.equal(signals["episode"], id_))
                yield read_episode(by_id[id_], mine.combine_chunks())

    def query(self, sql: str, *, version: int | None = None, **tables: pa.Table) -> pa.Table:
        """The answer to a SQL query over `episodes`, `signals`, `labels` and `current_labels`.

        `tables` given along can be queried by their names.
        """
        connection = duckdb.connect()
        try:
            for name in _TABLES:
                at = version if name == "episodes" else None
                self._view(connection, name, at)
            connection.execute(_CURRENT)
            for name, table in tables.items():
                connection.register(name, table)
            answer = connection.sql(sql)
            return answer.to_arrow_table() if answer is not None else pa.table({})
        except duckdb.Error as error:
            raise Sim2RealError(f"the query failed: {_short(error)}") from None
        finally:
            connection.close()

    def label(self, labels: Label | Iterable[Label]) -> list[str]:
        """Add labels, all of them or none; each must be about an episode that is there."""
        given = [labels] if isinstance(labels, Label) else list(labels)
        about = sorted({label.episode for label in given})
        for missing in sorted(set(about) - set(self._present(about))):
            raise Sim2RealError(f"no episode {missing!r} in {self.uri} to label")
        if given:
            self._write("labels", label_rows(given))
        return [label.id for label in given]

    def lineage(self, id_: str) -> pa.Table:
        """Where an episode comes from (steps < 0) and what was made of it (steps > 0).

        A parent that is not in the lake is listed with `present` false.
        """
        if not self._present([id_]):
            raise Sim2RealError(f"no episode {id_!r} in {self.uri}")
        return self.query(_LINEAGE.replace("$id", "'" + id_.replace("'", "''") + "'"))

    def __len__(self) -> int:
        return int(self.query("select count(*) as n from episodes")["n"][0].as_py())

    def _present(self, ids: list[str]) -> list[str]:
        chosen = pa.table({"id": pa.array(ids, pa.string())})
        found = self.query("select id from episodes semi join chosen using (id)", chosen=chosen)
        known: list[str] = found["id"].to_pylist()
        return sorted(set(known))

    def _view(self, connection: Any, name: str, version: int | None) -> None:
        """Let DuckDB read the table's Parquet files itself: it prunes, streams and spills."""
        files = self._table(name, version).file_uris()
        if files:
            listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
            connection.execute(f"create view {name} as select * from read_parquet([{listed}])")
        else:
            connection.register(name, _TABLES[name].empty_table())

    def _write(self, name: str, rows: pa.Table) -> None:
        properties = WriterProperties(
            compression="ZSTD", compression_level=1, max_row_group_size=_ROWS_A_GROUP[name]
        )
        try:
            write_deltalake(
                self._path(name),
                rows,
                mode="append",
                storage_options=self._options,
                writer_properties=properties,
            )
        except (DeltaError, OSError) as error:
            raise Sim2RealError(f"cannot write to {self.uri}: {_short(error)}") from None

    def _table(self, name: str, version: int | None = None) -> DeltaTable:
        try:
            return DeltaTable(self._path(name), version=version, storage_options=self._options)
        except TableNotFoundError:
            raise Sim2RealError(f"no lake at {self.uri}") from None
        except (DeltaError, OSError) as error:
            wanted = f" version {version} of" if version is not None else ""
            raise Sim2RealError(f"cannot read{wanted} {self.uri}: {_short(error)}") from None

    def _path(self, name: str) -> str:
        return f"{self.uri}/{name}"


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
