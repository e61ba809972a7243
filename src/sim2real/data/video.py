"""A channel of images, stored as one mp4 and read by time.

The mp4 is the content: it is encoded once, hashed as it is, and never encoded again on its way in
and out of a lake. The true time of each frame is kept beside it.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction

import av
import numpy as np

from sim2real.arrays import Floats, Ints, Pixels
from sim2real.errors import Sim2RealError, explaining

_UNREADABLE = (av.FFmpegError, ValueError, TypeError)
KEY_FRAME_INTERVAL = 16
"""Frames from one key frame to the next: the most that a random read decodes in vain."""


@dataclass(frozen=True, eq=False)
class Video:
    """One channel of images at times (frames,) [s]."""

    times: Floats
    """Time stamp of each frame [s]."""
    mp4: bytes
    """The encoded file."""
    stated_hz: float = 0.0
    """Rate the source claims to have recorded at [Hz]; 0 if none."""
    unit: str = ""
    _size: tuple[int, int] = field(init=False, repr=False)
    _ticks: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        times = np.array(self.times, dtype=np.float64)
        if times.ndim != 1 or not len(times):
            raise Sim2RealError("a video needs a time stamp for each of its frames")
        times.flags.writeable = False
        object.__setattr__(self, "stated_hz", float(self.stated_hz))
        object.__setattr__(self, "times", times)
        if not (math.isfinite(self.stated_hz) and self.stated_hz >= 0):
            raise Sim2RealError(f"a stated rate must be 0 Hz or more, not {self.stated_hz}")
        with self.packets() as (stream, packets):
            if len(packets) != len(times):
                raise Sim2RealError(
                    f"{len(times)} time stamps do not fit {len(packets)} frames of video"
                )
            object.__setattr__(self, "_size", (stream.height, stream.width))
            object.__setattr__(self, "_ticks", np.sort([packet.pts for packet in packets]))

    @classmethod
    def encode(
        cls,
        times: Floats,
        frames: Iterable[Pixels],
        *,
        stated_hz: float = 0.0,
    ) -> Video:
        """A video of RGB images (height, width, 3) of bytes, all of the same size."""
        with explaining(
            "cannot encode the video", av.FFmpegError, ValueError, TypeError, OverflowError
        ):
            rate = stated_hz or median_rate_hz(np.asarray(times))
            mp4 = cls.mp4_of(frames, rate_hz=rate if rate > 0 else 30.0)
        return cls(times, mp4, stated_hz)

    @staticmethod
    def mp4_of(frames: Iterable[Pixels], *, rate_hz: float) -> bytes:
        """RGB images (height, width, 3) of bytes, all of the same size, as an mp4.

        An odd side is padded with its last pixels, as H.264 needs even ones.
        """
        buffer = io.BytesIO()
        exact = Fraction(rate_hz).limit_denominator(1000)
        with av.open(buffer, "w", format="mp4") as container:
            stream = container.add_stream("h264", rate=exact)
            stream.pix_fmt = "yuv420p"
            # No B frames: frames are stored in their order. No macroblock tree: it gives
            # other bytes once in a thousand times, and an episode's id is a hash of the bytes.
            stream.options = {"crf": "23", "g": str(KEY_FRAME_INTERVAL), "bf": "0", "mbtree": "0"}
            size = None
            for picture in frames:
                size = size or picture.shape
                if picture.shape != size:
                    raise Sim2RealError(
                        f"images of one video differ in shape: {size} and {picture.shape}"
                    )
                odd = ((0, size[0] % 2), (0, size[1] % 2), (0, 0))
                even = np.pad(picture, odd, mode="edge")
                if not stream.is_open:
                    stream.width, stream.height = even.shape[1], even.shape[0]
                container.mux(stream.encode(av.VideoFrame.from_ndarray(even, "rgb24")))
            container.mux(stream.encode())
        return buffer.getvalue()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one image: height, width, 3."""
        return (*self._size, 3)

    @property
    def rate_hz(self) -> float:
        """Median rate [Hz]; nan for fewer than two frames."""
        return median_rate_hz(self.times)

    @property
    def file(self) -> str:
        """Hash of the file, which is its name in a lake."""
        return hashlib.sha256(self.mp4).hexdigest()

    def frames(self, start_s: float, end_s: float) -> Iterator[tuple[float, Pixels]]:
        """Time and image (height, width, 3) of the frames with start <= time < end.

        Decoding starts at the key frame before and ends at the last of these frames.
        """
        inside = np.flatnonzero((self.times >= start_s) & (self.times < end_s))
        if not len(inside):
            return
        ticks = self._ticks
        last, wanted = int(inside[-1]), set(inside.tolist())
        with explaining("the video cannot be decoded", av.FFmpegError), self.open() as container:
            stream = video_stream(container)
            container.seek(int(ticks[inside[0]]), stream=stream, backward=True)
            for frame in container.decode(stream):
                index = int(np.searchsorted(ticks, frame.pts))
                if index in wanted:
                    yield float(self.times[index]), frame.to_ndarray(format="rgb24")
                if index >= last:
                    return

    def digest(self) -> bytes:
        """Hash of the content."""
        hasher = hashlib.sha256()
        hasher.update(f"video/mp4|{len(self.times)}|{self.unit}|{self.stated_hz}|".encode())
        hasher.update(self.times.tobytes())
        hasher.update(hashlib.sha256(self.mp4).digest())
        return hasher.digest()

    @contextmanager
    def packets(self) -> Iterator[tuple[av.VideoStream, list[av.Packet]]]:
        """The stream of the opened file, and the packets of its frames in decoding order."""
        with self.open() as container, explaining("the video cannot be read", *_UNREADABLE):
            stream = video_stream(container)
            yield stream, [p for p in container.demux(stream) if p.size and p.pts is not None]

    def open(self) -> av.container.InputContainer:
        """The encoded file, opened; to be used in a `with`."""
        with explaining("the video cannot be read", *_UNREADABLE):
            return av.open(io.BytesIO(self.mp4), "r", format="mp4")


def video_stream(container: av.container.InputContainer) -> av.VideoStream:
    """The first video stream of a file."""
    if not container.streams.video:
        raise Sim2RealError("the file contains no video")
    stream = container.streams.video[0]
    if stream.codec_context is None:
        raise Sim2RealError("the video has an unknown codec")
    return stream


def median_rate_hz(times: Floats) -> float:
    """Median rate of time stamps [Hz]; nan for fewer than two."""
    steps = np.diff(times)
    middle = float(np.median(steps)) if len(steps) else 0.0
    return 1.0 / middle if middle > 0 else float("nan")
