"""What the coverage of some logs by draws of parameters is, sensor by sensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats, Table
from sim2real.gap.thresholds import GAP_THRESHOLDS, GapThresholds
from sim2real.plain import PlainData

BAND = 0.95
"""Share of the simulated readings inside the band."""
LEVELS = tuple(np.linspace(0.05, 0.95, 19).tolist())
"""Probabilities of the bands of a calibration."""


@dataclass(frozen=True, kw_only=True)
class CoveredShare:
    """A share with its 95 % interval, resampled by recording."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"


@dataclass(frozen=True, kw_only=True)
class ReadingRanks:
    """Where readings lie among the simulated ones (probability integral transform)."""

    half: float
    """Share inside the middle 50 %."""
    inside: tuple[float, ...]
    """Share inside the middle of each of `LEVELS`."""
    density: tuple[float, ...]
    """Of the ranks, in ten bins: flat if the draws are right, high at both ends if they scatter too
    little, high in the middle if too much."""


@dataclass(frozen=True, kw_only=True)
class ReadingBands:
    """Readings of a sensor in a few segments, relative to the simulated median [unit]."""

    sensor: str
    unit: str
    period_s: float
    real: Floats
    """(segments, periods)."""
    low: Floats
    high: Floats
    """(segments, periods) ends of the simulated middle 95 %."""


@dataclass(frozen=True, kw_only=True)
class SensorCoverage(PlainData, also=("width", "verdict"), without=("name", "thresholds", "ranks")):
    """How one sensor's readings lie among the simulated ones."""

    name: str
    unit: str
    inside: CoveredShare
    """Readings inside the middle 95 %."""
    explained: CoveredShare
    """Segments whose farthest reading is no farther than in 95 % of the simulated ones."""
    spread: float
    """Standard deviation of the simulated readings, root mean square over time [unit]."""
    error: float
    """Root mean square distance of real readings from the median of the simulated ones [unit]."""
    ranks: ReadingRanks
    thresholds: GapThresholds = GAP_THRESHOLDS

    @property
    def width(self) -> float:
        """Spread over error: about one if the ranges are right."""
        return self.spread / max(self.error, 1e-12)

    @property
    def verdict(self) -> str:
        """'too narrow', 'perhaps too narrow' if the logs are too few to tell, 'too wide' or
        'fine'."""
        limits = self.thresholds
        if self.inside.value < limits.inside_least:
            sure = self.inside.high < limits.inside_least
            return "too narrow" if sure else "perhaps too narrow"
        wide = self.width > limits.spread_most and self.inside.value > BAND
        return "too wide" if wide else "fine"


@dataclass(frozen=True, kw_only=True)
class RangeCoverage(PlainData, also=("verdict", "sensors=by_sensor"), without=("bands",)):
    """How well the ranges cover some logs."""

    source: str
    """Where the draws come from."""
    horizon_s: float
    recordings: int
    windows: int
    """Segments."""
    draws: int
    diverged: int
    """Draws left out because a world with them diverged."""
    sensors: tuple[SensorCoverage, ...]
    explained: CoveredShare
    """Segments that are explained in all sensors together."""
    bands: tuple[ReadingBands, ...]
    """A few segments of some sensors, to look at."""

    @property
    def verdict(self) -> str:
        """'too narrow', or perhaps so, if any sensor is, 'too wide' if all are, else 'fine'."""
        found = {sensor.verdict for sensor in self.sensors}
        for narrow in ("too narrow", "perhaps too narrow"):
            if narrow in found:
                return narrow
        return "too wide" if found == {"too wide"} else "fine"

    @property
    def sentence(self) -> str:
        """The verdict, the sensors that it comes from, and what to do."""
        if self.verdict == "fine":
            return "the ranges contain what the robot did"
        if self.verdict == "too wide":
            return "the ranges are too wide for these logs: identify the twin from them"
        inside = " and ".join(
            f"{100 * sensor.inside.value:.0f} % of {sensor.name}"
            for sensor in self.sensors
            if sensor.verdict == self.verdict
        )
        remedy = "check them with more recordings"
        if self.verdict == "too narrow" and self.source == "posterior":
            remedy = "identify the twin again, with more motions"
        elif self.verdict == "too narrow":
            remedy = "widen the priors in twin.toml, or identify the twin from more motions"
        return f"the ranges are {self.verdict}: {inside} lie inside, not 95 %; {remedy}"

    def table(self) -> Table:
        """The coverage of each sensor."""
        head = ("sensor", "readings inside 95 %", "segments explained", "spread", "error")
        return (*head, "spread / error", "ranges are"), [
            (
                f"{sensor.name} [{sensor.unit}]",
                str(sensor.inside),
                str(sensor.explained),
                f"{sensor.spread:.3g}",
                f"{sensor.error:.3g}",
                f"{sensor.width:.2f}",
                sensor.verdict,
            )
            for sensor in self.sensors
        ]

    @property
    def by_sensor(self) -> dict[str, SensorCoverage]:
        """Its coverage, by the sensor's name."""
        return {sensor.name: sensor for sensor in self.sensors}
