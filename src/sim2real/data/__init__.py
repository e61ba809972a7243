"""Episodes with provenance, labels about them, and the lake they are kept in."""

from sim2real.data.consent import Consent
from sim2real.data.episode import Episode, Signal
from sim2real.data.labels import Label
from sim2real.data.lake import Lake
from sim2real.data.logs import Logs, read_logs
from sim2real.data.provenance import Origin, Provenance
from sim2real.data.video import Video

__all__ = [
    "Consent",
    "Episode",
    "Label",
    "Lake",
    "Logs",
    "Origin",
    "Provenance",
    "Signal",
    "Video",
    "read_logs",
]
