"""Running a benchmark: where it ran, what it gave, whether the target was met."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sim2real.bench.config import (
    BenchAttribute,
    BenchData,
    BenchDeploy,
    BenchDoctor,
    BenchEvaluate,
    BenchIdentify,
    BenchReal,
    BenchSim,
    BenchTrain,
    BenchTransfer,
)
from sim2real.errors import Sim2RealError
from sim2real.files import write_json

_VERSIONS = ("mujoco", "torch", "numpy", "rsl-rl-lib", "pyarrow", "deltalake", "duckdb")


@dataclass(frozen=True, kw_only=True)
class Result:
    """One number, with what it is compared to."""

    name: str
    value: float
    unit: str
    peer: str = ""
    """What a ratio is against."""
    target: str = ""
    """What should be reached, as '>= 0.8'."""
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target was reached; None without one."""
        if not self.target:
            return None
        sign, number = self.target.split()
        return self.value >= float(number) if sign == ">=" else self.value <= float(number)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "met": self.met}


Report = Callable[[str], None]


Bench = (
    BenchSim
    | BenchTrain
    | BenchData
    | BenchDeploy
    | BenchDoctor
    | BenchEvaluate
    | BenchIdentify
    | BenchAttribute
    | BenchReal
    | BenchTransfer
)


def _results(config: Bench, report: Report) -> Iterable[Result]:
    if isinstance(config, BenchSim):
        from sim2real.bench.sim import bench_sim

        return bench_sim(config, report)
    if isinstance(config, BenchTrain):
        from sim2real.bench.train import bench_train

        return bench_train(config, report)
    if isinstance(config, BenchDeploy):
        from sim2real.bench.deploy import bench_deploy

        return bench_deploy(config, report)
    if isinstance(config, BenchDoctor):
        from sim2real.bench.doctor import bench_doctor

        return bench_doctor(config, report)
    if isinstance(config, BenchEvaluate):
        from sim2real.bench.evaluate import bench_evaluate

        return bench_evaluate(config, report)
    if isinstance(config, BenchIdentify):
        from sim2real.bench.identify.bench import bench_identify

        return bench_identify(config, report)
    if isinstance(config, BenchAttribute):
        from sim2real.bench.attribute import bench_attribute

        return bench_attribute(config, report)
    if isinstance(config, BenchReal):
        from sim2real.bench.real.bench import bench_real

        return bench_real(config, report)
    if isinstance(config, BenchTransfer):
        from sim2real.bench.transfer import bench_transfer

        return bench_transfer(config, report)
    from sim2real.bench.data import bench_data

    return bench_data(config, report)


def run_bench(config: Bench) -> int:
    """Run one benchmark, print it, and write it where asked."""

    def report(text: str) -> None:
        sys.stderr.write(text + "\n")

    begin, code = time.time(), commit()
    found = _results(config, report)
    data: dict[str, Any] = {
        "bench": config.name,
        "command": "sim2real " + " ".join(sys.argv[1:]),
        "commit": code,
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d", time.gmtime(begin)),
        "results": [],
    }
    results = []
    for result in found:
        results.append(result)
        data["results"].append(result.to_dict())
        data["seconds"] = round(time.time() - begin, 1)
        if config.out is not None:
            write_json(config.out, data)  # after each: what is killed has not been for nothing
    if config.json:
        sys.stdout.write(json.dumps(data) + "\n")
    else:
        _print_table(results)
    return 0


def commit() -> str:
    """The commit of the code, marked where it has changes; '' outside a checkout."""
    folder = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()


def machine() -> dict[str, Any]:
    """The machine and the versions that decide its speed."""
    model = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else ""
    return {
        "cpu": model or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "system": platform.system(),
        **{name: version(name) for name in _VERSIONS},
    }


def require(module: str) -> None:
    """Refuse to go on without a peer's package."""
    try:
        __import__(module)
    except ImportError:
        raise Sim2RealError(
            f"the benchmark needs {module}: pip install 'sim2real[bench]'"
        ) from None


def _print_table(results: list[Result]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for column in ("name", "value", "unit", "target", "met", "peer"):
        table.add_column(column)
    for r in results:
        met = {True: "yes", False: "NO", None: ""}[r.met]
        table.add_row(r.name, f"{r.value:.4g}", r.unit, r.target, met, r.peer or r.note)
    Console().print(table)
