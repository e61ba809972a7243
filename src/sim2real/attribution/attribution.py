"""The result of an attribution: a share for each dimension, its causes, and what is unexplained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from sim2real.arrays import Bools, Floats, Table
from sim2real.attribution.confounded import ConfoundedDimensions
from sim2real.errors import Sim2RealError, nearest
from sim2real.plain import PlainData
from sim2real.results import Result

if TYPE_CHECKING:
    from sim2real.params import JointDistribution
    from sim2real.twin import Twin
else:
    Twin = object  # pages are made where MuJoCo is not installed

CONFIDENCE = 0.95
"""Confidence of the intervals."""
_MAX_NAMED = 3
"""Most parameters that a sentence names."""
_CERTAIN = 0.95
"""Probability that a parameter is off above which a sentence does not state it."""
_MIN_RELATIVE_EFFECT = 0.1
"""Least effect of a parameter that is named, relative to the largest in its dimension."""


@dataclass(frozen=True, kw_only=True)
class Cause:
    """An identified parameter, and its effect by itself."""

    name: str
    unit: str
    before: float
    """Value in the twin before identification."""
    after: float
    """Median of the identified values, given that the parameter is off."""
    low: float
    high: float
    """95 % interval of those."""
    chance: float = 1.0
    """Probability that it is off at all."""
    effect: float | None = None
    """In the attribution's unit, times the probability that it is off. Of the error: what
    disappears if this parameter alone takes its identified value. Of success: the mean of what that
    costs, and of what comes back if this parameter alone returns to its old value."""

    def __str__(self) -> str:
        scale, unit = self.shown
        after, before = scale * self.after, scale * self.before
        sure = "" if self.chance > _CERTAIN else f" (with a chance of {100 * self.chance:.0f} %)"
        return f"{self.name} is {after:.3g}{unit}, not {before:.3g}{sure}"

    @property
    def shown(self) -> tuple[float, str]:
        """Factor and unit, with a leading space, in which values are shown."""
        over, _, under = self.unit.partition("/")
        if self.unit == "s":
            return 1e3, " ms"
        return 1.0, "" if over == under else f" {self.unit}"  # N m/N m is no unit


@dataclass(frozen=True, kw_only=True)
class Refit:
    """Errors left by refits, in % of the excess error before identification."""

    alone: float
    """Left if only this dimension may move."""
    without: float
    """Left if all others may move but not this one: small if others can stand in for it."""
    share: float
    """Shapley share [%] of what refits explain, including what it explains in place of others."""


@dataclass(frozen=True, kw_only=True)
class PartOfGap(PlainData):
    """A part, in the attribution's unit, with its 95 % interval."""

    name: str
    value: float
    low: float
    high: float
    causes: tuple[Cause, ...] = ()
    """Its parameters, the largest effect first."""
    refit: Refit | None = None

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0

    def tenths(self) -> tuple[float, float, float]:
        """(value, low, high) rounded for display; zero has no sign."""
        value, low, high = (round(v, 1) + 0.0 for v in (self.value, self.low, self.high))
        return value, low, high

    def row(self, *, evidence: bool) -> tuple[str, ...]:
        """Its row in a table, with the `evidence` of refits."""
        known = [cause for cause in self.causes if cause.effect is not None]
        value, low, high = self.tenths()
        named = str(known[0]) if known and self.clear else ""
        refit = self.refit
        tried = ("", "") if refit is None else (f"{refit.alone:.0f} %", f"{refit.without:.0f} %")
        return (self.name, f"{value}", f"{low} .. {high}", named, *(tried if evidence else ()))


@dataclass(frozen=True, kw_only=True)
class Share(PartOfGap, also=("clear",)):
    """One dimension's part."""


@dataclass(frozen=True, kw_only=True)
class Attribution(PlainData, also=("confidence", "sentences")):
    """A gap in parts: the shares and the unexplained part sum to the whole."""

    confidence: ClassVar[float] = CONFIDENCE
    of: Literal["trajectory", "success"]
    unit: str
    """'%' of the excess error, or 'points' of success."""
    whole: float
    """The gap in that unit: 100 %, or the success lost."""
    before: float
    """Excess error per reading [noise variances], or success [%], before identification."""
    after: float
    """The same with everything identified."""
    shares: tuple[Share, ...]
    """The largest first."""
    unexplained: PartOfGap | None
    """What is left with everything identified; None where the real success rate is not known."""
    samples: int
    """Segments, or trials, that each combination of dimensions was simulated with."""
    draws: int
    """Draws of the posterior."""
    together: tuple[ConfoundedDimensions, ...] = ()
    """Dimensions that the recordings cannot separate."""

    @property
    def separable(self) -> list[Share]:
        """Shares of dimensions that are not confounded with others."""
        grouped = {name for group in self.together for name in group.names}
        return [share for share in self.shares if share.name not in grouped]

    def sentences(self) -> list[str]:
        """A sentence for each share whose interval excludes zero, or else for the largest;
        confounded dimensions share one."""
        chosen = [share for share in self.separable if share.clear]
        if not chosen and not self.together:
            chosen = [self.shares[0]]
        said = [(group.value, self._grouped(group)) for group in self.together]
        said += [
            (share.value, f"{share.name} {self._amount(share)}{_because(share)}")
            for share in chosen
        ]
        lines = [line for _, line in sorted(said, key=lambda one: -one[0])]
        if self.unexplained is not None and self.unexplained.clear:
            lines.append(f"unexplained: {_interval(self.unexplained)} {self.unit}")
        return lines

    def table(self) -> Table:
        """Each share with its interval and the parameter with the largest effect."""
        evidence = any(share.refit is not None for share in self.shares)
        rest = [] if self.unexplained is None else [self.unexplained]
        head = ("dimension", self.unit, "95 %", "parameter with the largest effect")
        more = ("refit alone leaves", "refit without leaves") if evidence else ()
        return (*head, *more), [share.row(evidence=evidence) for share in (*self.shares, *rest)]

    def alternatives(self, group: ConfoundedDimensions) -> list[Cause]:
        """The parameter with the largest effect of each dimension in a group."""
        shares = {share.name: share for share in self.shares}
        named = [shares[name].causes[:1] for name in group.names]
        return [cause for causes in named for cause in causes if cause.chance > 0]

    def _grouped(self, group: ConfoundedDimensions) -> str:
        whole = Share(name=group.title, value=group.value, low=group.low, high=group.high)
        causes = ", or ".join(str(cause) for cause in self.alternatives(group))
        return (
            f"{group.title} {self._amount(whole, several=True)} together, and the recordings cannot"
            f" separate them{': ' + causes if causes else ''}"
        )

    def _amount(self, share: Share, *, several: bool = False) -> str:
        verb, other = ("cost", "save") if self.of == "success" else ("explain", "hide")
        whole = "points" if self.of == "success" else "% of the error"
        if share.value < 0:
            verb, share = (
                other,
                replace(share, value=-share.value, low=-share.high, high=-share.low),
            )
        return f"{verb}{'' if several else 's'} {_interval(share)} {whole}"


@dataclass(frozen=True, kw_only=True, eq=False)
class GapAttribution(
    Result,
    kind="attribution",
    file="result.json",
    also=("trajectory?=error", "success?", "notes?"),
    without=("why", "identified"),
):
    """The shares of the error and, for a policy, of the success that it loses."""

    twin: str
    before: str
    after: str
    """Versions of the twin, as it was and identified."""
    trajectory: Attribution | None
    """Of the prediction error; None if there is none to attribute, for the reason in `why`."""
    success: Attribution | None
    """Of the lost success; None without a policy."""
    why: str = ""
    notes: tuple[str, ...] = ()
    """What the policy does not say, and what was taken instead."""
    identified: Twin | None = field(default=None, compare=False, repr=False)
    """The identified twin, if the attribution identified it first."""

    @property
    def parts(self) -> tuple[Attribution, ...]:
        """The attributions that were made."""
        return tuple(part for part in (self.trajectory, self.success) if part is not None)

    @property
    def error(self) -> Attribution | dict[str, str] | None:
        """The attribution of the prediction error, or why there is none."""
        return {"why": self.why} if self.why else self.trajectory

    def save_beside(self, folder: Path) -> None:
        """Write the twin, if the attribution identified it."""
        if self.identified is not None:
            self.identified.save(folder / "twin")


@dataclass(frozen=True, kw_only=True)
class Dimensions:
    """The dimensions of the identified parameters: the players of the Shapley game."""

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    """Columns of the twin's parameters, a tuple for each dimension."""

    def moved(self, base: Floats, drawn: Floats, inside: Bools) -> Floats:
        """(…, coalitions, parameters) `base`, with `drawn` (…, parameters) in the dimensions of
        each coalition; `inside` (coalitions, dimensions) bool."""
        taken = np.zeros((len(inside), base.shape[-1]), dtype=bool)
        for dimension, columns in enumerate(self.columns):
            taken[:, list(columns)] = inside[:, dimension, None]
        return np.where(taken, drawn[..., None, :], base[..., None, :])


def dimensions_of(twin: Twin, names: Sequence[str]) -> Dimensions:
    """The dimensions of parameters `names`, in the order of the twin's parameters."""
    columns: dict[str, list[int]] = {}
    for column, parameter in enumerate(twin.parameters):
        if parameter.name in names:
            columns.setdefault(str(parameter.dimension), []).append(column)
    return Dimensions(names=tuple(columns), columns=tuple(tuple(mine) for mine in columns.values()))


def identified(before: Twin, after: Twin) -> JointDistribution:
    """The posterior of `after`, a `Sim2RealError` if it has none or one of other parameters."""
    if after.posterior is None:
        raise Sim2RealError(
            f"twin {after.name!r} has no posterior, which an attribution needs: identify it first"
        )
    known = [parameter.name for parameter in before.parameters]
    for name in after.posterior.names:
        if name not in known:
            raise Sim2RealError(
                f"{name} was identified, but twin {before.name!r} has no such parameter"
                f"{nearest(name, known)}"
            )
    return after.posterior


def interval_of(resampled: Floats) -> tuple[Floats, Floats]:
    """(low, high) ends of the 95 % interval of resampled shares (…, resamples)."""
    low, high = np.percentile(resampled, (50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)), axis=-1)
    return low, high


def ends_of(resampled: Floats) -> tuple[float, float]:
    """The same of one share, (resamples,)."""
    low, high = interval_of(resampled)
    return float(low), float(high)


def _because(share: Share) -> str:
    """The parameters behind a share, as the end of a sentence."""
    largest = max((abs(c.effect) for c in share.causes if c.effect is not None), default=0.0)
    telling = [
        cause
        for cause in share.causes
        if cause.effect
        and abs(cause.effect) >= _MIN_RELATIVE_EFFECT * largest
        and cause.chance > 0.5
    ]
    named = "; ".join(str(cause) for cause in telling[:_MAX_NAMED])
    return f": {named}" if named else ""


def _interval(share: PartOfGap) -> str:
    digits = 0 if max(abs(share.value), abs(share.high - share.low)) >= 10 else 1
    value, low, high = (round(v, digits) + 0.0 for v in (share.value, share.low, share.high))
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
