"""Writing parameter values into many worlds at once.

All parameters are compiled once into a few gathers and scatters, one set for each field they
touch, so that applying a draw costs the same for one world or a thousand. Values are computed
from the nominal model: applying the same draw twice, or after any other draw, gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import mujoco
import torch
from torch import Tensor

from sim2real.errors import Sim2RealError
from sim2real.params import Parameter
from sim2real.twin.address import check_operation, quantity, resolve, vector_needs_index
from sim2real.twin.attributes import PSEUDO_INERTIA
from sim2real.twin.compiled import Address, CompiledTwin
from sim2real.twin.inertia import perturbed_inertia

_INERTIAL = {"body_mass": 1, "body_ipos": 3, "body_inertia": 3, "body_iquat": 4}
"""Fields of a body's inertia, and how many numbers each has."""
FieldOf = Callable[[str], Tensor]
"""Gives the (worlds, elements) tensor of a model field or effect table."""


@dataclass(frozen=True)
class _Layer:
    """Elements of one field that are written in one pass; no element occurs twice."""

    field: str
    index: Tensor
    column: Tensor
    offset: Tensor
    slope: Tensor
    power: Tensor | None = None
    nominal: Tensor | None = None
    fresh: Tensor | None = None
    """Elements no earlier layer has written: they start from the nominal value."""


@dataclass
class _Moves:
    """What parameters move, by how it is written."""

    direct: dict[str, list[tuple[int, int, float, float]]] = field(default_factory=dict)
    """By field: (element, column, offset, slope)."""
    follow: dict[tuple[str, int], list[tuple[int, int, float, float, float]]] = field(
        default_factory=dict
    )
    """By field and layer: the same and a power, for numbers that follow a ratio."""
    inertias: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """By body: (component of its pseudo-inertia, column)."""
    _owner: dict[tuple[str, int], str] = field(default_factory=dict)
    _depth: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, column: int, parameter: Parameter, address: Address) -> None:
        """Add what a parameter moves at an address; raises where another one moves it already."""
        a, b = quantity(parameter, address)
        for write in address.writes:
            key = (write.field, write.index)
            if write.owned and key in self._owner:
                raise Sim2RealError(
                    f"{parameter.name} and {self._owner[key]} both move"
                    f" {write.field} of {address.thing or 'the simulator'!r}"
                )
            if write.owned:
                self._owner[key] = parameter.name
            if write.field == PSEUDO_INERTIA:
                self.inertias.setdefault(write.index // 10, []).append((write.index % 10, column))
            elif write.power is None:
                row = (write.index, column, write.gain * a, write.gain * b)
                self.direct.setdefault(write.field, []).append(row)
            elif address.nominal == 0:
                raise Sim2RealError(
                    f"{parameter.name}: its nominal value at {address.thing!r} is zero and cannot"
                    " be scaled"
                )
            else:
                level = self._depth[key] = self._depth.get(key, 0) + 1
                ratio = (a / address.nominal, b / address.nominal)
                powered = (write.index, column, *ratio, write.power)
                self.follow.setdefault((write.field, level), []).append(powered)


class Applier:
    """Compiled parameters of one twin, ready to be written into worlds."""

    def __init__(
        self,
        compiled: CompiledTwin,
        parameters: Sequence[Parameter],
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        """Resolve every parameter; raises `Sim2RealError` where two move the same number."""
        self._device = torch.device(device)
        self._layers: list[_Layer] = []
        self._inertias: dict[int, tuple[Tensor, Tensor]] = {}
        self._model = compiled.model
        self._compile(compiled, parameters)
        constants = set(mujoco.MjModel._setconst_inputs)
        self.fields = sorted(
            {layer.field for layer in self._layers} | (set(_INERTIAL) if self._inertias else set())
        )
        self.needs_constants = any(
            field in constants or field.startswith("opt.") for field in self.fields
        )

    def __call__(self, values: Tensor, ids: Tensor, field_of: FieldOf) -> None:
        """Write `values` (n, parameters) into the worlds `ids` (n,)."""
        rows = ids[:, None]
        for layer in self._layers:
            table = field_of(layer.field)
            chosen = layer.offset + layer.slope * values[:, layer.column]
            if layer.power is not None and layer.nominal is not None and layer.fresh is not None:
                known = torch.where(layer.fresh, layer.nominal, table[rows, layer.index])
                chosen = known * chosen**layer.power
            table[rows, layer.index] = chosen.to(table.dtype)
        for body, (component, column) in self._inertias.items():
            theta = torch.zeros(len(ids), 10, dtype=values.dtype, device=values.device)
            theta[:, component] = values[:, column]
            parts = perturbed_inertia(theta, *self._body(body, values))
            for (name, width), part in zip(_INERTIAL.items(), parts, strict=True):
                columns = slice(body * width, (body + 1) * width)
                field_of(name)[ids, columns] = part.reshape(len(ids), width)

    def _compile(self, compiled: CompiledTwin, parameters: Sequence[Parameter]) -> None:
        moves = _Moves()
        for column, parameter in enumerate(parameters):
            check_operation(parameter)
            if vector_needs_index(compiled, parameter):
                raise Sim2RealError(
                    f"{parameter.name}: is a vector; name one component, as in"
                    f" {parameter.name}[0], or use operation = 'scale'"
                )
            for address in resolve(compiled, parameter.name):
                moves.add(column, parameter, address)
        for name, rows in moves.direct.items():
            self._layers.append(self._layer(name, rows))
        written = {(name, row[0]) for name, rows in moves.direct.items() for row in rows}
        for (name, _), powered in sorted(moves.follow.items(), key=lambda item: item[0][1]):
            layer = self._layer(name, [row[:4] for row in powered])
            power = torch.tensor([row[4] for row in powered], dtype=torch.float64)
            fresh = torch.tensor([(name, row[0]) not in written for row in powered])
            written |= {(name, row[0]) for row in powered}
            self._layers.append(
                replace(
                    layer,
                    power=power.to(self._device),
                    nominal=self._nominal(name)[layer.index],
                    fresh=fresh.to(self._device),
                )
            )
        for body, pairs in moves.inertias.items():
            rival = next((key for key in written if _of_body(key, body)), None)
            if rival is not None:
                raise Sim2RealError(
                    f"body {self._model.body(body).name!r}: pseudo_inertia and another parameter"
                    f" both move its {rival[0]}"
                )
            components, columns = zip(*pairs, strict=True)
            self._inertias[body] = (
                torch.tensor(components, device=self._device),
                torch.tensor(columns, device=self._device),
            )

    def _layer(self, field: str, rows: Sequence[tuple[int, int, float, float]]) -> _Layer:
        index, column, offset, slope = zip(*rows, strict=True)
        return _Layer(
            field=field,
            index=torch.tensor(index, device=self._device),
            column=torch.tensor(column, device=self._device),
            offset=torch.tensor(offset, dtype=torch.float64, device=self._device),
            slope=torch.tensor(slope, dtype=torch.float64, device=self._device),
        )

    def _nominal(self, field: str) -> Tensor:
        return torch.from_numpy(getattr(self._model, field).reshape(-1)).to(self._device)

    def _body(self, body: int, like: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        mass, com, inertia, quat = (
            torch.tensor(getattr(self._model, name)[body], dtype=like.dtype, device=like.device)
            for name in _INERTIAL
        )
        return mass, com, inertia, quat


def _of_body(key: tuple[str, int], body: int) -> bool:
    return key[0] in _INERTIAL and key[1] // _INERTIAL[key[0]] == body
