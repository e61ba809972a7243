"""Where and on which code a figure was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
_VERSIONS = ("mujoco", "torch", "numpy", "rsl-rl-lib", "pyarrow", "deltalake", "duckdb", "ray")


def machine() -> dict[str, str | int]:
    """The machine and the versions that decide its speed; its name is $SIM2REAL_MACHINE."""
    model = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else ""
    found: dict[str, str | int] = {
        "cpu": model or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "system": platform.system(),
    }
    if name := os.environ.get("SIM2REAL_MACHINE", ""):
        found["name"] = name
    for package in _VERSIONS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The commit of the code; '' outside a checkout."""
    return _git("rev-parse", "--short=12", "HEAD") or ""


def uncommitted() -> str:
    """A file that is not as it was committed, or why that cannot be told; '' in a clean checkout.

    Figures themselves, and the page made of them, may differ: they are what a run writes.
    """
    said = _git("status", "--porcelain", "--", ".", *(f":!{p}" for p in (_results(), _page())))
    if said is None:
        return "this is no checkout"
    first = said.splitlines()[0] if said else ""
    return f"{first[3:]} is not committed" if first else ""


def changed(modules: Sequence[str], since: str) -> tuple[str, ...] | None:
    """Which of some modules differ from a commit; None where the commit is not in this checkout."""
    places = {name: _of(name) for name in modules}
    paths = [path for found in places.values() for path in found]
    said = _git("diff", "--name-only", "--no-renames", since, "--", *paths)
    if said is None:
        return None
    files = said.splitlines()
    return tuple(
        name
        for name, (folder, file) in places.items()
        if any(path == file or path.startswith(f"{folder}/") for path in files)
    )


def _of(module: str) -> tuple[str, str]:
    """Where a module's code is: its folder or its file, which need not exist any more."""
    place = module.replace(".", "/")
    place = f"src/{place}" if module.split(".", maxsplit=1)[0] == "sim2real" else place
    return place, f"{place}.py"


def _results() -> str:
    return RESULTS.relative_to(ROOT).as_posix()


def _page() -> str:
    return PAGE.relative_to(ROOT).as_posix()


def _git(*words: str) -> str | None:
    """What git says; None where it fails."""
    try:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, check=True, capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.rstrip()
