"""Gymnasium's Ant in our worlds: its own ant.xml, five steps a period, randomised."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import gymnasium
import torch
from torch import Tensor

from sim2real.tasks import Draw, Measurements, Task, Term
from sim2real.twin import Twin
from sim2real.worlds import Worlds

_JOINTS = [f"{part}_{k}" for k in range(1, 5) for part in ("hip", "ankle")]
_SENSORS = "".join(
    f'<jointpos name="{j}_pos" joint="{j}"/><jointvel name="{j}_vel" joint="{j}"/>' for j in _JOINTS
)
_MODEL = f"""<mujoco model="ant"><include file="ant.xml"/><sensor>
<framepos name="torso_pos" objtype="xbody" objname="torso"/>
<framequat name="torso_quat" objtype="xbody" objname="torso"/>
<framelinvel name="torso_vel" objtype="xbody" objname="torso"/>
<frameangvel name="torso_turn" objtype="xbody" objname="torso"/>{_SENSORS}</sensor></mujoco>"""
_TWIN = """
[twin]
name = "ant"
model = "bench.xml"
[effects.sensor."*"]
noise = 0.005
[parameters."body/torso/mass"]
operation = "scale"
prior = { kind = "uniform", low = 0.8, high = 1.2 }
[parameters."joint/*/damping"]
operation = "scale"
prior = { kind = "uniform", low = 0.7, high = 1.4 }
[parameters."joint/hip_*/armature"]
operation = "scale"
prior = { kind = "uniform", low = 0.7, high = 1.4 }
[parameters."geom/floor/friction"]
operation = "scale"
prior = { kind = "uniform", low = 1.0, high = 1.5 }
[parameters."body/aux_*/mass"]
operation = "scale"
prior = { kind = "uniform", low = 0.8, high = 1.2 }
[parameters."sensor/torso_*/noise"]
prior = { kind = "uniform", low = 0.0, high = 0.01 }
"""
_READ = (
    "torso_pos",
    "torso_quat",
    "torso_vel",
    "torso_turn",
    *(f"{j}_pos" for j in _JOINTS),
    *(f"{j}_vel" for j in _JOINTS),
)


class Ant(Task):
    """Run forward; ends in the time limit or out of the healthy height, as Gymnasium's does."""

    name = "ant"
    rate_hz = 20.0
    episode_s = 50.0
    hold_s = 0.0
    actions = tuple(_JOINTS)
    draws = tuple(f"q{k}" for k in range(15))
    actor = (Term(name="state", unit="", sources=_READ, read=lambda m: m.sensor(*_READ)[:, 2:]),)

    def __init__(self, worlds: Worlds) -> None:
        super().__init__(worlds)
        self._before = worlds.state("qpos")[:, 0].clone()

    def reset(self, ids: Tensor, draw: Draw) -> None:
        """A little noise on the first pose."""
        noise = torch.stack([draw.uniform(f"q{k}", -0.1, 0.1) for k in range(15)], dim=1)
        self.worlds.state("qpos")[ids] += noise
        self._before[ids] = self.worlds.state("qpos")[ids, 0]

    def command(self, action: Tensor, m: Measurements) -> Tensor:
        """Torques."""
        return action

    def reward(self, action: Tensor) -> Tensor:
        """Forward speed, being healthy, and the cost of effort."""
        x = self.worlds.state("qpos")[:, 0]
        speed = (x - self._before) * self.rate_hz
        self._before = x.clone()
        return speed + self.healthy().double() - 0.5 * action.square().sum(1)

    def healthy(self) -> Tensor:
        """Whether the torso is neither down nor flying."""
        height = self.worlds.state("qpos")[:, 2]
        return (height > 0.2) & (height < 1.0)

    def failed(self) -> Tensor:
        """An unhealthy ant ends its episode."""
        return ~self.healthy()

    def reached(self) -> Tensor:
        """There is no goal but going on."""
        return self.healthy()


@contextmanager
def ant_twin() -> Iterator[Twin]:
    """A twin on Gymnasium's installed ant.xml, with sensors beside it."""
    source = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "ant.xml"
    with TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copyfile(source, folder / "ant.xml")
        (folder / "bench.xml").write_text(_MODEL, encoding="utf-8")
        (folder / "twin.toml").write_text(_TWIN, encoding="utf-8")
        yield Twin.load(folder)
