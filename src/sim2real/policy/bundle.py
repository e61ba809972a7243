"""A deployable policy: graphs, contract, limits, twin and provenance in one folder with hashes.

Nothing in it is code or pickle. Opening it checks every byte against the manifest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from sim2real.contract import Contract, Limits
from sim2real.data import Lake
from sim2real.errors import Sim2RealError, table_at
from sim2real.files import atomic_folder, read_json, write_json
from sim2real.twin import Twin

SCHEMA = 1
GRAPHS = ("observe", "policy", "act", "rest")
_MANIFEST = "manifest.json"
_RECORDS = "ladder"


class PolicyEpisodes(TypedDict, total=False):
    """Ids of the episodes that a policy comes from; a name without any is left out."""

    identified_on: list[str]
    """Those that the twin it was trained in was fitted to."""
    checked_on: list[str]
    """Held-back ones that decided whether that twin was kept."""
    trained_on: list[str]
    """Those that training itself used: states of the robot that it started from."""


class ExportProvenance(PolicyEpisodes):
    """Where a bundle comes from, and what its export measured."""

    task: str
    policy: str
    """Id of the trained policy."""
    run: str
    source: str
    """Where the parameters of its worlds came from."""
    remainder: NotRequired[bool]
    """Whether the twin's learned remainder acted in training."""
    twin: str
    twin_version: str
    trained_in: str
    """Version of the twin it was trained in."""
    opset: int
    observations: int
    software: dict[str, str]
    largest_difference: NotRequired[dict[str, float]]
    """Largest difference of each graph from the module it was exported from."""


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A policy that can be deployed, as it lies in a folder."""

    folder: Path
    id: str
    """Hash of all its files."""
    contract: Contract
    limits: Limits
    provenance: ExportProvenance
    """Where it comes from."""

    @classmethod
    def is_bundle(cls, source: object) -> bool:
        """Whether it is a bundle, or a folder that looks like one."""
        if isinstance(source, Path | str):
            return (Path(source) / _MANIFEST).is_file()
        return isinstance(source, cls)

    @classmethod
    def open(cls, folder: Bundle | Path | str) -> Bundle:
        """The bundle in a folder; one that has changed by a byte is a `Sim2RealError`."""
        if isinstance(folder, Bundle):
            return folder
        folder = Path(folder)
        if not cls.is_bundle(folder):
            raise Sim2RealError(f"no bundle at {folder}")
        manifest = dict(table_at(read_json(folder / _MANIFEST), f"{folder / _MANIFEST}"))
        schema = manifest.get("schema")
        if not isinstance(schema, int) or schema > SCHEMA:
            raise Sim2RealError(
                f"{folder} has bundle schema {schema}; this version reads {SCHEMA}: update sim2real"
            )
        listed = dict(table_at(manifest.get("files"), f"{folder / _MANIFEST}: files"))
        there = _files(folder)
        for name in sorted(set(listed) | set(there)):
            if name not in there:
                raise Sim2RealError(f"{folder}: {name} is missing")
            if name not in listed:
                raise Sim2RealError(f"{folder}: {name} does not belong to the bundle")
            if there[name] != listed[name]:
                raise Sim2RealError(f"{folder}: {name} has changed since it was exported")
        found = _digest(listed)
        if (folder / _MANIFEST).read_bytes() != _manifest(listed):
            raise Sim2RealError(f"{folder}: {_MANIFEST} has changed since it was exported")
        contract = Contract.from_dict(read_json(folder / "contract.json"))
        limits = Limits.from_dict(read_json(folder / "limits.json"), "limits")
        _fit(folder, contract, limits)
        told = table_at(read_json(folder / "provenance.json"), "provenance")
        provenance = cast(ExportProvenance, dict(told))  # sealed by the manifest, as exported
        return cls(folder=folder, id=found, contract=contract, limits=limits, provenance=provenance)

    @property
    def twin(self) -> Path:
        """Folder of the twin it was made for."""
        return self.folder / "twin"

    @property
    def records(self) -> Path:
        """Folder with the records of its steps up the ladder of trust."""
        return self.folder / _RECORDS

    @property
    def policy(self) -> str:
        """What episodes in which it acts, and lakes, call it."""
        return self.id[:32]

    @property
    def tested_on(self) -> tuple[str, ...]:
        """Ids of the episodes in which it has run on robots, as the records of its ladder have
        them; recordings that it was only replayed on do not count."""
        found: dict[str, None] = {}
        for path in sorted(self.records.glob("*.json")):
            record = table_at(read_json(path), str(path))
            if record.get("step") != "replay":
                found |= dict.fromkeys(str(id_) for id_ in record.get("episodes", ()) if id_)
        return tuple(found)

    def keep_origin(self, lake: Lake) -> None:
        """Record in a lake which episodes it was made from; again, that changes nothing."""
        told = self.provenance
        for purpose, ids in (
            ("identification", told.get("identified_on")),
            ("check", told.get("checked_on")),
            ("training", told.get("trained_on")),
        ):
            if ids:
                lake.keeper.record_origin(self.policy, ids, purpose=purpose)

    def graph(self, name: str) -> bytes:
        """One of the ONNX graphs."""
        return (self.folder / f"{name}.onnx").read_bytes()


def open_twin(source: Twin | Bundle | Path | str) -> Twin:
    """The twin in its own folder, in a bundle, or in what an identification has saved."""
    if isinstance(source, Twin):
        return source
    if isinstance(source, Bundle) or Bundle.is_bundle(source):
        return Twin.load(Bundle.open(source).twin)
    saved = Path(source) / "twin"
    return Twin.load(saved if Twin.is_twin(saved) else source)


def write_bundle(
    folder: Path,
    *,
    contract: Contract,
    limits: Limits,
    graphs: Mapping[str, bytes],
    twin: Twin,
    provenance: ExportProvenance,
) -> Bundle:
    """Write a new bundle, whole or not at all."""
    with atomic_folder(folder) as temporary:
        for name in GRAPHS:
            (temporary / f"{name}.onnx").write_bytes(graphs[name])
        write_json(temporary / "contract.json", contract.to_dict())
        write_json(temporary / "limits.json", limits.to_dict())
        text = json.dumps(provenance, indent=2, sort_keys=True, allow_nan=False)
        (temporary / "provenance.json").write_text(text + "\n", encoding="utf-8")
        twin.save(temporary / "twin")
        seal(temporary)
    return Bundle.open(folder)


def seal(folder: Path) -> None:
    """Write the manifest of a bundle's folder: the hash of every file, and the id made of them."""
    (folder / _MANIFEST).write_bytes(_manifest(_files(folder)))


def _files(folder: Path) -> dict[str, str]:
    """Hash of every file of a bundle; what was recorded with it later does not count."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            raise Sim2RealError(
                f"{folder}: {name} is a symbolic link, which a bundle must not have"
            )
        if path.is_file() and name != _MANIFEST and not name.startswith(f"{_RECORDS}/"):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def _manifest(listed: dict[str, str]) -> bytes:
    content = {"schema": SCHEMA, "id": _digest(listed), "files": listed}
    return (json.dumps(content, indent=2, sort_keys=True) + "\n").encode()


def _digest(listed: dict[str, str]) -> str:
    text = json.dumps(listed, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _fit(folder: Path, contract: Contract, limits: Limits) -> None:
    """Refuse limits that contradict the contract."""
    joints = [joint.name for joint in limits.joints]
    commanded = [command.joint for command in contract.commands]
    if joints != commanded:
        raise Sim2RealError(
            f"{folder}: the limits are for {joints}, but the commands for {commanded}"
        )
    if len(limits.observation_low) != contract.frame_width:
        raise Sim2RealError(
            f"{folder}: the limits cover {len(limits.observation_low)} numbers of the observation,"
            f" but the contract has {contract.frame_width}"
        )
    for joint, command in zip(limits.joints, contract.commands, strict=True):
        if joint.command_low < command.low - 1e-9 or joint.command_high > command.high + 1e-9:
            raise Sim2RealError(
                f"{folder}: limits of joint {joint.name!r} allow commands from"
                f" {joint.command_low:g} to {joint.command_high:g}, but the actuator takes"
                f" {command.low:g} to {command.high:g}"
            )
