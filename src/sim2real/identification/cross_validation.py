"""Identification with each part of the recordings left out in turn.

One check on held-back recordings may be luck. Here every recording is predicted by a twin that was
identified without it, and how far the estimates move from fold to fold says how uncertain they are,
whatever the model believes (the jackknife). Folds know nothing of each other: an executor does them
side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from sim2real.data import ChannelMap, Logs, select
from sim2real.errors import Sim2RealError
from sim2real.identification.identified_twin import identify
from sim2real.phases import Report
from sim2real.plain import MaybeNan, PlainData, of_plain
from sim2real.policy import open_twin
from sim2real.results import Result
from sim2real.scale import Shard, ShardEvent, all_of, open_store
from sim2real.twin import Twin

_TOO_SURE = 2.0
"""Uncertainty from fold to fold, relative to the stated one, above which that is too small."""


@dataclass(frozen=True, kw_only=True)
class Fold(PlainData):
    """What a twin predicts of the recordings that it was identified without."""

    left_out: tuple[str, ...]
    """Ids of those episodes."""
    ratio: MaybeNan
    """Error in them, relative to the old twin's, over all sensors."""
    before: Mapping[str, MaybeNan]
    """Root mean square error of the old twin, by sensor, in its unit."""
    after: Mapping[str, MaybeNan]
    """That of the identified twin."""
    values: Mapping[str, float]
    """Its parameters."""
    std: Mapping[str, float]
    """Their stated standard deviations."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossValidation(
    Result, kind="cross-validation", also=("twin=name", "ratio", "moved"), without=("name",)
):
    """An identification, checked on every recording."""

    name: str
    """Of the twin."""
    version: str
    """Of the twin before."""
    folds: tuple[Fold, ...]

    @property
    def ratio(self) -> float:
        """Error of recordings that were left out, relative to the old twin's."""
        return float(np.sqrt(np.mean([fold.ratio**2 for fold in self.folds])))

    @property
    def moved(self) -> dict[str, float]:
        """Standard deviation by the jackknife over the stated one, by parameter."""
        count, found = len(self.folds), {}
        for name in self.folds[0].values:
            values = np.array([fold.values[name] for fold in self.folds])
            stated = float(np.mean([fold.std[name] for fold in self.folds]))
            scatter = math.sqrt((count - 1) * float(values.var()))
            found[name] = scatter / max(stated, 1e-300)
        return found

    @property
    def fine(self) -> bool:
        """Whether left-out recordings are predicted better than before."""
        return self.ratio < 1.0

    def sentences(self) -> Iterator[str]:
        """The result, a line each."""
        for number, fold in enumerate(self.folds, 1):
            yield (
                f"fold {number}, {len(fold.left_out)} left out: the error is {fold.ratio:.2f} times"
                " that of the old twin"
            )
        yield f"all recordings, each predicted without it: {self.ratio:.2f} times"
        sure = [name for name, ratio in self.moved.items() if ratio > _TOO_SURE]
        if sure:
            yield (
                f"more uncertain than stated, by how much they move between folds:"
                f" {', '.join(f'{name} (× {self.moved[name]:.1f})' for name in sure)}"
            )


def cross_validate(
    twin: Twin | Path | str,
    logs: Logs,
    *,
    folds: int = 4,
    parameters: Sequence[str] = (),
    channels: ChannelMap | Path | str | None = None,
    rate_hz: float = 0.0,
    starts: int = 8,
    seed: int = 0,
    executor: str = "",
    workers: int = 0,
    store: str = "",
    threads: int = 0,
    report: Report = lambda done, of: None,
) -> CrossValidation:
    """Identify a twin `folds` times, each time without another part of the recordings.

    Options are those of `identify`, and `executor`, `workers` and `store` say where folds are done
    and kept; without an executor they are done here, one after the other.
    """
    twin = open_twin(twin)
    chosen = select(logs, purpose="training", twin=twin.name, channels=channels)
    if not 2 <= folds <= len(chosen):
        raise Sim2RealError(
            f"--folds must be 2 or more, and at most as many as there are recordings"
            f" ({len(chosen)}), not {folds}"
        )
    given: dict[str, Any] = {
        "parameters": tuple(parameters), "rate_hz": rate_hz, "starts": starts, "seed": seed,
    }  # fmt: skip
    parts = [[episode.id for episode in chosen][k::folds] for k in range(folds)]
    if not executor:
        found = []
        for part in parts:
            found.append(_fold(twin, chosen, part, threads=threads, **given))
            report(len(found), folds)
        return CrossValidation(name=twin.name, version=twin.version, folds=tuple(found))
    with (
        open_store(store, executor) as keep,
        TemporaryDirectory(prefix="sim2real-folds-") as made,
    ):
        files = {
            "twin": twin.save(Path(made) / "twin").folder,
            "logs": chosen.save(Path(made) / "logs"),
        }
        shards = [
            Shard.of(
                identify_fold,
                inputs={**given, "left_out": part},
                files=files,
                name=f"fold {number}",
            )
            for number, part in enumerate(parts, 1)
        ]

        def told(event: ShardEvent) -> None:
            report(event.ended, folds)

        done = all_of(shards, executor=executor, workers=workers, store=keep, report=told)
    kept = tuple(of_plain(Fold, one.result, one.name) for one in done)
    return CrossValidation(name=twin.name, version=twin.version, folds=kept)


def identify_fold(
    twin: str, logs: str, *,
    left_out: list[str], parameters: list[str], rate_hz: float, starts: int, seed: int,
) -> Fold:  # fmt: skip
    """One fold, from the files of a twin and of all recordings."""
    return _fold(
        Twin.load(twin), Path(logs), left_out, threads=1,
        parameters=tuple(parameters), rate_hz=rate_hz, starts=starts, seed=seed,
    )  # fmt: skip


def _fold(
    twin: Twin, logs: Logs, left_out: Sequence[str], *,
    parameters: tuple[str, ...], rate_hz: float, starts: int, seed: int, threads: int,
) -> Fold:  # fmt: skip
    chosen = select(logs)
    mine = tuple(episode for episode in chosen if episode.id in left_out)
    others = tuple(episode for episode in chosen if episode.id not in left_out)
    found = identify(
        twin,
        replace(chosen, episodes=others),
        held_back=replace(chosen, episodes=mine),
        parameters=parameters,
        rate_hz=rate_hz,
        starts=starts,
        seed=seed,
        threads=threads,
    )
    check = found.check
    return Fold(
        left_out=tuple(left_out),
        ratio=check.ratio,
        before=dict(zip(check.sensors, check.before.tolist(), strict=True)),
        after=dict(zip(check.sensors, check.after.tolist(), strict=True)),
        values={one.name: one.value for one in found.estimates},
        std={one.name: one.std for one in found.estimates},
    )
