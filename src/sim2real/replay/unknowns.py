"""Parameters as unknowns: which of them recordings may tell, and how they are counted.

They are counted in standard deviations of their priors from the twin's best guess, so that steps
and precisions of different parameters compare.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError, nearest
from sim2real.params import LogUniform, Parameter
from sim2real.replay.randomness import is_random
from sim2real.twin import Twin

_WIDTHS = 10.0
"""Standard deviations of the prior beyond which no value is looked for, where no bound is."""
_ON_A_BOUND = 1e-3
"""Share of what a parameter may be within which it counts as on a bound."""


class Unknowns:
    """Parameters of a twin that are to be found, as a vector x (fitted,).

    Those `fitted`, by default all whose prior leaves them open; one that is not open is a
    `Sim2RealError`. With `logarithms`, parameters with a log-uniform prior are counted by their
    logarithms.
    """

    def __init__(self, twin: Twin, fitted: Sequence[str] = (), *, logarithms: bool = False) -> None:
        self.twin = twin
        self.parameters = chosen_parameters(twin, fitted)
        self._logs = np.array([logarithms and _is_log(p) for p in self.parameters])
        every = [parameter.name for parameter in twin.parameters]
        self._columns = [every.index(name) for name in self.names]
        self._base = best_guess(twin)
        self.center: Floats = self._base[self._columns]
        """(fitted,) values where the count of standard deviations is zero."""
        self.scales: Floats = np.array(
            [_log_width(p) if log else prior_std(p) for p, log in self._with_logs()]
        )
        """(fitted,) standard deviation of each prior, as its parameter is counted."""
        self._middle = self._plain(self.center)
        edges = np.array([_log_reach(p) if log else _reach(p) for p, log in self._with_logs()]).T
        self._low, self._high = (self._plain(edge) for edge in edges)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what is to be found."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """(low, high) (fitted,) in standard deviations from the center."""
        return (self._low - self._middle) / self.scales, (self._high - self._middle) / self.scales

    def values(self, x: Floats) -> Floats:
        """(…, fitted) values of parameters for (…, fitted) standard deviations."""
        counted = np.clip(self._middle + self.scales * x, self._low, self._high)
        return np.where(self._logs, np.exp(np.where(self._logs, counted, 0.0)), counted)

    def whole(self, x: Floats) -> Floats:
        """(…, parameters) values of all the twin's parameters; the others have its best guess."""
        values = np.broadcast_to(self._base, (*x.shape[:-1], len(self._base))).copy()
        values[..., self._columns] = self.values(x)
        return values

    def counted(self, values: Floats) -> Floats:
        """(…, fitted) standard deviations of values (…, parameters) of all parameters."""
        return (self._plain(values[..., self._columns]) - self._middle) / self.scales

    def _with_logs(self) -> list[tuple[Parameter, bool]]:
        return list(zip(self.parameters, self._logs.tolist(), strict=True))

    def _plain(self, values: Floats) -> Floats:
        """(…, fitted) values as they are counted: as they are, or by their logarithms."""
        logs = np.log(np.where(self._logs, np.maximum(values, 1e-300), 1.0))
        return np.where(self._logs, logs, values)


def around(
    x: Floats, steps: Floats | float, bounds: tuple[Floats, Floats], *, central: bool = True
) -> tuple[Floats, Floats]:
    """Points for derivatives at x (n,), and the spans (n,) between their pairs.

    The points (1 + 2 n, n) are x, then for each number one below and one above it, as far apart as
    `steps` and `bounds` allow; without `central`, x is one of the two, and the nearer bound lies on
    its side.
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
    """Those of the names whose x (names,) is on a bound."""
    low, high = bounds
    margin = _ON_A_BOUND * (high - low)
    stuck = (x <= low + margin) | (x >= high - margin)
    return tuple(name for name, here in zip(names, stuck, strict=True) if here)


def best_guess(twin: Twin) -> Floats:
    """(parameters,) the posterior's median where the twin was identified, else nominal values."""
    values = np.array([parameter.nominal for parameter in twin.parameters])
    if twin.posterior is not None:
        medians = twin.posterior.quantile(torch.tensor([0.5], dtype=torch.float64))[0]
        names = [parameter.name for parameter in twin.parameters]
        for column, name in enumerate(twin.posterior.names):
            values[names.index(name)] = float(medians[column])
    return values


def open_parameters(twin: Twin) -> tuple[Parameter, ...]:
    """Parameters a prediction depends on and whose prior leaves them open."""
    return tuple(
        parameter
        for parameter in twin.parameters
        if prior_std(parameter) > 0
        and not is_random(parameter)
        and not parameter.name.startswith("environment/")  # pushes are no part of a prediction
    )


def chosen_parameters(twin: Twin, names: Sequence[str] = ()) -> tuple[Parameter, ...]:
    """Open parameters of those names, all by default; one that is not open is a `Sim2RealError`."""
    open_ = {parameter.name: parameter for parameter in open_parameters(twin)}
    for name in names:
        if name not in open_:
            twin.parameter(name)  # raises if there is none
            raise Sim2RealError(
                f"no recording can tell {name}: its prior is fixed, or no prediction depends on it"
                f"{nearest(name, open_)}"
            )
    if not open_:
        raise Sim2RealError(
            f"twin {twin.name!r} has no parameter to fit: all priors are fixed, or no prediction"
            " depends on them"
        )
    return tuple(open_[name] for name in names or open_)


def prior_std(parameter: Parameter) -> float:
    """Half the width of the middle 68 % of the prior: its standard deviation, if it is normal."""
    low, high = parameter.prior.quantile(torch.tensor([0.1587, 0.8413], dtype=torch.float64))
    return float(high - low) / 2


def _reach(parameter: Parameter) -> tuple[float, float]:
    """Values that may be tried: within the bounds, and so many priors' widths around."""
    low, high = parameter.bounds
    wide = _WIDTHS * prior_std(parameter)
    return max(low, parameter.nominal - wide), min(high, parameter.nominal + wide)


def _is_log(parameter: Parameter) -> bool:
    return isinstance(parameter.prior, LogUniform)


def _log_width(parameter: Parameter) -> float:
    """Standard deviation of the logarithm under a log-uniform prior."""
    low, high = np.log(parameter.prior.support)
    return float(0.6826 * (high - low) / 2)


def _log_reach(parameter: Parameter) -> tuple[float, float]:
    """Values that may be tried under a log-uniform prior: the bounds, or else all it allows."""
    low, high = parameter.bounds
    least, most = parameter.prior.support
    return low if low > 0 else least, high if np.isfinite(high) else most
