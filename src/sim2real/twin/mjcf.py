"""Reading MJCF from anywhere.

A model is checked before MuJoCo reads it: it has no document type (so no entities, and no entity
bomb), and no file from outside the twin's folder.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

import mujoco

from sim2real.errors import Sim2RealError, explaining, one_line

_MAX_BYTES = 64 * 1024 * 1024
_MAX_DEPTH = 16
_MESHES, _TEXTURES = "meshdir", "texturedir"
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
    main = _inside(folder, folder, model, "the twin")
    parsed: dict[Path, Element] = {}
    _read_includes(folder, main.parent, main, parsed, depth=0)
    directories = {_MESHES: "", _TEXTURES: ""}
    for root in parsed.values():
        for compiler in root.iter("compiler"):
            for name, before in list(directories.items()):
                directories[name] = compiler.get(name, compiler.get("assetdir", before))
    files = list(parsed)
    for path, root in parsed.items():
        for element in root.iter():
            if not isinstance(element.tag, str) or element.tag == "include":
                continue
            where = directories[_TEXTURES if element.tag == "texture" else _MESHES]
            for attribute in _FILE_ATTRIBUTES:
                value = element.get(attribute)
                if value is None:
                    continue
                name = str(Path(where) / value)
                file = _inside(folder, main.parent, name, f"<{element.tag}> in {path.name}")
                if file not in files:
                    files.append(file)
    return files


def load_spec(folder: Path, model: str) -> mujoco.MjSpec:
    """The model as an editable spec, after `model_files` has passed it."""
    path = model_files(folder, model)[0]
    with explaining(f"{path}", ValueError, mujoco.FatalError):
        return mujoco.MjSpec.from_file(str(path))


def compile_spec(spec: mujoco.MjSpec, path: Path | str) -> mujoco.MjModel:
    """The compiled model; MuJoCo's error becomes one line that names the file."""
    with explaining(f"{path} does not compile", ValueError, mujoco.FatalError):
        return spec.compile()


def _read_includes(
    folder: Path, base: Path, path: Path, parsed: dict[Path, Element], *, depth: int
) -> None:
    """Parse a file and, through its includes and attached models, all it is made of."""
    if depth > _MAX_DEPTH:
        raise Sim2RealError(f"{path}: includes are nested more than {_MAX_DEPTH} deep")
    if path in parsed:
        return
    root = parsed[path] = _parse(path)
    for element in root.iter():
        if element.tag in ("include", "model") and element.get("file") is not None:
            # MuJoCo resolves every include against the main model's folder.
            name = str(element.get("file"))
            target = _inside(folder, base, name, f"<{element.tag}> in {path.name}")
            _read_includes(folder, base, target, parsed, depth=depth + 1)


def _parse(path: Path) -> Element:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise Sim2RealError(f"{path} is larger than {_MAX_BYTES // 2**20} MiB")
        parser = XMLParser(target=_NoDoctype())
        parser.feed(path.read_bytes())
        root: Element = parser.close()
        if root.tag not in ("mujoco", "mujocoinclude"):
            raise Sim2RealError(f"its root is <{root.tag}>, not <mujoco>: it is no MJCF model")
        return root
    except ParseError as error:
        raise Sim2RealError(f"{path} is not XML: {one_line(error)}") from None
    except Sim2RealError as error:
        raise Sim2RealError(f"{path}: {error}") from None
    except OSError as error:
        raise Sim2RealError(f"cannot read {path}: {error.strerror}") from None


def _inside(folder: Path, base: Path, name: str, where: str) -> Path:
    with explaining(f"{where} names {name!r}", OSError, ValueError):
        path = (base / name).resolve()
        found = path.is_file()
    if not path.is_relative_to(folder):
        raise Sim2RealError(f"{where} names {name!r}, which lies outside the folder {folder}")
    if not found:
        raise Sim2RealError(f"{where} names {name!r}, which is not in {folder}")
    return path
