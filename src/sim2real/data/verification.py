"""Whether a lake still holds what was put into it: hashes every file and episode again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sim2real.data.lake import Lake
from sim2real.data.sealed_table import Damage
from sim2real.data.windows import verify_windows
from sim2real.errors import Sim2RealError

_AT_ONCE = 500


def verify(
    lake: Lake, *, report: Callable[[int, int], None] = lambda done, of: None
) -> list[Damage]:
    """What has changed since it was written; an empty list for a sound lake.

    `report` receives the number of episodes done and the total.
    """
    with lake.storage.lock(alone=False):
        found = [damage for table in lake.tables.values() for damage in table.verify()]
        found += _films(lake)
        found += verify_windows(lake.storage)
        try:
            found += _episodes(lake, report)
        except Sim2RealError as error:
            found.append(Damage(file=lake.uri, message=str(error)))
    return found


def _films(lake: Lake) -> Iterator[Damage]:
    for name in lake.storage.names("videos"):
        stem = name.removeprefix("videos/").removesuffix(".mp4")
        if lake.storage.digest(name) != stem:
            yield Damage(file=name, message="has changed since it was written")


def _episodes(lake: Lake, report: Callable[[int, int], None]) -> Iterator[Damage]:
    ids = lake.query("select distinct id from episodes order by id")["id"].to_pylist()
    for begin in range(0, len(ids), _AT_ONCE):
        chosen = ids[begin : begin + _AT_ONCE]
        try:
            for _ in lake.read(chosen):
                pass
        except Sim2RealError:
            yield from _one_by_one(lake, chosen)
        report(min(begin + _AT_ONCE, len(ids)), len(ids))


def _one_by_one(lake: Lake, ids: list[str]) -> Iterator[Damage]:
    for id_ in ids:
        try:
            lake.get(id_)
        except Sim2RealError as error:
            yield Damage(file=f"episode {id_}", message=str(error))
