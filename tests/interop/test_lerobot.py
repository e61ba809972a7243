"""LeRobot reads what we write, and we read what LeRobot writes.

Run by `make test-interop`, which makes the environment LeRobot runs in.
"""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from sim2real.data import Provenance
from sim2real.data.formats.lerobot.read import read_lerobot
from sim2real.data.formats.lerobot.write import write_lerobot
from tests.data.formats.test_lerobot import RATE, episode
from tests.repository import want

HERE = Path(__file__).parent
PYTHON = HERE.parents[1] / ".venv-interop/bin/python"
BASE = Provenance(kind="real")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason=want("LeRobot", "run scripts/interop-env")),
]


def peer(*arguments: object, home: Path) -> None:
    """Run LeRobot; it may reach no host, and keeps its caches in `home`."""
    paths = {"HF_HOME": home, "HOME": home, "PYTHONPATH": HERE / "stubs"}
    environment = os.environ | {n: str(p) for n, p in paths.items()} | {"HF_HUB_OFFLINE": "1"}
    command = [PYTHON, HERE / "peer_lerobot.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize("video", [False, True])
def test_lerobot_reads_what_we_write(tmp_path, video):
    episodes = [episode(seed, count=10 + seed, video=video) for seed in range(3)]
    write_lerobot(tmp_path / "set", episodes)
    peer("read", tmp_path / "set", tmp_path / "out.npz", home=tmp_path)
    found = np.load(tmp_path / "out.npz")
    tasks = [e.provenance.task for e in episodes for _ in e["one"].times]
    assert found["task"].tolist() == tasks
    for name in episodes[0].signals:
        together = np.concatenate([e[name].values for e in episodes])
        got = found[name.replace("/", ".")]
        # LeRobot gives numbers in torch's default precision unless the column is narrower.
        np.testing.assert_allclose(got.reshape(together.shape), together, rtol=1e-6)
    frames = np.concatenate([np.arange(len(e["one"].times)) for e in episodes])
    np.testing.assert_allclose(found["timestamp"], frames / RATE, atol=1e-6)
    times = np.concatenate([e["one"].times for e in episodes])
    np.testing.assert_allclose(found["sim2real.time"], times, rtol=1e-6)
    start = 0
    for one in episodes:
        state, count = one["observation.state"].values, len(one["one"].times)
        at = np.clip(np.arange(count)[:, None] + [-1, 0, 1], 0, count - 1)
        np.testing.assert_array_equal(
            found["window/observation.state"][start : start + count], state[at]
        )
        outside = found["window/action_is_pad"][start : start + count]
        assert outside[0].tolist() == [True, False, False]
        assert outside[-1].tolist() == [False, False, True]
        start += count
    states = np.concatenate([e["observation.state"].values for e in episodes])
    np.testing.assert_allclose(found["stats/mean"], states.mean(axis=0), rtol=1e-5)
    if video:
        shown = [p for e in episodes for _, p in e.videos["camera"].frames(0, 99)]
        got = np.moveaxis(found["camera"], 1, -1) * 255
        # Another version of the decoder may round a colour otherwise.
        np.testing.assert_allclose(got, np.stack(shown), atol=2)


@pytest.mark.parametrize("camera", ["none", "av1", "h264", "image"])
def test_we_read_what_lerobot_writes(tmp_path, camera):
    peer("write", tmp_path / "set", camera, tmp_path / "in.npz", home=tmp_path)
    wanted = np.load(tmp_path / "in.npz")
    found = list(read_lerobot(tmp_path / "set", base=BASE))
    assert [e.outcome for e in found] == ["failure", "success", "failure"]
    assert [e.provenance.task for e in found] == ["task 0", "task 1", "task 0"]
    for index, one in enumerate(found):
        assert one.provenance.robot == "so101"
        assert one.provenance.calibration["names"]["action"] == ["x", "y"]
        for name, key in (
            ("observation.state", "state"),
            ("action", "action"),
            ("wrench", "wrench"),
        ):
            values = wanted[f"{key}/{index}"]
            np.testing.assert_array_equal(one[name].values, values)
            assert one[name].values.dtype == values.dtype and one[name].stated_hz == 20
            np.testing.assert_array_equal(one[name].times, np.arange(len(values)) / 20)
        if camera != "none":
            video = one.videos["observation.images.top"]
            np.testing.assert_array_equal(video.times, one["action"].times)
            shown = np.stack([picture[32, 48] for _, picture in video.frames(-1, 99)]).astype(int)
            np.testing.assert_allclose(shown, wanted[f"colours/{index}"], atol=40)


def test_a_data_set_of_lerobot_survives_the_way_through_us(tmp_path):
    peer("write", tmp_path / "set", "av1", tmp_path / "in.npz", home=tmp_path)
    episodes = list(read_lerobot(tmp_path / "set", base=BASE))
    write_lerobot(tmp_path / "again", episodes)
    assert [e.id for e in read_lerobot(tmp_path / "again", base=BASE)] == [e.id for e in episodes]
    peer("read", tmp_path / "set", tmp_path / "one.npz", home=tmp_path)
    peer("read", tmp_path / "again", tmp_path / "two.npz", home=tmp_path)
    one, two = np.load(tmp_path / "one.npz"), np.load(tmp_path / "two.npz")
    for name in ("observation.state", "action", "wrench", "observation.images.top", "task"):
        np.testing.assert_array_equal(one[name], two[name])
