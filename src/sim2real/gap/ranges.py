"""The ranges that parameters are drawn from, and whether they cover what a robot really did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sim2real.arrays import Floats, Table
from sim2real.data import ChannelMap, Logs
from sim2real.files import write_json
from sim2real.gap.reading_coverage import RangeCoverage, range_coverage
from sim2real.logs import aligned_logs
from sim2real.plain import PlainData
from sim2real.policy import open_twin
from sim2real.randomize import drawn
from sim2real.twin import Twin

BAND = (0.025, 0.5, 0.975)
"""Quantiles that are shown of a distribution: median and ends of the middle 95 %."""
STRONG = 0.3
"""Absolute correlation above which two parameters are shown as correlated."""
_DRAWN = 2000
"""Draws that the shown ranges and plots are made from."""


@dataclass(frozen=True, kw_only=True)
class ParameterRange:
    """Where a parameter's values are, each as median and ends of the middle 95 %."""

    unit: str
    nominal: float
    prior: tuple[float, ...]
    posterior: tuple[float, ...] | None
    range: tuple[float, ...]
    """Of the draws."""


@dataclass(frozen=True)
class Correlation:
    """Of the draws of two parameters."""

    parameters: tuple[str, str]
    correlation: float


@dataclass(frozen=True, kw_only=True)
class Ranges(
    PlainData,
    also=("twin=twin.name", "twin.version", "parameters", "correlations"),
    without=("draws",),
):
    """Draws as episodes get them, and their source."""

    twin: Twin
    source: str
    """nominal, prior, posterior or a file, as for `make_sampler`."""
    draws: Floats
    """(draws, parameters)."""
    coverage: RangeCoverage | None = None
    """How well they cover a robot; None without logs."""

    @property
    def fine(self) -> bool:
        """Whether they are neither too narrow nor far too wide, as far as the logs show."""
        return self.coverage is None or not self.coverage.verdict.startswith("too ")

    @property
    def names(self) -> list[str]:
        """Parameters of the twin."""
        return [parameter.name for parameter in self.twin.parameters]

    @property
    def moving(self) -> list[int]:
        """Columns of parameters that vary between draws or under their prior."""
        return [
            k
            for k, p in enumerate(self.twin.parameters)
            if np.ptp(self.draws[:, k]) > 0 or np.ptp(p.prior.quantiles(BAND)) > 0
        ]

    def correlations(self) -> list[Correlation]:
        """Correlated pairs, the strongest first."""
        columns = [k for k in self.moving if np.ptp(self.draws[:, k]) > 0]
        if len(columns) < 2:
            return []
        # Of ranks, since draws may be cut at a bound or not normal.
        ranks = self.draws[:, columns].argsort(axis=0).argsort(axis=0)
        found = np.asarray(np.corrcoef(ranks.T))
        pairs = [
            Correlation((self.names[columns[i]], self.names[columns[j]]), float(found[i, j]))
            for i in range(len(columns))
            for j in range(i)
            if abs(found[i, j]) > STRONG
        ]
        return sorted(pairs, key=lambda pair: -abs(pair.correlation))

    def table(self) -> Table:
        """Prior, posterior and range of each parameter."""
        rows = []
        for name, one in self.parameters.items():
            bands = (one.prior, one.posterior, one.range)
            (low, _, high), (least, _, most) = one.prior, one.range
            shown = (f"{band[0]:.4g} .. {band[2]:.4g}" if band else "" for band in bands)
            share = f"{100 * (most - least) / (high - low):.3g} %" if high > low else ""
            rows.append((name, *shown, one.unit or "×", share))
        head = ("parameter", "prior, 95 %", "posterior, 95 %", "range, 95 %", "unit")
        return (*head, "of the prior"), rows

    @property
    def parameters(self) -> dict[str, ParameterRange]:
        """Those that vary, by name."""
        posterior = posterior_bands(self.twin)
        columns = {self.twin.parameters[k]: self.draws[:, k] for k in self.moving}
        return {
            p.name: ParameterRange(
                unit=p.unit,
                nominal=p.nominal,
                prior=tuple(p.prior.quantiles(BAND).tolist()),
                posterior=posterior.get(p.name),
                range=tuple(np.quantile(mine, BAND).tolist()),
            )
            for p, mine in columns.items()
        }

    def save(self, folder: Path | str) -> None:
        """Write `ranges.json` into a folder."""
        write_json(Path(folder) / "ranges.json", self.to_dict())


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
    return Ranges(twin=twin, source=source, draws=rows, coverage=covered)


def posterior_bands(twin: Twin) -> dict[str, tuple[float, ...]]:
    """Median and ends of the middle 95 % of each parameter of the posterior."""
    if twin.posterior is None:
        return {}
    found = twin.posterior.quantiles(BAND).T.tolist()
    return dict(zip(twin.posterior.names, map(tuple, found), strict=True))
