"""Episodes with provenance."""

from sim2real.data.episode import Episode, Signal
from sim2real.data.provenance import Origin, Provenance

__all__ = ["Episode", "Origin", "Provenance", "Signal"]
