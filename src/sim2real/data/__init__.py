"""Recordings of robots: episodes with provenance, and the lake they are kept in.

An episode holds channels with their own time stamps, real or simulated. A lake stores episodes,
labels and consent, and answers SQL. Logs come in and go out in common formats, and are checked for
faults that would spoil identification or training.

>>> import tempfile
>>> from sim2real.data import Episode, Lake, Provenance, Signal
>>> elbow = Signal([0.0, 0.1, 0.2], [0.0, 0.5, 0.9], unit="rad")
>>> episode = Episode({"elbow": elbow}, Provenance(kind="real", robot="so101"))
>>> with tempfile.TemporaryDirectory() as folder:
...     ids = Lake.create(folder).append(episode)
...     Lake.open(folder).get(ids[0])["elbow"].rate_hz
10.0
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim2real.data.check import LogFault, bad_samples, check_episode, repair_episode
    from sim2real.data.consent import Consent
    from sim2real.data.episode import Episode, Signal
    from sim2real.data.formats import read_episodes, write_episodes
    from sim2real.data.formats.channel_map import ChannelMap
    from sim2real.data.labels import Label
    from sim2real.data.lake import Lake, quoted
    from sim2real.data.mixture import Manifest, Mixture, Part
    from sim2real.data.provenance import Origin, Provenance
    from sim2real.data.resampling import held
    from sim2real.data.verification import verify
    from sim2real.data.video import Video
    from sim2real.data.windows import Windows
    from sim2real.data.withdrawal import affected, withdraw

__all__ = [
    "ChannelMap",
    "Consent",
    "Episode",
    "Label",
    "Lake",
    "LogFault",
    "Manifest",
    "Mixture",
    "Origin",
    "Part",
    "Provenance",
    "Signal",
    "Video",
    "Windows",
    "affected",
    "bad_samples",
    "check_episode",
    "held",
    "quoted",
    "read_episodes",
    "repair_episode",
    "verify",
    "withdraw",
    "write_episodes",
]

_MODULES = {
    "check": ("LogFault", "bad_samples", "check_episode", "repair_episode"),
    "consent": ("Consent",),
    "episode": ("Episode", "Signal"),
    "formats": ("read_episodes", "write_episodes"),
    "formats.channel_map": ("ChannelMap",),
    "labels": ("Label",),
    "lake": ("Lake", "quoted"),
    "mixture": ("Manifest", "Mixture", "Part"),
    "provenance": ("Origin", "Provenance"),
    "resampling": ("held",),
    "verification": ("verify",),
    "video": ("Video",),
    "windows": ("Windows",),
    "withdrawal": ("affected", "withdraw"),
}


def __getattr__(name: str) -> object:
    """A public name, from the module that holds it: heavy libraries load when they are used."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
