"""Episodes with provenance, labels about them, and the lake they are kept in."""

from sim2real.data.episode import Episode, Signal
from sim2real.data.labels import Label
from sim2real.data.lake import Lake
from sim2real.data.provenance import Origin, Provenance

__all__ = ["Episode", "Label", "Lake", "Origin", "Provenance", "Signal"]
