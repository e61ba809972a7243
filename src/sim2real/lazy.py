"""Front doors of rooms that load a file only when one of its names is asked for.

`from sim2real.learn import TrainConfig` must not wait for PyTorch, so a room whose files load
heavy libraries writes its `__init__` like this:

    __all__ = ["TrainConfig", "train"]

    if TYPE_CHECKING:
        from sim2real.learn.config import TrainConfig
        from sim2real.learn.training import train
    else:
        __getattr__, __dir__ = attach(__name__, {"TrainConfig": "config", "train": "training"})

The type checker reads the first branch and Python the second; a name in neither is an error.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def attach(
    room: str, files: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a room, given the file of each public name.

    Files are named relative to the room (`"drift.monitor"`). A public name that is also a file of
    the table is a ValueError: importing that file would put the module in the name's place.
    """
    for name in files.keys() & set(files.values()):
        raise ValueError(f"{room}: a file is called {name!r}, like a public name of the room")

    def get(name: str) -> object:
        if name not in files:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        value = getattr(import_module(f"{room}.{files[name]}"), name)
        setattr(sys.modules[room], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[room]), *files})

    return get, names
