"""Has a deployed robot moved away from what it was, when, and in which parameters?

Every episode is replayed in the bundle's twin and condensed to a few numbers that depend on that
episode alone: how far each parameter would have to move to explain it, by itself and jointly with
the others, and how much each sensor scatters beyond that. A real robot never matches its twin, so
these are compared not with zero but with the robot's own first episodes, the baseline, by ranks.

While nothing changes, episodes are exchangeable, and the probability that the monitor ever raises
an alarm, however long it runs, is at most `false_alarm`. Nothing else is assumed. Any change is
drift, even for a harmless reason: warm gears, an empty battery, other goals or another surface than
in the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sim2real.arrays import Floats
from sim2real.data import Episode, Logs, select
from sim2real.errors import Sim2RealError
from sim2real.files import read_json, write_json
from sim2real.logs import ControlLog
from sim2real.phases import Report
from sim2real.plain import PlainData
from sim2real.policy import Bundle
from sim2real.replay import Sensitivity, open_parameters, sensitivity
from sim2real.robot.drift.blame import causes, change_point
from sim2real.robot.drift.drift_report import DriftReport, DriftVerdict
from sim2real.robot.drift.ranks import RankEvidence
from sim2real.robot.drift.thresholds import DRIFT_THRESHOLDS, DriftThresholds
from sim2real.twin import Twin

SCHEMA = 1
HORIZON_S = 0.4
"""Length of the segments that are replayed [s]."""
MIN_BASELINE = 5
"""With fewer episodes no rank is ever surprising."""


@dataclass(frozen=True, kw_only=True)
class DriftScores:
    """One episode in a few numbers."""

    episode: str
    alone: Floats
    """(parameters,) how far each would have to be off, by itself, to explain it [prior std]."""
    spread: Floats
    """(sensors,) log of how much each scatters around the best fit, in expected variances."""
    shift: Floats
    """(parameters,) how far all are off together [prior std]."""

    @property
    def watched(self) -> Floats:
        """(2 parameters + sensors,) the numbers that the test looks at."""
        return np.concatenate([self.alone, self.shift, self.spread])

    @classmethod
    def of(cls, found: Sensitivity) -> DriftScores:
        """The numbers of a replayed log."""
        return cls(
            episode=found.replay.log.episode,
            alone=found.alone,
            spread=found.spread,
            shift=found.shift,
        )


@dataclass(frozen=True, kw_only=True)
class MonitorState(PlainData, schema=SCHEMA):
    """All that a monitor knows, as it is kept."""

    schema: int = SCHEMA
    bundle: str
    """Id of the bundle that is watched."""
    twin: str
    """Version of its twin."""
    baseline: int
    false_alarm: float
    names: tuple[str, ...]
    """Parameters that are watched."""
    scales: Floats
    """(parameters,) standard deviation of each prior, in its unit."""
    information: Floats
    """(parameters, parameters) of all episodes together."""
    episodes: tuple[DriftScores, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.false_alarm < 1:
            raise Sim2RealError(
                f"the false-alarm rate must be between 0 and 1, not {self.false_alarm:g}"
            )
        if self.baseline < MIN_BASELINE:
            raise Sim2RealError(
                f"a baseline of {self.baseline} episodes is too short: at least {MIN_BASELINE} are"
                " needed, and about 20 to notice a change soon"
            )


class DriftMonitor:
    """Watches one deployed bundle on one robot, episode by episode, for weeks."""

    def __init__(self, bundle: Bundle, state: MonitorState) -> None:
        """A monitor that continues from a state; use `empty` or `load`."""
        self.bundle = bundle
        self.twin = Twin.load(bundle.twin, check=False)
        self.state = replace(state, episodes=())
        """What it knows, the episodes taken in so far included."""
        sensors = (f"spread of {sensor.name}" for sensor in bundle.contract.sensors)
        self.watched = (*state.names, *(f"{name}, jointly" for name in state.names), *sensors)
        """What the test looks at, one stream each."""
        self.verdicts: list[DriftVerdict] = []
        self._streams: list[RankEvidence] = []
        for scores in state.episodes:
            self.take(scores, np.zeros_like(state.information))

    @classmethod
    def empty(cls, bundle: Bundle, *, baseline: int, false_alarm: float = 0.01) -> DriftMonitor:
        """A monitor whose baseline will be the first `baseline` episodes added."""
        twin = Twin.load(bundle.twin, check=False)
        watched = open_parameters(twin)
        state = MonitorState(
            bundle=bundle.id,
            twin=twin.version,
            baseline=baseline,
            false_alarm=false_alarm,
            names=tuple(parameter.name for parameter in watched),
            scales=np.array([parameter.prior_std for parameter in watched]),
            information=np.zeros((len(watched), len(watched))),
        )
        return cls(bundle, state)

    @property
    def alarm(self) -> int | None:
        """Number of the episode that raised the alarm, from 1."""
        return next((v.number for v in self.verdicts if v.alarm), None)

    def add(self, episode: Episode) -> DriftVerdict | None:
        """Take in the next episode; None while the baseline is not complete.

        One that cannot be replayed (too short, say) is a `Sim2RealError` and changes nothing.
        """
        log = ControlLog.of(episode, self.bundle.contract, self.twin.channels)
        found = sensitivity(self.twin, log, horizon_s=HORIZON_S)
        if found.names != self.state.names:
            raise Sim2RealError("the twin's parameters are not those the monitor was started with")
        self.take(DriftScores.of(found), found.information)
        return self.verdicts[-1] if self.verdicts else None

    def add_all(
        self, episodes: Sequence[Episode], *, report: Report = lambda done, of: None
    ) -> tuple[str, ...]:
        """Add episodes in order; returns why each one that could not be replayed was skipped."""
        skipped = []
        for done, episode in enumerate(episodes, 1):
            try:
                self.add(episode)
            except Sim2RealError as error:
                skipped.append(str(error))
            report(done, len(episodes))
        return tuple(skipped)

    def report(
        self,
        skipped: tuple[str, ...] = (),
        *,
        thresholds: DriftThresholds = DRIFT_THRESHOLDS,
    ) -> DriftReport:
        """What all episodes so far say; `skipped` are those that could not be taken in."""
        state, change, found = self.state, None, []
        if self.alarm is not None:
            watched = np.array([scores.watched for scores in state.episodes])
            most = np.array([stream.most for stream in self._streams])
            change = change_point(watched[:, most >= 0.5 * most.max()], state.baseline)
            found = causes(
                np.array([scores.shift for scores in state.episodes]),
                state.information / len(state.episodes),
                change=change,
                names=state.names,
                units=tuple(self.twin.parameter(name).unit for name in state.names),
                scales=state.scales,
                thresholds=thresholds,
            )
        return DriftReport(
            bundle=self.bundle.id,
            baseline=state.baseline,
            false_alarm=state.false_alarm,
            verdicts=tuple(self.verdicts),
            alarm=self.alarm,
            change=None if change is None else change + 1,
            causes=tuple(found),
            skipped=skipped,
        )

    def save(self, path: Path | str) -> None:
        """Write everything a later `load` needs to go on, whole or not at all."""
        write_json(path, self.state.to_dict())

    @classmethod
    def load(cls, path: Path | str, bundle: Bundle) -> DriftMonitor:
        """The monitor saved in a file; one of another bundle or twin is a `Sim2RealError`."""
        state = MonitorState.from_dict(read_json(path), f"{path}")
        if state.bundle != bundle.id:
            raise Sim2RealError(f"{path} watches another bundle: start a new baseline for this one")
        few, sensors = len(state.names), len(bundle.contract.sensors)
        shapes = {(s.alone.shape, s.shift.shape, s.spread.shape) for s in state.episodes}
        if not shapes <= {((few,), (few,), (sensors,))} or state.information.shape != (few, few):
            raise Sim2RealError(
                f"{path} is damaged: its arrays do not have the shapes of this bundle"
            )
        return cls(bundle, state)

    def take(self, scores: DriftScores, information: Floats) -> None:
        """Take in the next episode, replayed already; `information` is that of its sensitivity."""
        state = self.state
        if any(scores.episode == known.episode for known in state.episodes):
            raise Sim2RealError(
                f"episode {scores.episode} was given twice: a copy looks like a robot that never"
                " changes"
            )
        episodes = (*state.episodes, scores)
        self.state = replace(state, episodes=episodes, information=state.information + information)
        if len(episodes) < state.baseline:
            return
        if len(episodes) == state.baseline:
            first = np.array([known.watched for known in episodes])
            self._streams = [RankEvidence(column) for column in first.T]
            return
        logs = [s.add(float(v)) for s, v in zip(self._streams, scores.watched, strict=True)]
        # Each stream gets its share of the false alarms, so that together they keep to the rate.
        best = int(np.argmax(logs))
        evidence = math.exp(min(logs[best] - math.log(len(logs)), 700.0))
        self.verdicts.append(
            DriftVerdict(
                number=len(episodes),
                episode=scores.episode,
                evidence=evidence,
                threshold=1 / state.false_alarm,
                telling=self.watched[best],
                alarm=self.alarm is not None or evidence >= 1 / state.false_alarm,
            )
        )


def watch_drift(
    bundle: Bundle | Path | str,
    logs: Logs,
    *,
    baseline: int = 20,
    false_alarm: float = 0.01,
    state: Path | str | None = None,
    thresholds: DriftThresholds = DRIFT_THRESHOLDS,
    report: Report = lambda done, of: None,
) -> DriftReport:
    """Check a robot's episodes in order; the first `baseline` of them are the reference.

    While nothing changes, the probability that it ever raises an alarm is at most `false_alarm`.
    `state` is a file that keeps the monitor: if it exists, the monitor continues with the baseline
    and the rate it was started with, and skips episodes it knows. Without one, episodes that leave
    nothing to compare with the baseline are a `Sim2RealError`.
    """
    bundle = Bundle.open(bundle)
    episodes = list(select(logs, twin=bundle.contract.robot))
    if state is not None and Path(state).exists():
        monitor = DriftMonitor.load(state, bundle)
        taken = {scores.episode for scores in monitor.state.episodes}
        episodes = [episode for episode in episodes if episode.id not in taken]
    else:
        monitor = DriftMonitor.empty(bundle, baseline=baseline, false_alarm=false_alarm)
    if state is None and len(episodes) <= baseline:
        raise Sim2RealError(
            f"{len(episodes)} episodes are no more than the baseline of {baseline}: none is left to"
            " compare with it; record more, or use a smaller --baseline"
        )
    skipped = monitor.add_all(episodes, report=report)
    if state is not None:
        monitor.save(state)
    elif not monitor.verdicts:
        raise Sim2RealError(
            f"only {len(monitor.state.episodes)} episodes could be replayed, no more than the"
            f" baseline of {baseline}: none is left to compare with it; the first problem:"
            f" {skipped[0]}"
        )
    return monitor.report(skipped, thresholds=thresholds)
