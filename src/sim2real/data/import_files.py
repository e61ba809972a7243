"""Episodes on their way into a lake, read here or by an executor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sim2real.data.episode import Episode
from sim2real.data.episode_folder import EpisodeFolder
from sim2real.data.formats import read_episodes, separate
from sim2real.data.formats.channel_map import ChannelMap
from sim2real.data.lake import Lake
from sim2real.data.provenance import Provenance
from sim2real.errors import Sim2RealError
from sim2real.phases import Report
from sim2real.plain import PlainData
from sim2real.scale import Shard, ShardEvent, all_of, open_store

_EPISODES_PER_COMMIT = 32


@dataclass(frozen=True, kw_only=True)
class Imported(PlainData):
    """What came into a lake."""

    lake: str
    version: int
    """Of the lake, after it."""
    episodes: tuple[str, ...]
    """Ids of all episodes that were read, including known ones."""
    new: int
    """How many of them the lake did not know."""
    problems: tuple[str, ...]
    """Why files, or the rest of one, were left out."""


def import_episodes(
    paths: Sequence[Path | str],
    lake: str | Path,
    *,
    base: Provenance,
    format: str = "",
    channels: ChannelMap | Path | str | None = None,
    rate_hz: float = 0.0,
    executor: str = "",
    workers: int = 0,
    store: str = "",
    report: Report = lambda done, of: None,
) -> Imported:
    """Import files and folders into the lake at an address; the lake is created if needed.

    See `read_episodes` for the options. What is there already is skipped. What cannot be read is a
    problem and left out; if it is the only path, it is a `Sim2RealError` and no lake is made. With
    an `executor`, files are read side by side; what they hold is kept in the `store`, and the lake
    gets it in the order of the paths, as without.
    """
    if not paths:
        raise Sim2RealError("name a file or a folder to import")
    found = [Path(path) for path in paths]
    if not executor:
        known = channels if isinstance(channels, ChannelMap | None) else ChannelMap.load(channels)
        logs = (
            read_episodes(path, base=base, format=format, channels=known, rate_hz=rate_hz)
            for path in found
        )
        return _imported(lake, logs, len(found), report)
    if isinstance(channels, ChannelMap):
        raise Sim2RealError("with an executor, name the file of the channel map")
    with open_store(store, executor) as keep, TemporaryDirectory(prefix="sim2real-import-") as made:
        shards = [
            _shard(one, base=base, format=format, channels=channels, rate_hz=rate_hz)
            for path in found
            for one in _separate(path, format or ("csv" if channels is not None else ""))
        ]

        def told(event: ShardEvent) -> None:
            report(event.ended, len(shards))

        done = all_of(shards, executor=executor, workers=workers, store=keep, report=told)
        read = (
            _episodes_of(keep.fetch(one, Path(made) / one.key), one.result["problem"])
            for one in done
        )
        return _imported(lake, read, len(shards), lambda done, of: None)


def read_part(
    path: str, folder: Path, *,
    source: str, base: dict[str, Any], format: str, rate_hz: float, channels: str = "",
) -> dict[str, object]:  # fmt: skip
    """Write the episodes of a file, which came from `source`, into a folder; what went wrong."""
    problems = []

    def readable(there: Path) -> Iterator[Episode]:
        try:
            yield from read_episodes(
                there,
                base=Provenance.from_dict(base),
                format=format,
                channels=ChannelMap.load(channels) if channels else None,
                rate_hz=rate_hz,
            )
        except Sim2RealError as error:
            problems.append(str(error).replace(str(there), source))

    with TemporaryDirectory(prefix="sim2real-read-") as made:
        # Channel maps choose files by their paths, and provenance names them.
        there = Path(made, *Path(source).absolute().parts[1:])
        there.parent.mkdir(parents=True)
        there.symlink_to(Path(path).absolute())
        EpisodeFolder(folder).write(readable(there))
    return {"problem": "".join(problems)}


def _shard(
    path: Path, *, base: Provenance, format: str, channels: Path | str | None, rate_hz: float
) -> Shard:
    given = {"source": str(path), "base": base.to_dict(), "format": format, "rate_hz": rate_hz}
    files = {"path": path} | ({} if channels is None else {"channels": Path(channels)})
    return Shard.of(read_part, inputs=given, files=files, name=path.name)


def _separate(path: Path, format: str) -> list[Path]:
    """Parts of a path that can be read apart; of one without any, the error is told when read."""
    if not path.exists():
        raise Sim2RealError(f"no such file or folder: {path}")
    try:
        return separate(path, format)
    except Sim2RealError:
        return [path]


def _episodes_of(folder: Path, problem: str) -> Iterator[Episode]:
    yield from EpisodeFolder(folder).read()
    if problem:
        raise Sim2RealError(problem)


def _imported(
    lake: str | Path, logs: Iterable[Iterator[Episode]], count: int, report: Report
) -> Imported:
    """Append what was read to a lake; no lake is made for a single file that cannot be read."""
    logs = iter(logs)
    begin: list[Episode] = []
    if count == 1:
        only = next(logs)
        begin = list(islice(only, 1))
        logs = iter([chain(begin, only)])
    into = Lake.create(lake)
    before = len(into)
    ids: list[str] = []
    problems = []
    for number, episodes in enumerate(logs, 1):
        try:
            _append(into, episodes, ids)
        except Sim2RealError as error:
            problems.append(str(error))
        report(number, count)
    return Imported(
        lake=str(lake),
        version=into.version,
        episodes=tuple(ids),
        new=len(into) - before,
        problems=tuple(problems),
    )


def _append(lake: Lake, episodes: Iterable[Episode], ids: list[str]) -> None:
    """Append in batches; what came before an error is kept."""
    batch: list[Episode] = []
    try:
        for episode in episodes:
            batch.append(episode)
            if len(batch) == _EPISODES_PER_COMMIT:
                batch, full = [], batch
                ids += lake.append(full)
    finally:
        ids += lake.append(batch)
