"""The gap between a twin and its robot, as it was measured."""

from __future__ import annotations

from dataclasses import dataclass

from sim2real.arrays import Table
from sim2real.gap.channel_gap import ChannelGap
from sim2real.gap.coverage import RangeCoverage
from sim2real.gap.error_hotspots import Hotspot, ranked
from sim2real.gap.shown_segments import Overlay, SegmentErrors
from sim2real.gap.thresholds import GAP_THRESHOLDS
from sim2real.gap.two_sample import EXCHANGES, MIN_PAIRS, Distance
from sim2real.intervals import holm
from sim2real.results import Result

_MAX_LISTED = 20
"""Most hotspots in the written result."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Gap(
    Result,
    kind="gap",
    also=(
        "verdict", "found", "p_value", "places_looked_at", "channels=by_channel",
        "places=listed_places",
    ),
    without=("level", "overlays", "along_time"),
):  # fmt: skip
    """How a twin and its robot differ, as far as the logs show."""

    twin: str
    version: str
    horizon_s: float
    recordings: tuple[str, ...]
    """Ids of the episodes, in the order of their numbers."""
    seconds: float
    """Total time of the logs [s]."""
    segments: int
    diverged: int
    """Segments left out because the twin diverged."""
    channels: tuple[ChannelGap, ...]
    distances: tuple[Distance, ...]
    places: tuple[Hotspot, ...]
    """All ranges examined; see `worst_places`."""
    coverage: RangeCoverage | None
    """Share of the readings that the posterior's draws cover, if the twin has a posterior."""
    notes: tuple[str, ...]
    overlays: tuple[Overlay, ...]
    """A few segments of the worst channels, the farthest above its floor first."""
    along_time: SegmentErrors
    """The error of the worst channel in every segment."""
    level: float = GAP_THRESHOLDS.level
    """Significance level."""

    @property
    def p_value(self) -> float:
        """The smallest p-value of distances and hotspots, corrected for their number."""
        place = min((p.p_value for p in self.places if p.excess > 0), default=1.0)
        return min(holm([self._distance_p, place]))

    @property
    def found(self) -> bool:
        """Whether twin and robot differ significantly."""
        return self.p_value < self.level

    @property
    def worst(self) -> ChannelGap:
        """The channel that is farthest above its floor."""
        return max(self.channels, key=lambda channel: channel.ratio)

    @property
    def worst_places(self) -> tuple[Hotspot, ...]:
        """Hotspots: ranges whose error is significantly larger than elsewhere; see `ranked`."""
        # Holm: if the distances are significant at half of the level, hotspots get all of it.
        sure = self._distance_p < self.level / 2
        return ranked(self.places, level=self.level if sure else self.level / 2)

    @property
    def verdict(self) -> str:
        """The gap in one sentence."""
        worst, seconds = self.worst, f"{self.seconds:.0f} s"
        size = (
            f"{two_figures(worst.in_noise)} noise levels ({worst.error:.2g} {worst.unit or '1'})"
            f" after {worst.times_s[-1]:.2g} s on {worst.name} (over the horizon,"
            f" {two_figures(worst.ratio)} times what its own noise causes)"
        )
        if self.found:
            late = ""
            if worst.lag is not None and worst.lag.dominates:
                side = "later" if worst.lag.seconds > 0 else "earlier"
                ms = 1000 * abs(worst.lag.seconds)
                late = f", mainly because the robot is {ms:.0f} ms {side}"
            return f"the twin is off by {size}{self._largest()}{late}{self._apart()}"
        if not self.distances:
            return (
                f"too few segments to tell ({MIN_PAIRS} are needed: record for longer, or choose a"
                f" shorter --horizon-s): errors are {size}"
            )
        if worst.ratio_low > 1:
            return f"a gap is not shown in {seconds}: errors are {size}{self._apart()}"
        return f"no gap is found in {seconds}: errors are {size}{self._apart()}"

    @property
    def by_channel(self) -> dict[str, ChannelGap]:
        """Errors by the channel's name."""
        return {channel.name: channel for channel in self.channels}

    @property
    def listed_places(self) -> tuple[Hotspot, ...]:
        """The worst hotspots, as many as are written."""
        return self.worst_places[:_MAX_LISTED]

    @property
    def places_looked_at(self) -> int:
        """How many ranges were examined."""
        return len(self.places)

    def channel_table(self) -> Table:
        """The error of each channel, the farthest above its floor first."""
        head = (
            "channel", "error", "in noise levels", "of its spread", "error / floor",
            "error of assuming no change", "late by",
        )  # fmt: skip
        return head, [
            (
                f"{c.name} [{c.unit or '1'}]",
                f"{c.error:.3g}",
                two_figures(c.in_noise),
                c.spread_words,
                f"{c.ratio:.2f} ({c.ratio_low:.2f} to {c.ratio_high:.2f})",
                f"{c.stays[-1]:.3g}",
                f"{1000 * c.lag.seconds:+.0f} ms" if c.lag is not None and c.lag.told else "",
            )
            for c in sorted(self.channels, key=lambda channel: -channel.ratio)
        ]

    def distance_table(self) -> Table:
        """The tests of real against simulated motion."""
        return ("test of", "segments", "MMD²", "p", "accuracy of a classifier", "p"), [
            (
                d.of,
                str(d.pairs),
                f"{d.mmd:.2g}",
                f"{d.mmd_p:.2g}",
                f"{d.accuracy:.2f} ({d.accuracy_low:.2f} to {d.accuracy_high:.2f})",
                f"{d.accuracy_p:.2g}",
            )
            for d in self.distances
        ]

    @property
    def _distance_p(self) -> float:
        """The smallest p-value of the distances, corrected for their number."""
        return min(holm([p for d in self.distances for p in (d.mmd_p, d.accuracy_p)]), default=1)

    def _largest(self) -> str:
        """The worst channel's hotspot; without a significant distance, any channel's."""
        apart = self._distance_p < self.level
        mine = [place for place in self.worst_places if place.channel == self.worst.name]
        if mine and apart:
            return f"; largest {mine[0].words}"
        if apart:
            return ""
        place = (*mine, *self.worst_places)[0]
        return f"; {place.channel} is worse {place.words} than elsewhere (p = {place.p_value:.2g})"

    def _apart(self) -> str:
        """How real and simulated motion differ, by the more significant of the two tests."""
        if not self.distances or (self.found and self._distance_p >= self.level):
            return ""
        best = max(self.distances, key=lambda d: (-d.accuracy_p, d.accuracy))
        other = min(self.distances, key=lambda d: d.mmd_p)
        if self.found and other.mmd_p < best.accuracy_p:
            return (
                f"; the MMD² of real and simulated {other.of} is {other.mmd:.2g}"
                f" ({_chance(other.mmd_p)})"
            )
        return (
            f"; a classifier separates real from simulated {best.of} with an accuracy of"
            f" {best.accuracy:.2f} ({_chance(best.accuracy_p)})"
        )


def two_figures(value: float) -> str:
    """A number with two figures and no power of ten."""
    return f"{float(f'{value:.2g}'):,g}"


def _chance(p_value: float) -> str:
    least = 1.0 / (1 + EXCHANGES)
    return f"p ≤ {least:.2g}" if p_value <= least else f"p = {p_value:.2g}"
