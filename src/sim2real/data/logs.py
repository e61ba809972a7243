"""Logs of a robot as episodes, whatever they are kept in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from sim2real.data.episode import Episode
from sim2real.data.formats import holds_recordings, read_episodes
from sim2real.data.formats.channel_map import ChannelMap
from sim2real.data.lake import Lake
from sim2real.data.provenance import Origin, Provenance
from sim2real.errors import Sim2RealError

Logs: TypeAlias = Iterable[Episode | Path | str] | Path | str
"""Episodes, or where they are kept."""


def read_logs(logs: Logs, *, channels: ChannelMap | Path | str | None = None) -> list[Episode]:
    """The episodes of recordings, folders of them, lakes and files of other formats.

    In the order they were made where all of them say when, else in the order of the names; one that
    is named twice is one. Episodes stay as they are. Files of columns may need a map of their
    `channels`. No episode at all is a `Sim2RealError`.
    """
    named = ChannelMap.load(channels) if isinstance(channels, Path | str) else channels
    by_id: dict[str, Episode] = {}
    for log in [logs] if isinstance(logs, Path | str) else logs:
        found = [log] if isinstance(log, Episode) else _read(str(log), named)
        by_id |= {episode.id: episode for episode in found}
    if not by_id:
        raise Sim2RealError("there are no logs: give recordings, folders of recordings, or lakes")
    episodes = list(by_id.values())
    if all(episode.provenance.recorded for episode in episodes):
        episodes.sort(key=lambda episode: episode.provenance.recorded)
    return episodes


def _read(text: str, channels: ChannelMap | None) -> Iterator[Episode]:
    if not text:
        raise Sim2RealError("the path of a log must not be empty")
    path = Path(text)
    if "://" in text or (path / "episodes").is_dir():
        lake = Lake.open(text)
        ids = [row["id"] for row in lake.query("select id from episodes").to_pylist()]
        return lake.read(ids)
    if not path.exists():
        raise Sim2RealError(f"no such log: {text}")
    # Recordings name their own channels, also beside files of columns that do not.
    named = None if holds_recordings(path) else channels
    return read_episodes(path, base=Provenance(kind=Origin.REAL), channels=named)
