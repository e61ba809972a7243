"""One attempt at a task in one form, whether a simulated world or a robot made it.

Two trials with the same `condition` began alike: the same draw of parameters, the same goals, the
same start. That is what pairs them in a comparison. A condition is never guessed: trials whose
begin nobody noted have none, and are compared unpaired.

A bench and a simulation draw their starts each in its own way, so a seed never pairs a real trial
with a simulated one. Who set both up alike says so, by the same name: the column `condition` of a
file, or in a lake a note 'condition: NAME' on the episode.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from sim2real.data import Episode, Lake, Origin
from sim2real.plain import PlainData

if TYPE_CHECKING:
    from sim2real.evaluation.simulated_trials import SimulatedTrials

_NOTED = "condition:"
"""Begin of a note on an episode that names how it began."""


@dataclass(frozen=True, kw_only=True)
class Trial(PlainData):
    """How one attempt ended."""

    policy: str
    """Id of the policy that acted."""
    success: bool
    condition: str = ""
    """Id of how it began; '' where nobody noted it."""
    source: Literal["sim", "real"] = "real"
    reward: float | None = None
    """Sum of rewards; None where nobody counted."""
    unit: str = ""
    """Which robot: a serial number, or the draw of parameters that made the world."""
    seed: int | None = None
    episode: str = ""
    """Id of its episode in a lake."""


def trials_of_worlds(trials: SimulatedTrials, *, policy: str) -> list[Trial]:
    """Trials of simulated worlds; the draw is the unit, and the condition with seed and world."""
    units = [_draw(trials.names, row) for row in trials.values]
    return [
        Trial(
            policy=policy,
            success=bool(trials.success[k]),
            condition=_world(trials.seed + k // trials.per_seed, k % trials.per_seed, units[k]),
            source="sim",
            reward=float(trials.reward[k]),
            unit=units[k],
            seed=trials.seed + k // trials.per_seed,
        )
        for k in range(len(units))
    ]


def trials_of_episodes(episodes: Iterable[Episode]) -> list[Trial]:
    """Trials of simulated or real episodes; those that nobody judged are left out."""
    return [_of_provenance(e.id, e.provenance.to_dict(), e.outcome) for e in episodes if e.outcome]


def trials_of_lake(lake: Lake, *, where: str = "true") -> list[Trial]:
    """Trials of the episodes in a lake, judged by their current label or else their outcome.

    A current note 'condition: NAME' on an episode is its condition.
    """
    rows = lake.query(
        "select id, provenance, verdict, noted from episodes join verdicts using (id) left join ("
        "select episode, arg_max(value, created) as noted from current_labels where tag = 'note'"
        f" and start_s is null and starts_with(value, '{_NOTED}') group by episode"
        ") as notes on notes.episode = id"
        f" where verdict <> '' and ({where}) order by added, id"
    ).to_pylist()
    found = [_of_provenance(r["id"], json.loads(r["provenance"]), r["verdict"]) for r in rows]
    return [
        replace(trial, condition=row["noted"].removeprefix(_NOTED).strip())
        if row["noted"]
        else trial
        for trial, row in zip(found, rows, strict=True)
    ]


def _of_provenance(id_: str, source: Mapping[str, Any], outcome: str) -> Trial:
    seed, world = source.get("seed"), source.get("world")
    simulated = source["kind"] != Origin.REAL
    values: Mapping[str, float] = source.get("parameters", {})
    unit = source.get("serial", "")
    condition = "" if seed is None else f"seed {seed} on {unit}"
    if simulated:
        unit = _draw(tuple(values), tuple(values.values()))
        condition = "" if seed is None or world is None else _world(seed, world, unit)
    return Trial(
        policy=source.get("policy", ""),
        success=outcome == "success",
        condition=condition,
        source="sim" if simulated else "real",
        unit=unit,
        seed=seed,
        episode=id_,
    )


def _draw(names: Sequence[str], values: Iterable[float]) -> str:
    pairs = sorted(zip(names, (float(value) for value in values), strict=True))
    return hashlib.sha256(repr(pairs).encode()).hexdigest()[:12]


def _world(seed: int, world: int, unit: str) -> str:
    return f"seed {seed} world {world} draw {unit}"
