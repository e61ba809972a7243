"""Training sets of simulated and real episodes, mixed in an exact ratio.

A mixture is a few SQL selections with weights. Resolved against a version of a lake it becomes a
manifest, which lists its episodes and always gives the same batches.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from sim2real.arrays import Ints
from sim2real.data.lake import Lake, ids_table, quoted
from sim2real.errors import Sim2RealError, number_at
from sim2real.files import read_json, write_json
from sim2real.plain import PlainData

_SHARE_STEPS = 100_000


@dataclass(frozen=True, kw_only=True)
class Part:
    """One ingredient of a mixture."""

    name: str
    select: str
    """SQL that selects the ids: "select id from episodes where kind = 'real'"."""
    weight: int | float  # the id of a manifest tells 1 from 1.0
    """Share of each batch, relative to the other parts' weights."""

    def __post_init__(self) -> None:
        if number_at(self.weight, f"the weight of part {self.name!r}") <= 0:
            raise Sim2RealError(f"the weight of part {self.name!r} must be positive")


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """Selections with weights, and how batches are drawn from them."""

    name: str
    parts: tuple[Part, ...]
    by: Literal["episode", "frame"] = "episode"
    """What the ratio counts: whole episodes, or frames, which are samples of the clock channel."""
    clock: str = ""
    """Channel whose samples are the frames; needed for `by = "frame"`."""
    seed: int = 0
    """Seed of the order."""
    purpose: str = "training"
    """What the people in the episodes must have agreed to."""

    def __post_init__(self) -> None:
        if not self.parts or len({part.name for part in self.parts}) < len(self.parts):
            raise Sim2RealError(f"mixture {self.name!r} needs parts with different names")
        if self.by not in ("episode", "frame"):
            raise Sim2RealError(f"a mixture must be by 'episode' or by 'frame', not {self.by!r}")
        if self.by == "frame" and not self.clock:
            raise Sim2RealError("a mixture by frame needs a clock channel")
        if not 0 <= self.seed < 2**63:
            raise Sim2RealError(f"a seed must be at least 0 and below 2^63, not {self.seed}")

    def resolve(self, lake: Lake, *, version: int | None = None) -> Manifest:
        """The manifest at a version of the lake, the newest if none is given.

        An episode in two parts, a part without episodes, or an episode whose people have not
        agreed is a `Sim2RealError`. The lake's `datasets` keep the manifest.
        """
        at = lake.version if version is None else version
        chosen: list[list[str]] = []
        seen: dict[str, str] = {}
        for part in self.parts:
            answer = lake.query(part.select, version=at)
            if answer.column_names[:1] != ["id"]:
                raise Sim2RealError(f"part {part.name!r} must select the column id first")
            ids = sorted({str(id_) for id_ in answer["id"].to_pylist()})
            if not ids:
                raise Sim2RealError(f"part {part.name!r} selects no episodes")
            for unknown in sorted(set(ids) - set(lake.present(ids))):
                raise Sim2RealError(f"part {part.name!r} selects {unknown!r}, which is no episode")
            for id_ in ids:
                if seen.setdefault(id_, part.name) != part.name:
                    raise Sim2RealError(f"episode {id_} is in {seen[id_]!r} and in {part.name!r}")
            chosen.append(ids)
        lake.permit(list(seen), self.purpose)
        frames = frame_counts(lake, list(seen), self.clock) if self.clock else {}
        manifest = Manifest(
            name=self.name,
            lake=lake.storage.uri,
            version=at,
            by=self.by,
            clock=self.clock,
            seed=self.seed,
            purpose=self.purpose,
            parts=tuple(
                MixtureShare(
                    **asdict(part), ids=tuple(ids), frames=tuple(frames.get(i, 0) for i in ids)
                )
                for part, ids in zip(self.parts, chosen, strict=True)
            ),
        )
        manifest.record(lake)
        return manifest


@dataclass(frozen=True, kw_only=True)
class MixtureShare(Part):
    """A part and the episodes it selected."""

    ids: tuple[str, ...]
    frames: tuple[int, ...]
    """Samples of the clock channel in each episode; zeros without a clock."""


@dataclass(frozen=True, kw_only=True)
class MixtureBatch:
    """One shuffled batch; all arrays are as long as the batch."""

    part: Ints
    """Index of the part each item is from."""
    episode: Ints
    """Index of the episode in the manifest's `ids`."""
    frame: Ints
    """Index of the frame in the episode; 0 in a mixture by episode."""


@dataclass(frozen=True, kw_only=True)
class Manifest(PlainData):
    """What is in a mixture: enough to draw the same batches again."""

    name: str
    lake: str
    version: int
    by: str
    clock: str
    seed: int
    purpose: str
    parts: tuple[MixtureShare, ...]

    def __post_init__(self) -> None:
        if not self.parts or self.by not in ("episode", "frame"):
            raise Sim2RealError("a manifest needs parts, and must be by 'episode' or by 'frame'")
        for part in self.parts:
            if not part.ids or len(part.ids) != len(part.frames):
                raise Sim2RealError(f"part {part.name!r} of the manifest has no episodes")
            if self.by == "frame" and sum(part.frames) < 1:
                raise Sim2RealError(f"part {part.name!r} of the manifest has no frames")

    @property
    def id(self) -> str:
        """Hash of the content."""
        text = json.dumps(self.to_dict(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def ids(self) -> list[str]:
        """Episodes of all parts, in the order that batches index."""
        return [id_ for part in self.parts for id_ in part.ids]

    def batches(self, size: int, *, start: int = 0) -> Iterator[MixtureBatch]:
        """Endless batches from number `start` on, so that interrupted training can go on."""
        while True:
            yield self.batch(start, size)
            start += 1

    def batch(self, number: int, size: int) -> MixtureBatch:
        """The batch of that number, a function of the manifest, the number and the size alone.

        After any number of batches each part's count is within one of its exact share. By episode,
        a part is shuffled anew each time it is used up; by frame, each frame of a part is equally
        likely.
        """
        if size < 1 or not 0 <= number < 2**47:
            raise Sim2RealError(
                f"a batch needs a size above 0 and a number from 0 on, not {size}, {number}"
            )
        before, after = self._counts(number * size), self._counts((number + 1) * size)
        parts, episodes, frames = [], [], []
        first = 0
        for k, part in enumerate(self.parts):
            count = int(after[k] - before[k])
            if self.by == "episode":
                chosen = self._in_turn(k, int(before[k]), count)
                frame: Ints = np.zeros(count, dtype=np.int64)
            else:
                ends = np.cumsum(part.frames)
                place = self._random(k, number).integers(int(ends[-1]), size=count)
                chosen = np.searchsorted(ends, place, side="right")
                frame = place - (ends - np.asarray(part.frames))[chosen]
            parts.append(np.full(count, k))
            episodes.append(first + chosen)
            frames.append(frame)
            first += len(part.ids)
        order = self._random(len(self.parts), number).permutation(size)
        return MixtureBatch(
            part=np.concatenate(parts)[order],
            episode=np.concatenate(episodes)[order],
            frame=np.concatenate(frames)[order],
        )

    def record(self, lake: Lake) -> None:
        """Keep the manifest in the lake's `datasets`, unless it is there."""
        if not lake.tables["datasets"].known("id", [self.id]):
            row = {
                "id": self.id,
                "name": self.name,
                "version": self.version,
                "episodes": self.ids,
                "manifest": json.dumps(self.to_dict(), sort_keys=True),
            }
            lake.tables["datasets"].append([row])

    def save(self, path: Path | str) -> None:
        """Write the manifest as JSON."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: Path | str) -> Manifest:
        """The manifest in a file; a malformed one is a `Sim2RealError`."""
        return cls.from_dict(read_json(path), f"{path}")

    def _counts(self, items: int) -> Ints:
        """How many of the first `items` items are from each part."""
        turns = _turns(tuple(part.weight for part in self.parts))
        rest = turns[items % len(turns) - 1] if items % len(turns) else 0
        return np.asarray(items // len(turns) * turns[-1] + rest)

    def _in_turn(self, part: int, begin: int, count: int) -> Ints:
        size = len(self.parts[part].ids)
        places = np.arange(begin, begin + count)
        chosen = np.empty(count, dtype=np.int64)
        for lap in np.unique(places // size):
            order = self._random(part, int(lap)).permutation(size)
            inside = places // size == lap
            chosen[inside] = order[places[inside] % size]
        return chosen

    def _random(self, stream: int, number: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=[self.seed, (stream << 48) + number]))


@cache
def _turns(weights: tuple[float, ...]) -> Ints:
    """Items of each part after 1, 2, … items, (items, parts), over one period of the weights.

    Balinski and Young's quota method: the next item goes to the part that has received least for
    its weight, among those not ahead of their exact share. A count never falls, and is always
    within one of the share. Shares are rounded to a hundred thousandth.
    """
    shares = np.array(weights) / max(weights)
    parts = np.maximum(np.round(shares / shares.sum() * _SHARE_STEPS), 1).astype(np.int64)
    parts //= np.gcd.reduce(parts)
    total = int(parts.sum())
    counts = np.zeros(len(parts), dtype=np.int64)
    found = np.empty((total, len(parts)), dtype=np.int64)
    for item in range(total):
        behind = counts * total < parts * (item + 1)
        worth = np.where(behind, parts / (counts + 1), -1.0)
        counts[int(np.argmax(worth))] += 1
        found[item] = counts
    return found


def frame_counts(lake: Lake, ids: list[str], clock: str) -> dict[str, int]:
    """Samples of the clock channel in each episode; none in one of them is a `Sim2RealError`."""
    found = lake.query(
        "select episode, len(times) as n from stored_signals semi join chosen"
        f" on stored_signals.episode = chosen.id where channel = {quoted([clock])}",
        chosen=ids_table(ids),
    )
    frames = dict(zip(found["episode"].to_pylist(), found["n"].to_pylist(), strict=True))
    for id_ in ids:
        if not frames.get(id_):
            raise Sim2RealError(f"episode {id_} has no samples of the clock channel {clock!r}")
    return frames
