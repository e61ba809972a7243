"""Where an episode comes from: simulated, real or generated, by whom, and from which parents."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType

from sim2real.data.consent import Consent
from sim2real.errors import Sim2RealError, explaining, nearest, number_at
from sim2real.plain import PlainData


class Origin(StrEnum):
    """The kind of world an episode happened in."""

    SIMULATED = "simulated"
    """In the worlds of a twin."""
    REAL = "real"
    """On hardware, or on a stand-in for it."""
    GENERATED = "generated"
    """By a model learned from other episodes: a world model, an image translator."""


@dataclass(frozen=True, kw_only=True)
class Provenance(PlainData, sparse=True):
    """Everything needed to trace an episode and to decide whether it may be used."""

    kind: Origin
    task: str = ""
    """Task that was performed; '' for a recording without one."""
    twin: str = ""
    """Name of the twin it was simulated with, or of the twin of the real robot."""
    twin_version: str = ""
    """Version of that twin."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """The parameters it was simulated with."""
    seed: int | None = None
    """Seed of the simulation, or of the benchmark that set up a real robot."""
    world: int | None = None
    """Number of the world under that seed."""
    engine: str = ""
    """Simulator."""
    engine_version: str = ""
    policy: str = ""
    """Hash of the policy's bundle; '' for none or a person."""
    robot: str = ""
    """Model of the robot."""
    serial: str = ""
    """Its serial number."""
    recorded: str = ""
    """When it began, such as 2026-01-31T12:00:00.000+00:00; '' if unknown."""
    site: str = ""
    """Where the robot was."""
    operator: str = ""
    """Pseudonym of the operator."""
    calibration: Mapping[str, object] = field(default_factory=dict)
    """Calibration at that time: offsets, intrinsics, file hashes."""
    consent: tuple[Consent, ...] = ()
    """What each person in the recording has agreed to; empty without people."""
    source: str = ""
    """File it was imported from, as 'name sha256:…'; '' if none."""
    software: Mapping[str, object] = field(default_factory=dict)
    """Versions of the software that made it, by package."""
    commit: str = ""
    """Commit of the code that made it."""
    parents: tuple[str, ...] = ()
    """Ids of the episodes it was made from."""
    process: str = ""
    """What was done to the parents, such as 'filter 20 Hz'."""
    stopped: str = ""
    """Why a supervisor, or the robot itself, ended it; '' if it came to its end, or a person ended
    it."""

    def __post_init__(self) -> None:
        if self.kind not in list(Origin):
            raise Sim2RealError(
                f"provenance: kind {self.kind!r} is unknown{nearest(str(self.kind), list(Origin))}"
            )
        object.__setattr__(self, "kind", Origin(self.kind))
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.default == "" and not isinstance(value, str):
                raise Sim2RealError(f"provenance: {entry.name} must be text")
            if entry.name in ("seed", "world") and not isinstance(value, int | None):
                raise Sim2RealError(f"provenance: {entry.name} must be a whole number")
        numbers = {
            name: number_at(value, f"provenance: parameter {name}")
            for name, value in self.parameters.items()
        }
        for parent in self.parents:
            if not parent or not isinstance(parent, str):
                raise Sim2RealError("provenance: the id of a parent is empty")
        # Copies, so that changes to the arguments do not reach this.
        object.__setattr__(self, "parameters", MappingProxyType(numbers))
        object.__setattr__(self, "parents", tuple(self.parents))
        object.__setattr__(self, "consent", tuple(self.consent))
        for name in ("calibration", "software"):
            with explaining(
                f"provenance: {name} cannot be kept as JSON", TypeError, ValueError, RecursionError
            ):
                kept = json.loads(json.dumps(dict(getattr(self, name)), allow_nan=False))
            object.__setattr__(self, name, MappingProxyType(kept))
        with explaining("provenance contains text that is not valid Unicode", UnicodeEncodeError):
            self.to_json().encode()

    @property
    def participants(self) -> list[str]:
        """Pseudonyms of the people in the recording."""
        return sorted({consent.participant for consent in self.consent})

    def to_json(self) -> str:
        """Canonical JSON: the same provenance always gives the same text."""
        return json.dumps(
            self.to_dict(),
            sort_keys=True,
            separators=(",", ":"),
            allow_nan=False,
            ensure_ascii=False,
        )
