"""Parameters as unknowns of a fit, and their units.

They are measured in standard deviations of their priors from the twin's best guess, so that steps
and precisions of different parameters compare.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError, nearest
from sim2real.params import LogUniform, Parameter
from sim2real.replay.randomness import is_random
from sim2real.twin import Twin

_SEARCHED_STDS = 10.0
"""Standard deviations of the prior within which values are searched, if there are no bounds."""
_AT_BOUND = 1e-3
"""Distance to a bound, as a share of the range, within which a parameter is at the bound."""


class Unknowns:
    """Parameters of a twin to be fitted, as a vector x (fitted,).

    These are `fitted`, by default all whose prior leaves them open; one that is not open is a
    `Sim2RealError`. With `logarithms`, parameters with a log-uniform prior are fitted by their
    logarithms.
    """

    def __init__(self, twin: Twin, fitted: Sequence[str] = (), *, logarithms: bool = False) -> None:
        self.twin = twin
        self.parameters = chosen_parameters(twin, fitted)
        logs = [logarithms and isinstance(p.prior, LogUniform) for p in self.parameters]
        self._logs = np.array(logs)
        every = [parameter.name for parameter in twin.parameters]
        self._columns = [every.index(name) for name in self.names]
        self._base = twin.best_guess()
        self.center: Floats = self._base[self._columns]
        """(fitted,) values at x = 0."""
        scaled = [
            (_log_scale if log else _scale)(p) for p, log in zip(self.parameters, logs, strict=True)
        ]
        self.scales: Floats
        self.scales, low, high = np.array(scaled).T
        """(fitted,) standard deviation of each prior, or of its logarithm."""
        self._middle, self._low, self._high = map(self._plain, (self.center, low, high))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fitted parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """(low, high) (fitted,) in standard deviations from the center."""
        return (self._low - self._middle) / self.scales, (self._high - self._middle) / self.scales

    def values(self, x: Floats) -> Floats:
        """(…, fitted) values of the parameters at x (…, fitted)."""
        counted = np.clip(self._middle + self.scales * x, self._low, self._high)
        return np.where(self._logs, np.exp(np.where(self._logs, counted, 0.0)), counted)

    def whole(self, x: Floats) -> Floats:
        """(…, parameters) values of all the twin's parameters; the others keep its best guess."""
        values = np.broadcast_to(self._base, (*x.shape[:-1], len(self._base))).copy()
        values[..., self._columns] = self.values(x)
        return values

    def counted(self, values: Floats) -> Floats:
        """(…, fitted) x for values (…, parameters) of all parameters."""
        return (self._plain(values[..., self._columns]) - self._middle) / self.scales

    def _plain(self, values: Floats) -> Floats:
        """(…, fitted) values, or their logarithms."""
        logs = np.log(np.where(self._logs, np.maximum(values, 1e-300), 1.0))
        return np.where(self._logs, logs, values)


def around(
    x: Floats, steps: Floats | float, bounds: tuple[Floats, Floats], *, central: bool = True
) -> tuple[Floats, Floats]:
    """Points (1 + 2 n, n) for finite differences at x (n,), and the spans (n,) of their pairs.

    The points are x, then for each number one below and one above it, as far apart as `steps` and
    `bounds` allow. Without `central`, x is one of the two, the one on the side of the nearer bound.
    """
    low, high = bounds
    below, above = np.maximum(x - steps, low), np.minimum(x + steps, high)
    if not central:
        forward = high - x >= x - low
        below, above = np.where(forward, x, below), np.where(forward, above, x)
    points = np.repeat(x[None], 1 + 2 * len(x), axis=0)
    each = np.arange(len(x))
    points[1 + 2 * each, each], points[2 + 2 * each, each] = below, above
    return points, np.maximum(above - below, 1e-12)


def at_bounds(names: Sequence[str], x: Floats, bounds: tuple[Floats, Floats]) -> tuple[str, ...]:
    """Those of the names whose x (names,) is at a bound."""
    low, high = bounds
    margin = _AT_BOUND * (high - low)
    stuck = (x <= low + margin) | (x >= high - margin)
    return tuple(name for name, here in zip(names, stuck, strict=True) if here)


def open_parameters(twin: Twin) -> tuple[Parameter, ...]:
    """Parameters that predictions depend on and that their prior leaves open."""
    return tuple(
        parameter
        for parameter in twin.parameters
        if parameter.prior_std > 0
        and not is_random(parameter)
        and not parameter.name.startswith("environment/")  # pushes are not predicted
    )


def chosen_parameters(twin: Twin, names: Sequence[str] = ()) -> tuple[Parameter, ...]:
    """Open parameters of those names, by default all; one that is not open is a `Sim2RealError`."""
    open_ = {parameter.name: parameter for parameter in open_parameters(twin)}
    for name in names:
        if name not in open_:
            twin.parameter(name)  # raises if there is none
            raise Sim2RealError(
                f"no recording can determine {name}: its prior is fixed, or it affects no"
                f" prediction{nearest(name, open_)}"
            )
    if not open_:
        raise Sim2RealError(
            f"twin {twin.name!r} has no parameter to fit: all priors are fixed, or no prediction"
            " depends on them"
        )
    return tuple(open_[name] for name in names or open_)


def _scale(parameter: Parameter) -> tuple[float, float, float]:
    """Standard deviation of the prior, and the range to try: within bounds and some deviations."""
    (low, high), scale = parameter.bounds, parameter.prior_std
    wide = _SEARCHED_STDS * scale
    return scale, max(low, parameter.nominal - wide), min(high, parameter.nominal + wide)


def _log_scale(parameter: Parameter) -> tuple[float, float, float]:
    """The same for the logarithm under a log-uniform prior: within bounds, or else its support."""
    (low, high), (least, most) = parameter.bounds, parameter.prior.support
    scale = 0.6826 * (math.log(most) - math.log(least)) / 2
    return scale, low if low > 0 else least, high if math.isfinite(high) else most
