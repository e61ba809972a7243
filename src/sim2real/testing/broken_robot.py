"""A robot whose interface is broken, for trying what should notice it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from sim2real.contract import Contract
from sim2real.doctor import Fault
from sim2real.robot import PassedOnRobot, Robot
from sim2real.testing.faults import DEGREES, FACTORS, OFFSETS, PERIODS


class FaultyRobot(PassedOnRobot):
    """A robot seen through a broken driver; the rest of its driving is passed on.

    It stands between a runner and the robot, so that the policy acts on the broken interface and
    the log agrees with itself: the fault shows in the motion alone. Faults that no driver has
    (the network's own) leave it as it is.
    """

    def __init__(
        self, robot: Robot, contract: Contract, fault: Fault, *, level: int, seed: int
    ) -> None:
        super().__init__(robot)
        self._contract, self._fault, self._level = contract, fault, level
        rng = np.random.default_rng([seed, level, list(Fault).index(fault)])
        joints = [command.joint for command in contract.commands]
        count = (1, max(1, len(joints) // 2), len(joints))[level]
        if fault in (Fault.OFFSET, Fault.STALE):
            count = 1
        self._joints = [joints[int(k)] for k in rng.permutation(len(joints))[:count]]
        self._commands_too = bool(rng.random() < 0.5)
        self._sign = float(rng.choice([-1.0, 1.0]))
        self._past: deque[Mapping[str, object]] = deque(maxlen=PERIODS[level] + 1)
        self._sent: deque[Mapping[str, float]] = deque(maxlen=PERIODS[level] + 1)
        self._seen = 0
        self._frozen: dict[str, float] = {}
        self._swap = dict(zip(joints, [*joints[1:], joints[0]], strict=True))
        if level == 0 and len(joints) > 1:
            one, other = (joints[int(k)] for k in rng.choice(len(joints), 2, replace=False))
            self._swap = {j: {one: other, other: one}.get(j, j) for j in joints}
        self._of = {sensor.name: sensor for sensor in contract.sensors}
        self._named = {(s.of, s.kind): s.name for s in contract.sensors}

    def get_observation(self) -> Mapping[str, object]:
        """objects as the broken driver gives them."""
        seen = self._robot.get_observation()
        if not seen:
            return dict(seen)
        self._past.append(seen)
        self._seen += 1
        if self._fault is Fault.OBSERVATION_DELAYED:
            return self._past[0]
        if self._fault is Fault.PERMUTED:
            return {name: seen[self._other(name)] for name in seen}
        return {name: self._reading(name, value) for name, value in seen.items()}

    def send_action(self, action: Mapping[str, float]) -> Mapping[str, float]:
        """Commands as the broken driver passes them on; it says that it sent them as they are."""
        self._sent.append(action)
        real = dict(action)
        if self._fault is Fault.ACTION_DELAYED:
            real = dict(self._sent[0])
        for spec in self._contract.commands:
            if spec.joint in self._joints and self._commands_too:
                if self._fault is Fault.SIGN:
                    real[spec.name] = -real[spec.name]
                elif self._fault is Fault.SCALE:
                    real[spec.name] *= FACTORS[self._level] ** self._sign
                elif self._fault is Fault.DEGREES:
                    real[spec.name] /= DEGREES
        self._robot.send_action(real)
        return action

    def _other(self, name: str) -> str:
        spec = self._of.get(name)
        if spec is None or spec.of not in self._swap:
            return name
        return self._named.get((self._swap[spec.of], spec.kind), name)

    def _reading(self, name: str, value: object) -> object:
        spec = self._of.get(name)
        if (
            spec is None
            or spec.of not in self._joints
            or not isinstance(value, float | int | np.floating)
        ):
            return value
        fault, level = self._fault, self._level
        if fault is Fault.OFFSET and spec.kind == "jointpos":
            return value + self._sign * OFFSETS[level]
        if fault is Fault.STALE and spec.kind == "jointpos":
            if self._seen <= 5 + 8 * (2 - level):
                return value
            return self._frozen.setdefault(name, float(value))
        if fault is Fault.MISSING and spec.kind == "jointvel":
            return 0.0
        if self._commands_too:
            return value
        if fault is Fault.SIGN:
            return -value
        if fault is Fault.DEGREES:
            return value * DEGREES
        if fault is Fault.SCALE:
            return value * float(FACTORS[level] ** self._sign)
        return value
