"""Sizes of the measurement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sizes of the measurement."""

    truths: int = 50
    """Truths that posteriors are checked with."""
    groups: int = 5
    """Shards that the truths are cut into."""
    seconds: float = 20.0
    """Length of a recording [s]."""
    seed: int = 0
    """Seed of truths, motions and noise."""
