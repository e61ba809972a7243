"""Which episodes an analysis takes from where logs are kept, and why it leaves others out.

Logs are named by a path (a recording, a folder of them, a lake, a file of another format), by the
id of an episode in the lake, or by a condition in SQL: `outcome = 'failure'` asks the lake of
`default_lake`, `lakes/arm?outcome = 'failure'` that in a folder or at an address.
"""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from sim2real.data.consent import SCOPES, Consent
from sim2real.data.episode import Episode
from sim2real.data.episode_folder import EpisodeFolder
from sim2real.data.formats import holds_recordings, read_episodes
from sim2real.data.formats.channel_map import ChannelMap
from sim2real.data.lake import Lake
from sim2real.data.provenance import Origin, Provenance
from sim2real.errors import Sim2RealError, nearest
from sim2real.files import default_lake

Logs: TypeAlias = "Selection | Iterable[Episode | Path | str] | Path | str"
"""Episodes, or where they are kept."""

_LOG = logging.getLogger(__name__)
_ID = re.compile(r"[0-9a-f]{6,32}")
_ABOUT_KIND = re.compile(r"\bkind\b")
_ABOUT_ROBOT = re.compile(r"\b(twin|robot|serial)\b")
_CONDITION = re.compile(r"[=<>]|\b(in|is|like|not|true)\b")
_LISTED = 5
"""Most episodes that a sentence names."""


@dataclass(frozen=True, kw_only=True)
class LeftOutEpisode:
    """An episode that was found and not taken."""

    episode: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The episodes that an analysis takes, in order."""

    episodes: tuple[Episode, ...]
    left_out: tuple[LeftOutEpisode, ...] = ()
    notes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    """Verdicts of lakes by the ids of episodes: current labels, else outcomes."""

    def verdict(self, episode: Episode) -> str:
        """'success', 'failure' or '': what people have said since, else what was recorded."""
        return self.labels.get(episode.id, episode.outcome)

    def __iter__(self) -> Iterator[Episode]:
        return iter(self.episodes)

    def __len__(self) -> int:
        return len(self.episodes)

    def __getitem__(self, place: int) -> Episode:
        return self.episodes[place]

    def save(self, folder: Path) -> Path:
        """Write its episodes into a folder, from which `select` gives them back as they are."""
        EpisodeFolder(folder).write(self.episodes)
        return folder

    def sentences(self) -> Iterator[str]:
        """What was taken, what was left out, and why."""
        kinds = Counter(str(episode.provenance.kind) for episode in self.episodes)
        taken = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        yield f"logs: {taken} episode{'s' if len(self.episodes) != 1 else ''}"
        reasons: dict[str, list[str]] = {}
        for one in self.left_out:
            reasons.setdefault(one.why, []).append(one.episode)
        for why, ids in reasons.items():
            named = ", ".join(id_[:8] for id_ in ids[:_LISTED])
            more = f" and {len(ids) - _LISTED} more" if len(ids) > _LISTED else ""
            yield f"left out: {named}{more}: {why}"
        yield from self.notes


def select(
    logs: Logs,
    *,
    purpose: str = "evaluation",
    twin: str = "",
    where: str = "",
    channels: ChannelMap | Path | str | None = None,
) -> Selection:
    """The episodes that logs name, as far as they fit each other, the twin and the purpose.

    Of an episode that was repaired, the repaired version is taken. Real and simulated episodes are
    kept apart: where there are both, the real ones are taken, unless a condition asks by `kind`.
    Episodes of another robot than that of the `twin` with that name, and episodes whose people have
    not agreed to the `purpose` ('training', 'evaluation' or 'sharing'), are left out; named one by
    one they are refused. `where` is a further condition in SQL on episodes that lie in lakes.

    No episode at all is a `Sim2RealError` that says why each was left out. A `Selection`, also one
    that was saved, is checked for nothing again.
    """
    if isinstance(logs, Selection):
        return logs
    if isinstance(logs, Path) and (saved := EpisodeFolder(logs)).there:
        return Selection(episodes=tuple(saved.read()))
    if purpose not in SCOPES:
        raise Sim2RealError(f"unknown purpose {purpose!r}{nearest(purpose, SCOPES)}")
    found: dict[str, _Candidate] = {}
    for log in [logs] if isinstance(logs, Path | str) else logs:
        for candidate in _candidates(log, where, channels):
            found.setdefault(candidate.id, candidate)
    if not found:
        raise Sim2RealError("there are no logs: give recordings, folders of recordings, or lakes")
    left_out: list[LeftOutEpisode] = []
    notes: list[str] = []
    candidates = list(found.values())
    for sieve in (_newest_versions, _one_kind, _one_robot, _permitted):
        refused, noted = sieve(candidates, twin, purpose)
        asked = next((c for c in candidates if c.id in refused and c.named), None)
        if asked is not None:
            raise Sim2RealError(f"episode {asked.id}: {refused[asked.id]}")
        left_out += [LeftOutEpisode(episode=id_, why=why) for id_, why in refused.items()]
        notes += noted
        candidates = [c for c in candidates if c.id not in refused]
    if not candidates:
        reasons = "; ".join(dict.fromkeys(one.why for one in left_out))
        raise Sim2RealError(f"none of {len(found)} episodes can be taken: {reasons}")
    selection = Selection(
        episodes=tuple(_in_order(_loaded(candidates))),
        left_out=tuple(left_out),
        notes=tuple(notes),
        labels={c.id: c.verdict for c in candidates if c.lake is not None},
    )
    if left_out or notes or any(c.episode is None for c in candidates):
        for line in selection.sentences():
            _LOG.info("%s", line)
    return selection


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """An episode that was named, in memory or still in its lake."""

    id: str
    provenance: Provenance
    episode: Episode | None = None
    lake: _OpenLake | None = None
    named: bool = False
    """Whether it was named by itself, not with others."""
    condition: str = ""
    """Condition in SQL that it was found by."""
    verdict: str = ""
    """In its lake."""


@dataclass(frozen=True)
class _OpenLake:
    lake: Lake

    @cached_property
    def granted(self) -> Mapping[str, Consent]:
        """Agreements in force, by participant."""
        return self.lake.consents()


def _candidates(
    log: Episode | Path | str, where: str, channels: ChannelMap | Path | str | None
) -> Iterator[_Candidate]:
    if isinstance(log, Episode):
        yield _Candidate(id=log.id, provenance=log.provenance, episode=log)
        return
    text = str(log)
    if not text:
        raise Sim2RealError("the path of a log must not be empty")
    path = Path(text)
    if not path.exists() and (asked := _asked_of_lake(text)) is not None:
        uri, condition, named = asked
        yield from _of_lake(uri, condition, named=named, where=where)
    elif "://" in text or (path / "episodes").is_dir():
        yield from _of_lake(text, "", named=False, where=where)
    elif not path.exists():
        raise Sim2RealError(f"no such log: {text}")
    else:
        if where:
            raise Sim2RealError(f"{text} is no lake: a condition in SQL needs one")
        # Recordings name their own channels, also beside files of columns that do not.
        named_channels = None if holds_recordings(path) else channels
        if isinstance(named_channels, Path | str):
            named_channels = ChannelMap.load(named_channels)
        base = Provenance(kind=Origin.REAL)
        for episode in read_episodes(path, base=base, channels=named_channels):
            yield _Candidate(id=episode.id, provenance=episode.provenance, episode=episode)


def _asked_of_lake(text: str) -> tuple[str, str, bool] | None:
    """(lake, condition in SQL, whether it names one episode) of a text that is no path."""
    uri, mark, condition = text.partition("?")
    if mark and uri and " " not in uri:
        return uri, condition, False
    if _ID.fullmatch(text):
        return default_lake(), text, True
    if " " in text and _CONDITION.search(text.lower()):
        return default_lake(), text, False
    return None


def _of_lake(uri: str, condition: str, *, named: bool, where: str) -> Iterator[_Candidate]:
    opened = _OpenLake(Lake.open(uri))
    if named:
        condition = f"id = '{opened.lake.resolve(condition)}'"
    both = " and ".join(f"({part})" for part in (condition, where) if part) or "true"
    tables = "episodes join verdicts using (id)"
    rows = opened.lake.query(f"select id, provenance, verdict from {tables} where {both}")
    if not rows.num_rows and (condition or where):
        raise Sim2RealError(f"no episode of {uri} fits {both}")
    for row in rows.to_pylist():
        yield _Candidate(
            id=row["id"],
            provenance=Provenance.from_dict(json.loads(row["provenance"])),
            lake=opened,
            named=named,
            condition="" if named else both,
            verdict=row["verdict"],
        )


Sieved: TypeAlias = tuple[dict[str, str], list[str]]
"""Why episodes are refused, by id, and what else a person should know."""


def _newest_versions(candidates: Sequence[_Candidate], twin: str, purpose: str) -> Sieved:
    """Broken originals go where their repaired version is there, too."""
    repaired = {
        parent: candidate.id
        for candidate in candidates
        if candidate.provenance.process.startswith("repair")
        for parent in candidate.provenance.parents
    }
    refused = {
        candidate.id: f"it was repaired: {repaired[candidate.id][:8]} is taken instead"
        for candidate in candidates
        if candidate.id in repaired and not candidate.named
    }
    return refused, []


def _one_kind(candidates: Sequence[_Candidate], twin: str, purpose: str) -> Sieved:
    """Simulated and generated episodes go where there are real ones, unless asked for."""
    free = [c for c in candidates if not (c.named or _ABOUT_KIND.search(c.condition.lower()))]
    kinds = Counter(c.provenance.kind for c in candidates)
    if len(kinds) < 2 or not free:
        return {}, []
    taken = Origin.REAL if kinds[Origin.REAL] else kinds.most_common(1)[0][0]
    return {
        c.id: f"it is {c.provenance.kind}, and {taken} ones are there; a condition on `kind` asks"
        " for both"
        for c in free
        if c.provenance.kind != taken
    }, []


def _one_robot(candidates: Sequence[_Candidate], twin: str, purpose: str) -> Sieved:
    """Episodes of another known robot go; what robot an episode is of may be unknown."""
    if not twin:
        return {}, []
    mine = {c.id for c in candidates if _robot_of(c.provenance, twin) == twin}
    refused, unknown = {}, []
    for c in candidates:
        if c.id in mine or _ABOUT_ROBOT.search(c.condition.lower()):
            continue
        if c.provenance.twin or (mine and c.provenance.robot):
            robot = c.provenance.twin or c.provenance.robot
            refused[c.id] = (
                f"it is of another robot, {robot!r}, and the twin is {twin!r}; if that is its"
                " former name, take it by a condition on `twin`"
            )
        else:
            unknown.append(c.id)
    notes = []
    if unknown:
        which = "1 episode does" if len(unknown) == 1 else f"{len(unknown)} episodes do"
        notes.append(f"{which} not say whether they are of {twin!r}; they are taken")
    serials = Counter(c.provenance.serial for c in candidates if c.id not in refused)
    if len(serials) > 1:
        listed = ", ".join(f"{name or 'unknown'} ({n})" for name, n in sorted(serials.items()))
        notes.append(f"the episodes are of {len(serials)} robots, by serial number: {listed}")
    return refused, notes


def _robot_of(provenance: Provenance, twin: str) -> str:
    """The twin's name if an episode states it as its twin, or, without one, as its robot."""
    return twin if twin in (provenance.twin or provenance.robot, provenance.robot) else ""


def _permitted(candidates: Sequence[_Candidate], twin: str, purpose: str) -> Sieved:
    """Episodes whose people have not agreed to the purpose go."""
    refused: dict[str, str] = {}
    for opened in {id(c.lake): c.lake for c in candidates if c.lake is not None}.values():
        ids = [c.id for c in candidates if c.lake is opened]
        refused |= opened.lake.refusals(ids, purpose)
    loose = [c for c in candidates if c.lake is None]
    beside = _OpenLake(Lake.open(default_lake())) if loose and _has_default_lake() else None
    if beside is not None:
        refused |= beside.lake.erased([c.episode for c in loose if c.episode is not None])
    for c in loose:
        granted = beside.granted if beside is not None and c.provenance.consent else {}
        reasons = (
            granted.get(consent.participant, consent).refusal(purpose)
            for consent in c.provenance.consent
        )
        why = next(filter(None, reasons), "")
        if why:
            refused[c.id] = why
    return refused, []


def _has_default_lake() -> bool:
    return (Path(default_lake()) / "episodes").is_dir()


def _loaded(candidates: Sequence[_Candidate]) -> Iterator[Episode]:
    """The episodes, those of a lake read together."""
    read: dict[str, Episode] = {}
    for opened in {id(c.lake): c.lake for c in candidates if c.lake is not None}.values():
        ids = [c.id for c in candidates if c.lake is opened]
        read |= {episode.id: episode for episode in opened.lake.read(ids)}
    for c in candidates:
        yield read[c.id] if c.episode is None else c.episode


def _in_order(episodes: Iterable[Episode]) -> list[Episode]:
    """In the order they were made where all of them say when, else as they were named."""
    found = list(episodes)
    if all(episode.provenance.recorded for episode in found):
        found.sort(key=lambda episode: episode.provenance.recorded)
    return found
