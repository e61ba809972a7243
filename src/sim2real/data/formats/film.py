"""Images made into a video, and one episode's video cut from a longer one.

A cut that begins at a key frame copies the encoded packets. Only other cuts are decoded and encoded
again.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from PIL import Image, UnidentifiedImageError

from sim2real.arrays import Floats, Ints, Pixels
from sim2real.data.formats.file_errors import naming
from sim2real.data.video import Video, video_stream
from sim2real.errors import Sim2RealError, explaining

PIXELS_MAX = 1 << 26
"""Most pixels of an image: a file that declares more is refused before it is decoded."""
_PICTURES = ("PNG", "JPEG", "WEBP", "BMP")


def decoded_picture(data: bytes, where: str) -> Pixels:
    """The image in the bytes of a PNG, JPEG, WebP or BMP file."""
    with explaining(f"{where}: the image is damaged"):
        try:
            picture = Image.open(io.BytesIO(data), formats=_PICTURES)
        except UnidentifiedImageError:
            raise Sim2RealError(
                f"{where}: the image is not one of {', '.join(_PICTURES)}"
            ) from None
        if picture.width * picture.height > PIXELS_MAX:
            raise Sim2RealError(
                f"{where}: an image of {picture.width} x {picture.height} pixels is too large"
            )
        return np.asarray(picture.convert("RGB"))


def frames_at(video: Video, places: Ints) -> Iterator[Pixels]:
    """The frames at the given places, which must not decrease; a place may occur often."""
    frames = (picture for _, picture in video.frames(-math.inf, math.inf))
    at, picture = -1, np.empty(0, np.uint8)
    for place in places.tolist():
        while at < place:
            picture, at = next(frames), at + 1
        yield picture


class Film:
    """An mp4 file with the frames of many episodes, one after the other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with explaining(f"{path}: the video cannot be read", av.FFmpegError, ValueError, OSError):
            # Only mp4: other demuxers follow links to other files and hosts.
            self._container = av.open(str(path), "r", format="mp4")
        with naming(path):
            self._stream = video_stream(self._container)

    def close(self) -> None:
        """Close the file."""
        self._container.close()

    def cut(self, start_s: float, times: Floats, rate_hz: float) -> Video:
        """The video of the `len(times)` frames from `start_s` on, which are 1 / `rate_hz` apart.

        `times` become its time stamps. A file with exactly these frames is taken as it is.
        """
        count = len(times)
        with naming(self._path), explaining("the video cannot be cut"):
            packets, in_one_piece = self._packets(start_s, count, rate_hz)
            if sorted(index for index, _ in packets) != list(range(count)):
                raise Sim2RealError(f"{len(packets)} frames from {start_s:g} s on, not {count}")
            if self._stream.frames == count and len(self._container.streams) == 1:
                return Video(times, self._path.read_bytes(), rate_hz)
            if in_one_piece and packets[0][0] == 0 and packets[0][1].is_keyframe:
                return Video(times, _remuxed(self._stream, packets, rate_hz), rate_hz)
            return Video.encode(times, self._decoded(start_s, count, rate_hz), stated_hz=rate_hz)

    def _packets(
        self, start_s: float, count: int, rate_hz: float
    ) -> tuple[list[tuple[int, av.Packet]], bool]:
        """Number and packet of each frame of the cut, in the order of the file.

        And whether there are no other packets between them, on which one of them may depend.
        """
        base = float(self._stream.time_base)
        self._seek(start_s, rate_hz)
        found, places = [], []
        for place, packet in enumerate(self._container.demux(self._stream)):
            if not packet.size or packet.pts is None:
                continue
            index = round((packet.pts * base - start_s) * rate_hz)
            if 0 <= index < count:
                found.append((index, packet))
                places.append(place)
            # No frame is shown before it is decoded: from here on, all are later.
            if packet.dts is not None and (packet.dts * base - start_s) * rate_hz > count:
                break
        return found, bool(places) and places[-1] - places[0] + 1 == len(places)

    def _decoded(self, start_s: float, count: int, rate_hz: float) -> Iterator[Pixels]:
        base = float(self._stream.time_base)
        self._seek(start_s, rate_hz)
        expected = 0
        for frame in self._container.decode(self._stream):
            if round((frame.pts * base - start_s) * rate_hz) == expected:
                yield frame.to_ndarray(format="rgb24")
                expected += 1
            if expected == count:
                return
        raise Sim2RealError(
            f"only {expected} of {count} frames from {start_s:g} s on can be decoded"
        )

    def _seek(self, start_s: float, rate_hz: float) -> None:
        """Go to the key frame at or before the frame at `start_s`."""
        target = round((start_s + 0.25 / rate_hz) / self._stream.time_base)
        self._container.seek(target, stream=self._stream, backward=True)


def frame_times(video: Video) -> Floats:
    """When a player shows each frame [s], which need not be its true time."""
    with video.packets() as (stream, packets):
        return np.sort([float(packet.pts) for packet in packets]) * float(stream.time_base)


def retimed(video: Video, rate_hz: float) -> Video:
    """The same frames, shown at exactly `rate_hz`; nothing is encoded again."""
    with video.packets() as (stream, packets):
        rank = np.argsort(np.argsort([packet.pts for packet in packets]))
        mp4 = _remuxed(stream, list(zip(rank.tolist(), packets, strict=True)), rate_hz)
    return Video(video.times, mp4, video.stated_hz)


def _remuxed(stream: av.VideoStream, packets: list[tuple[int, av.Packet]], rate_hz: float) -> bytes:
    """An mp4 of packets in decoding order, each with the number of its frame."""
    step = 1 / Fraction(rate_hz).limit_denominator(1000)
    # Some frames are decoded ahead of their turn: decode all this much before they are shown.
    ahead = max(order - index for order, (index, _) in enumerate(packets))
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        copy = container.add_stream_from_template(stream, opaque=True)
        copy.time_base = step
        for order, (index, packet) in enumerate(packets):
            packet.stream = copy
            packet.time_base = step
            packet.pts, packet.dts, packet.duration = index, order - ahead, 1
            container.mux(packet)
    return buffer.getvalue()
