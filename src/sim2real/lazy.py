"""Front doors of rooms that load a file only when one of its names is asked for.

`from sim2real.learn import TrainConfig` must not wait for PyTorch, so a room whose files load
heavy libraries writes its `__init__` like this:

    __all__ = ["TrainConfig", "train"]

    if TYPE_CHECKING:
        from sim2real.learn.learn_configs import TrainConfig
        from sim2real.learn.trainer import train
    else:
        __getattr__, __dir__ = attach(__name__, __file__)

The type checker reads the first branch. Python reads it too, as text, to find the file of a name.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def attach(room: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a room whose `__init__` is `file`.

    A public name that is also a file of the room is a ValueError: importing that file would put the
    module in the name's place.
    """
    homes = _homes(file)
    for name in homes.keys() & {home.rpartition(".")[2] for home in homes.values()}:
        if homes[name].startswith(room + "."):
            raise ValueError(f"{room}: a file is called {name!r}, like a public name of the room")

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[room], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[room]), *homes})

    return get, names


def _homes(file: str) -> dict[str, str]:
    """The module of each name that is imported `if TYPE_CHECKING` in a file."""
    found: dict[str, str] = {}
    for node in ast.parse(Path(file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If):
            for line in node.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    found |= {alias.name: line.module for alias in line.names}
    return found
