"""A robot as simulated: model, hardware effects, channel map and parameters, in one folder.

A twin is a folder with a `twin.toml` and its MJCF. It has a version, the hash of everything in
it, and is never edited in place: a change makes a new folder that knows its parent.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import tomli_w

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError, nearest
from sim2real.files import atomic_folder, read_json, read_toml, write_json
from sim2real.params import JointDistribution, Parameter
from sim2real.plain import of_plain, plain
from sim2real.twin.address import nominal_of
from sim2real.twin.compiled import CompiledTwin
from sim2real.twin.effects import Effects, add_to_spec, read_effects
from sim2real.twin.events import read_events
from sim2real.twin.mjcf import compile_spec, load_spec, model_files
from sim2real.twin.per_world_model import moving_frames, prepare_model
from sim2real.twin.remainder import Remainder

TWIN_FILE = "twin.toml"
POSTERIOR_FILE = "posterior.json"
REMAINDER_FILE = "remainder.json"
EPISODES_FILE = "episodes.json"


@dataclass(frozen=True, kw_only=True)
class Channel:
    """How one channel of a log is called and measured in the model: model = scale·log + offset."""

    source: str
    """Name in the model: `sensor/…`, `actuator/…` or `joint/…`."""
    unit: str = ""
    """Unit of the model's quantity."""
    scale: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, kw_only=True)
class TwinHeader:
    """The `[twin]` table."""

    model: str
    """File of the MJCF, in the twin's folder."""
    name: str = ""
    parent: str = ""


@dataclass(frozen=True, kw_only=True)
class TwinFile:
    """What `twin.toml` says."""

    twin: TwinHeader
    effects: Mapping[str, Mapping[str, Mapping[str, object]]] = field(default_factory=dict)
    events: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    channels: Mapping[str, Channel | str] = field(default_factory=dict)
    """A text is the source of a channel that differs only in its name."""
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TwinEpisodes:
    """The episodes that an identified twin is made from, by id."""

    identified_on: tuple[str, ...] = ()
    checked_on: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Twin:
    """One version of a simulated robot."""

    name: str
    folder: Path
    """Where its files lie."""
    files: tuple[Path, ...]
    """The model's files, the MJCF itself first."""
    parent: str = ""
    """Version of the twin this one was made from; '' for an original."""
    effects: Mapping[str, Mapping[str, Mapping[str, object]]] = field(default_factory=dict)
    """The `[effects]` table as written: values by kind, pattern and name."""
    events: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """The `[events]` table as written: values by event and name."""
    channels: Mapping[str, Channel] = field(default_factory=dict)
    """Channel map from log names to model names."""
    parameters: tuple[Parameter, ...] = ()
    """What can differ, in the file's order."""
    posterior: JointDistribution | None = None
    """What identification found, if it was run."""
    remainder: Remainder | None = None
    """What parameters could not explain, if that was learned; worlds use it on request."""
    identified_on: tuple[str, ...] = ()
    """Ids of the episodes that posterior and remainder were fitted to; not part of the version."""
    checked_on: tuple[str, ...] = ()
    """Ids of the held-back episodes that decided whether it was kept."""

    @classmethod
    def is_twin(cls, folder: Path) -> bool:
        """Whether a folder looks like a twin."""
        return (folder / TWIN_FILE).is_file()

    @classmethod
    def load(cls, path: Path | str, *, check: bool = True) -> Twin:
        """Read the twin in a folder (or described by a TOML file).

        With `check`, a parameter that moves nothing in the simulation is an error.
        """
        path = Path(path)
        file = path / TWIN_FILE if path.is_dir() else path
        if not file.is_file():
            raise Sim2RealError(f"no twin at {path}: {file} does not exist")
        data = of_plain(TwinFile, _read_tables(file), str(file))
        episodes = TwinEpisodes()
        header, folder = data.twin, file.parent
        posterior, remainder = None, None
        if path.is_dir() and (found := folder / POSTERIOR_FILE).exists():
            posterior = JointDistribution.from_dict(read_json(found), "a posterior")
        if path.is_dir() and (found := folder / REMAINDER_FILE).exists():
            remainder = Remainder.from_dict(read_json(found), str(found))
        if path.is_dir() and (found := folder / EPISODES_FILE).exists():
            episodes = of_plain(TwinEpisodes, read_json(found), str(found))
        twin = cls(
            name=header.name or folder.resolve().name,
            folder=folder,
            files=tuple(model_files(folder, header.model)),
            parent=header.parent,
            effects=data.effects,
            events=data.events,
            channels={
                name: Channel(source=one) if isinstance(one, str) else one
                for name, one in data.channels.items()
            },
            posterior=posterior,
            remainder=remainder,
            identified_on=episodes.identified_on,
            checked_on=episodes.checked_on,
        )
        twin = replace(twin, parameters=twin._read_parameters(data.parameters))
        if check:
            from sim2real.twin.probe import check_effects

            check_effects(twin)
        return twin

    def save(self, folder: Path | str) -> Twin:
        """Write the twin to a new folder, whole or not at all, and return it as loaded there."""
        source = self.folder.resolve()
        with atomic_folder(folder) as temporary:
            for file in self.files:
                target = temporary / file.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
            (temporary / TWIN_FILE).write_text(tomli_w.dumps(self.tables()), encoding="utf-8")
            if self.posterior is not None:
                write_json(temporary / POSTERIOR_FILE, self.posterior.to_dict())
            if self.remainder is not None:
                write_json(temporary / REMAINDER_FILE, self.remainder.to_dict())
            episodes = TwinEpisodes(identified_on=self.identified_on, checked_on=self.checked_on)
            if episodes != TwinEpisodes():
                write_json(temporary / EPISODES_FILE, plain(episodes))
        return Twin.load(folder, check=False)

    def tables(self) -> dict[str, object]:
        """The content of `twin.toml`."""
        model = self.files[0].relative_to(self.folder.resolve())
        return {
            "twin": {"name": self.name, "model": str(model), "parent": self.parent},
            "effects": dict(self.effects),
            "events": dict(self.events),
            "channels": plain(self.channels),
            "parameters": {p.name: p.to_dict() for p in self.parameters},
        }

    @property
    def version(self) -> str:
        """Twelve hexadecimal digits of the hash of everything that the twin simulates with."""
        digest = hashlib.sha256()
        digest.update(json.dumps(self.tables(), sort_keys=True, default=str).encode())
        for file in sorted(self.files):
            digest.update(str(file.relative_to(self.folder.resolve())).encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        if self.posterior is not None:
            digest.update(json.dumps(self.posterior.to_dict(), sort_keys=True).encode())
        if self.remainder is not None:
            digest.update(json.dumps(self.remainder.to_dict(), sort_keys=True).encode())
        return digest.hexdigest()[:12]

    def spec(self) -> mujoco.MjSpec:
        """The model with its hardware effects as a new spec, to be edited and compiled."""
        return self._spec_with_effects()[0]

    def compile(self) -> CompiledTwin:
        """The compiled model with effects and events, ready for parameters.

        A new one each time, so changes to it affect no one else.
        """
        spec, bare, effects = self._spec_with_effects()
        names = [parameter.name for parameter in self.parameters]
        model = _compile_with_moving_frames(spec, self.files[0], moving_frames(bare, names))
        prepare_model(model, names)
        if self.remainder is not None:
            self.remainder.check(model)
        return CompiledTwin(model, effects, read_events(self.events, model), self.remainder)

    def parameter(self, name: str) -> Parameter:
        """The declared parameter of that name."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        valid = [parameter.name for parameter in self.parameters]
        raise Sim2RealError(f"twin {self.name!r} has no parameter {name!r}{nearest(name, valid)}")

    def with_parameters(self, *parameters: Parameter) -> Twin:
        """A copy with these parameters instead, whose parent is this twin."""
        return replace(self, parameters=tuple(parameters), parent=self.version)

    def with_posterior(self, posterior: JointDistribution) -> Twin:
        """A copy that knows `posterior`, whose parent is this twin.

        It has no remainder: that is what the parameters of before could not explain.
        """
        for name in posterior.names:
            self.parameter(name)
        return replace(self, posterior=posterior, remainder=None, parent=self.version)

    def with_remainder(self, remainder: Remainder | None) -> Twin:
        """A copy with this remainder, whose parent is this twin."""
        return replace(self, remainder=remainder, parent=self.version)

    def best_guess(self) -> Floats:
        """(parameters,) the posterior's medians, or nominal values of parameters without one."""
        values = {parameter.name: parameter.nominal for parameter in self.parameters}
        if self.posterior is not None:
            medians = self.posterior.quantiles([0.5])[0]
            values |= dict(zip(self.posterior.names, medians.tolist(), strict=True))
        return np.array([values[parameter.name] for parameter in self.parameters])

    def shortest_step(self, nominal: float) -> float:
        """Shortest time step of any world, where the model's own is `nominal` [s]."""
        for parameter in self.parameters:
            if parameter.name == "option/timestep":
                least = parameter.prior.support[0]
                least *= nominal if parameter.operation == "scale" else 1.0
                least += nominal if parameter.operation == "add" else 0.0
                return least if math.isfinite(least) and least > 0 else nominal
        return nominal

    def _spec_with_effects(self) -> tuple[mujoco.MjSpec, mujoco.MjModel, Effects]:
        """The spec with effects, the model without them, and the effects."""
        spec = load_spec(self.folder, str(self.files[0].relative_to(self.folder.resolve())))
        bare = compile_spec(spec, self.files[0])
        effects = read_effects(self.effects, bare)
        add_to_spec(spec, effects, timestep_s=self.shortest_step(bare.opt.timestep))
        return spec, bare, effects

    def _read_parameters(self, data: Mapping[str, object]) -> tuple[Parameter, ...]:
        # The model must take its per-world form before nominal values are read from it.
        compiled = self.compile()
        prepare_model(compiled.model, list(data))
        return tuple(
            Parameter.of_table(name, table, nominal=nominal_of(compiled, name))
            for name, table in data.items()
        )


def _compile_with_moving_frames(
    spec: mujoco.MjSpec, path: Path, bodies: list[str]
) -> mujoco.MjModel:
    """Compile so that the inertial frames of `bodies` may move within them, per world.

    A body whose inertial frame is its own frame gets a diagonal mass matrix from the compiler; it
    is compiled with a shifted frame, and the true values are written back.
    """
    model = compile_spec(spec, path)
    if not bodies:
        return model
    rows = [model.body(body).id for body in bodies]
    for body, row in zip(bodies, rows, strict=True):
        element = spec.body(body)
        element.explicitinertial = True
        element.mass, element.inertia = model.body_mass[row], model.body_inertia[row]
        element.ipos, element.iquat = model.body_ipos[row] + 0.01, model.body_iquat[row]
        element.fullinertia = [math.nan] * 6
    shifted = compile_spec(spec, path)
    for name in ("body_mass", "body_inertia", "body_ipos", "body_iquat"):
        getattr(shifted, name)[rows] = getattr(model, name)[rows]
    mujoco.mj_setConst(shifted, mujoco.MjData(shifted))
    return shifted


_Tables = dict[str, Any]  # tables of tables, as TOML has them; checked where they are read


def _read_tables(file: Path, *, depth: int = 0) -> _Tables:
    """The TOML of a twin, with the tables of its `base` file (same folder) underneath."""
    data = read_toml(file)
    header = data.get("twin")
    base = header.pop("base", None) if isinstance(header, dict) else None
    if base is None:
        return data
    if depth > 8:
        raise Sim2RealError(f"{file}: base files refer to each other in a circle")
    if Path(str(base)).name != base or not (file.parent / base).is_file() or base == file.name:
        raise Sim2RealError(f"{file}: base = {base!r} must be another file in the same folder")
    return _merge(_read_tables(file.parent / base, depth=depth + 1), data)


def _merge(under: _Tables, over: _Tables) -> _Tables:
    merged = dict(under)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merge(merged[key], value) if both and "kind" not in value else value
    return merged
