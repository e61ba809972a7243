"""What a loop records, in a lake: motions, steps up the ladder, trials, and what policies saw."""

from __future__ import annotations

from dataclasses import dataclass

from sim2real.data import Lake
from sim2real.errors import Sim2RealError
from sim2real.loop.stages.base import episodes_of
from sim2real.loop.steps import KeptResult, KeptStep
from sim2real.policy import Bundle

_RECORDING = ("record", "ladder", "trials")
"""Kinds of steps that record a robot."""


@dataclass(frozen=True)
class LoopLake:
    """Keeps what steps record in a lake; a step that is reported again adds nothing.

    Recordings of a person who withdrew since then stop the loop.
    """

    lake: Lake

    @classmethod
    def create(cls, uri: str) -> LoopLake:
        """For the lake at an address, made if there is none."""
        return cls(Lake.create(uri))

    def add(self, step: KeptStep, done: KeptResult | None) -> None:
        """Keep the recordings of a step that is done, or what its bundle was made from."""
        if done is None:
            return
        if step.kind == "export":
            Bundle.open(done.folder / "bundle").keep_origin(self.lake)
        elif step.kind in _RECORDING:
            ids = done.result.get("episodes", [])
            if not ids or set(self.lake.present(ids)) < set(ids):
                found = episodes_of(done)
                if gone := self.lake.erased(found):
                    raise Sim2RealError(
                        f"{len(gone)} of {len(found)} recordings in {done.folder} are of a person"
                        " who withdrew: delete that folder, and the loop records without them"
                    )
                self.lake.append(found)
