"""Episodes of a lake: exported to other formats, checked and repaired."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sim2real.data.check import LogFault, check_episode, repair_episode
from sim2real.data.episode import Episode
from sim2real.data.formats import write_episodes
from sim2real.data.lake import Lake, quoted
from sim2real.data.mixture import Mixture, Part
from sim2real.errors import Sim2RealError
from sim2real.phases import Report
from sim2real.plain import PlainData


@dataclass(frozen=True, kw_only=True)
class Exported(PlainData):
    """What left a lake."""

    out: Path
    dataset: str
    """Id of the data set that it is on record as."""
    episodes: tuple[str, ...]


def export_episodes(
    lake: Lake,
    out: Path,
    *,
    ids: Sequence[str] = (),
    where: str = "",
    format: str = "lerobot",
    rate_hz: float = 0.0,
    clock: str = "",
    rename: Mapping[str, str] | None = None,
    purpose: Literal["training", "evaluation", "sharing"] = "training",
    version: int | None = None,
    report: Report = lambda done, of: None,
) -> Exported:
    """Write the episodes of `ids`, or of an SQL condition, to another format; see `write_episodes`.

    The people in them must have agreed to the `purpose`. What left is recorded in the lake before
    it leaves, so that no copy is unknown. `rename` gives channels other names.
    """
    if bool(ids) == bool(where):
        raise Sim2RealError("choose episodes either by id or by a condition (--where)")
    chosen = [lake.resolve(start) for start in ids]
    condition = where or f"id in ({quoted(chosen)})"
    part = Part(name="all", select=f"select id from episodes where {condition}", weight=1.0)
    if out.exists():
        raise Sim2RealError(f"{out} exists already; choose a new name")
    mixture = Mixture(name=f"export {out.absolute()}", parts=(part,), purpose=purpose)
    manifest = mixture.resolve(lake, version=version)

    def episodes() -> Iterator[Episode]:
        for done, episode in enumerate(lake.read(manifest.ids), 1):
            yield _renamed(episode, rename or {})
            report(done, len(manifest.ids))

    write_episodes(out, episodes(), format=format, rate_hz=rate_hz, clock=clock)
    return Exported(out=out, dataset=manifest.id, episodes=tuple(manifest.ids))


def _renamed(episode: Episode, names: Mapping[str, str]) -> Episode:
    mine = {old: new for old, new in names.items() if old in episode.channels}
    if not mine:
        return episode
    channels = {mine.get(name, name): value for name, value in episode.channels.items()}
    if len(channels) < len(episode.channels):
        raise Sim2RealError(f"two channels of episode {episode.id} would have the same name")
    said = ", ".join(f"{old} to {new}" for old, new in mine.items())
    return episode.derive(f"rename {said}", channels=channels)


@dataclass(frozen=True, kw_only=True)
class Checked(
    PlainData,
    also=("repaired?=repaired.id", "process?=repaired.provenance.process"),
):
    """What a check found in an episode."""

    episode: str
    """Its id."""
    source: str
    """Where it comes from."""
    findings: tuple[LogFault, ...]
    repaired: Episode | None
    """The episode with the fixes, where it was repaired."""

    @property
    def bad(self) -> bool:
        """Whether anything is worse than a note."""
        return any(finding.severity != "note" for finding in self.findings)


def check_episodes(
    episodes: Iterable[tuple[str, Episode]], *, repair_in: str | Path = ""
) -> Iterator[Checked]:
    """Check episodes, each with where it comes from, one after the other.

    `repair_in` is the address of a lake where an episode that can be repaired is kept, and a new
    one with the fixes that names it.
    """
    for source, episode in episodes:
        findings = check_episode(episode)
        fixed = None
        if repair_in and any(finding.repairable for finding in findings):
            fixed = repair_episode(episode, findings)
            Lake.create(repair_in).append([episode, fixed])
        yield Checked(episode=episode.id, source=source, findings=tuple(findings), repaired=fixed)
