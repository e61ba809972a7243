"""What separates readings from the predictions of a right model, and errors in units of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sim2real.arrays import Bools, Floats

BROKEN = 1e3
"""Whitened error of a world that diverged: very large, but finite."""


@dataclass(frozen=True, kw_only=True)
class NoiseModel:
    """Noise of readings, and what else is random: measured starts, and the twin's own motion."""

    readings: Floats
    """(numbers,) standard deviation of a reading around its prediction."""
    effects: Floats
    """(n, segments, rows, numbers) change of the predictions by one standard deviation of each
    thing that is random and common to a segment, such as a coordinate of its measured start."""
    valid: Bools
    """(segments, rows, numbers) whether there is a reading."""

    def whitened(self, errors: Floats) -> Floats:
        """(m, segments, rows * numbers) errors (m, segments, rows, numbers), or their slopes, in
        independent units of one standard deviation; 0 where there is no reading."""
        segments, width = len(self.valid), self.valid[0].size
        scaled = np.where(self.valid, errors / self.readings, 0.0)
        flat = scaled.reshape(len(scaled), segments, width)
        along, shares = self._factor
        parts = np.matmul(along.transpose(0, 2, 1), flat.transpose(1, 2, 0))
        white = flat - np.matmul(along, shares[:, :, None] * parts).transpose(2, 0, 1)
        return np.where(self.valid.reshape(segments, width), white, 0.0)

    def whitened_in_order(self, errors: Floats) -> Floats:
        """The same, each number given those before it: a triangular root, not the symmetric one.

        Squares summed over a segment are equal; what each number shares with the others is counted
        for the first. Monitors of drift hold such numbers, and are kept for years.
        """
        segments, width = len(self.valid), self.valid[0].size
        flat = np.where(self.valid, errors / self.readings, 0.0).reshape(-1, segments, width)
        effects = np.where(self.valid, self.effects / self.readings, 0.0)
        effects = effects.reshape(-1, segments, width)
        covariance = np.einsum("csk,csl->skl", effects, effects) + np.eye(width)
        white = np.linalg.solve(np.linalg.cholesky(covariance), flat.transpose(1, 2, 0))
        return np.where(self.valid.reshape(segments, width), white.transpose(2, 0, 1), 0.0)

    @cached_property
    def _factor(self) -> tuple[Floats, Floats]:
        """The directions (segments, k, n) of what is common to a segment, and how much (segments,
        n) of each whitening takes away.

        The covariance is the identity plus these directions; its root only affects those.
        """
        scaled = np.where(self.valid, self.effects / self.readings, 0.0)
        segments, width = len(self.valid), self.valid[0].size
        scaled = np.clip(scaled, -BROKEN, BROKEN).reshape(len(scaled), segments, width)
        along, sizes, _ = np.linalg.svd(scaled.transpose(1, 2, 0), full_matrices=False)
        return along, 1.0 - 1.0 / np.sqrt(1.0 + sizes**2)
