"""The three usual complaints, tested: works only in simulation, only in places, only at first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.stats import fisher_exact, mannwhitneyu

from sim2real.attribution.thresholds import FAILURE_THRESHOLDS, FailureThresholds
from sim2real.intervals import unpaired_difference, wilson
from sim2real.plain import PlainData

if TYPE_CHECKING:
    from sim2real.data import Episode
    from sim2real.logs import ControlLog
    from sim2real.tasks import Task


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One trial on a robot."""

    log: ControlLog
    won: bool
    unit: str
    """Serial number of the robot, and its site."""
    recorded: str
    """Start time; '' if not recorded."""
    began: dict[str, float]
    """Goals and first readings, by name."""
    turning: frozenset[str] = frozenset()
    """Those of them that are angles of freely turning joints."""
    stopped: str = ""
    """Why a supervisor, or the robot itself, ended it; '' where neither did."""

    @classmethod
    def of(cls, episode: Episode, log: ControlLog, task: type[Task]) -> Attempt:
        """An episode that was judged, with its log."""
        source = episode.provenance
        began: dict[str, float] = {}
        for name in task.goals:
            signal = episode.signals.get(f"goal/{name}")
            if signal is not None and len(signal.values):
                for k, value in enumerate(np.atleast_1d(signal.values[0])):
                    began[f"goal {name}[{k}]"] = float(value)
        names = [name for spec in log.contract.sensors for name in spec.numbers]
        for name, value in zip(names, log.readings[0], strict=True):
            if np.isfinite(value):
                began[f"{name} at the start"] = float(value)
        return cls(
            log=log,
            won=episode.outcome == "success",
            unit=" ".join(part for part in (source.serial, source.site) if part),
            recorded=source.recorded,
            began=began,
            stopped=source.stopped,
        )


@dataclass(frozen=True, kw_only=True)
class Complaint(PlainData, also=("words=__str__",)):
    """One complaint that the trials confirm."""

    name: Literal[
        "works in simulation but not on hardware",
        "works in one place but not another",
        "degrades over time",
    ]
    why: str
    p_value: float

    def __str__(self) -> str:
        return f"{self.name}: {self.why} (p = {self.p_value:.2g})"


def complaints(
    attempts: Sequence[Attempt],
    *,
    simulated: tuple[int, int],
    thresholds: FailureThresholds = FAILURE_THRESHOLDS,
) -> tuple[Complaint, ...]:
    """The complaints that the trials confirm; `simulated` are successes and trials in training."""
    tested = (
        *_only_simulated(attempts, simulated),
        *_in_places(attempts, thresholds.min_outcomes),
        *_degrading(attempts, thresholds.min_outcomes),
    )
    return tuple(one for one in tested if one.p_value < thresholds.level)


def _only_simulated(attempts: Sequence[Attempt], simulated: tuple[int, int]) -> Iterator[Complaint]:
    won, tried = sum(attempt.won for attempt in attempts), len(attempts)
    sim_won, sim_tried = simulated
    table = [[won, tried - won], [sim_won, sim_tried - sim_won]]
    p_value = float(fisher_exact(table, alternative="less").pvalue)
    real, sim = wilson(won, tried), wilson(sim_won, sim_tried)
    yield Complaint(
        name="works in simulation but not on hardware",
        why=f"{sim} where it was trained, {real} on the robot:"
        f" {100 * unpaired_difference(real, sim).value:.0f} points lost",
        p_value=p_value,
    )


def _in_places(attempts: Sequence[Attempt], min_outcomes: int) -> Iterator[Complaint]:
    """Start conditions, and robots, against outcomes."""
    won = np.array([attempt.won for attempt in attempts])
    if min(won.sum(), (~won).sum()) < min_outcomes:
        return
    found: list[tuple[float, str]] = []
    names = sorted({name for attempt in attempts for name in attempt.began})
    for name in names:
        values = np.array([attempt.began.get(name, np.nan) for attempt in attempts])
        if name in attempts[0].turning:  # whole turns make no difference
            middle = np.angle(np.nanmean(np.exp(1j * values)))
            values = middle + np.remainder(values - middle + np.pi, 2 * np.pi) - np.pi
        good, bad = values[won & np.isfinite(values)], values[~won & np.isfinite(values)]
        if min(len(good), len(bad)) < min_outcomes or np.ptp([*good, *bad]) == 0:
            continue
        p_value = float(mannwhitneyu(good, bad).pvalue)
        way = "high" if np.median(bad) > np.median(good) else "low"
        why = (
            f"trials fail where {name} is {way}: median {np.median(bad):.3g} of those that failed,"
            f" {np.median(good):.3g} of those that succeeded"
        )
        found.append((p_value, why))
    units = sorted({attempt.unit for attempt in attempts})
    for unit in units if len(units) > 1 else []:
        here = np.array([attempt.unit == unit for attempt in attempts])
        table = [[(won & here).sum(), (~won & here).sum()],
                 [(won & ~here).sum(), (~won & ~here).sum()]]  # fmt: skip
        p_value = float(fisher_exact(table, alternative="less").pvalue)
        mine, others = won[here], won[~here]
        why = (
            f"{wilson(int(mine.sum()), len(mine))} on {unit or 'a robot without a name'},"
            f" {wilson(int(others.sum()), len(others))} on others"
        )
        found.append((p_value, why))
    if found:
        p_value, why = min(found)
        p_value = min(1.0, p_value * len(found))
        yield Complaint(name="works in one place but not another", why=why, p_value=p_value)


def _degrading(attempts: Sequence[Attempt], min_outcomes: int) -> Iterator[Complaint]:
    """Whether failures come later than successes."""
    known = sorted((a for a in attempts if a.recorded), key=lambda attempt: attempt.recorded)
    won = np.array([attempt.won for attempt in known], dtype=bool)
    if min(won.sum(), (~won).sum()) < min_outcomes:
        return
    places = np.arange(len(won))
    p_value = float(mannwhitneyu(places[~won], places[won], alternative="greater").pvalue)
    half = len(won) // 2
    yield Complaint(
        name="degrades over time",
        why=f"{wilson(int(won[:half].sum()), half)} in the first half of the trials,"
        f" {wilson(int(won[half:].sum()), len(won) - half)} in the second",
        p_value=p_value,
    )
