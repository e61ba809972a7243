"""`sim2real bench identify`: truths planted in simulated recordings, and how they come back."""

from __future__ import annotations

from collections.abc import Iterator

from sim2real.bench.config import BenchIdentify
from sim2real.bench.identify.calibration import calibration
from sim2real.bench.identify.growth import growth
from sim2real.bench.identify.pace import against_pace
from sim2real.bench.identify.sysid import against_sysid
from sim2real.bench.run import Report, Result
from sim2real.errors import Sim2RealError

_PARTS = {
    "sysid": against_sysid,
    "pace": against_pace,
    "growth": growth,
    "calibration": calibration,
}


def bench_identify(config: BenchIdentify, report: Report) -> Iterator[Result]:
    """Speed and cost against peers, growth, and whether posteriors mean what they say."""
    _require_sysid()
    for part in config.parts:
        yield from _PARTS[part](config, report)


def _require_sysid() -> None:
    """`mujoco.sysid` is there without its requirements, and then empty."""
    from mujoco import sysid

    if not hasattr(sysid, "optimize"):
        raise Sim2RealError("the benchmark needs mujoco.sysid: pip install 'sim2real[bench]'")
