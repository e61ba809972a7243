"""What is on the bench, the goals, and whether they are reached, judged by the true state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from sim2real.arrays import Floats
from sim2real.reality.plant import Drive, UnitBody

_TASKS = Path(__file__).parent.parent / "tasks"
_SERVO = Drive(
    kp_v_rad=17.8,
    constant=1.444,
    resistance=2.03,
    torque_nm=2.94,
    cogging_nm=0.03,
    cable_nm_rad=0.03,
)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A task as a person sets it up."""

    robot: str
    model: Path
    drive: Drive
    hold_s: float
    """How long the goal must have been held at the end [s]."""
    home: tuple[float, ...]
    spread_rad: float
    """How precisely a person puts the joints back [rad]."""


BENCHES = {
    "pendulum-swingup": Bench(
        robot="pendulum",
        model=_TASKS / "pendulum" / "pendulum.xml",
        drive=Drive(constant=0.3, resistance=1.6),
        hold_s=1.0,
        home=(0.0,),
        spread_rad=0.6,
    ),
    "arm-reach": Bench(
        robot="reaching arm",
        model=_TASKS / "arm" / "reach.xml",
        drive=_SERVO,
        hold_s=0.5,
        home=(0.0, -0.4, 0.5, 0.6, 0.0, 0.3),
        spread_rad=0.3,
    ),
    "arm-push": Bench(
        robot="pushing arm",
        model=_TASKS / "arm" / "push.xml",
        drive=_SERVO,
        hold_s=0.5,
        home=(0.0, -0.7, 0.8, 1.1, 0.0, -0.1),
        spread_rad=0.1,
    ),
}
_REACH = np.array([(-1.2, 1.2), (-0.9, 1.0), (-0.9, 1.1), (-1.2, 1.3), (-1.5, 1.5), (0.0, 1.0)])


class Scene:
    """One unit at one task."""

    def __init__(self, task: str, number: int, *, old: bool = False) -> None:
        self.task, self.bench = task, BENCHES[task]
        bench = self.bench
        self.plant = UnitBody(bench.robot, number, bench.model, bench.drive, old=old)
        self.goals: dict[str, list[float]] = {}
        self._since_s: float | None = None
        self._set_up = False

    def reset(self, seed: int) -> None:
        """A person sets up the next trial, drawn from `seed`."""
        rng = np.random.default_rng([seed, 20])
        plant, bench = self.plant, self.bench
        spread = np.full(len(bench.home), bench.spread_rad)
        if self.task == "arm-push":
            spread[-1] = 0.0
        if self.task == "arm-reach":
            self.goals = self._reachable(rng)
        if self.task == "arm-push":
            self.goals = self._put_cube(rng)
        plant.place(np.array(bench.home) + rng.uniform(-1, 1, len(spread)) * spread)
        self._since_s, self._set_up = None, True

    def tool(self) -> Floats | None:
        """True position of the tool [m]; None where there is none."""
        if self.task == "pendulum-swingup":
            return None
        return np.array(self.plant.data.site("tool").xpos)

    def watch(self) -> None:
        """Note how long the goal has been held; before the first trial there is none."""
        if not self._set_up or not self._reached():
            self._since_s = None
        elif self._since_s is None:
            self._since_s = self.plant.time_s

    def succeeded(self) -> bool:
        """Whether the goal has been held until now for long enough."""
        held = self._since_s is not None
        return held and self.plant.time_s - (self._since_s or 0.0) >= self.bench.hold_s - 1e-6

    def extras(self) -> Mapping[str, Floats]:
        """What the camera sees: the cube."""
        if self.task != "arm-push":
            return {}
        return {"cube_pos": self.plant.data.site("cube").xpos.copy()}

    def _reached(self) -> bool:
        plant = self.plant
        if self.task == "pendulum-swingup":
            angle = float(plant.angles[0])
            off = np.pi - abs((angle + np.pi) % (2 * np.pi) - np.pi)
            return bool(off < 0.2 and abs(plant.speeds[0]) < 1.0)
        if self.task == "arm-reach":
            tool = plant.data.site("tool")
            distance = np.linalg.norm(tool.xpos - self.goals["target_position"])
            cosine = 0.5 * (np.dot(tool.xmat, self.goals["target_rotation"]) - 1.0)
            return bool(distance < 0.02 and np.arccos(np.clip(cosine, -1, 1)) < 0.25)
        cube = plant.data.site("cube").xpos[:2]
        return bool(np.linalg.norm(cube - self.goals["goal"]) < 0.03)

    def _reachable(self, rng: np.random.Generator) -> dict[str, list[float]]:
        model, data = self.plant.model, mujoco.MjData(self.plant.model)
        columns = [int(model.joint(name).qposadr[0]) for name in self.plant.names]
        while True:
            data.qpos[columns] = rng.uniform(_REACH[:, 0], _REACH[:, 1])
            mujoco.mj_kinematics(model, data)
            tool, wrist = data.site("tool"), data.body("gripper").xpos
            if tool.xpos[2] > 0.06 and wrist[2] > 0.08 and np.hypot(*tool.xpos[:2]) > 0.14:
                return {
                    "target_position": tool.xpos.tolist(),
                    "target_rotation": tool.xmat.tolist(),
                }

    def _put_cube(self, rng: np.random.Generator) -> dict[str, list[float]]:
        plant = self.plant
        x, y = rng.uniform(0.23, 0.28), rng.uniform(-0.08, 0.08)
        yaw = rng.uniform(-np.pi / 4, np.pi / 4)
        start = int(plant.model.joint("cube").qposadr[0])
        height = 0.02 * plant.hidden.cube_scale + 0.0005
        turn = [np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]
        plant.data.qpos[start : start + 7] = [x, y, height, *turn]
        distance, angle = rng.uniform(0.06, 0.12), rng.uniform(-np.pi / 2, np.pi / 2)
        return {"goal": [x + distance * np.cos(angle), y + distance * np.sin(angle)]}
