"""Whether an engine of worlds keeps its promises.

Each requirement is tried in small worlds of known motion: a pendulum, a falling weight. What an
engine declares that it cannot do is left out, after a look at whether it refuses it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sim2real.plain import PlainData
from sim2real.testing.engine_lab import EngineLab, LeftOut, Missing
from sim2real.testing.engine_physics import PHYSICS
from sim2real.testing.engine_promises import PROMISES
from sim2real.twin import Twin
from sim2real.worlds import Engine, find_engine

Outcome = Literal["met", "missing", "left out"]


@dataclass(frozen=True, kw_only=True)
class EngineRequirement(PlainData):
    """One thing that an engine has to do."""

    name: str
    outcome: Outcome
    why: str = ""
    """What is missing, or why it was left out."""


@dataclass(frozen=True, kw_only=True)
class EngineCheck(PlainData):
    """What an engine does of all that it has to do."""

    engine: str
    requirements: tuple[EngineRequirement, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing is missing."""
        return not self.missing

    @property
    def missing(self) -> tuple[EngineRequirement, ...]:
        """Requirements that are not met."""
        return tuple(one for one in self.requirements if one.outcome == "missing")

    def sentences(self) -> Iterator[str]:
        """The result, a line for each requirement."""
        for one in self.requirements:
            yield f"{one.outcome:8s}  {one.name}" + (f": {one.why}" if one.why else "")


def check_engine(
    engine: Engine | str, *, twin: Twin | Path | str | None = None, device: str = ""
) -> EngineCheck:
    """Try everything that an engine has to do; nothing is raised for what is missing.

    What concerns worlds in general is tried with `twin`, by default a pendulum. What concerns
    physics is always tried with models of known motion.
    """
    found = find_engine(engine)
    mine = twin if twin is None or isinstance(twin, Twin) else Twin.load(twin)
    done = []
    with tempfile.TemporaryDirectory() as folder:
        lab = EngineLab(found, Path(folder), twin=mine, device=device)
        for name, attempt in {**PROMISES, **PHYSICS}.items():
            outcome: Outcome = "met"
            why = ""
            try:
                attempt(lab)
            except LeftOut as reason:
                outcome, why = "left out", str(reason)
            except Missing as fault:
                outcome, why = "missing", str(fault)
            except Exception as error:  # an engine may fail in any way
                outcome, why = "missing", f"{type(error).__name__}: {error}".splitlines()[0]
            done.append(EngineRequirement(name=name, outcome=outcome, why=why))
    return EngineCheck(engine=found.abilities.engine, requirements=tuple(done))
