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

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "ChannelMap",
    "CheckThresholds",
    "Consent",
    "Episode",
    "Label",
    "Lake",
    "LogFault",
    "Logs",
    "Mixture",
    "Origin",
    "Part",
    "Provenance",
    "Signal",
    "Video",
    "Windows",
    "bad_samples",
    "check_episode",
    "check_episodes",
    "export_episodes",
    "import_episodes",
    "read_episodes",
    "read_recording",
    "repair_episode",
    "select",
    "write_episodes",
]

if TYPE_CHECKING:
    from sim2real.data.check import (
        CheckThresholds,
        LogFault,
        bad_samples,
        check_episode,
        repair_episode,
    )
    from sim2real.data.consent import Consent
    from sim2real.data.episode import Episode, Signal
    from sim2real.data.exchange import check_episodes, export_episodes
    from sim2real.data.formats import read_episodes, write_episodes
    from sim2real.data.formats.channel_map import ChannelMap
    from sim2real.data.formats.recording import read_recording
    from sim2real.data.import_files import import_episodes
    from sim2real.data.labels import Label
    from sim2real.data.lake import Lake
    from sim2real.data.mixture import Mixture, Part
    from sim2real.data.provenance import Origin, Provenance
    from sim2real.data.selection import Logs, select
    from sim2real.data.video import Video
    from sim2real.data.windows import Windows
else:
    __getattr__, __dir__ = attach(__name__, __file__)
