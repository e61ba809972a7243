"""Drawing parameters as episodes get them, and checking the draws against recordings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sim2real.arrays import Floats
from sim2real.data import ChannelMap, Logs
from sim2real.gap.coverage import RangeCoverage
from sim2real.gap.ranges import BAND, PRIOR_SHARES, RangedParameter, Ranges
from sim2real.gap.reading_coverage import range_coverage
from sim2real.logs import aligned_logs
from sim2real.policy import open_twin
from sim2real.randomize import drawn
from sim2real.twin import Twin

_DRAWN = 2000
"""Draws that the shown ranges and plots are made from."""


def look_at_ranges(
    twin: Twin | Path | str,
    logs: Logs = (),
    *,
    params: str = "",
    channels: ChannelMap | Path | str | None = None,
    rate_hz: float = 0.0,
    horizon_s: float = 0.5,
    draws: int = 64,
    seed: int = 0,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Ranges:
    """Draw parameters as episodes get them; with logs of the robot, check whether they cover it.

    `params` is the source of parameters, by default the posterior, or else the priors. Every
    segment of `horizon_s` of the logs is replayed with `draws` draws. Use logs that the twin was
    not identified from.
    """
    twin = open_twin(twin)
    source = params or ("prior" if twin.posterior is None else "posterior")
    rows = drawn(twin, source, count=_DRAWN, seed=seed).numpy()
    covered = None
    if logs:
        covered = range_coverage(
            twin,
            aligned_logs(twin, logs, channels=channels, rate_hz=rate_hz),
            source=source,
            draws=draws,
            horizon_s=horizon_s,
            seed=seed,
            threads=threads,
            report=report,
        )
    return ranges_of(twin, source, rows, coverage=covered)


def ranges_of(
    twin: Twin, source: str, draws: Floats, *, coverage: RangeCoverage | None = None
) -> Ranges:
    """The ranges of a twin, given draws (n, parameters) from a source."""
    posterior = posterior_bands(twin)
    return Ranges(
        twin=twin.name,
        version=twin.version,
        source=source,
        all_parameters=tuple(
            RangedParameter(
                name=p.name,
                unit=p.unit,
                nominal=p.nominal,
                prior=tuple(p.prior.quantiles(BAND).tolist()),
                prior_curve=p.prior.quantiles(PRIOR_SHARES),
                posterior=posterior.get(p.name),
            )
            for p in twin.parameters
        ),
        draws=draws,
        coverage=coverage,
    )


def posterior_bands(twin: Twin) -> dict[str, tuple[float, ...]]:
    """Median and ends of the middle 95 % of each parameter of the posterior."""
    if twin.posterior is None:
        return {}
    found = twin.posterior.quantiles(BAND).T.tolist()
    return dict(zip(twin.posterior.names, map(tuple, found), strict=True))
