"""Images in messages of ROS's and Foxglove's schemas, raw or encoded."""

from __future__ import annotations

import base64
from collections.abc import Mapping

import numpy as np

from sim2real.arrays import Array, Pixels
from sim2real.data.formats.film import PIXELS_MAX, decoded_picture
from sim2real.errors import Sim2RealError, explaining

_SCHEMAS = ("Image", "CompressedImage", "RawImage")
_PACKAGES = ("sensor_msgs", "foxglove", "foxglove_msgs")
_COLOURS = {
    "rgb8": (3, (0, 1, 2)), "bgr8": (3, (2, 1, 0)), "rgba8": (4, (0, 1, 2)),
    "bgra8": (4, (2, 1, 0)), "mono8": (1, (0, 0, 0)), "8UC1": (1, (0, 0, 0)),
    "8UC3": (3, (2, 1, 0)),
}  # fmt: skip
"""Bytes per pixel, and which of them are red, green and blue."""
_DEPTHS = {"16UC1": "u2", "mono16": "u2", "32FC1": "f4"}


def is_picture_schema(name: str) -> bool:
    """Whether messages of the schema are images."""
    parts = name.replace(".", "/").split("/")
    return len(parts) > 1 and parts[0] in _PACKAGES and parts[-1] in _SCHEMAS


def is_depth(table: Mapping[str, object]) -> bool:
    """Whether an image has one number of 16 or 32 bits per pixel, which a video cannot store."""
    return str(table.get("encoding", "")) in _DEPTHS


def not_understood(table: Mapping[str, object]) -> str:
    """Why images like this one cannot be read; '' if they can."""
    encoding = str(table.get("encoding", ""))[:40]
    if encoding and encoding not in _COLOURS and encoding not in _DEPTHS:
        return f"images in {encoding!r} cannot be read"
    coded = str(table.get("format", ""))[:40]
    return f"images in {coded!r} cannot be read" if "compressedDepth" in coded else ""


def as_picture(table: Mapping[str, object], where: str) -> Pixels:
    """The RGB image (height, width, 3) in a message."""
    encoding = str(table.get("encoding", ""))
    if not encoding:
        return decoded_picture(_bytes(table, where), where)
    if encoding not in _COLOURS:
        raise Sim2RealError(f"{where}: images in {encoding[:40]!r} cannot be read")
    width, order = _COLOURS[encoding]
    pixels = _rows(table, where, "u1", width).astype("u1", copy=False)
    return np.ascontiguousarray(pixels[:, :, list(order)])


def as_depth(table: Mapping[str, object], where: str) -> Array:
    """The numbers (height, width) of a depth image, as they were sent."""
    encoding = str(table.get("encoding"))
    if encoding not in _DEPTHS:
        raise Sim2RealError(f"{where}: its encoding changes from depth to {encoding[:40]!r}")
    order = ">" if table.get("is_bigendian") else "<"
    return _rows(table, where, order + _DEPTHS[encoding], 1)[:, :, 0]


def _rows(table: Mapping[str, object], where: str, kind: str, parts: int) -> Array:
    """Pixels (height, width, parts) from rows that may be padded."""
    height, width, step = (_size(table, name, where) for name in ("height", "width", "step"))
    data = _bytes(table, where)
    size = np.dtype(kind).itemsize * parts
    if height * width > PIXELS_MAX or width * size > step or height * step > len(data):
        raise Sim2RealError(f"{where}: {len(data)} bytes are not an image of {width} x {height}")
    rows = np.frombuffer(data, "u1", height * step).reshape(height, step)[:, : width * size]
    return np.ascontiguousarray(rows).view(kind).reshape(height, width, parts)


def _size(table: Mapping[str, object], name: str, where: str) -> int:
    size = table.get(name, 0)
    if not isinstance(size, int) or size <= 0:
        raise Sim2RealError(f"{where}: an image has no {name!r}")
    return size


def _bytes(table: Mapping[str, object], where: str) -> bytes:
    data = table.get("data", b"")
    if isinstance(data, np.ndarray) and data.dtype.itemsize == 1:
        return data.tobytes()
    if isinstance(data, bytes):
        return data
    if isinstance(data, str):
        with explaining(f"{where}: an image is not valid base 64", ValueError):
            return base64.b64decode(data, validate=True)
    raise Sim2RealError(f"{where}: an image has no 'data'")
