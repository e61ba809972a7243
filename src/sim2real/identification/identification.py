"""What an identification found: parameters with their uncertainty, and how well they predict."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError
from sim2real.gap import RangeCoverage
from sim2real.identification.held_back_improvement import Improvement
from sim2real.identification.identifiability import Identifiability
from sim2real.plain import PlainData
from sim2real.replay import ReplayedNumbers
from sim2real.results import Result

if TYPE_CHECKING:
    from sim2real.identification.cma_es import CmaSearch
    from sim2real.identification.most_probable import Fit
    from sim2real.identification.posterior import Posterior
    from sim2real.identification.whole_recordings import WholeRecordings
    from sim2real.logs import ControlLog
    from sim2real.replay import LeastSquares
    from sim2real.twin import Remainder, Twin
else:
    Remainder = object  # pages are made where MuJoCo is not installed


@dataclass(frozen=True, kw_only=True)
class HeldBackCheck(
    PlainData,
    also=("episodes=recordings", "sensors=changes"),
    without=("recordings", "units", "before", "after"),
):
    """Prediction errors on held-back recordings, before and after."""

    horizon_s: float
    recordings: tuple[str, ...]
    """Ids of the held-back episodes."""
    by_time: bool
    """Whether the ends of all recordings were held back, because there are few."""
    sensors: tuple[str, ...]
    units: tuple[str, ...]
    before: Floats
    """(sensors,) root mean square error of the old twin, in the sensor's unit."""
    after: Floats
    """(sensors,) of the new one."""
    ratio: float
    """Error after, relative to before, over all sensors; below one is better."""

    @property
    def changes(self) -> dict[str, dict[str, float]]:
        """Error before and after, by sensor."""
        pairs = zip(self.sensors, self.before, self.after, strict=True)
        return {name: {"before": before, "after": after} for name, before, after in pairs}

    def table(self) -> tuple[tuple[str, ...], list[tuple[str | tuple[str, str], ...]]]:
        """The errors; the last cell of a row has a class."""
        head = ("sensor", "before", "after", "unit", "ratio")
        rows: list[tuple[str | tuple[str, str], ...]] = []
        columns = (self.sensors, self.units, self.before.tolist(), self.after.tolist())
        for name, unit, before, after in zip(*columns, strict=True):
            if np.isfinite(before):
                ratio = after / before if before > 0 else float("nan")
                better = (f"{ratio:.2f}", "good" if ratio < 1 else "bad")
                rows.append((name, f"{before:.4g}", f"{after:.4g}", unit or "1", better))
        return head, rows


@dataclass(frozen=True, kw_only=True)
class LearnedRemainder(
    Improvement,
    PlainData,
    also=("kept", "horizons"),
    without=("choice", "before", "after", "remainder", "horizons_s", "sensors"),
):
    """A remainder, and the errors of recordings that each fold did not see."""

    terms: tuple[str, ...]
    """What it depends on."""
    ridge: float
    horizons_s: tuple[float, ...]
    sensors: tuple[str, ...]
    remainder: Remainder | None = field(default=None, compare=False, repr=False)
    """None if it is not kept."""

    @property
    def kept(self) -> bool:
        """Whether it is kept."""
        return not self.why

    @property
    def horizons(self) -> list[dict[str, object]]:
        """The errors of each sensor by horizon."""
        return [
            {
                "horizon_s": horizon_s,
                "sensors": {
                    name: {"before": before, "after": after}
                    for name, before, after in zip(self.sensors, *errors, strict=True)
                    if np.isfinite([before, after]).all()
                },
            }
            for horizon_s, *errors in zip(self.horizons_s, self.before, self.after, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class IdentifiedParameter(
    PlainData,
    without=(
        "name", "operation", "before", "prior_median", "prior_std", "prior_curve", "bounds",
        "density",
    ),
):  # fmt: skip
    """What is known of a parameter."""

    name: str
    unit: str
    operation: str
    """As of the twin's `Parameter`."""
    before: float
    """Value in the old twin."""
    value: float
    std: float
    scatter: float
    """Standard deviation from segment to segment."""
    shrinkage: float
    """Standard deviation after the data, relative to before."""
    at_bound: bool
    bounds: tuple[float, float]
    prior_median: float
    prior_std: float
    prior_curve: Floats
    """(199,) quantiles at `PRIOR_SHARES`."""
    density: Floats | None
    """(400,) of the posterior along `span`, up to a factor; None for a Gaussian."""

    @property
    def shift(self) -> float:
        """Distance from the prior's median, in the prior's standard deviations."""
        return (self.value - self.prior_median) / max(self.prior_std, 1e-300)

    @property
    def span(self) -> Floats:
        """(400,) values over which prior and posterior spread."""
        reach = 4 * max(self.std, 1e-12)
        low = min(float(self.prior_curve[0]), self.value - reach)
        high = max(float(self.prior_curve[-1]), self.value + reach)
        return np.linspace(low, high, 400)


@dataclass(frozen=True, kw_only=True)
class IdentificationWork:
    """What an identification was computed with; it is not part of the result."""

    twin: Twin
    """The new version; the old one if it was not promoted."""
    fit: Fit | CmaSearch
    posterior: Posterior
    logs: tuple[ControlLog, ...]
    """The logs that it was identified from."""
    held_back: tuple[ControlLog, ...]
    """The recordings of the check, whole; some may be among `logs`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Identification(
    Result,
    kind="identification",
    file="result.json",
    also=(
        "twin=name", "parameters", "scatter=scatter_table", "held_back=check", "remainder?=learned",
    ),
    without=(
        "name", "estimates", "check", "learned", "replays", "calibration", "unchecked", "work",
    ),
):  # fmt: skip
    """The result of an identification."""

    name: str
    """Of the twin."""
    version: str
    """Of the new twin; of the old one if it was not promoted."""
    parent: str
    """Version of the old one."""
    promoted: bool
    why: str
    """Why it was not promoted; '' if it was."""
    estimates: tuple[IdentifiedParameter, ...]
    scatter: Floats
    """(fitted, fitted) covariance of the parameters from segment to segment.

    Zero for contact parameters, which are fitted to whole recordings."""
    identifiability: Identifiability
    discrepancy: float
    """Factor by which the variance was widened because the twin does not explain the logs; >= 1."""
    effective_draws: float
    """Share of effective draws when the Gaussian was checked; nan if it was not."""
    horizon_s: float
    segments: int
    evaluations: int
    check: HeldBackCheck
    replays: ReplayedNumbers
    """Held-back recordings as the old and the new best guess predict them."""
    calibration: RangeCoverage | None = None
    """How held-back readings lie among predictions drawn from the posterior."""
    unchecked: str = ""
    """Why that was not checked."""
    notes: tuple[str, ...] = ()
    learned: LearnedRemainder | None = None
    """The remainder, if one was to be learned."""
    work: IdentificationWork | None = field(default=None, compare=False, repr=False)

    @property
    def twin(self) -> Twin:
        """The new version of the twin; the old one if it was not promoted."""
        return self._work.twin

    @property
    def fit(self) -> Fit | CmaSearch:
        """The fit of all logs."""
        return self._work.fit

    @property
    def posterior(self) -> Posterior:
        """The joint distribution of the fitted parameters, given the logs."""
        return self._work.posterior

    @property
    def problem(self) -> LeastSquares | WholeRecordings:
        """What was fitted."""
        return self.fit.problem

    @property
    def names(self) -> tuple[str, ...]:
        """The fitted parameters."""
        return tuple(one.name for one in self.estimates)

    @property
    def values(self) -> dict[str, float]:
        """Estimates by parameter."""
        return {one.name: one.value for one in self.estimates}

    @property
    def at_bounds(self) -> tuple[str, ...]:
        """Parameters at a bound."""
        return tuple(one.name for one in self.estimates if one.at_bound)

    @property
    def parameters(self) -> dict[str, IdentifiedParameter]:
        """The fitted parameters by name."""
        return {one.name: one for one in self.estimates}

    @property
    def scatter_table(self) -> dict[str, object]:
        """The scatter, with the names of its rows and columns."""
        return {"names": self.names, "covariance": self.scatter}

    def save_beside(self, folder: Path) -> None:
        """Write the new twin, if it was promoted, with the states its robot was recorded in."""
        if self.promoted and self.work is not None:
            from sim2real.identification.recorded_starts import seen_states
            from sim2real.tasks import STARTS_FILE

            self.twin.save(folder / "twin")
            if (seen := seen_states(self.twin, self.work.logs)) is not None:
                seen.save(folder / STARTS_FILE)

    @property
    def _work(self) -> IdentificationWork:
        if self.work is None:
            raise Sim2RealError(
                f"this identification of {self.name} was read from a file, which holds numbers"
                " only; open_twin opens the twin that was saved beside it"
            )
        return self.work
