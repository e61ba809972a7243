"""Whether each guard of the table of safety rules matters: without it, faults slip through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec

from benchmarks.benchmark import Result, report
from benchmarks.deploy import hostile
from benchmarks.deploy.craft import TASKS, Craft
from benchmarks.deploy.flights import DRAWN, fly_troubled, supervisor_of
from benchmarks.deploy.judged import judge

_TABLE = "sim2real.robot.safety_rules"


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """What slips through without a guard and those that the table names as its backup."""

    slips: dict[str, str] = field(default_factory=dict)
    """The first fault that slips through without each guard; '' where none does."""
    backups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Guards that were switched off with it."""


def has_table() -> bool:
    """Whether this version of the package has the table."""
    return find_spec(_TABLE) is not None


def guards_without(faults: int, sequences: int, *, seed: int) -> Guarded:
    """Switch each guard off with its backups; hostile robots first, then faults of each kind."""
    crafts = {task: Craft.load(task) for task in TASKS}
    slips: dict[str, str] = {}
    backups = _guards()
    for guard, others in backups.items():
        without = frozenset((guard, *others))
        slips[str(guard)] = _hostile_slip(without, sequences) or _slip(
            crafts, without, faults, seed
        )
        report(f"without {guard}: {slips[str(guard)] or 'nothing slips through'}")
    return Guarded(
        slips=slips,
        backups={str(guard): tuple(map(str, others)) for guard, others in backups.items()},
    )


def guard_results(parts: Iterable[Guarded]) -> Iterator[Result]:
    """How many guards matter."""
    slips = {guard: slip for part in parts for guard, slip in part.slips.items()}
    idle = [guard for guard, slip in slips.items() if not slip]
    yield Result(
        name="deploy.guards_that_matter",
        value=len(slips) - len(idle),
        unit="guards",
        target=f">= {len(slips)}",
        note=(f"without effect: {', '.join(idle)}. " if idle else "")
        + " | ".join(f"without {guard}: {slip}" for guard, slip in slips.items() if slip),
    )


def _guards() -> Mapping[object, tuple[object, ...]]:
    """Each guard of the table, with all that it names as its backup."""
    rules = import_module(_TABLE).SAFETY_RULES
    found: dict[object, tuple[object, ...]] = {}
    for rule in rules:
        backup = rule.backup
        several = backup if isinstance(backup, tuple | frozenset | list) else (backup,)
        known = found.get(rule.guard, ())
        found[rule.guard] = tuple(dict.fromkeys([*known, *(one for one in several if one)]))
    return found


def _hostile_slip(without: frozenset[object], sequences: int) -> str:
    made = partial(hostile.supervisor_of, without=without)
    largest = hostile.hostilities(0, sequences, made=made).largest
    return f"a step of {largest:.3g} times what is allowed" if largest > 1.0 + 1e-6 else ""


def _slip(crafts: dict[str, Craft], without: frozenset[object], faults: int, seed: int) -> str:
    made = partial(supervisor_of, without=without)
    for number in range(faults):
        for kind in DRAWN:
            flown = fly_troubled(crafts, kind, number, seed=seed, made=made)
            verdict = judge(flown)
            if verdict.harms:
                return f"{kind}, {flown.trouble.variant}: {verdict.harms[0]}"
    return ""
