"""`sim2real record`: excite a robot within its limits, and record it."""

from __future__ import annotations

from sim2real.cli.output import print_json, print_table, say
from sim2real.report import bar, plot_motion
from sim2real.robot import PreparedMotion, RecordConfig, RecordedMotions, record_motions


def run_record(config: RecordConfig) -> int:
    """Plan motions, and with `execute` record them; 0, or 1 if one was stopped."""

    def show(prepared: PreparedMotion) -> None:
        if config.execute and not config.json:
            say(f"{prepared.plan.motion}: {prepared.plan.seconds:.0f} s; Ctrl-C stops it")

    with bar("record", quiet=config.json or not config.robot) as report:
        tell = say if config.execute and not config.json else lambda text: None
        found = record_motions(config, show=show, tell=tell, report=report)
    if found.folder is not None:
        for prepared in found.plans:
            picture = found.folder / f"{prepared.plan.motion}.png"
            plot_motion(picture, prepared.plan, prepared.contract)
    if config.json:
        print_json(found.to_dict())
    else:
        _show(found)
        if found.recordings and config.lake:
            say(f"kept in the lake {config.lake} too")
    if found.interrupted:
        return 130
    return 1 if found.stopped else 0


def _show(found: RecordedMotions) -> None:
    for recorded in found.recordings:
        flight = recorded.flight
        end = f"stopped: {flight.stopped}" if flight.stopped else "complete"
        say(f"{recorded.path}: {flight.periods} periods, {flight.lost} without readings, {end}")
    if not found.executed:
        for prepared in found.plans:
            _show_plan(prepared)
        say("nothing was sent; add --execute and --person to move the robot")


def _show_plan(prepared: PreparedMotion) -> None:
    say(f"{prepared.plan.motion}: {prepared.plan.seconds:.1f} s")
    if prepared.moved:
        say("  first moves towards the twin's default pose, to have room")
    if prepared.reduced:
        say(f"  smaller than asked for; at full size, {prepared.reduced}")
    print_table(
        ("command", "unit", "from", "to", "a second", "a second squared", "amplitude"),
        (
            (
                sent.name,
                sent.unit,
                *(round(n, 3) for n in (sent.low, sent.high, sent.speed, sent.acceleration)),
                round(sent.amplitude, 2),
            )
            for sent in prepared.commands
        ),
    )
