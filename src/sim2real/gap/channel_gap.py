"""The error of one channel's predictions along the horizon, and how late the robot is."""

from __future__ import annotations

from dataclasses import dataclass

from sim2real.plain import PlainData


@dataclass(frozen=True, kw_only=True)
class ChannelLag(PlainData, without=("dominates",)):
    """How far the robot is behind the prediction."""

    seconds: float
    """Positive if the robot is later than the twin predicts [s]."""
    low: float
    high: float
    """95 % interval [s]."""
    explains: float
    """Share of the squared error that shifting the prediction by it removes."""
    told: bool
    """Whether it is large and certain enough to report."""
    dominates: bool
    """Whether it explains most of the error."""


@dataclass(frozen=True, kw_only=True)
class ChannelGap(
    PlainData,
    also=(
        "error", "predicts", "error_in_noise=in_noise", "error_in_spread=in_spread",
        "rms_in_noise", "rms_in_spread",
    ),
    without=("moves",),
):  # fmt: skip
    """Errors of one sensor's predictions along the horizon, one entry per period."""

    name: str
    unit: str
    times_s: tuple[float, ...]
    """Times after the measured start that have readings [s]."""
    rms: tuple[float, ...]
    """Root mean square error over segments and over the sensor's numbers [unit]."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    """95 % interval, resampled by recording if there are enough [unit]."""
    floor: tuple[float, ...]
    """The same error for the twin's own segments [unit]."""
    stays: tuple[float, ...]
    """The same error of predicting that nothing changes [unit]."""
    noise: float
    """Noise and rounding that the twin expects of a reading [unit]."""
    declared: bool
    """Whether the twin declares that noise; else it is a ten-thousandth of the readings' range."""
    spread: float
    """Standard deviation of the readings themselves [unit]."""
    moves: bool
    """Whether the readings show motion and not only noise."""
    ratio: float
    """Error over the whole horizon, relative to the floor; 1 if the twin is right."""
    ratio_low: float
    ratio_high: float
    lag: ChannelLag | None
    """None if segments are too short, or if assuming no change predicts as well."""

    @property
    def error(self) -> float:
        """Error at the end of the horizon [unit]."""
        return self.rms[-1]

    @property
    def in_noise(self) -> float:
        """Error at the end of the horizon in noise levels."""
        return self.rms[-1] / self.noise

    @property
    def in_spread(self) -> float | None:
        """Error at the end of the horizon in standard deviations of the readings, if they move."""
        return self.rms[-1] / self.spread if self.moves else None

    @property
    def spread_words(self) -> str:
        """The same in words."""
        return "does not move" if self.in_spread is None else f"{100 * self.in_spread:.3g} %"

    @property
    def predicts(self) -> bool:
        """Whether the twin predicts the end of the horizon better than no change does."""
        return self.rms[-1] < self.stays[-1]

    @property
    def rms_in_noise(self) -> list[float]:
        """Errors along the horizon in noise levels."""
        return [value / self.noise for value in self.rms]

    @property
    def rms_in_spread(self) -> list[float] | None:
        """The same in standard deviations of the readings, if they move."""
        return [value / self.spread for value in self.rms] if self.moves else None
