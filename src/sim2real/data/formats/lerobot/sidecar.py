"""The sidecar file `meta/sim2real.json` of a LeRobot data set that sim2real wrote.

It holds what LeRobot has no place for: each episode's provenance, outcome and start, and the name,
unit, rate and shape of each channel. Without it the data set is like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sim2real.data.formats.lerobot.files import count_at, read_json, text_at
from sim2real.data.provenance import Provenance
from sim2real.errors import Sim2RealError, number_at, table_at

SIDECAR = "meta/sim2real.json"


@dataclass(frozen=True, kw_only=True)
class ChannelEntry:
    """What the sidecar says about a channel; None where the data set itself says it."""

    name: str
    unit: str = ""
    stated_hz: float | None = None
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class EpisodeEntry:
    """What the sidecar says about an episode."""

    id: str
    provenance: Provenance
    outcome: str
    start_s: float
    layout: Mapping[str, object]
    """Entry of each feature that is a channel."""
    where: str
    """File and episode, for messages."""

    def channel(self, feature: str) -> ChannelEntry:
        """What the sidecar says about the channel in a feature."""
        entry = table_at(self.layout.get(feature), f"{self.where}: feature {feature}")
        shape = entry.get("shape", [])
        if not isinstance(shape, list):
            raise Sim2RealError(f"{self.where}: shape of {feature} must be a list")
        return ChannelEntry(
            name=text_at(entry.get("name"), f"{self.where}: name of {feature}"),
            unit=text_at(entry.get("unit", ""), f"{self.where}: unit of {feature}"),
            stated_hz=number_at(entry.get("stated_hz", 0.0), f"{self.where}: rate of {feature}"),
            shape=tuple(count_at(n, f"{self.where}: shape of {feature}") for n in shape),
        )


@dataclass(frozen=True, kw_only=True)
class Sidecar:
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
        layouts, episodes = data.get("layouts"), data.get("episodes")
        if not isinstance(layouts, list) or not isinstance(episodes, list):
            raise Sim2RealError(f"{file}: layouts and episodes must be lists")
        return cls(file=file, layouts=layouts, episodes=episodes)

    def episode(self, index: int) -> EpisodeEntry | None:
        """The entry of an episode; None if other software added the episode later."""
        where = f"{self.file}: episode {index}"
        if index >= len(self.episodes):
            return None
        entry = table_at(self.episodes[index], where)
        layout = count_at(entry.get("layout", 0), f"{where}: layout")
        if layout >= len(self.layouts):
            raise Sim2RealError(f"{where}: there is no layout {layout}")
        return EpisodeEntry(
            id=text_at(entry.get("id"), f"{where}: id"),
            provenance=Provenance.from_dict(table_at(entry.get("provenance"), where)),
            outcome=text_at(entry.get("outcome", ""), f"{where}: outcome"),
            start_s=number_at(entry.get("start_s", 0.0), f"{where}: start_s"),
            layout=table_at(self.layouts[layout], f"{self.file}: layout {layout}"),
            where=where,
        )
