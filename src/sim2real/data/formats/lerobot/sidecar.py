"""The sidecar file `meta/sim2real.json` of a LeRobot data set that sim2real wrote.

It holds what LeRobot has no place for: each episode's provenance, outcome and start, and the name,
unit, rate and shape of each channel. Without it the data set is like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sim2real.data.provenance import Provenance
from sim2real.errors import Sim2RealError, table_at
from sim2real.files import read_json
from sim2real.plain import Count, PlainData, of_plain

SIDECAR = "meta/sim2real.json"


@dataclass(frozen=True, kw_only=True)
class ChannelEntry:
    """What the sidecar says about a channel; None where the data set itself says it."""

    name: str
    unit: str = ""
    stated_hz: float | None = None
    shape: tuple[Count, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class EpisodeEntry:
    """What the sidecar says about an episode."""

    id: str
    provenance: Provenance
    outcome: str = ""
    start_s: float = 0.0
    layout: Mapping[str, ChannelEntry]
    """Entry of each feature that is a channel."""


@dataclass(frozen=True, kw_only=True)
class Sidecar(PlainData, lenient=True):
    """The content of the sidecar file."""

    file: Path
    layouts: list[object]
    episodes: list[object]

    @classmethod
    def load(cls, folder: Path) -> Sidecar | None:
        """The sidecar of a data set; None if sim2real did not write it."""
        file = folder / SIDECAR
        if not file.exists():
            return None
        data = table_at(read_json(file), str(file))
        return cls.from_dict({**data, "file": str(file)}, str(file))

    def episode(self, index: int) -> EpisodeEntry | None:
        """The entry of an episode; None if other software added the episode later."""
        where = f"{self.file}: episode {index}"
        if index >= len(self.episodes):
            return None
        entry = table_at(self.episodes[index], where)
        layout = entry.get("layout", 0)
        if not isinstance(layout, int) or not 0 <= layout < len(self.layouts):
            raise Sim2RealError(f"{where}: there is no such layout")
        return of_plain(EpisodeEntry, {**entry, "layout": self.layouts[layout]}, where)
