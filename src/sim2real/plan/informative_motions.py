"""Which motions would tell most about a twin's parameters, before any of them is recorded.

Every candidate is simulated in the twin, with its noise and delays, at a few parameter vectors that
are still possible, and its log is linearised as in a fit. Selection is greedy: each next
motion is the one that reduces the uncertainty most per second (D-optimal, averaged over the
vectors), starting from what the twin already knows, its posterior or else its priors.

The expected standard deviations hold if the twin explains the robot; if it does not, identification
widens them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, count, pairwise

import numpy as np

from sim2real.arrays import Floats, Ints
from sim2real.contract import Contract
from sim2real.errors import Sim2RealError
from sim2real.plan.chosen_motions import MotionPlan, PlannedMotion
from sim2real.randomize import drawn
from sim2real.replay import LeastSquares, Unknowns, chosen_parameters, simulated_logs
from sim2real.twin import Twin

DRAWS = 3
"""Parameter vectors that motions are evaluated at: the best guess, and draws."""
_SHORTLIST = 3
"""Motions evaluated at all vectors, for each one that is chosen."""
_HORIZON_S = 0.5
"""Length of the segments of a log [s]."""


@dataclass(frozen=True, kw_only=True)
class CandidateMotion:
    """A motion that could be recorded."""

    name: str
    command: Floats
    """(periods, commands) in the contract's order; it starts in the twin's default pose."""
    record: str = ""
    """Shell command that records it."""


def choose(
    twin: Twin,
    contract: Contract,
    candidates: Sequence[CandidateMotion],
    *,
    motions: int = 4,
    wanted: Sequence[str] = (),
    draws: int = DRAWS,
    seed: int = 0,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> MotionPlan:
    """Choose motions among candidates for the parameters `wanted`, by default all open ones.

    The others count as unknown. No candidate is chosen twice; one in which a simulated world
    diverges is left out. Fewer usable candidates than `motions` are all chosen.
    """
    chosen_parameters(twin, wanted)  # refuses those that no recording determines
    unknowns = Unknowns(twin)
    names, scales = unknowns.names, unknowns.scales
    columns = np.array([names.index(name) for name in wanted or names])
    known = known_information(twin, names, scales)[None]
    values = possible(twin, draws=draws, seed=seed)
    lengths = [len(candidate.command) / contract.rate_hz for candidate in candidates]
    short = min(len(candidates), _SHORTLIST * motions) if draws > 1 else 0

    asked = count(1)

    def informed(k: int, rows: slice) -> Floats | None:
        one = information(twin, contract, candidates[k], values[rows], seed=seed, threads=threads)
        report(next(asked), len(candidates) + short)
        return one

    first = {k: informed(k, slice(0, 1)) for k in range(len(candidates))}
    found = {k: one for k, one in first.items() if one is not None}
    whole = found
    if draws > 1:
        # The other vectors are simulated only for motions that may be chosen.
        likely = sorted(most_telling(known, found, lengths, columns, short))
        others = {k: informed(k, slice(1, None)) for k in likely}
        whole = {k: np.concatenate([found[k], m]) for k, m in others.items() if m is not None}
    if not whole:
        raise Sim2RealError(
            "the twin diverges in every motion: check that it is stable with `sim2real twin lint`"
        )
    known = np.repeat(known, len(values), axis=0)
    chosen = most_telling(known, whole, lengths, columns, motions)
    states = list(accumulate((whole[k] for k in chosen), initial=known))
    return MotionPlan(
        twin=twin.name,
        version=twin.version,
        candidates=len(candidates),
        names=names,
        units=tuple(p.unit for p in unknowns.parameters),
        wanted=tuple(names[k] for k in columns),
        prior=scales,
        before=_std(known) * scales,
        motions=tuple(
            PlannedMotion(
                name=candidates[k].name,
                seconds=lengths[k],
                names=names,
                std=_std(after) * scales,
                gain=_unknown(before, columns) - _unknown(after, columns),
                record=candidates[k].record,
            )
            for k, (before, after) in zip(chosen, pairwise(states), strict=True)
        ),
    )


def most_telling(
    known: Floats,
    informed: dict[int, Floats],
    lengths: Sequence[float],
    columns: Ints,
    most: int,
) -> list[int]:
    """Which to take: one after the other, the one that adds most information per second."""
    left, taken = dict(informed), list[int]()
    while left and len(taken) < most:
        now = _unknown(known, columns)
        worth = {k: (now - _unknown(known + one, columns)) / lengths[k] for k, one in left.items()}
        best = max(worth, key=lambda k: worth[k])
        known = known + left.pop(best)
        taken.append(best)
    return taken


def information(
    twin: Twin,
    contract: Contract,
    candidate: CandidateMotion,
    values: Floats,
    *,
    seed: int = 0,
    threads: int = 0,
) -> Floats | None:
    """(n, open, open) information of a motion at values (n, parameters) of all the parameters.

    About the open parameters, per standard deviation of their priors squared; None if a world
    diverges.
    """
    commands = np.repeat(candidate.command[:, None], len(values), axis=1)
    logs = simulated_logs(twin, contract, values, commands, seed=seed, threads=threads)
    if any(not np.isfinite(log.readings).all() for log in logs):
        return None
    found = []
    for log, row in zip(logs, values, strict=True):
        problem = LeastSquares(twin, [log], _HORIZON_S, threads=threads)
        x = np.clip(problem.counted(row), *problem.bounds)
        found.append(problem.prepared(x).information(x))
    return np.stack(found)


def possible(twin: Twin, *, draws: int = DRAWS, seed: int = 0) -> Floats:
    """(draws, parameters) values that are still possible: the best guess, then draws from the
    posterior, or else from the priors."""
    source = "prior" if twin.posterior is None else "posterior"
    found: Floats = drawn(twin, source, count=draws, seed=seed).numpy()
    found[0] = twin.best_guess()
    return found


def known_information(twin: Twin, names: Sequence[str], scales: Floats) -> Floats:
    """(names, names) the twin's information about parameters, per standard deviation of their
    priors squared; the identity without a posterior."""
    covariance = np.eye(len(names))
    if twin.posterior is not None:
        shared = [k for k, name in enumerate(names) if name in twin.posterior.names]
        mine = [twin.posterior.names.index(names[k]) for k in shared]
        whole = twin.posterior.moments()[1][np.ix_(mine, mine)]
        covariance[np.ix_(shared, shared)] = whole / np.outer(scales[shared], scales[shared])
    return np.asarray(np.linalg.inv(covariance + 1e-12 * np.eye(len(names))), float)


def _std(known: Floats) -> Floats:
    """(parameters,) mean standard deviations for information (n, parameters, parameters)."""
    variances = np.linalg.inv(known).diagonal(axis1=1, axis2=2)
    return np.asarray(np.sqrt(variances.mean(axis=0)))


def _unknown(known: Floats, columns: Ints) -> float:
    """Mean of half the log-determinant of the columns' covariance: the uncertainty [nats]."""
    covariance = np.linalg.inv(known)[:, columns[:, None], columns]
    return float(0.5 * np.linalg.slogdet(covariance)[1].mean())
