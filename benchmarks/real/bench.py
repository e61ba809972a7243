"""Real robots: a twin fitted to published recordings, scored on ones it never saw.

The fitter knows nothing of the data sets: each brings a twin, a channel map, and a way to score.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.benchmark import Options, Result, report, side_by_side
from benchmarks.real import cube, double_pendulum, emps, qube, so101, xl330
from benchmarks.real.dataset import EXAMPLES, DataSet
from sim2real.data import Episode
from sim2real.identification.identification import Identification
from sim2real.identification.identified_twin import identify
from sim2real.identification.learned_remainder import learn_remainder
from sim2real.logs.alignment import aligned
from sim2real.twin import Twin

DATA_SETS = {
    module.FOLDER: module.DATA_SET for module in (emps, qube, double_pendulum, xl330, so101, cube)
}
_SEED = 0


def _shards(options: Options) -> tuple[str, ...]:
    return (xl330.FOLDER,) if options.quick else tuple(DATA_SETS)


def _lacking(shard: str, options: Options) -> str:
    if options.data and DATA_SETS[shard].train_files(options.data):
        return ""
    return f"recordings in {shard}/train of the folder that --data names"


def _run(shard: str, options: Options) -> Iterator[Result]:
    found, folder = DATA_SETS[shard], options.data or Path()
    train, test = (
        [episode for file in files for episode in found.read(file, EXAMPLES)]
        for files in (found.train_files(folder), found.test_files(folder))
    )
    held_out = any((folder / shard / "test").glob("*"))
    if options.quick:
        train, test = train[:2], test[:1]
        found = replace(found, score_with_remainder=None)
    return measured(shard, found, train, test, held_out=held_out)


def measured(
    name: str, data_set: DataSet, train: list[Episode], test: list[Episode], *, held_out: bool
) -> Iterator[Result]:
    """Results `real.<data set>.<measure>`."""
    twin = Twin.load(EXAMPLES / data_set.twin)
    fitted = data_set.fit_episodes(train)
    report(f"{name}: {len(fitted)} recordings to fit, {len(test)} to score")
    begin = time.perf_counter()
    found = identify(
        twin,
        fitted,
        seed=_SEED,
        report=lambda done, of: report(f"{name}: {done}/{of}"),
    )
    seconds = time.perf_counter() - begin
    if not found.promoted:
        report(f"{name}: {found.why}")
    before, after = data_set.score(twin, test), data_set.score(found.twin, test)
    if data_set.estimation:
        after |= data_set.estimation(twin, train)
    where = "held-out recordings" if held_out else "a split of train"
    for measure, value in after.items():
        yield result(data_set, measure, value, before.get(measure), where)
    if data_set.score_with_remainder and found.promoted:
        yield from _with_remainder(data_set, found, fitted, test)
    yield Result(name=f"real.{name}.fit_s", value=seconds, unit="s", note=_words(found))


def _with_remainder(
    data_set: DataSet, found: Identification, fitted: list[Episode], test: list[Episode]
) -> Iterator[Result]:
    """The same measures with a learned remainder, where there is one."""
    name, score = data_set.folder, data_set.score
    logs = [aligned(episode, found.twin) for episode in fitted]
    report(f"{name}: remainder")
    learned = learn_remainder(
        found.twin, logs, report=lambda done, of: report(f"{name}: remainder {done}/{of}")
    )
    note = f"held-back error within train times {learned.ratio:.2f}"
    if learned.remainder is None:
        report(f"{name}: no remainder: {learned.why}")
        note = f"no remainder: {learned.why}"
    elif data_set.score_with_remainder:
        score = data_set.score_with_remainder
    scores = score(replace(found.twin, remainder=learned.remainder), test)
    for measure, value in scores.items():
        if measure in data_set.targets:
            yield result(data_set, f"{measure}_remainder", value, None, note)


def result(
    data_set: DataSet, measure: str, value: float, before: float | None, where: str
) -> Result:
    """One measure, beside what was published of it."""
    known, words = data_set.published.get(measure, (None, ""))
    notes = [where] if where else []
    if before is not None:
        notes.append(f"{before:.4g} before the fit")
    return Result(
        name=f"real.{data_set.folder}.{measure}",
        value=value,
        unit="",
        peer="" if known is None else f"{known:g}: {words}",
        target=data_set.targets.get(measure, ""),
        note="; ".join(notes),
    )


def _words(found: Identification) -> str:
    check = found.check
    return (
        f"{found.problem.segments} segments of {found.problem.horizon_s:g} s,"
        f" {len(found.values)} parameters; error on recordings held back within train times"
        f" {check.ratio:.2f}" + ("" if found.promoted else "; not promoted")
    )


MEASUREMENT = side_by_side(_shards, _run, lacking=_lacking)
