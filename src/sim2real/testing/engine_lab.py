"""Small worlds in which an engine is tried."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mujoco
import torch
from torch import Tensor

from sim2real.errors import Sim2RealError
from sim2real.twin import Twin
from sim2real.worlds import Engine, Worlds, open_worlds

PERIOD_S, STEP_S = 0.02, 0.004
GRAVITY = 9.81
LENGTH_M, MASS_KG, RADIUS_M = 0.4, 0.5, 0.02
INERTIA = MASS_KG * (LENGTH_M**2 + 0.4 * RADIUS_M**2)
"""Of the pendulum, about its hinge [kg m^2]."""
NOISE_RAD = 0.01
QUANTUM_NM = 0.05
_PENDULUM = f"""
<mujoco model="pendulum">
  <compiler angle="radian"/>
  <option timestep="{STEP_S}" gravity="0 0 -{GRAVITY}"><flag contact="disable"/></option>
  <worldbody>
    <body name="bob">
      <joint name="hinge" axis="0 1 0"/>
      <geom name="bob" type="sphere" size="{RADIUS_M}" pos="0 0 -{LENGTH_M}" mass="{MASS_KG}"/>
    </body>
  </worldbody>
  <actuator><motor name="hinge" joint="hinge"/></actuator>
  <sensor>
    <jointpos name="angle" joint="hinge"/>
    <jointvel name="speed" joint="hinge"/>
  </sensor>
</mujoco>
"""
_WEIGHT = f"""
<mujoco model="weight">
  <option timestep="{STEP_S}" gravity="0 0 -{GRAVITY}"><flag contact="disable"/></option>
  <worldbody>
    <body name="weight">
      <joint name="drop" type="slide" axis="0 0 1"/>
      <geom name="weight" type="sphere" size="{RADIUS_M}" mass="{MASS_KG}"/>
    </body>
  </worldbody>
  <sensor><jointpos name="height" joint="drop"/></sensor>
</mujoco>
"""
_PARAMETERS = """
[parameters."body/bob/mass"]
prior = { kind = "uniform", low = 0.25, high = 1.0 }
[parameters."actuator/hinge/gain"]
prior = { kind = "uniform", low = 0.5, high = 1.5 }
[parameters."sensor/angle/bias"]
prior = { kind = "uniform", low = -0.1, high = 0.1 }
"""
_TWINS = {
    "pendulum": (
        _PENDULUM,
        f"[effects.sensor.angle]\nnoise = {NOISE_RAD}\n"
        f"[effects.actuator.hinge]\nquantum = {QUANTUM_NM}\n{_PARAMETERS}",
    ),
    "delayed": (
        _PENDULUM,
        "[effects.actuator.hinge]\ndelay_max = 0.1\n"
        '[parameters."actuator/hinge/delay"]\n'
        'prior = { kind = "uniform", low = 0.0, high = 0.1 }\n',
    ),
    "uneven": (
        _PENDULUM,
        '[parameters."option/timestep"]\nprior = { kind = "uniform", low = 0.001, high = 0.004 }\n',
    ),
    "weight": (_WEIGHT, ""),
}


class LeftOut(Exception):  # noqa: N818  no error: the engine said so
    """A requirement that does not concern this engine."""


class Missing(Exception):  # noqa: N818  a verdict
    """What an engine does not do."""


class EngineLab:
    """Opens worlds on the engine that is tried, and compares what they do."""

    def __init__(self, engine: Engine, folder: Path, *, twin: Twin | None, device: str) -> None:
        self.engine = engine
        self._folder = folder
        self._device = device
        self._bits = engine.abilities.bit_identical
        self._twins: dict[str, Twin] = {}
        self.twin = twin or self.known("pendulum")
        """The twin of what concerns worlds in general."""

    def known(self, name: str) -> Twin:
        """A twin of known motion."""
        if name not in self._twins:
            xml, toml = _TWINS[name]
            place = self._folder / name
            place.mkdir()
            (place / "model.xml").write_text(xml, encoding="utf-8")
            header = f'[twin]\nname = "{name}"\nmodel = "model.xml"\n'
            (place / "twin.toml").write_text(header + toml, encoding="utf-8")
            self._twins[name] = Twin.load(place, check=False)
        return self._twins[name]

    def worlds(
        self,
        twin: Twin | str | None = None,
        count: int = 3,
        *,
        period_s: float | None = None,
        seed: int = 0,
        switches: bool = False,
    ) -> Worlds:
        """Worlds of the twin, or of a known one; a known one that is refused is left out."""
        known = isinstance(twin, str)
        if isinstance(twin, str):
            twin = self.known(twin)
        twin = twin or self.twin
        period_s = period_s or self.period_of(twin)
        try:
            found = open_worlds(
                twin,
                count,
                engine=self.engine,
                period_s=period_s,
                seed=seed,
                threads=1,
                switches=switches,
                device=self._device,
            )
        except Sim2RealError as error:
            if known:
                raise LeftOut(f"the engine refuses it ({error})") from None
            raise
        # On this device they may promise more than on any.
        self._bits |= getattr(found, "abilities", self.engine.abilities).bit_identical
        return found

    def refused(self, twin: Twin | str, *, switches: bool = False) -> bool:
        """Whether the engine refuses such worlds in words."""
        try:
            self.worlds(twin, switches=switches)
        except (Sim2RealError, LeftOut):
            return True
        return False

    def period_of(self, twin: Twin) -> float:
        """A control period of about 20 ms that is a whole number of its time steps [s]."""
        step = float(twin.compile().model.opt.timestep)
        return max(1, round(PERIOD_S / step)) * step

    def drive(self, worlds: Worlds, periods: int = 12, *, first: int = 0) -> Tensor:
        """(periods, worlds, numbers) states and readings under commands that differ by world."""
        found = []
        for period in range(first, first + periods):
            worlds.step(commands(worlds, period))
            parts = [worlds.state("qpos"), worlds.state("qvel"), worlds.measured.double()]
            found.append(torch.cat(parts, dim=1).clone())
        return torch.stack(found)

    def same(self, one: Tensor, other: Tensor, what: str, *, exact: bool = True) -> None:
        """`what` is missing where numbers differ; bit for bit where the engine promises that."""
        tolerance = (
            0.0 if exact and self._bits else self.tolerance * max(1.0, float(other.abs().max()))
        )
        worst = float((one - other).abs().max())
        if not worst <= tolerance:
            raise Missing(f"{what} (by up to {worst:.2g})")

    @property
    def tolerance(self) -> float:
        """Relative error of numbers that only rounding makes differ."""
        return 1e-4 if self.engine.abilities.precision == "float32" else 1e-9


@contextmanager
def without_warnings() -> Iterator[None]:
    """Silences MuJoCo's warning about a world that diverges, which would also go to a file."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def everyone(worlds: Worlds) -> Tensor:
    """Indices of all worlds."""
    return torch.arange(worlds.count, device=worlds.device)


def only(worlds: Worlds, *ids: int) -> Tensor:
    """These indices, on the worlds' device."""
    return torch.tensor(ids, device=worlds.device)


def start(worlds: Worlds, values: Tensor | None = None, **states: float) -> None:
    """Start all worlds at parameter values, with the first number of some states given."""
    ids = everyone(worlds)
    if values is not None:
        worlds.set_parameters(values.to(worlds.device), ids)
    worlds.reset(ids)
    for name, value in states.items():
        worlds.state(name)[:, 0] = value
    worlds.begin(ids)


def commands(worlds: Worlds, period: int) -> Tensor:
    """(worlds, controls) commands within the middle of their ranges, other ones in each world."""
    model = worlds.model
    low, high = torch.from_numpy(model.actuator_ctrlrange).float().unbind(dim=1)
    limited = torch.from_numpy(model.actuator_ctrllimited[: model.nu]).bool()
    middle = torch.where(limited, 0.5 * (low + high), 0.0)
    reach = torch.where(limited, 0.15 * (high - low), 0.3)
    phase = torch.arange(worlds.count)[:, None] + 0.7 * torch.arange(model.nu)
    return (middle + reach * torch.sin(0.4 * period + phase)).to(worlds.device)


def drawn(worlds: Worlds, share: float) -> Tensor:
    """(worlds, parameters) the same share of each prior's range."""
    row = []
    for parameter in worlds.twin.parameters:
        low, high = parameter.prior.support
        finite = abs(low) < 1e9 and abs(high) < 1e9
        row.append(low + share * (high - low) if finite else parameter.nominal)
    return torch.tensor(row, dtype=torch.float64).repeat(worlds.count, 1)
