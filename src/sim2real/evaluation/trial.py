"""One trial, in the same form for a simulated world and a robot.

Two trials with the same `condition` started alike: the same draw of parameters, the same goals, the
same start. Comparisons pair such trials. A condition is never guessed: trials without a recorded
start have none and are compared unpaired.

A test bench and a simulation draw their starts in different ways, so a seed never pairs a real
trial with a simulated one. To pair them, give both the same name: in the column `condition` of a
file, or in a lake by a note 'condition: NAME' on the episode.
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
    from sim2real.evaluation.evaluation import SimulatedTrials

_NOTED = "condition:"
"""Prefix of a note that names the condition of an episode."""


@dataclass(frozen=True, kw_only=True)
class Trial(PlainData):
    """How one trial ended."""

    policy: str
    """Id of the policy that acted."""
    success: bool
    condition: str = ""
    """Id of its start conditions; '' if they were not recorded."""
    source: Literal["sim", "real"] = "real"
    reward: float | None = None
    """Sum of rewards; None if unknown."""
    unit: str = ""
    """The robot's serial number, or the world's draw of parameters."""
    seed: int | None = None
    episode: str = ""
    """Id of its episode in a lake."""


def trials_of_worlds(trials: SimulatedTrials, *, policy: str) -> list[Trial]:
    """Trials of simulated worlds; the unit is the draw, the condition is seed, world and draw."""
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
    """Trials of simulated or real episodes; those without an outcome are left out."""
    return [_of_provenance(e.id, e.provenance.to_dict(), e.outcome) for e in episodes if e.outcome]


def trials_of_lake(lake: Lake) -> list[Trial]:
    """Trials of the episodes in a lake, with the outcome of their current label, or else their own.

    A current note 'condition: NAME' on an episode is its condition.
    """
    rows = lake.query(
        "select id, provenance, verdict, noted from episodes join verdicts using (id) left join ("
        "select episode, arg_max(value, created) as noted from current_labels where tag = 'note'"
        f" and start_s is null and starts_with(value, '{_NOTED}') group by episode"
        ") as notes on notes.episode = id"
        " where verdict <> '' order by added, id"
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
