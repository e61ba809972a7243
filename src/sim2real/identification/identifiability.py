"""Which parameters, or combinations of them, logs can determine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim2real.arrays import Floats
from sim2real.plain import PlainData

_MAX_SHRINKAGE = 0.5
"""Standard deviation after the data, relative to before, below which a parameter is determined."""
_MIN_EFFECT = 1e-3
"""Whitened effect of one standard deviation of the prior below which it counts as none."""
_MIN_WEIGHT = 0.35
"""Least weight of a parameter in a combination."""


@dataclass(frozen=True, kw_only=True)
class Identifiability(
    PlainData,
    also=(
        "identifiable",
        "only_in_combination=combinations",
        "weak",
        "without_effect",
        "shrinkage=by_name",
        "singular_values=singular",
    ),
    without=("names", "alone", "singular", "combinations"),
):
    """What data of this kind determines, by parameter."""

    names: tuple[str, ...]
    shrinkage: Floats
    """(fitted,) standard deviation after the data, relative to before: 1 if they say nothing."""
    alone: Floats
    """(fitted,) the same if all other parameters were known."""
    singular: Floats
    """(fitted,) singular values of the sensitivities, per prior's deviation, largest first."""
    combinations: tuple[tuple[str, ...], ...]
    """Parameters of which only a combination is determined."""

    @property
    def identifiable(self) -> tuple[str, ...]:
        """Parameters that the data determine."""
        both = zip(self.names, self.shrinkage, strict=True)
        return tuple(n for n, s in both if s < _MAX_SHRINKAGE)

    @property
    def together(self) -> tuple[str, ...]:
        """Parameters that would be determined if the others were known."""
        return tuple(
            n
            for n, s, a in zip(self.names, self.shrinkage, self.alone, strict=True)
            if s >= _MAX_SHRINKAGE and a < _MAX_SHRINKAGE
        )

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Parameters that do not affect these logs at all."""
        return tuple(
            n
            for n, a in zip(self.names, self.alone, strict=True)
            if a > 1 / np.hypot(1, _MIN_EFFECT)
        )

    @property
    def weak(self) -> tuple[str, ...]:
        """Parameters with too little effect on these logs."""
        known = {*self.identifiable, *self.together, *self.without_effect}
        return tuple(n for n in self.names if n not in known)

    def advice(self, twin: str) -> list[str]:
        """What to do about undetermined parameters; `twin` is the twin's folder."""
        lost = [name for name in self.names if name not in self.identifiable]
        if not lost:
            return []
        names = " ".join(f"'{name}'" if "*" in name or "[" in name else name for name in lost)
        return [
            f"{len(lost)} of {len(self.names)} parameters are not determined; plan motions that"
            f" tell more: sim2real identify plan {twin} --parameters {names}"
        ]

    def by_name(self) -> dict[str, float]:
        """The shrinkage of each parameter."""
        return dict(zip(self.names, self.shrinkage.tolist(), strict=True))


def from_information(names: tuple[str, ...], information: Floats) -> Identifiability:
    """What an information matrix (fitted, fitted), per standard deviation of the
    prior, determines."""
    covariance = np.linalg.inv(information + np.eye(len(names)))
    values, vectors = np.linalg.eigh(information)
    shrinkage = np.sqrt(np.diag(covariance))
    alone = 1.0 / np.sqrt(1.0 + np.diag(information))
    groups = []
    for value, vector in zip(values, vectors.T, strict=True):
        large = np.flatnonzero(np.abs(vector) > _MIN_WEIGHT)
        members = [k for k in large if alone[k] < _MAX_SHRINKAGE]
        # A direction that the data leave open, though each of its parameters has an effect.
        if value < 1.0 / _MAX_SHRINKAGE**2 - 1.0 and len(members) > 1:
            groups.append(tuple(names[k] for k in members))
    return Identifiability(
        names=names,
        shrinkage=shrinkage,
        alone=alone,
        singular=np.sqrt(np.maximum(values[::-1], 0.0)),
        combinations=tuple(groups),
    )
