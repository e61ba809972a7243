"""Python objects that a text names, as `package.module:Class`."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

from sim2real.errors import explaining

_NAMED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def is_named(text: str) -> bool:
    """Whether a text names something in a Python module."""
    return bool(_NAMED.fullmatch(text))


def named_object(text: str, what: str) -> object:
    """What a text names, made if it is a class; the module may lie in the present folder.

    `what` is what it should be, for the `Sim2RealError` where there is none.
    """
    module, _, name = text.partition(":")
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        with explaining(f"there is no {what} {text}"):
            loaded: object = getattr(import_module(module), name)
        with explaining(f"{what} {text} cannot be made"):
            return loaded() if isinstance(loaded, type) else loaded
    finally:
        if added:
            sys.path.remove(here)
