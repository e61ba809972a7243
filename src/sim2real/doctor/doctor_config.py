"""Options of the doctor; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro


@dataclass(frozen=True, kw_only=True)
class DoctorConfig:
    """Compare a robot's logs with what a policy's contract promises; exit code 1 for a fault.

    Names permuted joints, flipped signs, degrees, offsets, scales, quaternion order, reversed
    history, a lost normaliser, delays, a slow loop, frozen channels, saturation, a wrong pose and
    missing sensors, with evidence and a remedy, or says that the difference is physics.
    """

    policy: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="POLICY")]
    """The policy that was run: the folder of a bundle, an ONNX file with a contract beside it, or
    `package.module:Class`."""
    logs: tuple[str, ...]
    """Recordings, folders of them, lakes or files of other formats, all of one robot."""
    json: bool = False
    """Print as JSON."""
