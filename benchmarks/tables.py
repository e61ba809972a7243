"""The tables of docs/benchmarks.md, made of the figures that are kept.

A table stands between `<!-- NAME -->` and `<!-- end -->`; the text around it is left alone. The
table named `all` lists the benchmarks, and what each costs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from benchmarks.catalogue import BENCHMARKS, named
from benchmarks.kept import Whole, wholes_of
from benchmarks.machine import PAGE, RESULTS
from benchmarks.run import minutes_of, told
from sim2real.files import write_text

_UNITS = {"ratio": "×", "share": "", "": ""}
_MARKED = re.compile(r"(<!-- ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def write_tables(page: Path = PAGE, folder: Path = RESULTS) -> None:
    """Replace every marked table of the page."""
    text = page.read_text(encoding="utf-8")
    write_text(page, _MARKED.sub(lambda m: f"{m[1]}{_table(m[2], folder)}\n{m[3]}", text))


def _table(name: str, folder: Path) -> str:
    if name == "all":
        return _listed(folder)
    wholes = wholes_of(named(name).name, folder)
    return "\n\n".join(_figures(whole) for whole in wholes) or "Not measured yet."


def _listed(folder: Path) -> str:
    lines = ["| benchmark | measures | takes | targets met |", "|---|---|---|---|"]
    for benchmark in BENCHMARKS:
        results = [r for whole in wholes_of(benchmark.name, folder) for r in whole.results]
        aimed = [result for result in results if result["met"] is not None]
        met = f"{sum(bool(result['met']) for result in aimed)} of {len(aimed)}" if aimed else ""
        minutes, _ = minutes_of(benchmark, folder)
        lines.append(f"| `{benchmark.name}` | {benchmark.about} | {told(minutes)} | {met} |")
    return "\n".join(lines)


def _figures(whole: Whole) -> str:
    """Command, machine and figures of one file, as Markdown."""
    machine = whole.machine
    versions = ", ".join(
        f"{name} {machine[name]}" for name in ("mujoco", "torch") if name in machine
    )
    where = f"{machine['cores']} cores ({machine['cpu']})"
    commits = ", ".join(f"`{commit}`" for commit in whole.commits or (whole.commit,))
    # Only a command that a reader can give today looks like one.
    command = f"`{whole.command}`" if whole.command.startswith("python -m") else whole.command
    lines = [
        f"{command}, commit {commits}, {whole.date}, {whole.seconds:.0f} s on {where},"
        f" {versions}." + _checked(whole),
        "",
        "| name | value | target | met | against, and how |",
        "|---|---|---|---|---|",
        *(_row(result) for result in whole.results),
    ]
    return "\n".join(lines)


def _checked(whole: Whole) -> str:
    if whole.checked is None:
        return ""
    return f" Checked at `{whole.checked.commit}` by measuring {whole.checked.canary} again."


def _row(result: Mapping[str, object]) -> str:
    unit = _UNITS.get(str(result["unit"]), f" {result['unit']}")
    met = {True: "yes", False: "**no**"}.get(result["met"] is True, "") if _aimed(result) else ""
    how = "; ".join(str(part) for part in (result["peer"], result["note"]) if part)
    value = f"{result['value']:.3g}{unit}{_interval(result)}"
    return f"| `{result['name']}` | {value} | {result['target']} | {met} | {how} |"


def _aimed(result: Mapping[str, object]) -> bool:
    return result["met"] is not None


def _interval(result: Mapping[str, object]) -> str:
    interval = result.get("interval")
    if not isinstance(interval, list | tuple):
        return ""
    low, high = interval
    return f" [{low:.3g}, {high:.3g}]"
