"""A person withdraws: their data leaves every table, version and file of a lake.

What was made from it is listed, because a policy cannot forget: retraining is the user's to decide.
The tombstone that stays holds no name, no pseudonym and no sample.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sim2real.data.lake import WITHDRAWALS, Lake
from sim2real.data.windows import forget
from sim2real.errors import Sim2RealError


@dataclass(frozen=True, kw_only=True)
class Withdrawal:
    """What was erased, and what had been made from it."""

    id: str
    """Random name of the tombstone."""
    episodes: tuple[str, ...]
    """Episodes that are gone: those with the person in them, and all that were derived."""
    datasets: tuple[str, ...]
    """Data sets and exports that held one of them."""
    policies: tuple[str, ...]
    """Policies made from these data sets."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def withdraw(lake: Lake, participant: str) -> Withdrawal:
    """Erase all data of a participant; one the lake does not know is a `Sim2RealError`.

    Safe to repeat: after an interruption, calling it again ends the work.
    """
    ids = affected(lake, participant)
    known = lake.query("select distinct participant from consents")["participant"].to_pylist()
    if not ids and participant not in known:
        raise Sim2RealError(f"no data of participant {participant!r} in {lake.uri}")
    datasets, policies = _derived(lake, ids)
    found = Withdrawal(
        id=uuid.uuid4().hex,
        episodes=tuple(sorted(ids)),
        datasets=datasets,
        policies=policies,
    )
    # The tombstone first: from now on these episodes cannot come back.
    row = {**asdict(found), "created": datetime.now(UTC)}
    lake.tables["withdrawals"].append(pa.Table.from_pylist([row], schema=WITHDRAWALS))
    for film in _films_only_of(lake, ids):
        lake.storage.delete(f"videos/{film}.mp4")
    lake.tables["signals"].rewrite(_without("episode", ids))
    forget(lake.storage, ids)
    lake.tables["labels"].rewrite(_without("episode", ids))
    lake.tables["datasets"].rewrite(lambda rows: _redacted(rows, participant))
    # Last, because these two say what is still to be done after an interruption.
    lake.tables["episodes"].rewrite(_without("id", ids))
    lake.tables["consents"].rewrite(_without("participant", {participant}))
    return found


def affected(lake: Lake, participant: str) -> set[str]:
    """Episodes with the person in any version, and everything derived from them."""
    ids: set[str] = set()
    children: dict[str, set[str]] = {}
    for rows in lake.tables["episodes"].all_rows():
        columns = ("id", "participants", "operator", "parents")
        for row in rows.select(columns).to_pylist():
            if participant in row["participants"] or participant == row["operator"]:
                ids.add(row["id"])
            for parent in row["parents"]:
                children.setdefault(parent, set()).add(row["id"])
    todo = list(ids)
    while todo:
        for child in children.get(todo.pop(), set()) - ids:
            ids.add(child)
            todo.append(child)
    return ids


def _derived(lake: Lake, ids: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    datasets = {
        row["id"]
        for rows in lake.tables["datasets"].all_rows()
        for row in rows.select(["id", "episodes"]).to_pylist()
        if not set(ids).isdisjoint(row["episodes"])
    }
    policies = {
        row["policy"]
        for rows in lake.tables["policies"].all_rows()
        for row in rows.to_pylist()
        if row["dataset"] in datasets
    }
    return tuple(sorted(datasets)), tuple(sorted(policies))


def _films_only_of(lake: Lake, ids: Collection[str]) -> set[str]:
    """Films of the given episodes that no other shows."""
    theirs: set[str] = set()
    others: set[str] = set()
    for rows in lake.tables["signals"].all_rows(["episode", "file"]):
        mine = _among(rows["episode"], ids)
        theirs |= set(rows["file"].filter(mine).drop_null().to_pylist())
        others |= set(rows["file"].filter(pc.invert(mine)).drop_null().to_pylist())
    return theirs - others


def _without(column: str, values: Collection[str]) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.filter(pc.invert(_among(rows[column], values)))


def _among(column: pa.ChunkedArray, values: Collection[str]) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=pa.array(list(values), pa.string()))


def _redacted(rows: pa.Table, participant: str) -> pa.Table:
    """Data sets whose selection named the person, without the pseudonym."""
    place = rows.schema.get_field_index("manifest")
    changed = pc.replace_substring(rows["manifest"], participant, "withdrawn")
    return rows.set_column(place, rows.schema.field(place), changed)
