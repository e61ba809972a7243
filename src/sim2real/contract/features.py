"""Features: the named things that cross a policy's border, as numbers, images or texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from sim2real.arrays import Pixels, Reals
from sim2real.errors import Sim2RealError
from sim2real.plain import AtLeastOne, NotNegative, Positive

ImageEncoding = Literal["rgb8", "mono8", "depth_m"]
"""Three bytes a pixel, one byte, or a distance along the camera's axis [m]."""
_CHANNELS: dict[str, int] = {"rgb8": 3, "mono8": 1, "depth_m": 1}


@dataclass(frozen=True, kw_only=True)
class NumbersFeature:
    """Numbers that come in every control period."""

    name: str
    unit: str
    width: int
    """Numbers of one robot: all periods that the policy sees, times the numbers of each."""

    def check(self, values: Reals, rows: int) -> None:
        """Refuse values that are not (rows, width)."""
        if values.shape != (rows, self.width):
            raise Sim2RealError(
                f"feature {self.name!r} is {self.width} numbers a robot, but its values have shape"
                f" {values.shape} for {rows}"
            )


@dataclass(frozen=True, kw_only=True)
class ImageFeature:
    """A camera's picture."""

    name: str
    height: AtLeastOne
    width: AtLeastOne
    """Size [pixels]."""
    encoding: ImageEncoding = "rgb8"
    rate_hz: Positive
    """Pictures a second; between two of them the policy sees the last one again."""
    frame: str = ""
    """Camera that it is taken with, as the twin names it."""
    delay_s: NotNegative = 0.0
    """Expected time from the exposure to the picture [s]."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        return self.height, self.width, _CHANNELS[self.encoding]

    @property
    def dtype(self) -> str:
        """Type of its pixels."""
        return "float32" if self.encoding == "depth_m" else "uint8"

    def check(self, pictures: Pixels | Reals, rows: int) -> None:
        """Refuse pictures that are not (rows, height, width, channels) of the encoding's type."""
        if pictures.shape != (rows, *self.shape) or pictures.dtype != np.dtype(self.dtype):
            raise Sim2RealError(
                f"picture {self.name!r} is {self.encoding} of shape {self.shape}, {self.dtype}, but"
                f" it got {pictures.dtype} of shape {pictures.shape} for {rows} robots"
            )


@dataclass(frozen=True, kw_only=True)
class TextFeature:
    """A text, such as what the robot is told to do."""

    name: str
    longest: AtLeastOne = 1000
    """Most characters."""
    rate_hz: NotNegative = 0.0
    """How often it may change [Hz]; 0 for a text that stays for a whole attempt."""
    frame: str = ""
    """What its directions refer to, as 'camera wrist' or 'operator'; '' if they do not matter."""
    delay_s: NotNegative = 0.0
    """Expected time from the saying to the text [s]."""

    def check(self, texts: Sequence[str], rows: int) -> None:
        """Refuse anything but a text a row, of at most `longest` characters."""
        right = all(isinstance(text, str) and len(text) <= self.longest for text in texts)
        if isinstance(texts, str) or len(texts) != rows or not right:
            raise Sim2RealError(
                f"text {self.name!r} is a text of at most {self.longest} characters for each of"
                f" {rows} robots"
            )


Feature: TypeAlias = NumbersFeature | ImageFeature | TextFeature
