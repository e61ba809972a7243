"""A task of your own: written here, trained in randomised worlds, and evaluated.

Run:  python examples/train_own_task.py [--quick]
"""

import argparse
import tempfile
from pathlib import Path

from torch import Tensor

import sim2real as s2r
from sim2real.tasks import Draw, Measurements, Term, Training


def sensor_term(name: str, unit: str, of: str, scale: float = 1.0) -> Term:
    return Term(name=name, unit=unit, sources=(of,), scale=scale, read=lambda m: m.sensor(of))


class Point(s2r.Task):
    """Turn a one-joint arm to a goal angle, and hold it there for half a second."""

    name, twin = "point", Path(__file__).parent / "arm"
    rate_hz, episode_s, hold_s = 50.0, 2.0, 0.5
    actions, draws, goals = ("target",), ("angle", "goal"), {"goal": 1}
    training = Training(worlds=128, iterations=40, hidden=(32, 32))
    actor = (
        Term(name="goal", unit="rad", sources=("goal",), read=lambda m: m.goal("goal")),
        sensor_term("angle", "rad", "shoulder_pos"),
        sensor_term("speed", "rad/s", "shoulder_vel", scale=0.3),
    )

    def reset(self, ids: Tensor, draw: Draw) -> None:
        angle = draw.uniform("angle", -0.8, 0.8)
        self.worlds.state("qpos")[ids, 0] = self.worlds.state("ctrl")[ids, 0] = angle
        self.worlds.memory["goal"][ids, 0] = draw.uniform("goal", -0.8, 0.8).float()

    def command(self, action: Tensor, m: Measurements) -> Tensor:
        return 1.5 * action  # the servo's goal; gravity pulls the arm away from it

    def rest(self, m: Measurements) -> Tensor:
        return m.sensor("shoulder_pos")

    def reward(self, action: Tensor) -> Tensor:
        return (-((self.off() / 0.2) ** 2)).exp()

    def reached(self) -> Tensor:
        return self.off().abs() < 0.08

    def off(self) -> Tensor:
        return self.worlds.state("qpos")[:, 0] - self.worlds.memory["goal"][:, 0]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="too short to learn much")
    quick = parser.parse_args().quick
    run = s2r.train(Point, iterations=3 if quick else None, out=tempfile.mkdtemp())
    success = s2r.evaluate(run, episodes=50 if quick else 500).success
    print(f"{run.run}: success in worlds it has never seen: {success}")
