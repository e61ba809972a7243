"""Logs that are named on the command line, whatever they are kept in."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real.errors import Sim2RealError

if TYPE_CHECKING:
    from sim2real.data import Episode
    from sim2real.data.formats.channelmap import ChannelMap

_RECORDING = ".arrow"


def read_logs(paths: Sequence[str], *, channels: Path | None = None) -> list[Episode]:
    """Episodes of recordings, folders of recordings, lakes and files of other formats.

    In the order they were made where all of them say when, else in the order of the names. Files
    of columns may need a map of their `channels`.
    """
    from sim2real.data.formats.channelmap import ChannelMap

    named = ChannelMap.load(channels) if channels is not None else None
    by_id: dict[str, Episode] = {}
    for text in paths:
        # A recording that is named twice, by itself and by its folder, is one recording.
        by_id |= {episode.id: episode for episode in _read(text, named)}
    found = list(by_id.values())
    times = [episode.provenance.recorded for episode in found]
    if all(times):
        found = [episode for _, episode in sorted(zip(times, found, strict=True), key=_first)]
    if not found:
        raise Sim2RealError("there is no log: name recordings, folders of them, or lakes")
    return found


def _first(pair: tuple[str, Episode]) -> str:
    return pair[0]


def _read(text: str, channels: ChannelMap | None) -> list[Episode]:
    from sim2real.data import Lake
    from sim2real.data.formats import read_episodes
    from sim2real.data.provenance import Origin, Provenance
    from sim2real.robot import read_recording

    if not text:
        raise Sim2RealError("'' names no log")
    path = Path(text)
    if path.suffix == _RECORDING:
        return [_told(path, read_recording(path))]
    if path.is_dir():
        recordings = sorted(path.rglob(f"*{_RECORDING}"))
        # A run that was refused or killed at once leaves nothing to read.
        whole = [recording for recording in recordings if recording.stat().st_size > 0]
        if whole:
            return [_told(recording, read_recording(recording)) for recording in whole]
    if "://" in text or (path / "episodes").is_dir():
        lake = Lake.open(text)
        ids = [row["id"] for row in lake.query("select id from episodes").to_pylist()]
        return list(lake.read(ids))
    if not path.exists():
        raise Sim2RealError(f"no such log: {text}")
    return list(read_episodes(path, base=Provenance(kind=Origin.REAL), channels=channels))


def _told(path: Path, episode: Episode) -> Episode:
    """The episode; that its recording ends early is said."""
    from sim2real.robot import RECOVERED

    if episode.provenance.process == RECOVERED:
        sys.stderr.write(f"{path} is cut off after {episode.duration_s:.3g} s\n")
    return episode
