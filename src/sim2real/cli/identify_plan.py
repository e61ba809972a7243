"""`sim2real identify plan`: which motions to record next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim2real.cli.output import print_json, print_table, say
from sim2real.errors import Sim2RealError
from sim2real.identify.config import PlanConfig

if TYPE_CHECKING:
    from sim2real.identify.plan import Candidate, Chosen
    from sim2real.robot import ExcitedRobot

_AMPLITUDES = (0.3, 0.8)
_SLOW = 0.3
"""Part of the fastest command that slow motions are made with: friction shows in them."""
_ALONE = ("steps", "chirp")
"""Motions that are also tried with each joint alone."""
_SEEDED = ("multisine", "targets")
"""Motions that chance makes different, tried twice."""


@dataclass(frozen=True, kw_only=True)
class _Recipe:
    """Options of `sim2real record` that make a motion."""

    motion: str
    amplitude: float = _AMPLITUDES[-1]
    joint: str = ""
    speed: float | None = None
    seed: int = 0

    @property
    def name(self) -> str:
        parts = [self.motion]
        if self.motion != "hold":
            parts.append(f"{self.amplitude:g}")
        if self.joint:
            parts.append(self.joint)
        if self.speed is not None:
            parts.append(f"at {self.speed:g}/s")
        if self.seed:
            parts.append(f"seed {self.seed}")
        return " ".join(parts)

    def command(self, config: PlanConfig) -> str:
        """The line that plays it, from the shell."""
        words = ["sim2real", "record", str(config.twin), "--motion", self.motion]
        words += ["--seconds", f"{_each(config):g}"]
        if self.motion != "hold":
            words += ["--amplitude", f"{self.amplitude:g}"]
        if self.joint:
            words += ["--joints", self.joint]
        speed = config.speed if self.speed is None else self.speed
        if speed is not None:
            words += ["--speed", f"{speed:g}"]
        if config.rate_hz is not None:
            words += ["--rate-hz", f"{config.rate_hz:g}"]
        if self.seed:
            words += ["--seed", str(self.seed)]
        return shlex.join(words)


def run_plan(config: PlanConfig) -> int:
    """Choose motions and say how to record them; 0."""
    from sim2real.identify.plan import choose
    from sim2real.report.progress import bar
    from sim2real.robot import ExcitedRobot

    if config.out is not None and config.out.suffix not in (".toml", ".json"):
        raise Sim2RealError(f"a plan is written as .toml or .json, not {config.out.name!r}")
    if config.motions < 1 or _each(config) < 1.0:
        raise Sim2RealError(
            f"{config.seconds:g} s for {config.motions} motions: each takes a second at least"
        )
    subject = ExcitedRobot.open(config.twin, rate_hz=config.rate_hz, speed=config.speed)
    recipes: dict[str, _Recipe] = {}
    refused: list[str] = []
    candidates = list(_candidates(config, subject, recipes, refused))
    if not candidates:
        raise Sim2RealError(f"no motion is clear from the twin's default pose: {refused[0]}")
    with bar("plan", quiet=config.json) as report:
        chosen = choose(
            subject.twin,
            subject.contract,
            candidates,
            motions=config.motions,
            wanted=config.parameters,
            seed=config.seed,
            threads=config.threads,
            report=report,
        )
    told = chosen.to_dict()
    for entry in told["motions"]:
        entry["command"] = recipes[entry["name"]].command(config)
    told = {
        "twin": subject.twin.name,
        "version": subject.twin.version,
        "candidates": len(candidates),
        "refused": refused,
        **told,
    }
    if config.out is not None:
        _write(config, chosen, told)
    if config.json:
        print_json(told)
    else:
        _show(config, chosen, told)
    return 0


def _each(config: PlanConfig) -> float:
    """Time of one motion [s]."""
    return config.seconds / max(1, config.motions)


def _candidates(
    config: PlanConfig, subject: ExcitedRobot, recipes: dict[str, _Recipe], refused: list[str]
) -> Iterator[Candidate]:
    """Motions that are clear from the twin's default pose; `recipes` and `refused` are filled."""
    from sim2real.identify.plan import Candidate
    from sim2real.robot import ExcitedRobot, prepare_motion

    for recipe in _recipes(config, subject):
        speed = config.speed if recipe.speed is None else recipe.speed
        # Of a twin alone the limits depend on the speed, as they will in `record`.
        mine = ExcitedRobot.open(config.twin, rate_hz=config.rate_hz, speed=speed)
        try:
            prepared = prepare_motion(
                mine,
                recipe.motion,
                seconds=_each(config),
                amplitude=recipe.amplitude,
                joints=(recipe.joint,) if recipe.joint else (),
                speed=speed,
                seed=recipe.seed,
            )
        except Sim2RealError as error:
            refused.append(f"{recipe.name}: {error}")
            continue
        recipes[recipe.name] = recipe
        yield Candidate(name=recipe.name, command=prepared.plan.commands)


def _recipes(config: PlanConfig, subject: ExcitedRobot) -> Iterator[_Recipe]:
    from sim2real.robot import MOTIONS

    envelope = subject.envelope(speed=config.speed)
    speeds: list[float | None] = [None]
    if envelope.servo.any():
        speeds.append(float(f"{_SLOW * envelope.rate[envelope.servo].min():.2g}"))
    yield _Recipe(motion="hold")
    for motion in MOTIONS:
        if motion == "hold":
            continue
        for speed in speeds:
            for amplitude in _AMPLITUDES:
                yield _Recipe(motion=motion, amplitude=amplitude, speed=speed)
        if motion in _SEEDED:
            yield _Recipe(motion=motion, seed=1)
        if motion in _ALONE and len(subject.contract.commands) > 1:
            for command in subject.contract.commands:
                yield _Recipe(motion=motion, joint=command.joint)


def _write(config: PlanConfig, chosen: Chosen, told: dict[str, Any]) -> None:
    import tomli_w

    from sim2real.files import write_json, write_text
    from sim2real.report.plan import plot_plan

    assert config.out is not None
    config.out.parent.mkdir(parents=True, exist_ok=True)
    if config.out.suffix == ".json":
        write_json(config.out, told)
    else:
        write_text(config.out, tomli_w.dumps(told))
    plot_plan(config.out.with_suffix(".png"), chosen)


def _show(config: PlanConfig, chosen: Chosen, told: dict[str, Any]) -> None:
    print_table(
        ("motion", "seconds", "worth in nats"),
        ((m.name, round(m.seconds, 1), round(m.gain, 2)) for m in chosen.motions),
    )
    say("")
    steps = [f"after {k + 1}" for k in range(len(chosen.motions))]
    print_table(
        ("standard deviation of", "unit", "prior", "now", *steps),
        (
            (name, unit or "×", *(f"{value:.2g}" for value in row))
            for name, unit, *row in zip(
                chosen.names,
                chosen.units,
                chosen.prior,
                chosen.before,
                *(motion.std for motion in chosen.motions),
                strict=True,
            )
            if name in chosen.wanted
        ),
    )
    hardly = [
        name
        for name, before, after in zip(chosen.names, chosen.before, chosen.after, strict=True)
        if name in chosen.wanted and after > 0.9 * before
    ]
    if hardly:
        say(f"none of the motions would tell much of: {', '.join(hardly)}")
    if told["refused"]:
        say(f"{len(told['refused'])} motions are not clear from the twin's default pose")
    say("")
    for entry in told["motions"]:
        say(entry["command"])
    say("each is a dry run; add --robot, --execute and --person to move the robot")
    if config.out is not None:
        say(f"written: {config.out}, {config.out.with_suffix('.png')}")
