"""Does a posterior mean what it says? Truths drawn from the prior, and where they come to lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import chisquare

from sim2real.bench.config import BenchIdentify
from sim2real.bench.identify.known_truth import recordings
from sim2real.bench.run import Report, Result
from sim2real.gap.log import Log
from sim2real.gap.unknowns import open_parameters
from sim2real.identify.fit import fit
from sim2real.identify.identifiability import from_information
from sim2real.identify.posterior import posterior_of
from sim2real.identify.problem import Problem
from sim2real.tasks import find_task
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
    inside: np.ndarray
    """(rows,) whether the truth is within the 95 % interval."""
    ranks: np.ndarray
    """(rows,) draws of the posterior below the truth."""

    def uneven(self, name: str = "") -> float:
        """Chance of ranks as uneven as those of a parameter, or of all, if posteriors are right.

        Of all together it is too small: parameters of one truth go together.
        """
        mine = [k for k, other in enumerate(self.names) if name in ("", other)]
        counts = np.bincount(self.ranks[mine] * _BINS // (_DRAWS + 1), minlength=_BINS)
        return float(chisquare(counts).pvalue)

    def sbc_p(self) -> tuple[float, str]:
        """(chance of a histogram as uneven as the worst of any parameter's, that parameter).

        The smallest of as many chances, times their number (Bonferroni): truths are independent,
        parameters of one truth are not.
        """
        chances = {name: self.uneven(name) for name in dict.fromkeys(self.names)}
        worst = min(chances, key=lambda name: chances[name])
        return min(1.0, len(chances) * chances[worst]), worst


def truths_of(twin: Twin, count: int, seed: int) -> np.ndarray:
    """(count, parameters) draws of all a prediction depends on; the others at nominal values."""
    open_ = {parameter.name for parameter in open_parameters(twin)}
    rng = np.random.default_rng(seed)
    found = np.array([[p.nominal for p in twin.parameters]] * count)
    for column, parameter in enumerate(twin.parameters):
        if parameter.name in open_:
            chance = torch.from_numpy(rng.uniform(size=count))
            found[:, column] = parameter.prior.quantile(chance).numpy()
    return found


def placed(
    twin: Twin,
    truths: np.ndarray,
    logs: list[Log],
    *,
    seed: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Placed:
    """Identify every log, and see where its truth (n, parameters) lies."""
    names: list[str] = []
    inside: list[bool] = []
    ranks: list[int] = []
    columns = {p.name: k for k, p in enumerate(twin.parameters)}
    for number, (truth, log) in enumerate(zip(truths, logs, strict=True)):
        problem = Problem(twin, [log], _HORIZON_S)
        found = fit(problem, seed=seed)
        belief = posterior_of(problem, found, seed=seed).distribution
        told = from_information(problem.names, found.information()).identifiable
        draws = belief.sample(
            seed,
            worlds=torch.arange(_DRAWS),
            episodes=torch.zeros(_DRAWS, dtype=torch.int64),
        ).numpy()
        low, high = belief.quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).numpy()
        for column, name in enumerate(belief.names):
            if name in told:
                value = truth[columns[name]]
                names.append(name)
                inside.append(bool(low[column] <= value <= high[column]))
                ranks.append(int((draws[:, column] < value).sum()))
        report(number + 1, len(truths))
    return Placed(names=tuple(names), inside=np.array(inside), ranks=np.array(ranks))


def calibration(config: BenchIdentify, report: Report) -> Iterator[Result]:
    """Coverage of 95 % intervals and evenness of ranks, on the arm with every effect on."""
    task = find_task("arm-reach")
    twin = Twin.load(task.twin, check=False)
    truths = truths_of(twin, config.truths, config.seed)
    logs = recordings(
        twin, truths, seconds=config.seconds, rate_hz=task.rate_hz, seed=config.seed + 1
    )

    def show(done: int, of: int) -> None:
        report(f"calibration: {done} of {of} truths")

    found = placed(twin, truths, logs, seed=config.seed, report=show)
    share = float(found.inside.mean())
    worst = sorted(
        (
            float(
                np.mean([i for n, i in zip(found.names, found.inside, strict=True) if n == name])
            ),
            name,
        )
        for name in set(found.names)
    )
    how = f"{len(found.inside)} intervals of {config.truths} truths, {config.seconds:g} s each"
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
        f" independent: {found.uneven():.2g}; mean rank {found.ranks.mean() / _DRAWS:.2f}, 0.5 is"
        " right",
    )
