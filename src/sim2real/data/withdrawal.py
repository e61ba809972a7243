"""Withdrawal of a person: their data are erased from every table, version and file of a lake.

What was made from them is listed, because a policy cannot forget: whether to retrain it is for the
user to decide. The tombstone that remains holds no name, no pseudonym and no sample.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sim2real.data.lake import Lake, quoted
from sim2real.data.windows import forget
from sim2real.errors import Sim2RealError
from sim2real.plain import PlainData

_AFFECTED = """
with recursive
    born as (select id as child, unnest(parents) as parent from every),
    gone as (
        select id from every where list_contains(participants, $participant)
            or operator = $participant
        union select unnest(erased) as id from tombstones
        union select born.child from born join gone on born.parent = gone.id
    )
select distinct id from gone semi join every using (id)
"""


@dataclass(frozen=True, kw_only=True)
class Withdrawal(PlainData, also=("results?",)):
    """What was erased, and what had been made from it."""

    id: str
    """Random name of the tombstone."""
    episodes: tuple[str, ...]
    """Erased episodes: those with the person in them, and all derived from these."""
    datasets: tuple[str, ...]
    """Data sets and exports that contained one of them."""
    policies: tuple[str, ...]
    """Policies made from these data sets: trained on them, or in a twin identified on them. Those
    that were only checked on them are not listed."""
    results: tuple[str, ...] = ()
    """Erased results of analyses that were computed from one of the episodes."""


def withdraw(lake: Lake, participant: str) -> Withdrawal:
    """Erase all data of a participant; one unknown to the lake is a `Sim2RealError`.

    The lake is locked meanwhile. After an interruption, call it again to finish the work.
    """
    with lake.storage.lock(alone=True):
        ids = affected(lake, participant)
        granted = lake.tables["consents"].all_rows("participant")["participant"].to_pylist()
        if not ids and participant not in granted:
            raise Sim2RealError(f"no data of participant {participant!r} in {lake.uri}")
        redact = _Redaction(participant)
        datasets, policies = _derived(lake, ids)
        found = Withdrawal(
            id=uuid.uuid4().hex,
            episodes=tuple(sorted(ids)),
            datasets=datasets,
            policies=tuple(redact.text(policy) for policy in policies),
            results=_computed(lake, ids),
        )
        # The tombstone first: from now on these episodes cannot come back.
        row = {**asdict(found), "sources": _sources(lake, ids)}
        del row["results"]  # they are gone with the episodes
        lake.tables["withdrawals"].append([row])
        _erase(lake, ids, participant, redact)
    return found


def affected(lake: Lake, participant: str) -> set[str]:
    """Episodes with the person in any version, and all derived from them.

    What an interrupted withdrawal has left over is included.
    """
    if not participant:
        raise Sim2RealError("name the participant")
    found = lake.query(
        _AFFECTED.replace("$participant", quoted([participant])),
        every=lake.tables["episodes"].all_rows("id", "participants", "operator", "parents"),
        tombstones=lake.tables["withdrawals"].all_rows("episodes").rename_columns(["erased"]),
    )
    return set(found["id"].to_pylist())


def _erase(lake: Lake, ids: set[str], participant: str, redact: _Redaction) -> None:
    there = set(lake.tables["episodes"].all_rows("id")["id"].to_pylist()) - ids
    # Nobody is writing: what no episode refers to was left by a writer that died.
    films = lake.tables["signals"].all_rows("episode", "file")
    shown = set(films["file"].filter(_among(films["episode"], there)).to_pylist())
    for name in lake.storage.names("videos"):
        if name.removeprefix("videos/").removesuffix(".mp4") not in shown:
            lake.storage.delete(name)
    for name in lake.storage.leftovers():
        lake.storage.delete(name)
    lake.tables["signals"].rewrite(lambda rows: _kept(rows, _among(rows["episode"], there)))
    forget(lake.storage, ids)
    lake.tables["results"].rewrite(_without_any(ids))
    lake.tables["labels"].rewrite(_without("episode", ids))
    for name in ("labels", "datasets", "policies", "consents", "results"):
        lake.tables[name].rewrite(redact.rows)
    # Last, because after an interruption these two show what is still to be done.
    lake.tables["episodes"].rewrite(_without("id", ids))
    lake.tables["consents"].rewrite(_without("participant", {participant}))


def _sources(lake: Lake, ids: Collection[str]) -> list[str]:
    """Hashes of the files the erased episodes came from, which must not come back either."""
    rows = lake.tables["episodes"].all_rows("id", "source").to_pylist()
    found = {(row["source"] or "").rpartition("sha256:")[2] for row in rows if row["id"] in ids}
    return sorted(found - {""})


def _derived(lake: Lake, ids: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    sets = lake.tables["datasets"].all_rows("id", "episodes", "manifest").to_pylist()
    purposes = {
        row["id"]: json.loads(row["manifest"]).get("purpose")
        for row in sets
        if not set(ids).isdisjoint(row["episodes"])
    }
    datasets = purposes.keys()
    made = lake.tables["policies"].all_rows("policy", "dataset").to_pylist()
    policies = {row["policy"] for row in made if purposes.get(row["dataset"], "check") != "check"}
    return tuple(sorted(datasets)), tuple(sorted(policies))


def _computed(lake: Lake, ids: Collection[str]) -> tuple[str, ...]:
    """Results that were computed from some of the episodes."""
    rows = lake.tables["results"].all_rows("id", "episodes").to_pylist()
    return tuple(sorted({r["id"] for r in rows if not set(ids).isdisjoint(r["episodes"])}))


class _Redaction:
    """Removes a pseudonym from texts: as a whole word, however it may be escaped."""

    def __init__(self, participant: str) -> None:
        escaped = json.dumps(participant)[1:-1]
        ways = {participant, escaped, participant.replace("'", "''"), escaped.replace("'", "''")}
        listed = "|".join(re.escape(way) for way in sorted(ways, key=len, reverse=True))
        self._pattern = re.compile(rf"(?<![\w-])(?:{listed})(?![\w-])")

    def text(self, text: str) -> str:
        return self._pattern.sub("withdrawn", text)

    def rows(self, rows: pa.Table) -> pa.Table:
        """The rows without the pseudonym; the same object if nobody wrote it."""
        for place, entry in enumerate(rows.schema):
            if entry.name in ("value", "who", "name", "manifest", "policy", "json"):
                old = rows.column(place).to_pylist()
                new = [text and self._in(entry.name, text) for text in old]
                if new != old:
                    rows = rows.set_column(place, entry, pa.array(new, entry.type))
        return rows

    def _in(self, column: str, text: str) -> str:
        if column != "manifest":
            return self.text(text)
        manifest = json.loads(text)
        for part in (manifest, *manifest["parts"]):
            for key in {"name", "select"} & set(part):
                part[key] = self.text(part[key])
        return json.dumps(manifest, sort_keys=True)


def _without(column: str, values: Collection[str]) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: _kept(rows, pc.invert(_among(rows[column], values)))


def _without_any(ids: Collection[str]) -> Callable[[pa.Table], pa.Table]:
    """Rows without those whose `episodes` have one of the ids."""

    def change(rows: pa.Table) -> pa.Table:
        clean = [set(ids).isdisjoint(some) for some in rows["episodes"].to_pylist()]
        return _kept(rows, pa.chunked_array([pa.array(clean, pa.bool_())]))

    return change


def _kept(rows: pa.Table, mask: pa.ChunkedArray) -> pa.Table:
    """The rows of the mask; the table itself where that is all."""
    return rows if pc.all(mask, min_count=0).as_py() else rows.filter(mask)


def _among(column: pa.ChunkedArray, values: Collection[str]) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=pa.array(list(values), pa.string()))
