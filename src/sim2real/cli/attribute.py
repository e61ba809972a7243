"""The verb `attribute`: what a gap is made of."""

from __future__ import annotations

from pathlib import Path

from sim2real.attribution import AttributeConfig, Attribution, GapAttribution, attribute
from sim2real.cli.adapter import carry_out
from sim2real.cli.output import print_table, say
from sim2real.errors import Sim2RealError
from sim2real.report import plot_attribution, write_attribution


def run_attribute(config: AttributeConfig) -> int:
    """Attribute as configured; 0."""
    real = _real(config.real)
    return carry_out(config, attribute, show=_show, keep=_keep, runs="attribute", real=real)


def _real(text: str) -> tuple[int, int] | None:
    """Successes and trials, from `12/20`."""
    if not text:
        return None
    won, _, tried = text.partition("/")
    if not (won.isdecimal() and tried.isdecimal() and int(won) <= int(tried) and int(tried) > 0):
        raise Sim2RealError(f"--real must be successes/trials, such as 12/20, not {text!r}")
    return int(won), int(tried)


def _keep(found: GapAttribution, folder: Path) -> None:
    found.save(folder)
    write_attribution(folder / "report.html", found)
    for part in found.parts:
        plot_attribution(folder / f"{part.of}.png", part)


def _show(found: GapAttribution, out: Path) -> None:
    if found.why:
        say(f"trajectory: {found.why}")
    for part in found.parts:
        _tell(part)
    for note in found.notes:
        say(note)


def _tell(found: Attribution) -> None:
    if found.of == "trajectory":
        say(
            f"squared error beyond the readings' noise: {found.before:.3g} times the variance of"
            f" the noise, {found.after:.3g} after identification"
        )
    else:
        say(f"success: {found.before:.1f} % as trained, {found.after:.1f} % if identified")
    print_table(*found.table())
    for sentence in found.sentences():
        say(sentence)
