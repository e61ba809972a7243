"""What people ask of a lake: what is in it, whether it is sound, and to forget them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sim2real.data.consent import Consent
from sim2real.data.episode import Episode
from sim2real.data.lake import Lake
from sim2real.data.mixture import Manifest, MixtureShare
from sim2real.data.sealed_table import Damage
from sim2real.data.windows import verify_windows
from sim2real.data.withdrawal import Withdrawal, affected, withdraw
from sim2real.errors import Sim2RealError

_EPISODES_PER_READ = 500
_COLUMNS = "id, kind, task, robot, verdict, duration_s, samples, channels, added"
_GROUPS = """
select kind, task, robot, outcome, count(*) as episodes, sum(duration_s) as seconds,
    sum(samples)::bigint as samples from episodes group by all order by all
"""
_TOTALS = """
select count(*) as episodes, coalesce(sum(duration_s), 0) as seconds,
    coalesce(sum(samples), 0)::bigint as samples from episodes
"""
_LABELS = """
select tag, value, start_s, end_s, who, created, id from current_labels
    where episode = '{id}' order by created
"""


@dataclass(frozen=True)
class LakeKeeper:
    """A lake as people look at it and look after it."""

    lake: Lake

    def episodes(
        self, *, where: str = "true", limit: int = 50, version: int | None = None
    ) -> list[dict[str, Any]]:
        """Rows of at most `limit` episodes under an SQL condition, the newest first."""
        sql = (
            f"select {_COLUMNS} from episodes join verdicts using (id) where {where}"
            f" order by added desc, id limit {limit}"
        )
        found: list[dict[str, Any]] = self.lake.query(sql, version=version).to_pylist()
        return found

    def totals(self) -> dict[str, Any]:
        """How much there is, in all and (`groups`) by kind, task, robot and outcome."""
        return {
            **self.lake.query(_TOTALS).to_pylist()[0],
            "labels": self.lake.query("select count(*) as n from current_labels")["n"][0].as_py(),
            "version": self.lake.version,
            "bytes": self.lake.storage.size(),
            "groups": self.lake.query(_GROUPS).to_pylist(),
        }

    def episode(self, episode: Episode, channels: tuple[str, ...] = ()) -> dict[str, Any]:
        """An episode in plain data: provenance, labels, and facts of some channels, or of all."""
        chosen = {name: episode.channels.get(name) or episode[name] for name in channels}
        return {
            "id": episode.id,
            "outcome": episode.outcome,
            "start_s": episode.start_s,
            "duration_s": episode.duration_s,
            "provenance": episode.provenance.to_dict(),
            "channels": {
                name: {
                    "unit": channel.unit,
                    "shape": list(channel.shape),
                    "samples": len(channel.times),
                    "rate_hz": channel.rate_hz,
                    "stated_hz": channel.stated_hz,
                }
                for name, channel in (chosen or episode.channels).items()
            },
            "labels": self.lake.query(_LABELS.format(id=episode.id)).to_pylist(),
        }

    def participants(self) -> list[dict[str, Any]]:
        """Who is in the recordings: what each agreed to, and in how many episodes they are."""
        found = self.lake.query("select provenance from episodes where len(participants) > 0")
        carried = [
            Consent.from_dict(consent)
            for text in found["provenance"].to_pylist()
            for consent in json.loads(text)["consent"]
        ]
        episodes = Counter(consent.participant for consent in carried)
        granted = self.lake.consents()
        agreed = {consent.participant: consent for consent in reversed(carried)} | granted
        return [
            {
                "participant": name,
                "episodes": episodes[name],
                "scope": list(consent.scope),
                "expires": consent.expires or None,
                "from": "granted" if name in granted else "recorded in the episodes",
            }
            for name, consent in sorted(agreed.items())
        ]

    def unrepaired(self, *, where: str = "true", repaired: bool = False) -> list[str]:
        """Ids of the episodes under an SQL condition, without those that were repaired already."""
        fixed = "select unnest(parents) from episodes where process like 'repair%'"
        left = "true" if repaired else f"id not in ({fixed})"
        found: list[str] = self.lake.query(
            f"select id from episodes where ({where}) and {left} order by added, id"
        )["id"].to_pylist()
        return found

    def affected(self, participant: str) -> set[str]:
        """Ids of the episodes that a withdrawal of a participant would erase."""
        return affected(self.lake, participant)

    def withdraw(self, participant: str) -> Withdrawal:
        """Erase a participant's data from every version and file; see `withdrawal`."""
        return withdraw(self.lake, participant)

    def record_origin(self, policy: str, episodes: Sequence[str], *, purpose: str) -> None:
        """Record that a policy comes from episodes other than by a mixture; once is enough.

        `purpose` is what they were for: 'identification', 'check' or 'training'. They need not be
        in the lake.
        """
        ids = tuple(sorted(set(episodes)))
        part = MixtureShare(name=purpose, select="", weight=1, ids=ids, frames=(0,) * len(ids))
        used = Manifest(
            name=f"{purpose} of a policy",
            lake=self.lake.storage.uri,
            version=0,
            by="episode",
            clock="",
            seed=0,
            purpose=purpose,
            parts=(part,),
        )
        used.record(self.lake)
        known = self.lake.query("select policy, dataset from policies").to_pylist()
        if {"policy": policy, "dataset": used.id} not in known:
            self.lake.record_policy(policy, used.id)

    def verify(self, *, report: Callable[[int, int], None] = lambda done, of: None) -> list[Damage]:
        """What has changed since it was written: hashes every file and episode again.

        An empty list for a sound lake. `report` receives the number of episodes done and the total.
        """
        lake = self.lake
        with lake.storage.lock(alone=False):
            found = [damage for table in lake.tables.values() for damage in table.verify()]
            for name in lake.storage.names("videos"):
                if lake.storage.digest(name) != name.removeprefix("videos/").removesuffix(".mp4"):
                    found.append(Damage(file=name, message="has changed since it was written"))
            found += verify_windows(lake.storage)
            try:
                found += self._damaged_episodes(report)
            except Sim2RealError as error:
                found.append(Damage(file=lake.uri, message=str(error)))
        return found

    def _damaged_episodes(self, report: Callable[[int, int], None]) -> Iterator[Damage]:
        ids = self.lake.query("select distinct id from episodes order by id")["id"].to_pylist()
        for begin in range(0, len(ids), _EPISODES_PER_READ):
            chosen = ids[begin : begin + _EPISODES_PER_READ]
            try:
                for _ in self.lake.read(chosen):
                    pass
            except Sim2RealError:
                yield from self._damaged_of(chosen)
            report(min(begin + _EPISODES_PER_READ, len(ids)), len(ids))

    def _damaged_of(self, ids: list[str]) -> Iterator[Damage]:
        for id_ in ids:
            try:
                self.lake.get(id_)
            except Sim2RealError as error:
                yield Damage(file=f"episode {id_}", message=str(error))
