"""The verbs `twin show` and `twin lint`."""

from __future__ import annotations

from collections.abc import Mapping

from sim2real.cli.options import OnTwin
from sim2real.cli.output import answer, print_table, say
from sim2real.plain import plain
from sim2real.twin import Twin, lint


def run_show(config: OnTwin) -> int:
    """Show a twin; 0."""
    twin = Twin.load(config.folder)
    parent = f", parent {twin.parent}" if twin.parent else ""
    rows = []
    for p in twin.parameters:
        prior = {k: v for k, v in p.prior.to_dict().items() if k != "kind"}
        nominal = {"scale": "×", "add": "+"}.get(p.operation, "") + f"{p.nominal:.4g}"
        rows.append((p.name, p.dimension, nominal, p.unit, f"{p.prior.kind} {_numbers(prior)}"))
    effects = [
        (f"{kind}/{name}", _numbers(values))
        for kind, by_name in twin.effects.items()
        for name, values in by_name.items()
    ]

    def show() -> None:
        say(f"twin {twin.name}, version {twin.version}{parent}")
        print_table(("parameter", "dimension", "nominal", "unit", "prior"), rows)
        if effects:
            say("")
            print_table(("effects of", ""), effects)
        if twin.channels:
            say("")
            channels = ((name, *plain(one).values()) for name, one in twin.channels.items())
            print_table(("channel", "source", "unit", "scale", "offset"), channels)

    return answer({"version": twin.version, **twin.tables()}, show, json=config.json)


def _numbers(values: Mapping[str, object]) -> str:
    return " ".join(
        f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items()
    )


def run_lint(config: OnTwin) -> int:
    """Lint a twin; 1 if there are warnings."""
    findings = lint(Twin.load(config.folder))
    lines = [f"{one.severity}: {one.place}: {one.message}; {one.remedy}" for one in findings]
    answer(findings, "\n".join(lines) or "no findings", json=config.json)
    return 1 if any(finding.severity == "warning" for finding in findings) else 0
