"""Worlds of a twin, on an engine chosen by name.

A package adds an engine with an entry point in the group `sim2real.engines`, whose name is the
engine's name and whose value is its `Engine`; a script hands its `Engine` over.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from sim2real.errors import Sim2RealError, explaining, nearest
from sim2real.twin import Twin
from sim2real.worlds.engine import Engine, WorldsRequest
from sim2real.worlds.protocol import Worlds

GROUP = "sim2real.engines"
_BUILT_IN = {"cpu": ("cpu:CPU", ""), "warp": ("warp:WARP", "gpu")}
"""Where each engine of ours is, and the extra that installs what it needs."""


def engine_names() -> list[str]:
    """Every engine that can be asked for; some need a package that is not installed."""
    return sorted({*_BUILT_IN, *(point.name for point in entry_points(group=GROUP))})


def find_engine(name: Engine | str) -> Engine:
    """The engine of that name, or the engine itself; an unknown name says what is near."""
    if not isinstance(name, str):
        return name
    if name in _BUILT_IN:
        place, extra = _BUILT_IN[name]
        module, _, attribute = place.partition(":")
        try:
            found: Engine = getattr(import_module(f"sim2real.worlds.{module}"), attribute)
        except ModuleNotFoundError as error:
            raise Sim2RealError(
                f"engine {name!r} needs {error.name}: pip install 'sim2real[{extra}]'"
            ) from None
        return found
    for point in entry_points(group=GROUP):
        if point.name == name:
            with explaining(f"engine {name!r} of {point.value} cannot be loaded"):
                loaded: Engine = point.load()
            return loaded
    raise Sim2RealError(f"unknown engine {name!r}{nearest(name, engine_names())}")


def open_worlds(
    twin: Twin | Path | str,
    count: int,
    *,
    engine: Engine | str = "cpu",
    rate_hz: float | None = None,
    period_s: float | None = None,
    seed: int = 0,
    threads: int = 0,
    switches: bool = False,
    remainder: bool = False,
    device: str = "",
) -> Worlds:
    """`count` worlds of a twin at their nominal parameters, stepped 50 times a second.

    Another control rate is `rate_hz` or `period_s`. `seed` keys noise and delays; `threads` 0 takes
    every core. With `switches`, commands of nan switch actuators off; with `remainder` the twin's
    learned remainder acts. What the engine cannot do is a `Sim2RealError`.
    """
    if rate_hz is not None and period_s is not None:
        raise Sim2RealError("a control rate is rate_hz or period_s, not both")
    if period_s is None:
        period_s = 1.0 / (50.0 if rate_hz is None else rate_hz)
    if count < 1:
        raise Sim2RealError(f"there must be at least one world, not {count}")
    found = find_engine(engine)
    found.abilities.check(switches=switches, remainder=remainder, device=device)
    request = WorldsRequest(
        count=count,
        period_s=period_s,
        seed=seed,
        threads=threads,
        switches=switches,
        remainder=remainder,
        device=device,
    )
    return found.open(twin if isinstance(twin, Twin) else Twin.load(twin), request)
