"""`sim2real deploy`: a policy on a robot, and what a person is told on the way."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from sim2real.cli.output import at_the_terminal, print_json, print_table, say
from sim2real.contract import Contract
from sim2real.evaluation import open_policy
from sim2real.report import bar
from sim2real.robot import DeployConfig, Deployment, OperatorPrompts, deploy
from sim2real.units import counted

_ROWS = 8
"""Periods that a dry run shows, approximately."""
Sent = list[tuple[float, np.ndarray]]
"""(time, command) of each period."""


def run_deploy(config: DeployConfig) -> int:
    """Deploy as configured; 0, or 1 if it was stopped or a step was not passed."""
    rows: Sent = []
    quiet = config.json or (sys.stdin.isatty() and config.trials > 1)  # a prompt and a bar clash
    with bar(config.step if config.execute else f"{config.step}, dry", quiet=quiet) as report:
        prompts = OperatorPrompts(
            report=report,
            tell=(lambda text: None) if config.json else say,
            **at_the_terminal(),
            show=lambda time_s, wanted, sent: rows.append((time_s, sent)),
        )
        found = deploy(config, prompts=prompts)
    if config.json:
        print_json(found)
    else:
        _show(found, open_policy(config.bundle).contract, rows, config)
    if found.ended.startswith("signal"):
        return 130
    stopped = any(trial.stopped for trial in found.trials)
    return 1 if stopped or (found.record is not None and not found.record.passed) else 0


def _show(
    found: Deployment,
    contract: Contract,
    rows: Sent,
    config: DeployConfig,
) -> None:
    if found.step in ("limited", "full") and not found.execute:
        _show_dry(contract, rows)
        say(f"nothing was sent to {found.robot} {found.serial}; --execute moves it")
    if found.skipped:
        say(f"skipped by force: {found.skipped}")
    if found.record is not None and found.record.despite:
        say(f"taken although not passed: {found.record.despite}")
    if found.record is not None:
        agreement = found.record.figures.get("agreement")
        if agreement:
            _show_agreement(contract, agreement)
        if doctor := found.record.figures.get("doctor"):
            say(f"doctor: {doctor['verdict']}")
            for finding in doctor["findings"][:1]:
                say(f"  {finding['evidence']}")
                say(f"  more: sim2real doctor {config.bundle} --logs {' '.join(config.logs)}")
        for note in found.record.figures.get("notes", ()):
            say(f"note: {note}")
        say(found.record.line())
        if found.record.to_pass:
            say(f"to pass: {found.record.to_pass}")
    if found.success is not None:
        say(f"success {found.success}")
    left = config.trials - len(found.trials)
    if left and found.step != "replay":
        say(f"{counted(left, 'trial')} not run: {found.ended}")
    if found.folder:
        lake = f", and in the lake {config.lake}" if config.lake else ""
        say(f"recordings: {found.folder}{lake}")
    elif config.out is not None and found.step != "replay":
        say("nothing is recorded in a dry run")
    if found.step != "full" and found.record is not None and found.record.passed:
        say(f"record kept in {open_policy(config.bundle).records}")


def _show_dry(contract: Contract, rows: Sent) -> None:
    say("commands that would be sent")
    every = max(1, len(rows) // _ROWS)
    print_table(
        ("time (s)", *(f"{command.name} ({command.unit})" for command in contract.commands)),
        ((f"{time_s:.2f}", *(f"{value:.4f}" for value in sent)) for time_s, sent in rows[::every]),
    )


def _show_agreement(contract: Contract, agreement: dict[str, Any]) -> None:
    say("policy compared with the commands that were sent")
    columns = ("rms", "largest", "bias", "correlation")
    rows = []
    for k, command in enumerate(contract.commands):
        values = (agreement[name][k] for name in columns)
        shown = ("" if value is None else f"{value:.3f}" for value in values)
        rows.append((f"{command.name} ({command.unit})", *shown))
    print_table(("command", *columns), rows)
    say(
        f"{agreement['periods']} periods: {100 * agreement['close']:.0f} % agree closely,"
        f" {100 * agreement['outside']:.1f} % outside of training's range,"
        f" {100 * agreement['limited']:.1f} % would be limited"
    )
