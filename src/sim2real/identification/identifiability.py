"""Which parameters these logs can tell, before any of them is fitted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats
from sim2real.identification.least_squares import LeastSquares

_TOLD = 0.5
"""Posterior against prior standard deviation below which a parameter is told."""
_NOTHING = 1e-3
"""Whitened effect of one prior's standard deviation below which there is none."""
_TOGETHER = 0.35
"""Weight in a direction from which a parameter belongs to it."""


@dataclass(frozen=True, kw_only=True)
class Identifiability:
    """What data of this kind can tell, by parameter."""

    names: tuple[str, ...]
    shrinkage: Floats
    """(fitted,) standard deviation after the data against before: 0 well told, 1 not at all."""
    alone: Floats
    """(fitted,) the same if every other parameter were known."""
    singular: Floats
    """(fitted,) singular values of the sensitivities, per prior's deviation, largest first."""
    combinations: tuple[tuple[str, ...], ...]
    """Parameters that only their combination can be told of."""

    @property
    def identifiable(self) -> tuple[str, ...]:
        """Parameters the data tells."""
        return tuple(n for n, s in zip(self.names, self.shrinkage, strict=True) if s < _TOLD)

    @property
    def together(self) -> tuple[str, ...]:
        """Parameters that would be told if others were known, but not with them open."""
        return tuple(
            n
            for n, s, a in zip(self.names, self.shrinkage, self.alone, strict=True)
            if s >= _TOLD and a < _TOLD
        )

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Parameters these logs do not depend on at all."""
        return tuple(
            n for n, a in zip(self.names, self.alone, strict=True) if a > 1 / np.hypot(1, _NOTHING)
        )

    @property
    def weak(self) -> tuple[str, ...]:
        """Parameters with too little effect in these logs."""
        known = {*self.identifiable, *self.together, *self.without_effect}
        return tuple(n for n in self.names if n not in known)

    def to_dict(self) -> dict[str, object]:
        """Plain data."""
        return {
            "identifiable": list(self.identifiable),
            "only_in_combination": [list(group) for group in self.combinations],
            "weak": list(self.weak),
            "without_effect": list(self.without_effect),
            "shrinkage": dict(zip(self.names, self.shrinkage.tolist(), strict=True)),
            "singular_values": self.singular.tolist(),
        }


def identifiability(problem: LeastSquares, x: Floats | None = None) -> Identifiability:
    """What the problem's logs can tell around x (fitted,), its center by default."""
    at = np.zeros(len(problem.names)) if x is None else x
    low, high = problem.bounds
    at = np.clip(at, low, high)
    problem.prepare(at)
    _, slopes = problem.linearised(at, central=False)
    return from_information(problem.names, np.einsum("psk,qsk->pq", slopes, slopes))


def from_information(names: tuple[str, ...], information: Floats) -> Identifiability:
    """The same from an information matrix (fitted, fitted), per prior standard deviation."""
    covariance = np.linalg.inv(information + np.eye(len(names)))
    values, vectors = np.linalg.eigh(information)
    shrinkage = np.sqrt(np.diag(covariance))
    alone = 1.0 / np.sqrt(1.0 + np.diag(information))
    groups = []
    for value, vector in zip(values, vectors.T, strict=True):
        members = [k for k in np.flatnonzero(np.abs(vector) > _TOGETHER) if alone[k] < _TOLD]
        # A direction that the data leaves open, though each of its parameters has an effect.
        if value < 1.0 / _TOLD**2 - 1.0 and len(members) > 1:
            groups.append(tuple(names[k] for k in members))
    return Identifiability(
        names=names,
        shrinkage=shrinkage,
        alone=alone,
        singular=np.sqrt(np.maximum(values[::-1], 0.0)),
        combinations=tuple(groups),
    )
