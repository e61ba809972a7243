"""LeRobot's own robot classes, built from our files and driven through our protocol.

Run by `make test-interop`, which makes the environment LeRobot is in.
"""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository import want

HERE = Path(__file__).parent
SO101 = HERE.parents[1] / "examples/robots/so101.toml"
SITE = next((HERE.parents[1] / ".venv-interop/lib").glob("python3.*/site-packages"), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SITE is None, reason=want("LeRobot", "run scripts/interop-env")),
]
BENCH = """
[robot]
type = "bench_arm"
module = "bench_arm"
{head}
[robot.config]
id = "b-7"
{config}
[joints]
lift = {{ key = "lift.pos", unit = "deg", sign = -1 }}
turn = {{ key = "turn.pos", unit = "deg" }}
"""


def peer(what, path, home):
    """What the peer prints; LeRobot may reach no host, and keeps its files in `home`."""
    paths = {"HF_HOME": home, "HOME": home, "HF_LEROBOT_HOME": home / "lerobot"}
    environment = os.environ | {name: str(value) for name, value in paths.items()}
    also = os.environ.get("PYTHONPATH", "")
    environment |= {"HF_HUB_OFFLINE": "1", "PYTHONPATH": f"{HERE / 'stubs'}:{also}"}
    command = [sys.executable, HERE / "peer_lerobot_robot.py", SITE, what, path]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def bench(tmp_path, head="", config=""):
    path = tmp_path / "bench.toml"
    path.write_text(BENCH.format(head=head, config=config))
    return path


def test_a_robot_of_lerobots_base_class_is_built_and_driven(tmp_path):
    told = peer("drive", bench(tmp_path, config="most = 45.0"), tmp_path)
    assert (told["name"], told["serial"], told["connected"]) == ("bench_arm", "b-7", False)
    assert told["first"]["lift_pos"] == pytest.approx(-math.radians(10))
    # The robot cuts at 45 degrees and says so.
    assert told["sent"] == pytest.approx({"lift": 0.5, "turn": math.pi / 4})
    assert told["second"]["turn_pos"] == pytest.approx(math.pi / 4)


def test_the_arm_of_the_example_has_the_keys_and_units_that_the_file_supposes(tmp_path):
    told = peer("so101", SO101, tmp_path)
    joints = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll"]
    assert told["keys"] == sorted(f"{joint}.pos" for joint in [*joints, "gripper"])
    assert told["units"] == dict.fromkeys(joints, "degrees") | {"gripper": "range_0_100"}
    assert told["stiff after"]
    for joint in joints:
        # Zero in the middle of the calibrated range, 4095 steps a turn.
        found = [told["si"][ticks][joint] for ticks in ("1000", "2000", "3000")]
        assert found == pytest.approx([-1000 * 2 * math.pi / 4095, 0, 1000 * 2 * math.pi / 4095])
    assert [told["si"][t]["gripper"] for t in ("1000", "3000")] == pytest.approx([-0.17, 1.745])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("bench_arm", "bench_amr"), "LeRobot has no robot 'bench_amr'; did you mean 'bench_arm'"),
        (("most = 1.0", "mots = 1.0"), "LeRobot rejects [robot.config]"),
        (('module = "bench_arm"', 'module = "nowhere"'), "module nowhere: No module named"),
        (('"lift.pos"', '"lift.po"'), "bench_arm has no 'lift.po'"),
    ],
)
def test_a_mistake_in_the_file_is_one_clear_line(tmp_path, change, words):
    path = bench(tmp_path, config="most = 1.0")
    path.write_text(path.read_text().replace(*change, 1))
    told = peer("build", path, tmp_path)["error"]
    assert words in told and "\n" not in told
