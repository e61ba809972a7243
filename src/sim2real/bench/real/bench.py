"""Real robots: a twin fitted to published recordings, scored on ones it never saw.

The fitter knows nothing of the data sets: each brings a twin, a channel map, and a way to score.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any

from sim2real.bench.config import BenchReal
from sim2real.bench.real import (
    cube,
    double_pendulum,
    emps,
    qube,
    so101,
    xl330,
)
from sim2real.bench.run import Report, Result
from sim2real.data import Episode
from sim2real.errors import Sim2RealError
from sim2real.identify.align import aligned
from sim2real.identify.identify import Identification, identify
from sim2real.identify.remainder import learn_remainder
from sim2real.twin import Twin

_MODULES: tuple[ModuleType, ...] = (
    emps, qube, double_pendulum, xl330, so101, cube,
)  # fmt: skip
DATA_SETS = {module.FOLDER: module for module in _MODULES}


def bench_real(config: BenchReal, report: Report) -> Iterator[Result]:
    """Results `real.<data set>.<measure>`, one data set after the other."""
    unknown = set(config.sets) - set(DATA_SETS)
    if unknown:
        raise Sim2RealError(
            f"no data set {', '.join(sorted(unknown))}; there are {', '.join(DATA_SETS)}"
        )
    chosen = {n: m for n, m in DATA_SETS.items() if n in (config.sets or DATA_SETS)}
    present = {name: module for name, module in chosen.items() if module.train_files(config.data)}
    for name in chosen.keys() - present.keys():
        report(f"{name}: no recordings in {config.data / name / 'train'}, left out")
    if not present:
        raise Sim2RealError(f"no recordings to fit in {config.data}; --data says where they are")
    for name, module in present.items():
        yield from _one(name, module, config, report)


def _one(name: str, module: ModuleType, config: BenchReal, report: Report) -> Iterator[Result]:
    twin = Twin.load(config.examples / module.TWIN)
    train, test = (
        [episode for file in files for episode in module.read(file, config.examples)]
        for files in (module.train_files(config.data), module.test_files(config.data))
    )
    fitted = module.fit_episodes(train) if hasattr(module, "fit_episodes") else train
    held_out = any((config.data / module.FOLDER / "test").glob("*"))
    report(f"{name}: {len(fitted)} recordings to fit, {len(test)} to score")
    begin = time.perf_counter()
    found = identify(
        twin,
        fitted,
        seed=config.seed,
        report=lambda done, of: report(f"{name}: {done}/{of}"),
    )
    seconds = time.perf_counter() - begin
    if not found.promoted:
        report(f"{name}: {found.why}")
    before, after = module.score(twin, test), module.score(found.twin, test)
    if hasattr(module, "estimation"):
        after |= module.estimation(twin, train)
    where = "held-out recordings" if held_out else "a split of train"
    for measure, value in after.items():
        yield _result(module, name, measure, value, before.get(measure), where)
    if "remainder" in inspect.signature(module.score).parameters and found.promoted:
        yield from _with_remainder(name, module, found, fitted, test, report)
    yield Result(name=f"real.{name}.fit_s", value=seconds, unit="s", note=_words(found))


def _with_remainder(
    name: str,
    module: ModuleType,
    found: Identification,
    fitted: list[Episode],
    test: list[Episode],
    report: Report,
) -> Iterator[Result]:
    """The same measures with a learned remainder, where there is one."""
    logs = [aligned(episode, found.twin) for episode in fitted]
    report(f"{name}: remainder")
    learned = learn_remainder(
        found.twin, logs, report=lambda done, of: report(f"{name}: remainder {done}/{of}")
    )
    note = f"held-back error within train times {learned.ratio:.2f}"
    if learned.remainder is None:
        report(f"{name}: no remainder: {learned.why}")
        note = f"no remainder: {learned.why}"
    twin = replace(found.twin, remainder=learned.remainder)
    scores = module.score(twin, test, remainder=learned.remainder is not None)
    for measure, value in scores.items():
        if measure in module.TARGETS:
            yield _result(module, name, f"{measure}_remainder", value, None, note)


def _result(
    module: ModuleType,
    name: str,
    measure: str,
    value: float,
    before: float | None,
    where: str,
) -> Result:
    published: dict[str, Any] = module.PUBLISHED
    known, words = published.get(measure, (None, ""))
    notes = [where] if where else []
    if before is not None:
        notes.append(f"{before:.4g} before the fit")
    return Result(
        name=f"real.{name}.{measure}",
        value=value,
        unit="",
        peer="" if known is None else f"{known:g}: {words}",
        target=module.TARGETS.get(measure, ""),
        note="; ".join(notes),
    )


def _words(found: Identification) -> str:
    check = found.check
    return (
        f"{found.problem.segments} segments of {found.problem.horizon_s:g} s,"
        f" {len(found.values)} parameters; error on recordings held back within train times"
        f" {check.ratio:.2f}" + ("" if found.promoted else "; not promoted")
    )
