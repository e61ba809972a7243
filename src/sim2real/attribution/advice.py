"""What to do next, from the evidence: each piece of advice says why, and which command does it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim2real.intervals import clopper_pearson
from sim2real.plain import PlainData
from sim2real.units import counted

if TYPE_CHECKING:
    from sim2real.attribution.attribution import Attribution, Cause
    from sim2real.attribution.failures import Failures
    from sim2real.twin import Twin

_MIN_COST_TO_RECORD = 5.0
"""Points of success that an undetermined dimension must possibly cost to be worth a recording."""
_MAX_TRIALS = 500
"""Most new trials that are worth suggesting."""
_TRIALS_WITHIN_15_POINTS = 40
"""Trials that give a success rate to within 15 points, whatever the rate is."""


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
    """Advice about a policy that was trained in `twin` before identification.

    `identified` is the result of an identification as plain data, `cured` whether a policy has been
    trained in the identified twin since, `won` the outcomes of the newest policy on the robot.
    """
    found: list[Advice] = []
    if success is not None:
        found += _ranges(twin, success, cured=cured)
        found += _confounded(success, cured=cured)
        found += _unexplained(success)
        found += _undetermined(success, identified or {})
    if failures is not None:
        found += _kinds(failures)
        found += _complaints(failures)
    if won and target is not None:
        found += _more_trials(won, target)
    return found


def _ranges(twin: Twin, success: Attribution, *, cured: bool) -> Iterator[Advice]:
    """For dimensions that cost success: wider ranges if the robot lies outside, else training."""
    priors = {p.name: p.prior.support for p in twin.parameters}
    for share in success.separable:
        if not share.clear or share.value <= 0:
            continue
        cost = f"{share.name} costs {share.value:.0f} points of success"
        likely = [cause for cause in share.causes if cause.chance > 0.5]
        wider = [_wider(cause, *priors[cause.name]) for cause in likely]
        wider = [words for words in wider if words]
        if wider:
            yield Advice(
                do=f"widen {counted(len(wider), 'range')} of {share.name}: {'; '.join(wider)}",
                why=f"{cost}, and the identified robot lies outside the range that training draws"
                " from" + ("; other robots of its kind may, too" if cured else ""),
            )
        elif not cured:
            yield _train_again(cost + (f": {likely[0]}" if likely else ""))


def _train_again(why: str) -> Advice:
    return Advice(
        do="train in worlds drawn from the posterior",
        why=why,
        command="sim2real train TASK --twin IDENTIFIED --source posterior --begin RUN",
    )


def _wider(cause: Cause, low: float, high: float) -> str:
    """A range that contains the identified value; '' where `low` to `high` does."""
    if low <= cause.after <= high:
        return ""
    scale, unit = cause.shown
    least, most = scale * min(low, cause.low), scale * max(high, cause.high)
    return f"{cause.name} to {least:.3g} … {most:.3g}{unit}"


def _confounded(success: Attribution, *, cured: bool) -> Iterator[Advice]:
    """Measurements that would separate confounded dimensions; training does not need them."""
    for group in success.together:
        if group.value <= 0:
            continue
        cost = f"{group.title} cost {group.value:.0f} points together"
        if not cured:
            yield _train_again(cost)
        if causes := success.alternatives(group):
            yield Advice(
                do=f"measure {' or '.join(cause.name for cause in causes)} by other means than"
                " these motions, and enter the value in the twin",
                why=f"{cost}, and the recordings cannot separate them: "
                + ", or ".join(str(cause) for cause in causes),
            )


def _unexplained(success: Attribution) -> Iterator[Advice]:
    rest = success.unexplained
    if rest is not None and rest.clear and rest.value > 0:
        yield Advice(
            do="learn the remainder, and look where the twin is still off",
            why=f"{rest.value:.0f} points of success [{rest.low:.0f}, {rest.high:.0f}] are lost to"
            " effects that no parameter of the twin describes",
            command="sim2real loop TASK --robot ROBOT --strategy identified+remainder;"
            " sim2real gap TWIN --logs RECORDINGS",
        )


def _undetermined(success: Attribution, identified: Mapping[str, Any]) -> Iterator[Advice]:
    """Parameters that the recordings did not determine, in dimensions that may matter."""
    known = identified.get("identifiability", {})
    open_ = [n for n in known.get("shrinkage", ()) if n not in known.get("identifiable", ())]
    for share in success.separable:
        mine = [cause.name for cause in share.causes if cause.name in open_]
        if mine and not share.clear and share.high > _MIN_COST_TO_RECORD:
            yield Advice(
                do=f"record motions that identify {', '.join(mine[:3])}",
                why=f"{share.name} may cost up to {share.high:.0f} points of success, and these"
                " recordings do not determine it",
                command="sim2real identify plan TWIN --parameters "
                + " ".join(f"'{n}'" for n in mine[:3]),
            )


def _kinds(failures: Failures) -> Iterator[Advice]:
    for kind in failures.kinds:
        count, first = counted(len(kind.episodes), "failure"), kind.episodes[0][:8]
        if kind.stopped:
            yield Advice(
                do=f"look at what came before the stop in episode {first}; a policy that gets near"
                " a limit needs to be trained with it",
                why=f"{count} of this kind ended in a stop: {kind.stopped}",
            )
        elif not kind.reproducible:
            yield Advice(
                do=f"look at episode {first}, and record more trials under its conditions",
                why=f"nothing in the twin reproduces {count} of this kind",
            )
        elif not kind.values:
            yield Advice(
                do=f"look at episode {first}, and train longer",
                why=f"in {count} of this kind the policy did what it does in the twin at any"
                " parameter values",
            )
        elif not kind.met_in_training:
            value = kind.values[0]
            yield Advice(
                do=f"let training draw {value.parameter} from {value.low:.3g} … {value.high:.3g}"
                f" {value.unit}".rstrip(),
                why=f"nothing in training was like {count} of this kind; the twin fails in the same"
                f" way with these values ({kind.dimension})",
            )


def _complaints(failures: Failures) -> Iterator[Advice]:
    for one in failures.diagnoses:
        if one.name == "works in one place but not another":
            yield Advice(
                do=f"run {_TRIALS_WITHIN_15_POINTS} trials there: they give the success rate to"
                " within 15 points",
                why=str(one),
            )
        elif one.name == "degrades over time":
            yield Advice(
                do="look for drift: heat, wear, a battery running down",
                why=str(one),
                command="sim2real drift BUNDLE --logs RECORDINGS",
            )


def _more_trials(won: Sequence[bool], target: float) -> Iterator[Advice]:
    """How many new trials would show the target, if the policy keeps succeeding as often.

    New trials, because a test that continues until it is passed is biased.
    """
    rate = sum(won) / len(won)
    if clopper_pearson(sum(won), len(won), confidence=0.9).low >= target:
        return
    for n in range(1, _MAX_TRIALS):
        if clopper_pearson(int(rate * n), n, confidence=0.9).low >= target:
            yield Advice(
                do=f"test this policy in {n} new trials",
                why=f"{sum(won)} of {len(won)} succeeded; at that rate {n} trials show at least"
                f" {target:.0%}, 95 % sure",
                command=f"sim2real deploy BUNDLE --robot ROBOT --step full --trials {n} --execute"
                " --person NAME",
            )
            return
