"""What runs in LeRobot's own environment: it writes a data set, or tells what it reads in one.

    python peer_lerobot.py write FOLDER {none|av1|h264|image} VALUES.npz
    python peer_lerobot.py read FOLDER OUT.npz

`write` stores what it put in beside the data set; `read` stores what LeRobot gives for each frame,
and a window of three frames around it.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from lerobot.datasets.lerobot_dataset import LeRobotDataset

FPS = 20
COUNTS = (12, 7, 15)


def write(folder: str, camera: str, out: str) -> None:
    features = {
        "observation.state": {"dtype": "float32", "shape": (4,), "names": list("abcd")},
        "action": {"dtype": "float64", "shape": (2,), "names": ["x", "y"]},
        "wrench": {"dtype": "float32", "shape": (2, 3), "names": None},
        "next.success": {"dtype": "bool", "shape": (1,), "names": None},
    }
    if camera != "none":
        names = ["height", "width", "channels"]
        kind = "image" if camera == "image" else "video"
        features["observation.images.top"] = {"dtype": kind, "shape": (64, 96, 3), "names": names}
    data = LeRobotDataset.create(
        "peer/set", FPS, features, root=folder, robot_type="so101", use_videos=camera != "image",
        vcodec={"h264": "h264"}.get(camera, "libsvtav1"),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    stored = {}
    for index, count in enumerate(COUNTS):
        state = rng.normal(size=(count, 4)).astype("f4")
        action = rng.normal(size=(count, 2))
        wrench = rng.normal(size=(count, 2, 3)).astype("f4")
        colours = rng.integers(0, 256, (count, 3))
        for frame in range(count):
            entry = {
                "observation.state": state[frame],
                "action": action[frame],
                "wrench": wrench[frame],
                "next.success": np.array([index == 1 and frame == count - 1]),
                "task": f"task {index % 2}",
            }
            if camera != "none":
                picture = np.full((64, 96, 3), colours[frame], np.uint8)
                entry["observation.images.top"] = picture
            data.add_frame(entry)
        data.save_episode()
        arrays = {"state": state, "action": action, "wrench": wrench, "colours": colours}
        stored |= {f"{name}/{index}": values for name, values in arrays.items()}
    data.finalize()
    np.savez(out, **stored)


def read(folder: str, out: str) -> None:
    plain = LeRobotDataset("peer/set", root=folder)
    shift = [-1 / plain.fps, 0.0, 1 / plain.fps]
    windows = LeRobotDataset(
        "peer/set", root=folder, delta_timestamps={"observation.state": shift, "action": shift}
    )
    found = {}
    items = [plain[index] for index in range(len(plain))]
    for key, value in items[0].items():
        if isinstance(value, torch.Tensor):
            found[key] = torch.stack([item[key] for item in items]).numpy()
        else:
            found[key] = np.array([item[key] for item in items])
    pieces = [windows[index] for index in range(len(windows))]
    for key in ("observation.state", "action", "action_is_pad"):
        found[f"window/{key}"] = torch.stack([piece[key] for piece in pieces]).numpy()
    for name, values in plain.meta.stats["observation.state"].items():
        found[f"stats/{name}"] = values
    # LeRobot's own merging of statistics rejects shapes it does not know.
    from lerobot.datasets.compute_stats import aggregate_stats

    aggregate_stats([plain.meta.stats, plain.meta.stats])
    np.savez(out, **found)


if __name__ == "__main__":
    Path(sys.argv[-1]).parent.mkdir(parents=True, exist_ok=True)
    {"write": write, "read": read}[sys.argv[1]](*sys.argv[2:])
