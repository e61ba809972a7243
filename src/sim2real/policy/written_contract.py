"""A contract as a person writes it: what is left out is the task's.

The least that a policy for a known task needs:

    task = "pendulum-swingup"
    rate_hz = 50
    history = 3
    observations = ["direction", "speed", "last_action"]
    actions = ["torque"]

An observation that the task does not make is a table of its own, with the sensors, goals, `action`
or `command` that it consists of:

    [[observations]]
    name = "state"
    sources = ["hinge_pos", "hinge_vel"]
    scale = 1.0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from sim2real.contract import ActionSpec, Contract, TermSpec
from sim2real.errors import Sim2RealError, nearest, table_at
from sim2real.files import read_json, read_toml
from sim2real.plain import of_plain
from sim2real.policy.task_contract import make_contract
from sim2real.tasks import Task, TaskEnv, find_task
from sim2real.twin import Twin

SUFFIXES = (".toml", ".json")
"""Ends of the names of contracts that lie beside a policy."""
_ENTRIES = ("observations", "actions")
"""Lists of which an entry may be only a name."""


@dataclass(frozen=True, kw_only=True)
class _WrittenTerm:
    """One term of an observation, as written."""

    name: str
    sources: tuple[str, ...]
    unit: str = ""
    width: int | None = None
    scale: float = 1.0


@dataclass(frozen=True, kw_only=True)
class WrittenContract:
    """A contract as written, and where it stands."""

    values: Mapping[str, object]
    where: str = "the policy's contract"
    folder: Path = field(default_factory=Path)
    """Folder that its paths begin from."""

    @classmethod
    def beside(cls, file: Path) -> WrittenContract:
        """The contract of a file: another with the same name that ends in .toml or .json."""
        for suffix in SUFFIXES:
            path = file.with_suffix(suffix)
            if path.is_file():
                read = read_toml if suffix == ".toml" else read_json
                values = table_at(read(path), str(path))
                return cls(values=values, where=str(path), folder=path.parent)
        raise Sim2RealError(
            f"{file} has no contract: write what it sees and returns into"
            f" {file.with_suffix('.toml')}, see docs/policy.md"
        )

    @property
    def task(self) -> type[Task]:
        """The task that the policy is for."""
        name = self.values.get("task")
        if not isinstance(name, str) or not name:
            raise Sim2RealError(f"{self.where} needs a 'task', the name of the policy's task")
        return find_task(name)

    @property
    def twin(self) -> Twin:
        """The twin that it names, or else the task's."""
        told = self.values.get("twin")
        if told is None:
            return Twin.load(self.task.twin)
        if not isinstance(told, str):
            raise Sim2RealError(f"{self.where}: 'twin' is the folder of a twin, not {told!r}")
        return Twin.load(self.folder / told)

    def completed(self, env: TaskEnv) -> Contract:
        """The whole contract, with what its task and twin say where it says nothing.

        What contradicts them is a `Sim2RealError`.
        """
        mine = make_contract(env)
        known = {part.name for part in fields(Contract)}
        given = {name: value for name, value in self.values.items() if name != "twin"}
        for name in given:
            if name not in known:
                raise Sim2RealError(f"{self.where} has no {name!r}{nearest(name, known)}")
        terms = self._terms(env, mine, given.pop("observations", None))
        actions = self._names(given.pop("actions", None), mine.actions)
        told = {**mine.to_dict(), **given}
        told |= {"observations": [], "actions": []}
        whole = Contract.from_dict(told, self.where)
        parts = {part.name: getattr(whole, part.name) for part in fields(Contract)}
        found = Contract(**{**parts, "observations": terms, "actions": actions})
        self._fit(found, mine)
        return found

    def _fit(self, found: Contract, mine: Contract) -> None:
        """Refuse a contract for another robot or rate."""
        for name in ("robot", "twin_version", "rate_hz", "sensors", "goals", "commands", "actions"):
            here, there = getattr(found, name), getattr(mine, name)
            if here != there:
                lines = (line for line in found.differences(mine) if line.startswith(name))
                said = next(lines, f"{name} differs")
                raise Sim2RealError(
                    f"{self.where} does not fit task {mine.task!r} with twin {mine.robot!r}: {said}"
                )

    def _names(self, told: object, tasks: tuple[ActionSpec, ...]) -> tuple[ActionSpec, ...]:
        if told is None:
            return tasks
        rows = _rows(told, f"{self.where}: actions")
        return tuple(
            ActionSpec(name=row) if isinstance(row, str) else of_plain(ActionSpec, row, self.where)
            for row in rows
        )

    def _terms(self, env: TaskEnv, mine: Contract, told: object) -> tuple[TermSpec, ...]:
        if told is None:
            return mine.observations
        tasks = {term.name: term for term in mine.observations}
        widths = {sensor.name: sensor.width for sensor in mine.sensors}
        widths |= {goal.name: goal.width for goal in mine.goals}
        widths |= {"action": len(mine.actions), "command": len(mine.commands)}
        found = []
        for row in _rows(told, f"{self.where}: observations"):
            if isinstance(row, str):
                if row not in tasks:
                    raise Sim2RealError(
                        f"{self.where}: task {mine.task!r} makes no observation {row!r}; describe"
                        f" it with its sources{nearest(row, tasks)}"
                    )
                found.append(tasks[row])
                continue
            term = of_plain(_WrittenTerm, row, f"{self.where}: observation")
            for source in term.sources:
                if source not in widths:
                    raise Sim2RealError(
                        f"{self.where}: observation {term.name!r} has a source {source!r}, which"
                        f" the robot does not have{nearest(source, widths)}"
                    )
            found.append(self._term(term, tasks.get(term.name), widths))
        return tuple(found)

    def _term(
        self, term: _WrittenTerm, tasks: TermSpec | None, widths: Mapping[str, int]
    ) -> TermSpec:
        """A term as written, which must be the task's if it has the task's name."""
        own = sum(widths[source] for source in term.sources)
        right = tasks.width if tasks else own
        if term.width not in (None, right):
            raise Sim2RealError(
                f"{self.where}: observation {term.name!r} has a width of {term.width}, but"
                f" {', '.join(term.sources)} give {right} numbers"
            )
        if tasks and (term.sources != tasks.sources or term.unit not in ("", tasks.unit)):
            raise Sim2RealError(
                f"{self.where}: the task has an observation {term.name!r} of other sources or unit:"
                " give yours another name"
            )
        unit = tasks.unit if tasks else term.unit
        return TermSpec(
            name=term.name, unit=unit, width=right, scale=term.scale, sources=term.sources
        )


def _rows(told: object, where: str) -> list[object]:
    if not isinstance(told, list | tuple) or not told:
        raise Sim2RealError(f"{where} must be a list of names or tables")
    return list(told)
