"""What to do next, from the evidence: each piece of advice says why, and which command does it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sim2real.attribution.attribution import Attribution, Cause, Share
from sim2real.attribution.failures import Failures
from sim2real.intervals import clopper_pearson
from sim2real.plain import PlainData
from sim2real.twin import Twin

_OPEN = 5.0
"""Points of success that an unclear share may still cost, from which it is worth knowing."""
_MOST_TRIALS = 500
_THERE = 40
"""Trials whose interval is no wider than 15 points either way, whatever they show."""


@dataclass(frozen=True, kw_only=True)
class Advice(PlainData):
    """One thing to do."""

    do: str
    why: str
    command: str = ""


def advise(
    twin: Twin,
    *,
    success: Attribution | None = None,
    failures: Failures | None = None,
    identified: Mapping[str, Any] | None = None,
    cured: bool = False,
    won: Sequence[bool] = (),
    target: float | None = None,
) -> list[Advice]:
    """Advice about a policy that was trained in `twin` as it is.

    `identified` is the result of an identification in plain data, `cured` whether a policy has been
    trained in it since, and `won` are the outcomes of the newest policy on the robot.
    """
    found: list[Advice] = []
    if success is not None:
        found += _ranges(twin, success, cured=cured)
        found += _told_together(success, cured=cured)
        found += _unexplained(success)
        found += _not_told(success, identified or {})
    if failures is not None:
        found += _kinds(failures)
        found += _diagnosed(failures)
    if won and target is not None:
        found += _more_trials(won, target)
    return found


def _ranges(twin: Twin, success: Attribution, *, cured: bool) -> Iterator[Advice]:
    """Dimensions that cost success, by parameters outside, or inside, what training can draw."""
    priors = {p.name: p.prior.support for p in twin.parameters}
    for share in _told_alone(success):
        if not share.clear or share.value <= 0:
            continue
        cost = f"{share.name} costs {share.value:.0f} points of success"
        likely = [cause for cause in share.causes if cause.chance > 0.5]
        wider = [_wider(cause, *priors[cause.name]) for cause in likely]
        wider = [words for words in wider if words]
        if wider:
            yield Advice(
                do=f"widen {len(wider)} range{'s' if len(wider) > 1 else ''} of {share.name}:"
                f" {'; '.join(wider)}",
                why=f"{cost}, and the robot was identified outside of what training can draw"
                + (": the next of its kind may be like it" if cured else ""),
            )
        elif not cured:
            yield _train_again(cost + (f": {likely[0]}" if likely else ""))


def _train_again(why: str) -> Advice:
    return Advice(
        do="train in worlds of the posterior",
        why=why,
        command="sim2real train TASK --twin IDENTIFIED --source posterior --begin RUN",
    )


def _wider(cause: Cause, low: float, high: float) -> str:
    """The range that holds a parameter; nothing where it is in the old one."""
    if low <= cause.after <= high:
        return ""
    scale, unit = cause.shown
    least, most = scale * min(low, cause.low), scale * max(high, cause.high)
    return f"{cause.name} to {least:.3g} … {most:.3g}{unit}"


def _told_alone(success: Attribution) -> list[Share]:
    """Shares of dimensions that the recordings tell from all others."""
    grouped = {name for group in success.together for name in group.names}
    return [share for share in success.shares if share.name not in grouped]


def _told_together(success: Attribution, *, cured: bool) -> Iterator[Advice]:
    """What tells dimensions apart that cost success; training needs no such knowledge."""
    for group in success.together:
        if group.value <= 0:
            continue
        cost = f"{group.title} cost {group.value:.0f} points together"
        if not cured:
            yield _train_again(cost)
        if causes := success.alternatives(group):
            yield Advice(
                do=f"measure {' or '.join(cause.name for cause in causes)} in another way than by"
                " these motions, and write it into the twin",
                why=f"{cost}, and the recordings do not tell which of them: "
                + ", or ".join(str(cause) for cause in causes),
            )


def _unexplained(success: Attribution) -> Iterator[Advice]:
    rest = success.unexplained
    if rest is not None and rest.clear and rest.value > 0:
        yield Advice(
            do="learn the remainder, and look where the twin is still off",
            why=f"{rest.value:.0f} points of success [{rest.low:.0f}, {rest.high:.0f}] are lost by"
            " what no parameter of the twin describes",
            command="sim2real loop TASK --robot ROBOT --strategy identified+residual;"
            " sim2real gap TWIN --logs RECORDINGS",
        )


def _not_told(success: Attribution, identified: Mapping[str, Any]) -> Iterator[Advice]:
    """Parameters that recordings did not tell, in dimensions that may matter."""
    told = identified.get("identifiability", {})
    lost = [n for n in told.get("shrinkage", ()) if n not in told.get("identifiable", ())]
    for share in _told_alone(success):
        mine = [cause.name for cause in share.causes if cause.name in lost]
        if mine and not share.clear and share.high > _OPEN:
            yield Advice(
                do=f"record motions that tell {', '.join(mine[:3])}",
                why=f"{share.name} may cost up to {share.high:.0f} points, and the recordings do"
                " not tell",
                command="sim2real identify plan TWIN --parameters "
                + " ".join(f"'{n}'" for n in mine[:3]),
            )


def _kinds(failures: Failures) -> Iterator[Advice]:
    for kind in failures.kinds:
        count, first = len(kind.episodes), kind.episodes[0][:8]
        if not kind.reproducible:
            yield Advice(
                do=f"watch {first} and record more like it",
                why=f"{count} failures went like it, and nothing in the twin reproduces them",
            )
        elif not kind.values:
            yield Advice(
                do=f"watch {first}, and train for longer",
                why=f"{count} failures went like it, as the policy fails in the twin at any values",
            )
        elif not kind.met_in_training:
            value = kind.values[0]
            yield Advice(
                do=f"let training draw {value.parameter} from {value.low:.3g} … {value.high:.3g}"
                f" {value.unit}".rstrip(),
                why=f"{count} failures went as nothing did in training; the twin fails so with"
                f" these values ({kind.dimension})",
            )


def _diagnosed(failures: Failures) -> Iterator[Advice]:
    for one in failures.diagnoses:
        if one.name == "works in one place but not another":
            yield Advice(
                do=f"collect {_THERE} trials there: they tell its success to within 15 points",
                why=one.words,
            )
        elif one.name == "degrades over time":
            yield Advice(
                do="look for drift: warming, wear, a battery that runs down",
                why=one.words,
                command="sim2real drift BUNDLE --logs RECORDINGS",
            )


def _more_trials(won: Sequence[bool], target: float) -> Iterator[Advice]:
    """How many attempts show the target, if the policy is as good as it has been.

    They are new ones: to go on with a test until it is passed would flatter.
    """
    rate = sum(won) / len(won)
    if clopper_pearson(sum(won), len(won), confidence=0.9).low >= target:
        return
    for n in range(1, _MOST_TRIALS):
        if clopper_pearson(int(rate * n), n, confidence=0.9).low >= target:
            yield Advice(
                do=f"test this policy in {n} new attempts",
                why=f"{sum(won)} of {len(won)} succeeded; if that goes on, {n} show at least"
                f" {target:.0%}, 95 % sure",
                command=f"sim2real deploy BUNDLE --robot ROBOT --step full --trials {n} --execute"
                " --person NAME",
            )
            return
