"""Pictures made into a video, and one episode's video cut out of a longer one.

A cut copies the encoded packets where it begins at a key frame, so that no picture is encoded a
second time. Only where it does not, the pictures are decoded and encoded again.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image, UnidentifiedImageError

from sim2real.data.video import Video
from sim2real.errors import Sim2RealError

PIXELS_MAX = 1 << 26
"""Most pixels of one picture: a file that declares more is refused before it is decoded."""
_PICTURES = ("PNG", "JPEG", "WEBP", "BMP")


def decoded_picture(data: bytes, where: str) -> np.ndarray:
    """The picture (height, width, 3) in a PNG, JPEG, WebP or BMP file's bytes."""
    try:
        with Image.open(io.BytesIO(data), formats=_PICTURES) as picture:
            if picture.width * picture.height > PIXELS_MAX:
                raise Sim2RealError(
                    f"{where}: a picture of {picture.width} x {picture.height} pixels is too large"
                )
            return np.asarray(picture.convert("RGB"))
    except UnidentifiedImageError:
        raise Sim2RealError(f"{where}: not a picture in {', '.join(_PICTURES)}") from None
    except Sim2RealError:
        raise
    except Exception as error:  # Pillow's decoders raise many kinds on damaged data
        raise Sim2RealError(f"{where}: the picture is damaged: {_line(error)}") from None


def video_of(times: np.ndarray, pictures: Iterable[np.ndarray], *, stated_hz: float = 0.0) -> Video:
    """A video of RGB pictures, all of one size; an odd side grows by a copy of its last pixels."""
    return Video.encode(times, _even(pictures), stated_hz=stated_hz)


def _even(pictures: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    size = None
    for picture in pictures:
        if size is None:
            size = picture.shape
        if picture.shape != size:
            raise Sim2RealError(f"pictures of {size} and {picture.shape} do not make one video")
        height, width = picture.shape[0] % 2, picture.shape[1] % 2
        yield np.pad(picture, ((0, height), (0, width), (0, 0)), mode="edge")


class Film:
    """An mp4 file that holds the frames of many episodes one after the other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            # Only mp4: other demuxers follow references to other files and hosts.
            self._container = av.open(str(path), "r", format="mp4")
        except FileNotFoundError:
            raise Sim2RealError(f"no such file: {path}") from None
        except (av.FFmpegError, ValueError, OSError) as error:
            raise Sim2RealError(f"{path}: not a video that can be read: {_line(error)}") from None
        if not self._container.streams.video:
            raise Sim2RealError(f"{path}: the file holds no video")
        self._stream = self._container.streams.video[0]
        if self._stream.codec_context is None:
            raise Sim2RealError(f"{path}: the video is in a codec that is not known")

    def close(self) -> None:
        """Close the file."""
        self._container.close()

    def cut(self, start_s: float, times: np.ndarray, rate_hz: float) -> Video:
        """The video of len(times) frames that begin at `start_s` of this film, `rate_hz` apart.

        `times` become its time stamps. A film that has exactly these frames is given as it is.
        """
        count = len(times)
        try:
            packets, in_one_piece = self._packets(start_s, count, rate_hz)
            if sorted(index for index, _ in packets) != list(range(count)):
                raise Sim2RealError(
                    f"{self._path}: {len(packets)} frames from {start_s:g} s on, not {count}"
                )
            if self._stream.frames == count and len(self._container.streams) == 1:
                return Video(times, self._path.read_bytes(), rate_hz)
            if in_one_piece and packets[0][0] == 0 and packets[0][1].is_keyframe:
                return Video(times, _remuxed(self._stream, packets, rate_hz), rate_hz)
            return video_of(times, self._decoded(start_s, count, rate_hz), stated_hz=rate_hz)
        except Sim2RealError as error:
            if str(self._path) in str(error):
                raise
            raise Sim2RealError(f"{self._path}: {error}") from None
        except (av.FFmpegError, ValueError, OSError, OverflowError, MemoryError) as error:
            raise Sim2RealError(f"{self._path}: cannot be cut: {_line(error)}") from None

    def _packets(
        self, start_s: float, count: int, rate_hz: float
    ) -> tuple[list[tuple[int, Any]], bool]:
        """Number and packet of each frame of the cut, in the order of the file.

        And whether no other packet lies between them, on which one of them may depend.
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
            # Frames are shown no earlier than they are decoded: from here on all are later.
            if packet.dts is not None and (packet.dts * base - start_s) * rate_hz > count:
                break
        return found, bool(places) and places[-1] - places[0] + 1 == len(places)

    def _decoded(self, start_s: float, count: int, rate_hz: float) -> Iterator[np.ndarray]:
        base = float(self._stream.time_base)
        self._seek(start_s, rate_hz)
        expected = 0
        for frame in self._container.decode(self._stream):
            if round((frame.pts * base - start_s) * rate_hz) == expected:
                yield frame.to_ndarray(format="rgb24")
                expected += 1
            if expected == count:
                return
        raise Sim2RealError(f"only {expected} of {count} frames from {start_s:g} s on decode")

    def _seek(self, start_s: float, rate_hz: float) -> None:
        """To the key frame at or before the frame at `start_s`."""
        target = round((start_s + 0.25 / rate_hz) / self._stream.time_base)
        self._container.seek(target, stream=self._stream, backward=True)


def opened(video: Video) -> Any:
    """The container of a video's film, to be used in a `with`."""
    return av.open(io.BytesIO(video.mp4), "r", format="mp4")


def frame_times(video: Video) -> np.ndarray:
    """When each frame is shown by its own film [s], which need not be its true time."""
    try:
        with opened(video) as container:
            stream = container.streams.video[0]
            shown = [p.pts for p in container.demux(stream) if p.size and p.pts is not None]
            return np.sort(np.array(shown, dtype=np.float64)) * float(stream.time_base)
    except (av.FFmpegError, ValueError) as error:
        raise Sim2RealError(f"the video cannot be read: {_line(error)}") from None


def retimed(video: Video, rate_hz: float) -> Video:
    """The same pictures, shown at exactly `rate_hz`; nothing is encoded again."""
    try:
        with opened(video) as container:
            stream = container.streams.video[0]
            packets = [p for p in container.demux(stream) if p.size and p.pts is not None]
            rank = np.argsort(np.argsort([packet.pts for packet in packets]))
            mp4 = _remuxed(stream, list(zip(rank.tolist(), packets, strict=True)), rate_hz)
    except (av.FFmpegError, ValueError) as error:
        raise Sim2RealError(f"the video cannot be read: {_line(error)}") from None
    return Video(video.times, mp4, video.stated_hz)


def _remuxed(stream: Any, packets: list[tuple[int, Any]], rate_hz: float) -> bytes:
    """An mp4 of packets in decoding order, each with the number of its frame."""
    step = 1 / Fraction(rate_hz).limit_denominator(1000)
    # Frames may be decoded ahead of their turn: all are decoded this much before they are shown.
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


def _line(error: BaseException) -> str:
    """An exception's message on one line."""
    return " ".join(str(error).split()) or type(error).__name__
