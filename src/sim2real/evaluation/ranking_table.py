"""Tables of policies with their scores in simulation and in reality."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sim2real.errors import Sim2RealError, nearest, number_at, table_at
from sim2real.evaluation.ranking import (
    MEASURES,
    RANK_THRESHOLDS,
    Ranking,
    RankThresholds,
    ScoredPolicy,
    rank,
    unranked,
)
from sim2real.evaluation.trial_files import number_in, read_rows, text_in
from sim2real.files import read_json
from sim2real.results import Result

_MAX_TRIALS = 10**9


@dataclass(frozen=True, kw_only=True)
class ScoreColumns:
    """Names of the columns; in JSON with two tables, `sim` and `real` are their names."""

    policy: str = "policy"
    sim: str = "sim"
    real: str = "real"
    group: tuple[str, ...] = ()
    """Columns that define groups; by default `group` or `task`, if there is one."""
    n_real: str = "n_real"


@dataclass(frozen=True, kw_only=True, eq=False)
class RankedTable(Result, kind="ranking", also=("verdict",), without=("confidence",)):
    """How well simulation ranks the policies of a table."""

    rankings: tuple[Ranking, ...]
    """One per group of policies; with several groups, all together come first."""
    left_out: tuple[str, ...]
    """Rows that were not used, and why."""
    confidence: float
    """Of the intervals."""

    @property
    def verdict(self) -> str:
        """Of the first ranking."""
        return self.rankings[0].verdict

    @property
    def columns(self) -> tuple[str, ...]:
        """Heads of `rows`."""
        return ("group", "policies", *MEASURES, "loss")

    def rows(self) -> Iterator[tuple[object, ...]]:
        """The measures of each ranking, for a table."""
        for one in self.rankings:
            values = [one.measures[name].shown for name in MEASURES]
            yield (self._name(one), one.policies, *values, f"{one.loss:.3f}")

    def sentences(self) -> Iterator[str]:
        """Verdicts and intervals, a line each."""
        yield from (f"left out: {reason}" for reason in self.left_out)
        if len(self.rankings) > 1:
            yield "of all, mmrv and loss are on each group's own scale, from 0 to 1"
        for one in self.rankings:
            yield f"{self._name(one)}: {one.verdict}".removeprefix(": ")
        first = self.rankings[0]
        if first.over:
            intervals = ", ".join(f"{name} {first.measures[name]}" for name in MEASURES)
            yield f"{100 * self.confidence:g} % intervals over {first.over}: {intervals}"

    def _name(self, ranking: Ranking) -> str:
        return ranking.group or ("all, within groups" if len(self.rankings) > 1 else "")


def rank_table(
    table: Path | str,
    *,
    policy: str = "policy",
    sim: str = "sim",
    real: str = "real",
    group: tuple[str, ...] = (),
    n_real: str = "n_real",
    confidence: float = 0.95,
    thresholds: RankThresholds = RANK_THRESHOLDS,
    seed: int = 0,
) -> RankedTable:
    """Say whether simulation ranks the policies of a CSV or JSON table as reality does.

    The names are those of its columns; see `read_scored`.
    """
    columns = ScoreColumns(policy=policy, sim=sim, real=real, group=group, n_real=n_real)
    scored, left_out = read_scored(Path(table), columns)
    found = rank(scored, confidence=confidence, thresholds=thresholds, seed=seed)
    return RankedTable(
        rankings=tuple(found),
        left_out=(*left_out, *unranked(scored)),
        confidence=confidence,
    )


def read_scored(
    path: Path, columns: ScoreColumns | None = None
) -> tuple[list[ScoredPolicy], list[str]]:
    """Policies of a CSV or JSON table, and the rows that were left out, with the reason.

    A row is a policy, or one real trial of it: several rows of one policy and group are trials.
    JSON may also be two tables, `sim` and `real`, each of policies or of groups of policies.
    """
    columns = columns or ScoreColumns()
    if path.suffix == ".json":
        data = read_json(path)
        if isinstance(data, dict):
            return _of_tables(data, columns, path)
    return _of_rows(read_rows(path), columns, path)


def _of_rows(
    rows: Sequence[Mapping[str, object]], columns: ScoreColumns, path: Path
) -> tuple[list[ScoredPolicy], list[str]]:
    known = list(rows[0])
    default = tuple(name for name in ("group", "task") if name in known)
    group_columns = columns.group or default
    chosen = (columns.n_real,) if columns.n_real != ScoreColumns.n_real else ()
    for name in (columns.policy, columns.sim, columns.real, *group_columns, *chosen):
        if name not in known:
            raise Sim2RealError(f"{path} has no column {name!r}{nearest(name, known)}")
    trials: dict[tuple[str, str], list[tuple[float, float, int]]] = {}
    left_out = []
    for number, row in enumerate(rows, 1):
        where = f"{path}, row {number}"
        group = " ".join(text_in(row.get(name)) for name in group_columns)
        policy = text_in(row.get(columns.policy))
        if not policy:
            raise Sim2RealError(f"{where}: no {columns.policy}")
        values = [
            number_in(row.get(name), f"{where}: {name}") for name in (columns.sim, columns.real)
        ]
        if values[0] is None or values[1] is None:
            missing = columns.sim if values[0] is None else columns.real
            left_out.append(f"row {number}, {group} {policy}: no {missing}".replace(",  ", ", "))
            continue
        count = number_in(row.get(columns.n_real), f"{where}: {columns.n_real}") or 0.0
        if not 0 <= count <= _MAX_TRIALS or count != int(count):
            raise Sim2RealError(
                f"{where}: {columns.n_real} must be a whole number from 0 to {_MAX_TRIALS:,}"
            )
        if count and not 0 <= values[1] <= 1:
            raise Sim2RealError(
                f"{where}: {columns.real} of {int(count)} trials must be from 0 to 1"
            )
        trials.setdefault((group, policy), []).append((values[0], values[1], int(count)))
    return [_scored(path, *key, entries) for key, entries in trials.items()], left_out


def _scored(
    path: Path, group: str, policy: str, entries: list[tuple[float, float, int]]
) -> ScoredPolicy:
    """One policy from its rows: real trials, or numbers of trials to add up."""
    sim, real, counts = (np.array(column) for column in zip(*entries, strict=True))
    whose = f"{path}: {len(entries)} rows of policy {policy!r}" + (f" in {group}" if group else "")
    if np.ptp(sim) > 0 and not np.isin(sim, (0.0, 1.0)).all():
        raise Sim2RealError(
            f"{whose} have scores from {sim.min():g} to {sim.max():g} in simulation: separate them"
            " by columns named with --group"
        )
    if counts.any() and not counts.all():
        raise Sim2RealError(f"{whose}, and only some state their number of real trials")
    counted = bool(counts.all())
    return ScoredPolicy(
        policy=policy,
        group=group,
        sim=float(sim.mean()),
        real=float(np.average(real, weights=counts if counted else None)),
        real_trials=() if counted or len(entries) == 1 else tuple(real.tolist()),
        n_real=int(counts.sum()),
    )


def _of_tables(
    data: Mapping[str, object], columns: ScoreColumns, path: Path
) -> tuple[list[ScoredPolicy], list[str]]:
    tables = []
    for name in (columns.sim, columns.real):
        if name not in data:
            raise Sim2RealError(f"{path} has no table {name!r}{nearest(name, data)}")
        tables.append(_flat(data[name], f"{path}: {name}"))
    sim, real = tables
    left_out = [f"{' '.join(key).strip()}: only in one of the tables" for key in sim.keys() ^ real]
    scored = [
        ScoredPolicy(group=key[0], policy=key[1], sim=sim[key], real=real[key])
        for key in real
        if key in sim
    ]
    return scored, sorted(left_out)


def _flat(table: object, where: str) -> dict[tuple[str, str], float]:
    """Scores by (group, policy), from a table of policies or of groups of policies."""
    found = {}
    for name, value in table_at(table, where).items():
        if isinstance(value, Mapping):
            for policy, score in value.items():
                found[name, policy] = number_at(score, f"{where}: {name}: {policy}")
        else:
            found["", name] = number_at(value, f"{where}: {name}")
    return found
