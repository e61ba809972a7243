"""What one log says about the twin's parameters: residuals, and their sensitivities.

Residuals are whitened by the noise that the twin expects: that of the readings, raised for sensors
that the best fit does not explain, and that of the measured start, propagated through the dynamics.
Parameters are measured in standard deviations of their priors from the point of linearisation, so a
prior has precision one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats
from sim2real.logs import ControlLog
from sim2real.replay.noise_model import NoiseModel
from sim2real.replay.replayer import Replay, Replayer
from sim2real.replay.unknowns import Unknowns, around
from sim2real.twin import Twin

_ROUNDS = 2
"""Fits; each one weights sensors by the residuals of the one before."""
_STEP = 0.3
"""Half of a finite difference, in standard deviations of the prior."""


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """One log linearised around one parameter vector."""

    names: tuple[str, ...]
    """The open parameters."""
    information: Floats
    """(parameters, parameters) J'J of the whitened residuals, per prior standard deviation."""
    score: Floats
    """(parameters,) J'r of the whitened residuals."""
    spread: Floats
    """(sensors,) log variance of each sensor around the best fit, over the expected one; nan if it
    is not measured."""
    replay: Replay

    @property
    def shift(self) -> Floats:
        """(parameters,) regularised Gauss-Newton estimate of how far each parameter is off, in
        standard deviations of its prior: the mean of a Gaussian posterior."""
        eye = np.eye(len(self.score))
        return np.asarray(np.linalg.solve(self.information + eye, self.score), float)

    @property
    def alone(self) -> Floats:
        """(parameters,) the same if each parameter were the only one that may be off."""
        return self.score / (np.diag(self.information) + 1.0)


def sensitivity(twin: Twin, log: ControlLog, *, horizon_s: float) -> Sensitivity:
    """Linearise the log's residuals around the twin's best guess.

    All finite differences are one batch of worlds.
    """
    unknowns = Unknowns(twin)
    low, high = unknowns.bounds
    # Delay buffers are as long as the prior's largest delay; more cannot be simulated.
    longest = [
        p.prior.support[1] if p.name.endswith("/delay") else np.inf for p in unknowns.parameters
    ]
    high = np.minimum(high, (longest - unknowns.center) / unknowns.scales)
    points, spans = around(np.zeros(len(unknowns.names)), _STEP, (low, high))
    values = unknowns.whole(points)
    found = Replayer(twin, log, horizon_s=horizon_s, values=values)(values, vary_starts=True)
    slopes = (found.predicted[2::2] - found.predicted[1::2]) / spans[:, None, None, None]
    noise, spread = found.noise, np.zeros(len(log.contract.sensors))
    for _ in range(_ROUNDS):
        residual, slope = _whitened(found, slopes, noise)
        information = np.einsum("psk,qsk->pq", slope, slope)
        score = np.einsum("psk,sk->p", slope, residual)
        fit = np.linalg.solve(information + np.eye(len(score)), score)
        left = residual - np.einsum("psk,p->sk", slope, fit)
        # A sensor that even the best fit explains badly must not dominate.
        excess = _spread(found, left)
        spread = spread + excess
        widths = [spec.width for spec in log.contract.sensors]
        noise = noise * np.repeat(np.exp(np.maximum(np.nan_to_num(excess), 0.0) / 2), widths)
    return Sensitivity(
        names=unknowns.names,
        information=information,
        score=score,
        spread=spread,
        replay=found,
    )


def _whitened(found: Replay, slopes: Floats, readings: Floats) -> tuple[Floats, Floats]:
    """Residuals (segments, k) and slopes (parameters, segments, k) with unit expected variance."""
    errors, effects = found.errors[:1], found.start_effects
    good = np.isfinite(np.concatenate([errors, effects, slopes])).all(axis=0)
    model = NoiseModel(readings=readings, effects=effects, valid=good)
    white = model.whitened_in_order(np.concatenate([errors, slopes]))
    return white[0], white[1:]


def _spread(found: Replay, residual: Floats) -> Floats:
    """(sensors,) log mean square of each sensor's whitened residuals."""
    squares = residual.reshape(found.measured.shape) ** 2
    spreads = []
    for _, part in found.log.columns():
        mine, seen = squares[..., part], found.valid[..., part].sum()
        spreads.append(np.log(mine.sum() / seen + 1e-12) if seen else np.nan)
    return np.array(spreads)
