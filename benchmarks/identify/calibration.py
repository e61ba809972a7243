"""Does a posterior mean what it says? Truths drawn from the prior, and where they come to lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import chisquare

from benchmarks.benchmark import Result, report
from benchmarks.identify.plan import Plan
from sim2real.identification.identifiability import from_information
from sim2real.identification.most_probable import fit
from sim2real.identification.posterior import posterior_of
from sim2real.logs.control_log import ControlLog
from sim2real.replay.least_squares import LeastSquares
from sim2real.tasks import find_task
from sim2real.testing import recordings, truths_of
from sim2real.twin import Twin

_HORIZON_S = 0.5
_DRAWS = 199
"""Draws of a posterior among which the truth has its rank."""
_BINS = 10
"""Bins of the rank histogram; a divisor of one more than the draws."""


@dataclass(frozen=True, kw_only=True)
class Placed:
    """Where the truths lie in the posteriors; a row a truth and identifiable parameter."""

    names: tuple[str, ...]
    """Parameter of each row."""
    inside: tuple[bool, ...]
    """Whether the truth is within the 95 % interval."""
    ranks: tuple[int, ...]
    """Draws of the posterior below the truth."""

    @classmethod
    def joined(cls, parts: Sequence[Placed]) -> Placed:
        """What several truths gave, together."""
        return cls(
            names=tuple(name for part in parts for name in part.names),
            inside=tuple(inside for part in parts for inside in part.inside),
            ranks=tuple(rank for part in parts for rank in part.ranks),
        )

    def uneven(self, name: str = "") -> float:
        """Chance of ranks as uneven as those of a parameter, or of all, if posteriors are right.

        Of all together it is too small: parameters of one truth go together.
        """
        mine = [k for k, other in enumerate(self.names) if name in ("", other)]
        ranks = np.array(self.ranks)[mine]
        counts = np.bincount(ranks * _BINS // (_DRAWS + 1), minlength=_BINS)
        return float(chisquare(counts).pvalue)

    def sbc_p(self) -> tuple[float, str]:
        """(chance of a histogram as uneven as the worst of any parameter's, that parameter).

        The smallest of as many chances, times their number (Bonferroni): truths are independent,
        parameters of one truth are not.
        """
        chances = {name: self.uneven(name) for name in dict.fromkeys(self.names)}
        worst = min(chances, key=lambda name: chances[name])
        return min(1.0, len(chances) * chances[worst]), worst


def placed(
    twin: Twin,
    truths: np.ndarray,
    logs: list[ControlLog],
    *,
    seed: int = 0,
) -> Placed:
    """Identify every log, and see where its truth (n, parameters) lies."""
    names: list[str] = []
    inside: list[bool] = []
    ranks: list[int] = []
    columns = {p.name: k for k, p in enumerate(twin.parameters)}
    for number, (truth, log) in enumerate(zip(truths, logs, strict=True), 1):
        problem = LeastSquares(twin, [log], _HORIZON_S)
        found = fit(problem, seed=seed)
        belief = posterior_of(found, seed=seed).distribution
        told = from_information(problem.names, found.information()).identifiable
        draws = belief.sample(
            seed,
            worlds=torch.arange(_DRAWS),
            episodes=torch.zeros(_DRAWS, dtype=torch.int64),
        ).numpy()
        low, high = belief.quantiles([0.025, 0.975])
        for column, name in enumerate(belief.names):
            if name in told:
                value = truth[columns[name]]
                names.append(name)
                inside.append(bool(low[column] <= value <= high[column]))
                ranks.append(int((draws[:, column] < value).sum()))
        report(f"calibration: {number} of {len(logs)} truths")
    return Placed(names=tuple(names), inside=tuple(inside), ranks=tuple(ranks))


def placed_truths(plan: Plan, group: int) -> Placed:
    """Where some of the truths come to lie, on the arm with every effect on."""
    task = find_task("arm-reach")
    twin = Twin.load(task.twin, check=False)
    truths = truths_of(twin, plan.truths, plan.seed)
    logs = recordings(twin, truths, seconds=plan.seconds, rate_hz=task.rate_hz, seed=plan.seed + 1)
    mine = np.array_split(np.arange(plan.truths), plan.groups)[group]
    return placed(twin, truths[mine], [logs[k] for k in mine], seed=plan.seed)


def calibration(found: Placed, plan: Plan) -> Iterator[Result]:
    """Coverage of 95 % intervals and evenness of ranks."""
    share = float(np.mean(found.inside))
    worst = sorted(
        (
            float(
                np.mean([i for n, i in zip(found.names, found.inside, strict=True) if n == name])
            ),
            name,
        )
        for name in set(found.names)
    )
    how = f"{len(found.inside)} intervals of {plan.truths} truths, {plan.seconds:g} s each"
    yield Result(
        name="identify.coverage95",
        value=share,
        unit="share",
        target=">= 0.95",
        note=f"{how}; lowest " + ", ".join(f"{name} {value:.2f}" for value, name in worst[:3]),
    )
    yield Result(
        name="identify.coverage95_most",
        value=share,
        unit="share",
        target="<= 0.99",
        note="the same: intervals must not be too wide either",
    )
    chance, uneven = found.sbc_p()
    yield Result(
        name="identify.sbc_p",
        value=chance,
        unit="probability",
        target=">= 0.01",
        note=f"chi-square of the truths' ranks among {_DRAWS} draws, {_BINS} bins, a histogram a"
        f" parameter, corrected for their number; worst {uneven}; all in one histogram, as if"
        f" independent: {found.uneven():.2g}; mean rank {np.mean(found.ranks) / _DRAWS:.2f}, 0.5 is"
        " right",
    )
