"""What an engine declares that it can do, and the refusal of all else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sim2real.errors import Sim2RealError
from sim2real.twin import Applier, CompiledTwin, Twin


@dataclass(frozen=True, kw_only=True)
class EngineAbilities:
    """What an engine can do; asking for anything else is a `Sim2RealError`."""

    engine: str
    """The engine's name."""
    simulator: str
    """The library that computes the physics, as provenance names it."""
    version: str
    """The library's version."""
    devices: tuple[str, ...] = ("cpu",)
    """Kinds of devices it computes on."""
    precision: Literal["float32", "float64"] = "float64"
    """Numbers that the physics is computed in; states are float64 tensors all the same."""
    bit_identical: bool = False
    """Whether the same seed gives the same bits, run after run."""
    fields: frozenset[str] | None = None
    """Fields of the model that may differ from world to world; None for all."""
    switches: bool = False
    """Whether actuators can be switched off."""
    remainder: bool = False
    """Whether a twin's learned remainder can act."""
    delays: bool = False
    """Whether commands and readings can be delayed."""
    varied_timestep: bool = False
    """Whether worlds may have time steps of their own."""

    def check(self, *, switches: bool, remainder: bool, device: str) -> None:
        """Refuse what someone wants and the engine cannot do."""
        for wanted, able, what in (
            (switches, self.switches, "switch actuators off"),
            (remainder, self.remainder, "apply a learned remainder"),
        ):
            if wanted and not able:
                raise Sim2RealError(f"engine {self.engine!r} cannot {what}")
        kind = device.partition(":")[0]
        if kind and kind not in self.devices:
            raise Sim2RealError(
                f"engine {self.engine!r} does not compute on {device!r}, but on"
                f" {' or '.join(self.devices)}"
            )

    def check_twin(self, twin: Twin, compiled: CompiledTwin) -> None:
        """Refuse a twin that needs what the engine cannot do."""
        model = compiled.model
        delayed = [*model.actuator_history[:, 0], *model.sensor_history[:, 0]]
        if any(delayed) and not self.delays:
            raise Sim2RealError(
                f"engine {self.engine!r} cannot delay commands or readings, as twin"
                f" {twin.name!r} declares; delay_max = 0 is no delay"
            )
        for parameter in twin.parameters:
            for field in Applier(compiled, [parameter]).fields if self._limited else ():
                self._check_field(parameter.name, field)

    @property
    def _limited(self) -> bool:
        return self.fields is not None or not (self.varied_timestep and self.remainder)

    def _check_field(self, parameter: str, field: str) -> None:
        if field == "effect.remainder.weight":
            able = self.remainder
        elif field == "opt.timestep":
            able = self.varied_timestep
        else:
            able = self.fields is None or field.startswith("effect.") or field in self.fields
        if not able:
            raise Sim2RealError(
                f"engine {self.engine!r} cannot give worlds different values of {field}, which"
                f" {parameter} moves"
            )
