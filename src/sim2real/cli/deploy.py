"""`sim2real deploy`: a bundle on a robot, and what a person is told on the way."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from sim2real.cli.logs import read_logs
from sim2real.cli.output import ask, print_json, say
from sim2real.errors import Sim2RealError
from sim2real.robot import DeployConfig

if TYPE_CHECKING:
    from sim2real.contract import Contract
    from sim2real.robot import Deployment

_ROWS = 8


def run_deploy(config: DeployConfig) -> int:
    """Deploy as configured; 0, or 1 where it was stopped or a step was not passed."""
    if config.step == "replay" and not config.logs:
        raise Sim2RealError("replay needs recordings: --logs FILE …")
    from sim2real.policy import Bundle
    from sim2real.report.progress import bar
    from sim2real.robot import OperatorPrompts, deploy

    contract = Bundle.open(config.bundle).contract
    logs = read_logs(config.logs) if config.step == "replay" else []
    rows: list[tuple[float, Any]] = []
    quiet = config.json or (sys.stdin.isatty() and config.trials > 1)  # a prompt and a bar clash
    with bar(config.step if config.execute else f"{config.step}, dry", quiet=quiet) as report:
        found = deploy(
            config,
            logs=logs,
            prompts=OperatorPrompts(
                report=report,
                tell=(lambda text: None) if config.json else say,
                ask=ask,
                show=lambda time_s, wanted, sent: rows.append((time_s, sent)),
            ),
        )
    if config.json:
        print_json(found.to_dict())
    else:
        _show(found, contract, rows, config)
    if found.ended.startswith("signal"):
        return 130
    stopped = any(trial.stopped for trial in found.trials)
    return 1 if stopped or (found.record is not None and not found.record.passed) else 0


def _show(
    found: Deployment, contract: Contract, rows: list[tuple[float, Any]], config: DeployConfig
) -> None:
    if found.step in ("limited", "full") and not found.execute:
        _show_dry(contract, rows)
        say(f"nothing was sent to {found.robot} {found.serial}; --execute moves it")
    if found.skipped:
        say(f"skipped by force: {found.skipped}")
    if found.record is not None:
        agreement = found.record.figures.get("agreement")
        if agreement:
            _show_agreement(contract, agreement)
        if "doctor" in found.record.figures:
            say(f"doctor: {found.record.figures['doctor']['verdict']}")
        say(found.record.line())
    if (rate := found.success) is not None:
        value, low, high = 100 * rate.value, 100 * rate.low, 100 * rate.high
        say(f"success {value:.1f} % [{low:.1f}, {high:.1f}] of {rate.n}")
    left = config.trials - len(found.trials)
    if left and found.step != "replay":
        say(f"{left} trials not run: {found.ended}")
    if found.folder:
        say(f"recordings: {found.folder}")
    elif config.out is not None and found.step != "replay":
        say("nothing is recorded in a dry run")
    if found.step != "full" and found.record is not None and found.record.passed:
        say(f"record kept in {config.bundle / 'ladder'}")


def _show_dry(contract: Contract, rows: list[tuple[float, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="what would be sent", title_justify="left")
    table.add_column("time (s)", justify="right")
    for command in contract.commands:
        table.add_column(f"{command.name} ({command.unit})", justify="right", overflow="fold")
    every = max(1, len(rows) // _ROWS)
    for time_s, sent in rows[::every]:
        table.add_row(f"{time_s:.2f}", *(f"{value:.4f}" for value in sent))
    Console().print(table)


def _show_agreement(contract: Contract, agreement: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="policy against what was sent", title_justify="left")
    table.add_column("command")
    for name in ("rms", "largest", "bias", "correlation"):
        table.add_column(name, justify="right")
    for k, command in enumerate(contract.commands):
        values = [agreement[name][k] for name in ("rms", "largest", "bias", "correlation")]
        table.add_row(
            f"{command.name} ({command.unit})",
            *("" if value is None else f"{value:.3f}" for value in values),
        )
    Console().print(table)
    say(
        f"{agreement['periods']} periods: {100 * agreement['close']:.0f} % agree closely,"
        f" {100 * agreement['outside']:.1f} % outside of training,"
        f" {100 * agreement['limited']:.1f} % would be limited"
    )
