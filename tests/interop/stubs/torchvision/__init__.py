"""The few names of torchvision that LeRobot's data set code calls, over PyAV.

torchvision has no build for every torch that LeRobot runs with. LeRobot's own code reads and
writes the data set; this stands in for the two things it takes from torchvision: an image as a
tensor, and a video reader that seeks to a key frame and gives frames with their times.
"""

from types import SimpleNamespace

import av
import numpy as np
import torch


def set_video_backend(backend):
    """There is only one."""


class VideoReader:
    """Frames {data (3, height, width) uint8, pts [s]} of a file, from a key frame on."""

    def __init__(self, path, stream):
        self.container = av.open(path)
        self._stream = self.container.streams.video[0]
        self._frames = None

    def seek(self, time_s, keyframes_only=False):
        target = int(time_s / self._stream.time_base)
        self.container.seek(target, stream=self._stream, backward=True)
        return self

    def __iter__(self):
        for frame in self.container.decode(self._stream):
            picture = torch.from_numpy(frame.to_ndarray(format="rgb24")).permute(2, 0, 1)
            yield {"data": picture, "pts": frame.time}


class _ToTensor:
    def __call__(self, picture):
        values = np.array(picture.convert("RGB"), dtype=np.float32) / 255
        return torch.from_numpy(values).permute(2, 0, 1)


transforms = SimpleNamespace(ToTensor=_ToTensor)
io = SimpleNamespace(VideoReader=VideoReader)
