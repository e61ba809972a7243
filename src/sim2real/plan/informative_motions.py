"""Which motions would tell more of a twin's parameters, before any of them is recorded.

Every candidate is simulated in the twin, with its noise and delays, at a few parameter vectors that
are still possible; the log is linearised as the fit would linearise it. Motions are chosen one
after the other, each the one that shrinks what is unknown the most a second (D-optimal, in the mean
over the vectors). What the twin already knows, its posterior or else its priors, is where the count
starts: a motion that tells what is known is worth nothing.

The expected standard deviations hold if the twin explains the robot; where it does not,
identification widens them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import torch

from sim2real.arrays import Floats, Ints
from sim2real.contract import Contract
from sim2real.errors import Sim2RealError
from sim2real.identification import Identifiability, LeastSquares
from sim2real.logs import ControlLog
from sim2real.params import GaussianPosterior, JointDistribution
from sim2real.randomize import drawn
from sim2real.replay import Unknowns, best_guess, chosen_parameters, places_of
from sim2real.twin import Twin
from sim2real.worlds import CpuWorlds

DRAWS = 3
"""Parameter vectors a motion is looked at with: the best guess, and draws of what is possible."""
_SHORTLIST = 3
"""Motions looked at with all vectors for each one that is chosen."""
_HORIZON_S = 0.5
"""Length of the segments of a log [s]."""


@dataclass(frozen=True, kw_only=True)
class CandidateMotion:
    """A motion that could be recorded."""

    name: str
    command: Floats
    """(periods, commands) in the contract's order; it begins in the twin's default pose."""


@dataclass(frozen=True, kw_only=True)
class PlannedMotion:
    """A motion that was chosen, and what is expected to be known after it."""

    name: str
    seconds: float
    std: Floats
    """(parameters,) expected standard deviations after this and all motions before it."""
    gain: float
    """Nats by which it shrinks what is unknown of the parameters that were asked for."""


@dataclass(frozen=True, kw_only=True)
class MotionPlan:
    """Motions worth recording, the most telling first."""

    names: tuple[str, ...]
    """All parameters that are open, in the twin's order."""
    units: tuple[str, ...]
    wanted: tuple[str, ...]
    """Those that the motions were chosen for."""
    prior: Floats
    """(parameters,) standard deviations of the priors."""
    before: Floats
    """(parameters,) as the twin knows them now: its posterior's, or its priors'."""
    motions: tuple[PlannedMotion, ...]

    @property
    def after(self) -> Floats:
        """(parameters,) expected after all motions."""
        return self.motions[-1].std if self.motions else self.before

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "wanted": list(self.wanted),
            "parameters": {
                name: {
                    "unit": unit,
                    "prior_std": float(prior),
                    "std_before": float(before),
                    "std_after": float(after),
                }
                for name, unit, prior, before, after in zip(
                    self.names, self.units, self.prior, self.before, self.after, strict=True
                )
            },
            "motions": [
                {
                    "name": motion.name,
                    "seconds": motion.seconds,
                    "gain_nats": motion.gain,
                    "std_after": dict(zip(self.names, motion.std.tolist(), strict=True)),
                }
                for motion in self.motions
            ],
        }


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
    """Choose motions among candidates for the parameters `wanted`, by default all that are open.

    The others stay unknown, and are told apart from the wanted ones. No candidate is chosen twice;
    one in which a simulated world diverges is left out. Fewer usable candidates than `motions` are
    all chosen.
    """
    if motions < 1 or not candidates:
        raise Sim2RealError("a plan needs at least one motion, and candidates to choose it from")
    chosen_parameters(twin, wanted)  # refuses those that nothing tells
    unknowns = Unknowns(twin)
    names, scales = unknowns.names, unknowns.scales
    columns = np.array([names.index(name) for name in wanted or names])
    known = known_information(twin, names, scales)[None]
    values = possible(twin, draws=draws, seed=seed)
    lengths = [len(candidate.command) / contract.rate_hz for candidate in candidates]
    short = min(len(candidates), _SHORTLIST * motions) if draws > 1 else 0

    asked = count(1)

    def told(k: int, rows: slice) -> Floats | None:
        one = information(twin, contract, candidates[k], values[rows], seed=seed, threads=threads)
        report(next(asked), len(candidates) + short)
        return one

    looked_at = {k: told(k, slice(0, 1)) for k in range(len(candidates))}
    found = {k: one for k, one in looked_at.items() if one is not None}
    whole = found
    if draws > 1:
        # The other vectors are simulated only for motions that may be chosen.
        likely = sorted(most_telling(known, found, lengths, columns, short))
        others = {k: told(k, slice(1, None)) for k in likely}
        whole = {k: np.concatenate([found[k], m]) for k, m in others.items() if m is not None}
    if not whole:
        raise Sim2RealError("the twin diverges in every motion: is it stable at all?")
    known = np.repeat(known, len(values), axis=0)
    chosen = most_telling(known, whole, lengths, columns, motions)
    return MotionPlan(
        names=names,
        units=tuple(p.unit for p in unknowns.parameters),
        wanted=tuple(names[k] for k in columns),
        prior=scales,
        before=_std(known) * scales,
        motions=tuple(_motions(candidates, lengths, chosen, known, whole, columns, scales)),
    )


def _motions(
    candidates: Sequence[CandidateMotion],
    lengths: Sequence[float],
    chosen: Sequence[int],
    known: Floats,
    told: dict[int, Floats],
    columns: Ints,
    scales: Floats,
) -> Iterator[PlannedMotion]:
    """The chosen ones, with what is known after each."""
    for k in chosen:
        gain = _unknown(known, columns) - _unknown(known + told[k], columns)
        known = known + told[k]
        std = _std(known) * scales
        yield PlannedMotion(name=candidates[k].name, seconds=lengths[k], std=std, gain=gain)


def most_telling(
    known: Floats,
    told: dict[int, Floats],
    lengths: Sequence[float],
    columns: Ints,
    most: int,
) -> list[int]:
    """Which to take, one after the other: each the one that tells the most a second beside them."""
    left, taken = dict(told), list[int]()
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
    """(n, open, open) what a motion tells at values (n, parameters) of all the twin's parameters.

    Of the open parameters, per standard deviation of their priors squared; None where a world
    diverges.
    """
    logs = simulated(twin, contract, candidate, values, seed=seed, threads=threads)
    if any(not np.isfinite(log.readings).all() for log in logs):
        return None
    found = []
    for log, row in zip(logs, values, strict=True):
        problem = LeastSquares(twin, [log], _HORIZON_S, threads=threads)
        x = np.clip(problem.counted(row), *problem.bounds)
        problem.prepare(x)
        _, slopes = problem.linearised(x, central=False)
        flat = slopes.reshape(len(x), -1)
        found.append(flat @ flat.T)
    return np.stack(found)


def simulated(
    twin: Twin,
    contract: Contract,
    candidate: CandidateMotion,
    values: Floats,
    *,
    seed: int = 0,
    threads: int = 0,
) -> list[ControlLog]:
    """Logs of a motion in the twin at values (n, parameters), with all of the twin's chance.

    Readings are nan from where a world diverged.
    """
    period_s = 1.0 / contract.rate_hz
    worlds = CpuWorlds(twin, count=len(values), period_s=period_s, seed=seed, threads=threads)
    model = worlds.model
    numbers, controls = places_of(model, contract)
    everyone = torch.arange(len(values))
    worlds.set_parameters(torch.from_numpy(np.asarray(values, float)), everyone)
    worlds.reset(everyone)
    sent = torch.zeros(len(values), model.nu, dtype=torch.float64)
    sent[:, controls] = torch.from_numpy(candidate.command[0])
    worlds.state("ctrl").copy_(sent)
    worlds.begin(everyone)
    periods = len(candidate.command)
    readings = np.empty((len(values), periods, len(numbers)))
    broken = torch.zeros(len(values), dtype=torch.bool)
    for row, command in enumerate(candidate.command):
        readings[:, row] = worlds.measured[:, numbers].double().numpy()
        readings[broken.numpy(), row] = np.nan
        sent[:, controls] = torch.from_numpy(command)
        broken |= worlds.step(sent.float())
    return [
        ControlLog(
            contract=contract,
            episode=f"simulated {candidate.name}",
            times=period_s * np.arange(periods, dtype=float),
            readings=mine,
            fresh=np.ones((periods, len(contract.sensors)), dtype=bool),
            command=candidate.command,
        )
        for mine in readings
    ]


def possible(twin: Twin, *, draws: int = DRAWS, seed: int = 0) -> Floats:
    """(draws, parameters) values that are still possible, the best guess first.

    The others are drawn from the posterior, or from the priors where there is none.
    """
    source = "prior" if twin.posterior is None else "posterior"
    found: Floats = drawn(twin, source, count=draws, seed=seed).numpy()
    found[0] = best_guess(twin)
    return found


def known_information(twin: Twin, names: Sequence[str], scales: Floats) -> Floats:
    """(names, names) what the twin knows of parameters, per standard deviation of their priors.

    One on the diagonal for each that only its prior knows of.
    """
    covariance = np.eye(len(names))
    if twin.posterior is not None:
        shared = [k for k, name in enumerate(names) if name in twin.posterior.names]
        mine = [twin.posterior.names.index(names[k]) for k in shared]
        whole = covariance_of(twin.posterior)[np.ix_(mine, mine)]
        covariance[np.ix_(shared, shared)] = whole / np.outer(scales[shared], scales[shared])
    return np.asarray(np.linalg.inv(covariance + 1e-12 * np.eye(len(names))), float)


def covariance_of(posterior: JointDistribution) -> Floats:
    """(names, names) covariance of a posterior, whichever kind it is."""
    if isinstance(posterior, GaussianPosterior):
        return np.array(posterior.covariance)
    count = torch.arange(4096)
    draws = posterior.sample(0, worlds=count, episodes=torch.zeros_like(count))
    return np.atleast_2d(np.cov(draws.numpy().T))


def advice(told: Identifiability, twin: str) -> list[str]:
    """What to do about parameters that logs could not tell; `twin` is where it is kept.

    Empty where everything was told.
    """
    lost = [name for name in told.names if name not in told.identifiable]
    if not lost:
        return []
    names = " ".join(f"'{name}'" if "*" in name or "[" in name else name for name in lost)
    return [
        f"{len(lost)} of {len(told.names)} parameters were not told; the motions that would tell"
        f" the most of them: sim2real identify plan {twin} --parameters {names}"
    ]


def _std(known: Floats) -> Floats:
    """(parameters,) standard deviations of information (n, parameters, parameters), in the mean."""
    variances = np.linalg.inv(known).diagonal(axis1=1, axis2=2)
    return np.asarray(np.sqrt(variances.mean(axis=0)))


def _unknown(known: Floats, columns: Ints) -> float:
    """Half the log-determinant of the columns' covariance, in the mean: what is unknown [nats]."""
    covariance = np.linalg.inv(known)[:, columns[:, None], columns]
    return float(0.5 * np.linalg.slogdet(covariance)[1].mean())
