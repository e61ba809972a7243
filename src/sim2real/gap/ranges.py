"""The ranges that parameters are drawn from, and whether they cover what a robot really did."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats, Table
from sim2real.gap.coverage import RangeCoverage
from sim2real.results import Result

BAND = (0.025, 0.5, 0.975)
"""Quantiles that are shown of a distribution: median and ends of the middle 95 %."""
STRONG = 0.3
"""Absolute correlation above which two parameters are shown as correlated."""
PRIOR_SHARES = np.linspace(0.005, 0.995, 199)
"""Shares whose quantiles show a prior."""


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
class RangedParameter:
    """A parameter of the twin, and what was believed of it."""

    name: str
    unit: str
    nominal: float
    prior: tuple[float, ...]
    """Median and ends of the middle 95 %."""
    prior_curve: Floats
    """(199,) quantiles at `PRIOR_SHARES`."""
    posterior: tuple[float, ...] | None
    """As `prior`, if it was identified."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranges(
    Result,
    kind="ranges",
    also=("parameters", "correlations"),
    without=("all_parameters", "draws"),
):
    """Draws as episodes get them, and their source."""

    twin: str
    version: str
    source: str
    """nominal, prior, posterior or a file, as for `make_sampler`."""
    all_parameters: tuple[RangedParameter, ...]
    """Also those that are the same in every episode."""
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
        return [parameter.name for parameter in self.all_parameters]

    @property
    def moving(self) -> list[int]:
        """Columns of parameters that vary between draws or under their prior."""
        return [
            k
            for k, p in enumerate(self.all_parameters)
            if np.ptp(self.draws[:, k]) > 0 or np.ptp(p.prior) > 0
        ]

    @property
    def parameters(self) -> dict[str, ParameterRange]:
        """Those that vary, by name."""
        columns = [(self.all_parameters[k], self.draws[:, k]) for k in self.moving]
        return {
            p.name: ParameterRange(
                unit=p.unit,
                nominal=p.nominal,
                prior=p.prior,
                posterior=p.posterior,
                range=tuple(np.quantile(mine, BAND).tolist()),
            )
            for p, mine in columns
        }

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
