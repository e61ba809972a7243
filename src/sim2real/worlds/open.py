"""Worlds of a twin, on an engine chosen by name."""

from __future__ import annotations

from pathlib import Path

from sim2real.errors import Sim2RealError, nearest
from sim2real.twin import Twin
from sim2real.worlds.cpu import CpuWorlds

ENGINES = ("cpu",)


def open_worlds(
    twin: Twin | Path | str,
    count: int,
    *,
    engine: str = "cpu",
    rate_hz: float = 50.0,
    seed: int = 0,
    threads: int = 0,
    remainder: bool = False,
) -> CpuWorlds:
    """`count` worlds of a twin at their nominal parameters, stepped at a control rate.

    `seed` keys noise and delays; `threads` 0 takes every core. With `remainder` the twin's learned
    remainder acts.
    """
    if engine not in ENGINES:
        raise Sim2RealError(f"unknown engine {engine!r}{nearest(engine, ENGINES)}")
    return CpuWorlds(
        twin if isinstance(twin, Twin) else Twin.load(twin),
        count=count,
        period_s=1.0 / rate_hz,
        seed=seed,
        threads=threads,
        remainder=remainder,
    )
