"""Bounded, damped Gauss-Newton steps with as few simulations as possible.

Derivatives of the predictions cost one simulation per parameter. They are kept from step to step,
corrected by what each step showed (Broyden), and computed again only when steps fall short of their
prediction. They are derivatives of the plain errors, so they stay valid when the noise changes.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear

from sim2real.arrays import Floats
from sim2real.identification.robust_loss import tempered, weight
from sim2real.replay import LeastSquares

_MIN_DECREASE = 0.05
"""Smallest decrease of the cost that matters: a twentieth of a log-likelihood unit."""
_MIN_RELATIVE_DECREASE = 1e-3
"""The same as a share of the cost, for twins that are far off."""
_MIN_KEPT_PROMISE = 0.25
"""Share of the predicted decrease below which a step falls short."""
_MAX_DAMPING = 1e8
_MAX_DISAPPOINTMENTS = 6
"""Consecutive steps without a decrease that matters, after which the descent stops."""
_ROUGH_SHARE = 0.03
"""Share of the cost below which a predicted decrease may come from kinks, such as dry friction."""
_TRUSTED_DECREASES = 5.0
"""A predicted decrease of up to this many times the smallest is trusted without a simulation."""


class GaussNewton:
    """A descent; the cost is half the sum of squares, including the prior."""

    def __init__(self, problem: LeastSquares, x: Floats, *, prior: float = 1.0) -> None:
        low, high = problem.bounds
        self.problem, self.x = problem, np.clip(x, low, high)
        self._prior = prior
        self.evaluations = 0
        """Parameter vectors that were simulated."""
        self._damping = 1e-3
        self._error: Floats | None = None
        self._slopes: Floats | None = None
        self._fresh = False

    def cost(self, error: Floats, x: Floats) -> float:
        """Cost of errors (1, segments, rows, numbers) at x (fitted,)."""
        residual = tempered(self.problem.whiten(error))
        return 0.5 * float((residual**2).sum() + self._prior * (x**2).sum())

    def go_on(self, problem: LeastSquares) -> None:
        """Take up the problem with better estimates of its noise. The derivatives are kept."""
        self.problem = problem
        self._error, self._fresh, self._damping = None, False, 1e-3

    def run(self, most: int) -> float:
        """Take at most `most` steps; the final cost."""
        if self._slopes is None:
            self._renew()
        if self._error is None:
            self._error = self._errors(self.x)
        cost = self.cost(self._error, self.x)
        disappointed = 0
        for _ in range(most):
            enough = _MIN_DECREASE + _MIN_RELATIVE_DECREASE * cost
            step, promised = self._step()
            if (
                promised < enough
                or self._damping > _MAX_DAMPING
                or disappointed >= _MAX_DISAPPOINTMENTS
            ):
                break
            x = self.x + step
            error = self._errors(x)
            after = self.cost(error, x)
            gained = cost - after
            disappointed = 0 if gained > enough else disappointed + 1
            if self._fresh and gained <= enough and promised < _ROUGH_SHARE * cost:
                # If fresh derivatives fall short, the problem itself is rough.
                disappointed += _MAX_DISAPPOINTMENTS // 2
            if gained > 0 or not self._fresh:
                self._learn(step, error)
            if gained > 0:
                self.x, self._error, cost = x, error, after
            if gained > 0.75 * promised:
                self._damping = max(self._damping / 5, 1e-6)
            elif gained < _MIN_KEPT_PROMISE * promised:
                if self._fresh or gained > enough:
                    self._damping = max(8 * self._damping, 1e-3)
                else:
                    self._renew()
                    continue
            self._fresh &= gained <= 0
        return cost

    def polished(self, *, exact: bool) -> tuple[Floats, Floats, float]:
        """Whitened residuals (segments, k) and their derivatives, by central differences if exact.

        The last number is the decrease that one more step would bring; a step with a small decrease
        is taken without a simulation, and the number is 0.
        """
        if exact:
            self.evaluations += 1 + 2 * len(self.x)
            self._error, self._slopes = self.problem.slopes(self.x, central=True)
            self._fresh = True
        assert self._error is not None and self._slopes is not None
        self._damping = min(self._damping, 1e-3)
        cost = self.cost(self._error, self.x)
        step, promised = self._step()
        residual = self.problem.whiten(self._error)[0]
        slopes = self.problem.whiten_slopes(self._slopes)
        if promised < _TRUSTED_DECREASES * (_MIN_DECREASE + _MIN_RELATIVE_DECREASE * cost):
            self.x = self.x + step
            residual = residual + np.einsum("p,psk->sk", step, slopes)
            return residual, slopes, 0.0
        return residual, slopes, promised

    def _step(self) -> tuple[Floats, float]:
        """The damped step inside the bounds, and the decrease it predicts."""
        assert self._error is not None and self._slopes is not None
        white = self.problem.whiten(self._error)[0]
        slopes = self.problem.whiten_slopes(self._slopes) * weight(white)
        flat = slopes.reshape(len(slopes), -1)
        normal = flat @ flat.T + self._prior * np.eye(len(flat))
        right = -(flat @ tempered(white).ravel()) - self._prior * self.x
        damped = normal + self._damping * np.diag(np.diag(normal) + 1.0)
        root = np.linalg.cholesky(damped + 1e-12 * np.trace(damped) * np.eye(len(flat)))
        low, high = self.problem.bounds
        room = np.maximum(low - self.x, -1e6), np.minimum(high - self.x, 1e6)
        free = np.linalg.solve(root.T, np.linalg.solve(root, right))
        if ((free < room[0]) | (free > room[1])).any():
            wide = np.maximum(room[1], room[0] + 1e-9)
            aim = np.linalg.solve(root, right)
            free = lsq_linear(root.T, aim, bounds=(room[0], wide), method="bvls").x
        step: Floats = np.clip(free, *room)
        return step, float(step @ right - 0.5 * step @ normal @ step)

    def _errors(self, x: Floats) -> Floats:
        self.evaluations += 1
        return self.problem.errors(x[None])

    def _renew(self) -> None:
        self.evaluations += 1 + len(self.x)
        self._error, self._slopes = self.problem.slopes(self.x)
        self._fresh = True

    def _learn(self, step: Floats, error: Floats) -> None:
        """Correct the derivatives so that they predict the errors after the step (Broyden)."""
        assert self._error is not None and self._slopes is not None
        with np.errstate(invalid="ignore"):
            change = error[0] - self._error[0]
        missed = change - np.einsum("p,pskn->skn", step, self._slopes)
        # A world that diverged says nothing about derivatives.
        missed[~np.isfinite(missed)] = 0.0
        self._slopes += (step / (step @ step))[:, None, None, None] * missed
