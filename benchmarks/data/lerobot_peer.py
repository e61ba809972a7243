"""LeRobot's own writer and reader, timed: the peer of our data benchmark.

Run by the Python of an environment that has LeRobot; it imports nothing of sim2real. Each command
prints one line of JSON.

    python lerobot_peer.py write FOLDER --episodes 20 --frames 500
    python lerobot_peer.py read FOLDER --batches 40 --window 16

`write` puts frames in one by one, as LeRobot has it; `read` draws batches of random windows. Where
LeRobot offers a choice, both take what is fastest for it.
"""

# ruff: noqa: T201
# mypy: ignore-errors

import argparse
import importlib.machinery
import json
import logging
import sys
import time
import types

import datasets  # before the stand-in, which it would take for the real one
import numpy as np
import torch

try:
    import torchvision  # noqa: F401
except ModuleNotFoundError:
    # LeRobot imports it for pictures; there are none here, so an empty module does.
    stand_in = types.ModuleType("torchvision")
    stand_in.__spec__ = importlib.machinery.ModuleSpec("torchvision", None)
    stand_in.transforms = types.ModuleType("torchvision.transforms")
    sys.modules["torchvision"] = stand_in
    sys.modules["torchvision.transforms"] = stand_in.transforms

from lerobot.datasets.lerobot_dataset import LeRobotDataset

STATE = "observation.state"


def write(folder: str, *, episodes: int, frames: int, channels: int, fps: int) -> dict:
    """Record episodes of one state vector, and close the data set."""
    features = {STATE: {"dtype": "float32", "shape": (channels,), "names": None}}
    rng = np.random.default_rng(0)
    values = rng.normal(size=(frames, channels)).astype(np.float32)
    begin = time.perf_counter()
    data = LeRobotDataset.create("peer/bench", fps, features, root=folder, use_videos=False)
    for _ in range(episodes):
        for row in values:
            data.add_frame({STATE: row, "task": "bench"})
        data.save_episode()
    data.finalize()
    seconds = time.perf_counter() - begin
    return {"frames": episodes * frames, "episodes": episodes, "seconds": seconds}


def read(folder: str, *, batches: int, batch: int, window: int, workers: list[int]) -> dict:
    """Draw batches of random windows of the state, through LeRobot's `delta_timestamps`.

    A window is `window` frames that end at a random frame of the data set. Each number of loader
    processes is tried; the fastest counts.
    """
    data, opened = _windows(folder, window)
    runs = [_drawn(data, batches, batch, window, count) for count in workers]
    best = int(np.argmin(runs))
    return {
        "batches": batches,
        "windows": batches * batch,
        "seconds": runs[best],
        "workers": workers[best],
        "open_seconds": opened,
        "episodes": data.num_episodes,
        "frames": data.num_frames,
    }


def _windows(folder: str, window: int) -> tuple[LeRobotDataset, float]:
    begin = time.perf_counter()
    plain = LeRobotDataset("peer/bench", root=folder)
    shift = [(step - window + 1) / plain.fps for step in range(window)]
    data = LeRobotDataset("peer/bench", root=folder, delta_timestamps={STATE: shift})
    return data, time.perf_counter() - begin


def _drawn(data: LeRobotDataset, batches: int, batch: int, window: int, workers: int) -> float:
    draws = batches + workers
    sampler = torch.utils.data.RandomSampler(data, replacement=True, num_samples=draws * batch)
    loader = iter(
        torch.utils.data.DataLoader(
            data,
            batch_size=batch,
            sampler=sampler,
            num_workers=workers,
            persistent_workers=workers > 0,
        )
    )
    # Starting the workers and their first batches is not the reading that is timed.
    for _ in range(workers):
        next(loader)
    begin = time.perf_counter()
    for _ in range(batches):
        found = next(loader)
        if found[STATE].shape[:2] != (batch, window):
            raise SystemExit(f"a batch has the shape {tuple(found[STATE].shape)}")
    return time.perf_counter() - begin


def main() -> None:
    """Run the command the arguments name."""
    logging.disable(logging.WARNING)
    datasets.disable_progress_bars()
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    writing, reading = commands.add_parser("write"), commands.add_parser("read")
    for command in (writing, reading):
        command.add_argument("folder")
    writing.add_argument("--episodes", type=int, default=20)
    writing.add_argument("--frames", type=int, default=500)
    writing.add_argument("--channels", type=int, default=16)
    writing.add_argument("--fps", type=int, default=50)
    reading.add_argument("--batches", type=int, default=20)
    reading.add_argument("--batch", type=int, default=256)
    reading.add_argument("--window", type=int, default=16)
    reading.add_argument("--workers", type=int, nargs="+", default=[0, 2])
    options = vars(parser.parse_args())
    command = {"write": write, "read": read}[options.pop("command")]
    print(json.dumps(command(options.pop("folder"), **options)))


if __name__ == "__main__":
    main()
