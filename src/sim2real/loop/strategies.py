"""Ways to close a gap: what a policy is trained in, and what must be known for that."""

from __future__ import annotations

from dataclasses import replace

from sim2real.identification import tells_state
from sim2real.loop.stages import Stages
from sim2real.loop.steps import KeptStep
from sim2real.params import LogUniform, Parameter, Uniform
from sim2real.twin import Twin

_WIDENING = 2.0
"""Width of widened ranges, relative to those of the twin."""


def widened(twin: Twin) -> Twin:
    """The twin with ranges twice as wide around their middle, as far as bounds allow."""
    return replace(twin, parameters=tuple(_widened(p) for p in twin.parameters))


def _widened(parameter: Parameter) -> Parameter:
    prior, (least, most) = parameter.prior, parameter.bounds
    if not isinstance(prior, Uniform | LogUniform):
        return parameter
    low, high = prior.support
    if isinstance(prior, LogUniform):
        grown = (high / low) ** (0.5 * (_WIDENING - 1))
        low, high = low / grown, high * grown
    else:
        grown = 0.5 * (_WIDENING - 1) * (high - low)
        low, high = low - grown, high + grown
    return replace(parameter, prior=replace(prior, low=max(least, low), high=min(most, high)))


def policy_of(
    strategy: str,
    stages: Stages,
    *,
    nominal: KeptStep,
    recorded: tuple[KeptStep, ...],
    iterations: int,
    again: int,
) -> tuple[KeptStep, KeptStep | None]:
    """(training step, identifying step or None) of a strategy.

    Strategies that identify the robot start from the `nominal` policy and train for `again`
    updates; the others train for `iterations` + `again` updates, which is the same total.
    """
    if strategy == "nominal":
        return nominal, None
    if strategy in ("wide", "adr"):
        source = "prior" if strategy == "wide" else "adr"
        wide = stages.widen(widened)
        return stages.train(source, twin=wide, iterations=iterations + again), None
    remainder = strategy.endswith("+remainder")
    known = stages.identify(recorded)
    if remainder:
        known = stages.remainder(known, recorded)
    trained = stages.train(
        "posterior",
        twin=stages.scatter(known),
        begin=nominal,
        starts=stages.seen(known, recorded) if tells_state(Twin.load(stages.twin)) else None,
        iterations=again,
        remainder=remainder,
    )
    return trained, known
