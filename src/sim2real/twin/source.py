"""Reading MJCF that somebody else wrote.

A model may come from anywhere, so it is looked at before MuJoCo sees it: no document type (no
entities, hence no entity bomb), and no file from outside the twin's folder.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

import mujoco

from sim2real.errors import Sim2RealError

_MOST_BYTES = 64 * 1024 * 1024
_MOST_DEPTH = 16
_DIRECTORIES = {
    "mesh": "meshdir",
    "skin": "meshdir",
    "flexcomp": "meshdir",
    "texture": "texturedir",
    "hfield": "texturedir",
}
_FILE_ATTRIBUTES = ("file", "fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")


class _NoDoctype(TreeBuilder):
    """A tree builder that refuses a document type before any entity is read."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise Sim2RealError("a document type (<!DOCTYPE …>) is not allowed in a model")


def model_files(folder: Path, model: str) -> list[Path]:
    """Every file the model is made of, itself first, each inside `folder`.

    Raises `Sim2RealError` for a missing file, malformed XML, a document type, or a path that
    leads outside the folder.
    """
    folder = folder.resolve()
    files: list[Path] = []
    directories: dict[str, str] = {}
    _collect(folder, _inside(folder, model, "the twin"), files, directories, depth=0)
    return files


def load_spec(folder: Path, model: str) -> mujoco.MjSpec:
    """The model as an editable spec, after `model_files` has passed it."""
    path = model_files(folder, model)[0]
    try:
        return mujoco.MjSpec.from_file(str(path))
    except (ValueError, mujoco.FatalError) as error:
        raise Sim2RealError(f"{path}: {one_line(error)}") from None


def compile_spec(spec: mujoco.MjSpec, path: Path | str) -> mujoco.MjModel:
    """The compiled model; MuJoCo's complaint becomes one line that names the file."""
    try:
        return spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise Sim2RealError(f"{path} does not compile: {one_line(error)}") from None


def one_line(error: BaseException) -> str:
    """An error's message on one line."""
    return " ".join(str(error).split())


def _collect(
    folder: Path, path: Path, files: list[Path], directories: dict[str, str], *, depth: int
) -> None:
    if depth > _MOST_DEPTH:
        raise Sim2RealError(f"{path}: includes are nested more than {_MOST_DEPTH} deep")
    if path in files:
        return
    files.append(path)
    root = _parse(path)
    for compiler in root.iter("compiler"):
        both = compiler.get("assetdir")
        for name in ("meshdir", "texturedir"):
            value = compiler.get(name, both)
            if value is not None:
                directories[name] = value
    for element in root.iter():
        for attribute in _FILE_ATTRIBUTES:
            value = element.get(attribute)
            if value is None or not isinstance(element.tag, str):
                continue
            where = directories.get(_DIRECTORIES.get(element.tag, ""), "")
            target = _inside(folder, str(Path(where) / value), f"<{element.tag}> in {path.name}")
            if element.tag in ("include", "model"):
                _collect(folder, target, files, directories, depth=depth + 1)
            elif target not in files:
                files.append(target)


def _parse(path: Path) -> Element:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise Sim2RealError(f"{path} is larger than {_MOST_BYTES // 2**20} MiB")
        parser = XMLParser(target=_NoDoctype())
        parser.feed(path.read_bytes())
        root: Element = parser.close()
        return root
    except ParseError as error:
        raise Sim2RealError(f"{path} is not XML: {one_line(error)}") from None
    except Sim2RealError as error:
        raise Sim2RealError(f"{path}: {error}") from None
    except OSError as error:
        raise Sim2RealError(f"cannot read {path}: {error.strerror}") from None


def _inside(folder: Path, name: str, where: str) -> Path:
    path = (folder / name).resolve()
    if not path.is_relative_to(folder):
        raise Sim2RealError(f"{where} names {name!r}, which lies outside the folder {folder}")
    if not path.is_file():
        raise Sim2RealError(f"{where} names {name!r}, which is not in {folder}")
    return path
