"""An episode: named channels, each with its own time stamps, unit and shape.

Joint positions at 500 Hz stand beside images at 30 Hz; nothing is resampled on the way in. An
episode is immutable, and its id is a hash of its content: the same data have the same id anywhere.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from sim2real.arrays import Array, Floats, Ints
from sim2real.data.provenance import Provenance
from sim2real.data.video import Video, median_rate_hz
from sim2real.errors import Sim2RealError, explaining, nearest

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/\-]*")
_KINDS = "biuf"


def channel_name(text: str) -> str:
    """`text` as the name of a channel: characters that a name cannot have become '_'."""
    name = re.sub(r"[^A-Za-z0-9_.:/\-]", "_", text)
    return name if re.match(r"[A-Za-z0-9_]", name) else f"_{name}"


def held(times: Floats, at: Floats) -> Ints:
    """Index of the latest sample at or before each of the times `at`: a zero-order hold.

    Before the first sample, it is the first. Of samples with the same time stamp the last one
    counts; time stamps that are not finite are ignored. Without any other, a `Sim2RealError`.
    """
    good = np.flatnonzero(np.isfinite(times))
    if not len(good):
        raise Sim2RealError("a channel has no finite time stamp")
    order = good[np.argsort(times[good], kind="stable")]
    place = np.searchsorted(times[order], at, side="right") - 1
    return np.asarray(order[np.maximum(place, 0)])


@dataclass(frozen=True, eq=False)
class Signal:
    """One numeric channel: values (samples, ...) at times (samples,) [s]."""

    times: Floats
    """Time stamps [s] as recorded: repeated or decreasing ones are kept."""
    values: Array
    """One row for each time stamp; numbers or booleans."""
    unit: str = ""
    """SI unit, '' for a ratio or a count."""
    stated_hz: float = 0.0
    """Rate the source claims to have recorded at [Hz]; 0 if none."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.stated_hz) and self.stated_hz >= 0):
            raise Sim2RealError(f"a stated rate must be 0 Hz or more, not {self.stated_hz}")
        with explaining("times and values must be arrays", TypeError, ValueError):
            times, values = np.array(self.times, dtype=np.float64), np.array(self.values)
        if times.ndim != 1:
            raise Sim2RealError(f"time stamps must have one axis, not the shape {times.shape}")
        if values.dtype.kind not in _KINDS:
            raise Sim2RealError(f"values must be numbers, not {values.dtype}")
        if values.ndim < 1 or len(values) != len(times):
            raise Sim2RealError(
                f"{len(times)} time stamps do not fit values of shape {values.shape}"
            )
        # Little-endian and contiguous, so that equal content has equal bytes everywhere.
        values = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"), copy=False))
        for array in (times, values):
            array.flags.writeable = False
        object.__setattr__(self, "stated_hz", float(self.stated_hz))
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "values", values)

    def held(self, at: Floats) -> Ints:
        """Index of the latest sample at or before each time, else of the first; see `held`."""
        return held(self.times, at)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one sample."""
        return self.values.shape[1:]

    @property
    def rate_hz(self) -> float:
        """Median rate [Hz]; nan for fewer than two samples."""
        return median_rate_hz(self.times)

    def between(self, start_s: float, end_s: float) -> Signal:
        """The samples with start <= time < end [s]."""
        inside = (self.times >= start_s) & (self.times < end_s)
        return replace(self, times=self.times[inside], values=self.values[inside])

    def digest(self) -> bytes:
        """Hash of the content."""
        hasher = hashlib.sha256()
        head = f"{self.values.dtype.str}|{self.values.shape}|{self.unit}|{self.stated_hz}|"
        hasher.update(head.encode())
        hasher.update(self.times.tobytes())
        hasher.update(self.values.tobytes())
        return hasher.digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signal) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())


@dataclass(frozen=True)
class Episode:
    """Channels that were recorded together, their outcome and their provenance."""

    channels: Mapping[str, Signal | Video] = field(compare=False)
    provenance: Provenance = field(compare=False)
    outcome: str = field(default="", compare=False)
    """'success', 'failure', or '' where nobody has judged."""
    id: str = field(init=False)
    """Hash of the content, 32 hexadecimal digits."""

    def __post_init__(self) -> None:
        if self.outcome not in ("", "success", "failure"):
            raise Sim2RealError(f"outcome is 'success', 'failure' or '', not {self.outcome!r}")
        if not self.channels:
            raise Sim2RealError("an episode needs at least one channel")
        for name, signal in self.channels.items():
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise Sim2RealError(f"{name!r} is not a name like 'observation.state'")
            if not isinstance(signal, Signal | Video):
                raise Sim2RealError(f"channel {name!r} is a {type(signal).__name__}, not a Signal")
        ordered = {name: self.channels[name] for name in sorted(self.channels)}
        object.__setattr__(self, "channels", MappingProxyType(ordered))
        object.__setattr__(self, "id", self._hash())

    def __getitem__(self, name: str) -> Signal:
        """The numeric channel of that name."""
        if name not in self.signals:
            raise Sim2RealError(
                f"episode {self.id} has no channel {name!r}{nearest(name, self.signals)}"
            )
        return self.signals[name]

    @property
    def signals(self) -> dict[str, Signal]:
        """The numeric channels."""
        return {n: s for n, s in self.channels.items() if isinstance(s, Signal)}

    @property
    def videos(self) -> dict[str, Video]:
        """The channels of images."""
        return {n: s for n, s in self.channels.items() if isinstance(s, Video)}

    @property
    def start_s(self) -> float:
        """First time stamp of any channel [s]."""
        return min((float(times.min()) for times in self._times), default=0.0)

    @property
    def end_s(self) -> float:
        """Last time stamp of any channel [s]."""
        return max((float(times.max()) for times in self._times), default=0.0)

    @property
    def _times(self) -> list[Floats]:
        return [channel.times for channel in self.channels.values() if len(channel.times)]

    @property
    def duration_s(self) -> float:
        """Time from the first sample to the last [s]."""
        return self.end_s - self.start_s

    def derive(
        self, process: str, *, channels: Mapping[str, Signal | Video] | None = None
    ) -> Episode:
        """A new episode made from this one; its provenance names this one as its parent."""
        if not process:
            raise Sim2RealError("a derived episode needs a process, such as 'filter 20 Hz'")
        return Episode(
            channels=self.channels if channels is None else channels,
            provenance=replace(self.provenance, parents=(self.id,), process=process),
            outcome=self.outcome,
        )

    def _hash(self) -> str:
        hasher = hashlib.sha256()
        hasher.update(self.provenance.to_json().encode())
        hasher.update(f"|{self.outcome}|".encode())
        for name, signal in self.channels.items():
            hasher.update(f"{name}|".encode())
            hasher.update(signal.digest())
        return hasher.hexdigest()[:32]
