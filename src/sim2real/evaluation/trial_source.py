"""Trials, wherever they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from sim2real.data import Lake, select
from sim2real.errors import Sim2RealError, nearest
from sim2real.evaluation.trial import Trial, trials_of_episodes, trials_of_lake
from sim2real.evaluation.trial_files import read_trials

TrialSource: TypeAlias = Sequence[Trial] | Path | str
"""Trials, or where they are kept: a folder of `evaluate`, recordings, a lake, or a CSV or JSON file
of trials; FILE@POLICY selects one policy's trials."""


def open_trials(source: TrialSource, *, world: Literal["sim", "real"] | None = None) -> list[Trial]:
    """Trials of one policy; only simulated or only real ones if `world` says so.

    A source without any, or with several policies, is a `Sim2RealError`.
    """
    if not isinstance(source, Path | str):
        return [trial for trial in source if world in (None, trial.source)]
    path, policy = str(source), ""
    if "@" in path and not Path(path).exists():
        path, policy = path.rsplit("@", 1)
    trials = [trial for trial in _read(path) if world in (None, trial.source)]
    if not trials:
        kind = {"sim": "simulated ", "real": "real "}.get(world or "", "")
        raise Sim2RealError(f"{path} holds no {kind}trial with an outcome")
    policies = sorted({trial.policy for trial in trials})
    if policy:
        trials = [trial for trial in trials if trial.policy == policy]
        if not trials:
            raise Sim2RealError(f"{path} has no policy {policy!r}{nearest(policy, policies)}")
    elif len(policies) > 1:
        raise Sim2RealError(
            f"{path} holds trials of {len(policies)} policies; choose one, as {path}@{policies[0]}"
        )
    return trials


def _read(text: str) -> list[Trial]:
    if not text:
        raise Sim2RealError("'' is not a file, a folder or a lake of trials")
    path = Path(text)
    if "://" in text or (path / "episodes").is_dir():
        return trials_of_lake(Lake.open(text))
    for folder in (path, path / "evaluate"):
        if (folder / "trials.npz").is_file():
            return read_trials(folder)
    if path.suffix in (".csv", ".json", ".npz"):
        return read_trials(path)
    return trials_of_episodes(list(select(text)))
