"""Episodes in a folder of two Arrow files: equal episodes give equal bytes, so that they travel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sim2real.data.arrow_rows import EPISODES, SIGNALS, episode_rows, read_episode, signal_rows
from sim2real.data.episode import Episode
from sim2real.errors import explaining

_EPISODES, _SIGNALS = "episodes.arrow", "signals.arrow"
_ADDED = "added"
"""Column of when an episode came into a lake: here it is in none."""


@dataclass(frozen=True)
class EpisodeFolder:
    """A folder that holds episodes and nothing else."""

    path: Path

    @property
    def there(self) -> bool:
        """Whether one was written."""
        return (self.path / _EPISODES).is_file()

    def write(self, episodes: Iterable[Episode]) -> None:
        """Write episodes, one after the other; films are files of their own."""
        self.path.mkdir(parents=True, exist_ok=True)
        kept = EPISODES.remove(EPISODES.get_field_index(_ADDED))
        with (
            explaining(f"cannot write {self.path}", OSError),
            pa.OSFile(str(self.path / _EPISODES), "wb") as rows,
            pa.ipc.new_file(rows, kept) as about,
            pa.OSFile(str(self.path / _SIGNALS), "wb") as samples,
            pa.ipc.new_file(samples, SIGNALS) as signals,
        ):
            for episode in episodes:
                for video in episode.videos.values():
                    (self.path / video.file).write_bytes(video.mp4)
                about.write_table(episode_rows([episode]).drop_columns(_ADDED))
                signals.write_table(signal_rows([episode]).combine_chunks())

    def read(self) -> Iterator[Episode]:
        """The episodes in their order; a damaged one is a `Sim2RealError`."""

        def film(name: str) -> bytes:
            return (self.path / name).read_bytes()

        with explaining(f"{self.path} holds no episodes", OSError, pa.ArrowException):
            with pa.memory_map(str(self.path / _EPISODES)) as file:
                rows = pa.ipc.open_file(file).read_all().to_pylist()
            with pa.memory_map(str(self.path / _SIGNALS)) as file:
                signals = pa.ipc.open_file(file)
                for number, row in enumerate(rows):
                    batch = pa.Table.from_batches([signals.get_batch(number)])
                    yield read_episode(row, batch, film)
