"""What sim2real notes beside a LeRobot data set it writes, for which LeRobot has no place.

`meta/sim2real.json` holds each episode's provenance, outcome and start, and the name, unit, rate
and shape of each channel. Without it the data set is one like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim2real.data.formats.lerobot.files import count_at, read_json, text_at
from sim2real.data.provenance import Provenance
from sim2real.errors import Sim2RealError, number_at, table_at

NOTES_FILE = "meta/sim2real.json"


@dataclass(frozen=True, kw_only=True)
class ChannelNote:
    """What sim2real notes about a channel; None where the data set itself says it."""

    name: str
    unit: str = ""
    stated_hz: float | None = None
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Note:
    """What sim2real notes about one episode it wrote."""

    id: str
    provenance: Provenance
    outcome: str
    start_s: float
    layout: Mapping[str, Any]
    where: str

    def channel(self, feature: str) -> ChannelNote:
        """What is noted about the channel a feature holds."""
        entry = table_at(self.layout.get(feature), f"{self.where}: feature {feature}")
        shape = entry.get("shape", [])
        if not isinstance(shape, list):
            raise Sim2RealError(f"{self.where}: shape of {feature} must be a list")
        return ChannelNote(
            name=text_at(entry.get("name"), f"{self.where}: name of {feature}"),
            unit=text_at(entry.get("unit", ""), f"{self.where}: unit of {feature}"),
            stated_hz=number_at(entry.get("stated_hz", 0.0), f"{self.where}: rate of {feature}"),
            shape=tuple(count_at(n, f"{self.where}: shape of {feature}") for n in shape),
        )


@dataclass(frozen=True, kw_only=True)
class Notes:
    """`meta/sim2real.json`: what LeRobot has no place for."""

    file: Path
    layouts: list[Any]
    episodes: list[Any]

    @classmethod
    def load(cls, folder: Path) -> Notes | None:
        """The notes beside a data set; None for one that sim2real did not write."""
        file = folder / NOTES_FILE
        if not file.exists():
            return None
        data = table_at(read_json(file), str(file))
        layouts, episodes = data.get("layouts"), data.get("episodes")
        if not isinstance(layouts, list) or not isinstance(episodes, list):
            raise Sim2RealError(f"{file}: layouts and episodes must be lists")
        return cls(file=file, layouts=layouts, episodes=episodes)

    def note(self, index: int) -> Note | None:
        """What is noted about an episode; None for one that was added later by other software."""
        where = f"{self.file}: episode {index}"
        if index >= len(self.episodes):
            return None
        entry = table_at(self.episodes[index], where)
        layout = count_at(entry.get("layout", 0), f"{where}: layout")
        if layout >= len(self.layouts):
            raise Sim2RealError(f"{where}: there is no layout {layout}")
        return Note(
            id=text_at(entry.get("id"), f"{where}: id"),
            provenance=Provenance.from_dict(table_at(entry.get("provenance"), where)),
            outcome=text_at(entry.get("outcome", ""), f"{where}: outcome"),
            start_s=number_at(entry.get("start_s", 0.0), f"{where}: start_s"),
            layout=table_at(self.layouts[layout], f"{self.file}: layout {layout}"),
            where=where,
        )
