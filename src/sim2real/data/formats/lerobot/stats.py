"""Statistics of a LeRobot data set: of each episode, and of all together."""

from __future__ import annotations

from collections.abc import Sequence

import av
import numpy as np

from sim2real.arrays import Array
from sim2real.data.video import Video, video_stream
from sim2real.errors import explaining

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
_SIDE_MAX = 300
"""Images with a longer side are subsampled first."""

Stats = dict[str, Array]


def signal_stats(values: Array) -> Stats:
    """Statistics of values (frames, ...) for each index of their last axis.

    Frames with a value that is not finite are left out: one of them would spoil the mean.
    """
    flat = values.reshape(len(values), -1)
    flat = flat.reshape(-1, values.shape[-1] if values.ndim > 1 else 1)
    if flat.dtype.kind == "f":
        finite = np.isfinite(flat).all(axis=1)
        flat = flat if finite.all() else flat[finite]
    return _stats(flat, len(values))


def video_stats(video: Video) -> Stats:
    """Statistics of each colour, from 0 to 1, over the key frames; shape (3, 1, 1)."""
    pixels = []
    with explaining("the video cannot be decoded", av.FFmpegError), video.open() as container:
        stream = video_stream(container)
        stream.codec_context.skip_frame = "NONKEY"
        for frame in container.decode(stream):
            step = max(1, max(frame.width, frame.height) * 2 // _SIDE_MAX)
            pixels.append(frame.to_ndarray(format="rgb24")[::step, ::step].reshape(-1, 3))
    flat = np.concatenate(pixels) if pixels else np.zeros((0, 3), np.uint8)
    stats = _stats(flat, len(pixels))
    return {
        name: value if name == "count" else np.true_divide(value, 255.0).reshape(3, 1, 1)
        for name, value in stats.items()
    }


def aggregated(episodes: Sequence[Stats]) -> Stats:
    """Statistics over all episodes from those of each; quantiles are averages weighted by count."""
    of = {name: np.stack([stats[name] for stats in episodes]) for name in episodes[0]}
    means, deviations = of["mean"].astype(np.float64), of["std"].astype(np.float64)
    counts = of["count"].reshape(-1, *[1] * (means.ndim - 1)).astype(np.float64)
    total = max(float(counts.sum()), 1.0)
    mean = (means * counts).sum(axis=0) / total
    variance = ((deviations**2 + (means - mean) ** 2) * counts).sum(axis=0) / total
    found = {
        "min": of["min"].min(axis=0),
        "max": of["max"].max(axis=0),
        "mean": mean,
        "std": np.sqrt(variance),
        "count": of["count"].sum(axis=0),
    }
    quantiles = {name: of[name].astype(np.float64) for name in QUANTILES}
    return found | {name: (q * counts).sum(axis=0) / total for name, q in quantiles.items()}


def _stats(flat: Array, count: int) -> Stats:
    """Statistics of each column of (values, columns); zeros if there are no values."""
    if not len(flat):
        flat = np.zeros((1, flat.shape[1]), flat.dtype)
    wide = flat.astype(np.float64)
    quantiles = np.quantile(wide, list(QUANTILES.values()), axis=0)
    found = {
        "min": flat.min(axis=0),
        "max": flat.max(axis=0),
        "mean": wide.mean(axis=0),
        "std": wide.std(axis=0),
        "count": np.array([count]),
    }
    return found | dict(zip(QUANTILES, quantiles, strict=True))
