"""A task of one's own: written here, trained in randomised worlds, and evaluated.

python train_own_task.py [--quick]
"""

import argparse
import tempfile
from pathlib import Path

import torch
from torch import Tensor

import sim2real as s2r
from sim2real.tasks import Draw, Measurements, Task, Term, Training
from sim2real.worlds import Worlds

STEP_RAD = 0.15
"""Largest change of the servo's target in a control period."""
CLOSE_RAD = 0.08
"""Distance from the goal that counts as there."""


class Point(Task):
    """Point a one-joint arm where it is told, and hold it there for half a second."""

    name = "point"
    twin = Path(__file__).parent / "arm"
    rate_hz = 50.0
    episode_s = 2.0
    hold_s = 0.5
    actions = ("turn",)
    draws = ("angle", "goal")
    goals = {"goal": 1}
    training = Training(worlds=128, iterations=40, hidden=(32, 32))
    actor = (
        Term(
            name="off",
            unit="rad",
            sources=("shoulder_pos", "goal"),
            read=lambda m: m.goal("goal") - m.sensor("shoulder_pos"),
        ),
        Term(
            name="speed",
            unit="rad/s",
            sources=("shoulder_vel",),
            scale=0.3,
            read=lambda m: m.sensor("shoulder_vel"),
        ),
        Term(
            name="ahead",
            unit="rad",
            sources=("command", "shoulder_pos"),
            read=lambda m: m.command - m.sensor("shoulder_pos"),
        ),
    )

    def __init__(self, worlds: Worlds) -> None:
        super().__init__(worlds)
        self._angle = worlds.state("qpos")[:, 0]

    def reset(self, ids: Tensor, draw: Draw) -> None:
        """Anywhere, with a goal anywhere."""
        self._angle[ids] = draw.uniform("angle", -0.8, 0.8)
        self.worlds.state("ctrl")[ids, 0] = self._angle[ids]
        self.worlds.memory["command"][ids, 0] = self._angle[ids].float()
        self.worlds.memory["goal"][ids, 0] = draw.uniform("goal", -0.8, 0.8).float()

    def command(self, action: Tensor, m: Measurements) -> Tensor:
        """The action turns the servo's target."""
        return (m.command + STEP_RAD * action).clamp(-1.5, 1.5)

    def rest(self, m: Measurements) -> Tensor:
        """Stay."""
        return m.command

    def reward(self, action: Tensor) -> Tensor:
        """Closeness; turning costs a little."""
        return torch.exp(-((self._off() / 0.2) ** 2)) - 0.02 * action[:, 0] ** 2

    def reached(self) -> Tensor:
        """Close to the goal."""
        return self._off().abs() < CLOSE_RAD

    def _off(self) -> Tensor:
        return self._angle - self.worlds.memory["goal"][:, 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="too short to learn much")
    quick = parser.parse_args().quick

    run = s2r.train(Point, iterations=3 if quick else None, out=Path(tempfile.mkdtemp()))
    found = s2r.evaluate(run, episodes=50 if quick else 500)

    print(f"trained for {run.iterations} updates in {run.seconds:.0f} s: {run.run}")
    print(f"success in worlds it has never seen: {found.success}")
    for effect in found.effects[:3]:
        rates = " ".join(f"{100 * rate.value:.0f} %" for rate in effect.rates)
        print(f"along {effect.name}, lowest fifth to highest: {rates}")


if __name__ == "__main__":
    main()
