"""One store for simulated and real episodes: Delta tables in a folder, queried with SQL by DuckDB.

An append writes videos and samples first and the episode's row last, each as one commit, so an
episode is either there completely or not at all. Many processes may append at the same time. Every
commit of `episodes` is a version of the lake, and a query may use any of them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.dataset as pads

from sim2real.data.arrow_rows import (
    episode_rows,
    read_episode,
    signal_rows,
)
from sim2real.data.consent import SCOPES, Consent
from sim2real.data.episode import Episode
from sim2real.data.labels import Label
from sim2real.data.lake_tables import (
    CURRENT,
    LATE,
    LINEAGE,
    ORIGINS,
    PEOPLE,
    SIGNALS_VIEW,
    TABLES,
    VERDICTS,
)
from sim2real.data.sealed_table import SealedTable, TableVersion
from sim2real.errors import Sim2RealError, brief, explaining, nearest
from sim2real.results import Result
from sim2real.storage import Storage

if TYPE_CHECKING:
    from sim2real.data.overview import LakeKeeper

ResultT = TypeVar("ResultT", bound=Result)

_EPISODES_PER_READ = 200
_SAMPLES_PER_READ = 5_000_000
"""Most samples read at once, so that memory holds a few episodes and not all."""
_WORD = re.compile(r"[a-z_]+")


@dataclass(frozen=True, kw_only=True)
class LakeResult:
    """A result that a lake keeps."""

    id: str
    kind: str
    schema: int
    created: datetime
    episodes: list[str]
    """Ids of the episodes that it was computed from."""
    twin: str
    """Version of the twin."""
    json: str
    """The content of its file."""

    def restored(self, kind: type[ResultT]) -> ResultT:
        """The result itself, as `Gap`."""
        return kind.restored(json.loads(self.json), f"result {self.id}")


class Lake:
    """Episodes on disk or object storage; many processes may use it at once."""

    def __init__(
        self, uri: str | Path, *, storage_options: Mapping[str, str] | None = None
    ) -> None:
        """The lake in a folder or at an `s3://` address; see `create` and `open`."""
        self.storage = Storage(str(uri), storage_options)
        self.uri = str(uri)
        self.tables = {
            name: SealedTable(self.storage, name, schema, key=key, group=group, late=name in LATE)
            for name, (schema, key, group) in TABLES.items()
        }

    @classmethod
    def create(cls, uri: str | Path, *, storage_options: Mapping[str, str] | None = None) -> Lake:
        """The lake at `uri`, created if there is none."""
        lake = cls(uri, storage_options=storage_options)
        if lake.storage.local:
            with explaining(f"cannot create a lake at {uri}", OSError):
                lake.storage.path("").mkdir(parents=True, exist_ok=True)
        for name in reversed(TABLES):  # the table of episodes last: where it exists, all do
            if name not in LATE:
                lake.tables[name].create()
        return lake

    @classmethod
    def open(cls, uri: str | Path, *, storage_options: Mapping[str, str] | None = None) -> Lake:
        """The existing lake at `uri`."""
        lake = cls(uri, storage_options=storage_options)
        _ = lake.version
        return lake

    @property
    def keeper(self) -> LakeKeeper:
        """The lake as people look at it and look after it."""
        from sim2real.data.overview import LakeKeeper

        return LakeKeeper(self)

    @property
    def version(self) -> int:
        """Number of the newest version."""
        return self.tables["episodes"].version

    def append(self, episodes: Episode | Iterable[Episode]) -> list[str]:
        """Add episodes, all of them or none; those already there stay as they are.

        Returns their ids, once they are stored. An episode that was erased because a person
        withdrew is a `Sim2RealError`.
        """
        given = [episodes] if isinstance(episodes, Episode) else list(episodes)
        with self.storage.lock(alone=False):
            fresh = self._unknown({episode.id: episode for episode in given})
            self._refuse_withdrawn(fresh.values())
            for episode in fresh.values():
                for video in episode.videos.values():
                    if not self.storage.exists(_film(video.file)):
                        self.storage.write(_film(video.file), video.mp4)
            if fresh:
                self.tables["signals"].append(signal_rows(fresh.values()))
                with self.storage.turn():  # two processes may bring the same episode
                    fresh = self._unknown(fresh)
                    if fresh:
                        self.tables["episodes"].append(episode_rows(list(fresh.values())))
        return [episode.id for episode in given]

    def _unknown(self, episodes: dict[str, Episode]) -> dict[str, Episode]:
        known = self.tables["episodes"].known("id", episodes)
        return {id_: episode for id_, episode in episodes.items() if id_ not in known}

    def _refuse_withdrawn(self, episodes: Iterable[Episode]) -> None:
        for id_, why in self.erased(episodes).items():
            raise Sim2RealError(f"episode {id_} {why}")

    def erased(self, episodes: Iterable[Episode]) -> dict[str, str]:
        """Which episodes were erased here because a person withdrew, and the words for it."""
        gone, found = self.tables["withdrawals"], {}
        for episode in episodes:
            family = (episode.id, *episode.provenance.parents)
            sha = episode.provenance.source.rpartition("sha256:")[2]
            if gone.known("episodes", family) or (sha and gone.known("sources", [sha])):
                found[episode.id] = (
                    "was erased, or made from one that was erased, because a participant withdrew"
                )
        return found

    def get(self, id_: str, *, version: int | None = None) -> Episode:
        """The episode with that id, checked against it; an unknown id is a `Sim2RealError`."""
        for episode in self.read([id_], version=version):
            return episode
        raise Sim2RealError(f"no episode {id_!r} in {self.uri}")

    def read(self, ids: Sequence[str], *, version: int | None = None) -> Iterator[Episode]:
        """Episodes by id, in the order of `ids`; unknown ids are skipped."""
        found = self.query(
            "select id, outcome, provenance, samples from episodes semi join chosen using (id)",
            version=version,
            chosen=ids_table(ids),
        )
        known = {row["id"]: row for row in found.to_pylist()}
        some: list[dict[str, str]] = []
        held = 0
        for id_ in ids:
            if id_ in known:
                some.append(known[id_])
                held += known[id_]["samples"]
            if len(some) >= _EPISODES_PER_READ or held > _SAMPLES_PER_READ:
                yield from self._read(some)
                some, held = [], 0
        yield from self._read(some)

    def query(self, sql: str, *, version: int | None = None, **tables: pa.Table) -> pa.Table:
        """The answer to a SQL query.

        The tables are `episodes`, `signals`, `labels`, `current_labels`, `verdicts` (the current
        label, else the outcome), `consents`, `datasets`, `policies`, `origins` (which episodes a
        policy comes from, and for which purpose), `withdrawals`, `results`, and those given as
        `tables`, by name.
        """
        if version is not None and not 0 <= version <= self.version:
            raise Sim2RealError(f"{self.uri} has no version {version}, only 0 to {self.version}")
        with (
            self.storage.lock(alone=False),
            closing(duckdb.connect()) as connection,
            explaining("the query failed", duckdb.Error, pa.ArrowException, UnicodeError),
        ):
            self._views(connection, set(_WORD.findall(sql.lower())), version)
            for name, table in tables.items():
                connection.register(name, table)
            answer = connection.sql(sql)
            return answer.to_arrow_table() if answer is not None else pa.table({})

    def present(self, ids: Iterable[str]) -> list[str]:
        """Which of the ids are episodes of this lake, sorted."""
        return sorted(self.tables["episodes"].known("id", ids))

    def resolve(self, start: str, what: Literal["episode", "label"] = "episode") -> str:
        """The id that begins with `start`; none or several is a `Sim2RealError`."""
        if not re.fullmatch(r"[0-9a-f]{1,32}", start):
            raise Sim2RealError(
                f"{brief(start)} is not an episode's id, nor a label's, nor the start of one"
            )
        sql = f"select distinct id from {what}s where id >= '{start}' and id <= '{start}g' limit 2"
        found: list[str] = self.query(sql)["id"].to_pylist()
        if len(found) != 1:
            how = f"several {what}s begin with" if found else f"no {what}"
            raise Sim2RealError(f"{how} {start!r} in {self.uri}")
        return found[0]

    def versions(self) -> list[TableVersion]:
        """Every version of the lake, the oldest first; `rows` is the number of its episodes."""
        return self.tables["episodes"].history()

    def label(self, labels: Label | Iterable[Label]) -> list[str]:
        """Add labels, all of them or none; each must be about an episode of this lake.

        A label may supersede only a current one of the same episode.
        """
        given = [labels] if isinstance(labels, Label) else list(labels)
        spans = {
            row["id"]: (row["start_s"], row["start_s"] + row["duration_s"])
            for row in self.query(
                "select id, start_s, duration_s from episodes semi join chosen using (id)",
                chosen=ids_table(label.episode for label in given),
            ).to_pylist()
        }
        for label in given:
            if label.episode not in spans:
                raise Sim2RealError(f"no episode {label.episode!r} in {self.uri} to label")
            start, end = spans[label.episode]
            if label.start_s is None or label.end_s is None:
                continue
            if label.end_s < start or label.start_s > end:
                raise Sim2RealError(
                    f"episode {label.episode} lasts from {start:g} to {end:g} s: the label is"
                    " outside"
                )
        corrected = {label.supersedes: label.episode for label in given if label.supersedes}
        if corrected:
            sql = f"select id, episode from current_labels where id in ({quoted(corrected)})"
            known = {row["id"]: row["episode"] for row in self.query(sql).to_pylist()}
            for id_, episode in corrected.items():
                if known.get(id_) != episode:
                    raise Sim2RealError(
                        f"episode {episode} has no current label {id_!r} to supersede"
                    )
        if given:
            self.tables["labels"].append([asdict(label) for label in given])
        return [label.id for label in given]

    def lineage(self, id_: str) -> pa.Table:
        """What an episode was made from (steps < 0) and what was made from it (steps > 0).

        Parents that are not in the lake have `present` false. Of the kind 'policy' are the policy
        that acted in it, and those that come from it, with the purpose that it served.
        """
        if not self.present([id_]):
            raise Sim2RealError(f"no episode {id_!r} in {self.uri}")
        return self.query(LINEAGE.replace("$id", quoted([id_])))

    def grant(self, consent: Consent, *, who: str) -> None:
        """Record what a participant agrees to from now on, whatever their episodes say."""
        if not who:
            raise Sim2RealError("a consent needs the name of the person who recorded it")
        self.tables["consents"].append([{**consent.to_dict(), "who": who}])

    def consents(self) -> dict[str, Consent]:
        """The agreements in force that were recorded with `grant`, by participant."""
        sql = "select participant, scope, expires from consents order by created"
        return {
            row["participant"]: Consent.from_dict({k: v for k, v in row.items() if v is not None})
            for row in self.query(sql).to_pylist()
        }

    def permit(self, ids: Sequence[str], purpose: str) -> None:
        """Raise a `Sim2RealError` for an episode whose people have not agreed to `purpose`."""
        for id_, why in self.refusals(ids, purpose).items():
            raise Sim2RealError(f"episode {id_} may not be used: {why}")

    def refusals(self, ids: Sequence[str], purpose: str) -> dict[str, str]:
        """Why episodes may not be used for `purpose`, by id; those that may are not in it.

        The people in the episodes that they were made from count too. `purpose` is 'training',
        'evaluation' or 'sharing'.
        """
        if purpose not in SCOPES:
            raise Sim2RealError(f"no purpose {purpose!r}{nearest(purpose, SCOPES)}")
        rows = self.query(PEOPLE, chosen=ids_table(ids))
        granted = self.consents() if rows.num_rows else {}
        found: dict[str, str] = {}
        for row in rows.to_pylist():
            for carried in json.loads(row["provenance"])["consent"]:
                consent = Consent.from_dict(carried)
                why = granted.get(consent.participant, consent).refusal(purpose)
                if why:
                    source = "" if row["made"] == row["id"] else f"it was made from {row['id']}: "
                    found.setdefault(row["made"], f"{source}{why}")
        return found

    def record_policy(self, policy: str, dataset: str) -> None:
        """Record which data set a policy was trained on, so that a withdrawal can name it."""
        if not self.tables["datasets"].known("id", [dataset]):
            raise Sim2RealError(f"there is no data set {dataset!r} in {self.uri}")
        self.tables["policies"].append([{"policy": policy, "dataset": dataset}])

    def keep_result(self, result: Result, episodes: Sequence[str], *, twin: str = "") -> str:
        """Keep what an analysis found beside what it was computed from; its id.

        `episodes` are their ids, `twin` is the version of the twin. What is there already stays as
        it is. If one of the people in the episodes withdraws, the result is erased with them.
        """
        with self.storage.lock(alone=False):
            for unknown in sorted(set(episodes) - set(self.present(episodes))):
                raise Sim2RealError(f"no episode {unknown!r} in {self.uri} to keep a result of")
            if not self.tables["results"].known("id", [result.id]):
                row = {
                    "id": result.id,
                    "kind": result.result_kind,
                    "schema": result.result_schema,
                    "episodes": list(episodes),
                    "twin": twin,
                    "json": json.dumps({**result.to_dict(), **result.stored()}, allow_nan=False),
                }
                self.tables["results"].append([row])
        return result.id

    def results(self, kind: str = "") -> list[LakeResult]:
        """The results that are kept, the oldest first; only those of a kind, if it is given."""
        rows = self.query("select distinct * from results order by created, id").to_pylist()
        return [LakeResult(**row) for row in rows if kind in ("", row["kind"])]

    def compact(self, *, most_bytes: int = 1 << 28) -> int:
        """Merge small files into large ones; older versions stay. Returns the files saved.

        Rows that two processes appended at the same moment become one, and rows are sorted, so
        that finding an episode reads little.
        """
        with self.storage.lock(alone=True):
            return sum(table.compact(most_bytes=most_bytes) for table in self.tables.values())

    def film(self, file: str) -> bytes:
        """Content of the video file with that hash."""
        return self.storage.read(_film(file))

    def __len__(self) -> int:
        return int(self.query("select count(*) as n from episodes")["n"][0].as_py())

    def _read(self, episodes: list[dict[str, str]]) -> Iterator[Episode]:
        if not episodes:
            return
        listed = quoted(row["id"] for row in episodes)
        signals = self.query(f"select * from stored_signals where episode in ({listed})")
        signals = signals.combine_chunks().sort_by("episode")
        names = signals["episode"].to_pylist()
        for row in episodes:
            first, end = bisect_left(names, row["id"]), bisect_right(names, row["id"])
            yield read_episode(row, signals.slice(first, end - first), self.film)

    def _views(
        self, connection: duckdb.DuckDBPyConnection, words: set[str], version: int | None
    ) -> None:
        """Create views of the tables that a query names."""
        if "verdicts" in words:
            words |= {"episodes", "current_labels"}
        if "current_labels" in words:
            words.add("labels")
        if "origins" in words:
            words |= {"policies", "datasets"}
        if "signals" in words:
            words |= {"stored_signals", "episodes"}
        for name in self.tables:
            stored = f"stored_{name}" if name == "signals" else name
            if stored in words:
                self._view(connection, stored, name, version if name == "episodes" else None)
        if "signals" in words:
            connection.execute(SIGNALS_VIEW)
        if "current_labels" in words:
            connection.execute(CURRENT)
        if "origins" in words:
            connection.execute(ORIGINS)
        if "verdicts" in words:
            connection.execute(VERDICTS)

    def _view(
        self, connection: duckdb.DuckDBPyConnection, view: str, name: str, version: int | None
    ) -> None:
        """Let DuckDB read the Parquet files of a table itself: it prunes, streams and spills."""
        files = self.tables[name].files(version)
        if not files:
            connection.register(view, self.tables[name].schema.empty_table())
        elif self.storage.local:
            listed = quoted(str(self.storage.path(file)) for file in files)
            connection.execute(f"create view {view} as select * from read_parquet([{listed}])")
        else:
            connection.register(
                view, pads.dataset(files, filesystem=self.storage.files, format="parquet")
            )


def _film(file: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", file):
        raise Sim2RealError(f"{file!r} is not the hash of a video")
    return f"videos/{file}.mp4"


def ids_table(ids: Iterable[str]) -> pa.Table:
    """Ids as a table that a query can join."""
    return pa.table({"id": pa.array(list(ids), pa.string())})


def quoted(values: Iterable[str]) -> str:
    """Texts as a list in SQL."""
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values)
