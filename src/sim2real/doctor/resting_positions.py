"""Where position servos come to rest.

A servo that nothing holds rests at its command, up to sag and friction. One that rests elsewhere
has another zero, sign, unit or order than its command. Rest against a table or a stop is ignored.
"""

from __future__ import annotations

import numpy as np

from sim2real.doctor.findings import Fault, Finding
from sim2real.doctor.joint_response import JointMotion, JointResponseModel

_MIN_RESTING_PERIODS = 8
"""Fewest periods of rest."""
_REST_MARGIN = 0.1
"""How much farther from its command than in the twin's worlds a servo may rest [rad or m]."""
_SAME_POSITION = 0.06
"""Largest difference of positions that count as equal [rad or m]."""


class RestingPositions:
    """Resting places of the joints in the twin's worlds."""

    def __init__(self, model: JointResponseModel) -> None:
        self._model = model
        self._most = [self._farthest(motion, k) for k, motion in enumerate(model.reference[0])]

    def findings(self, motions: list[JointMotion]) -> list[Finding]:
        """Faults that show in where servos rest."""
        places = [self._place(motion, k, 0) for k, motion in enumerate(motions)]
        odd = {
            k: place
            for k, place in enumerate(places)
            if place is not None and abs(place[0] - place[1]) > 1.5 * self._most[k] + _REST_MARGIN
        }
        if not odd:
            return []
        ends = [_end(motion) if p is None else p for motion, p in zip(motions, places, strict=True)]
        fault, alternatives = self._fault(odd, ends)
        first = max(odd, key=lambda k: abs(odd[k][0] - odd[k][1]))
        command, position = odd[first]
        evidence = (
            f"Joint {self._model.joints[first].name} rests at {position:.2f} with a command of"
            f" {command:.2f} and nothing in its way; in the twin's worlds it rests within"
            f" {self._most[first]:.2f} of its command."
        )
        names = tuple(self._model.joints[k].name for k in odd)
        return [Finding(fault, names, evidence, 0.7, alternatives)]

    def _fault(
        self,
        odd: dict[int, tuple[float, float]],
        places: list[tuple[float, float]],
    ) -> tuple[Fault, tuple[Fault, ...]]:
        others = (Fault.SCALE, Fault.SIGN, Fault.POSE)
        if all(abs(command + position) < _SAME_POSITION for command, position in odd.values()):
            return Fault.SIGN, (Fault.OFFSET, Fault.SCALE)
        if len(odd) > 1 and all(
            any(abs(places[i][0] - position) < _SAME_POSITION for i in range(len(places)) if i != k)
            for k, (_, position) in odd.items()
        ):
            return Fault.PERMUTED, others
        if any(
            abs(places[i][0] - position) + abs(places[i][1] - command) < 2 * _SAME_POSITION
            for k, (command, position) in odd.items()
            for i in range(len(places))
            if i != k
        ):
            return Fault.PERMUTED, others
        if len(odd) > 1 and all(abs(position) < _SAME_POSITION for _, position in odd.values()):
            return Fault.DEGREES, others
        return Fault.OFFSET, others

    def _place(self, motion: JointMotion, k: int, episode: int) -> tuple[float, float] | None:
        """Command and position of a servo at rest; None if it never rests freely."""
        if not self._model.joints[k].servo:
            return None
        moving = self._model.speeding(motion, k)[episode]
        free = self._model.free(motion)[episode]
        command, position = motion.command[episode], motion.position[episode]
        # The command must rest too, else the joint is still on its way.
        still = np.abs(np.diff(command, prepend=command[0])) < 0.02
        ahead = self._model.ahead
        rest = ~moving & free & still & np.isfinite(command) & np.isfinite(position)
        rest[: ahead + 1] = rest[-ahead:] = False
        if rest.sum() < _MIN_RESTING_PERIODS:
            return None
        return float(np.median(command[rest])), float(np.median(position[rest]))

    def _farthest(self, motion: JointMotion, k: int) -> float:
        places = [self._place(motion, k, episode) for episode in range(len(motion.position))]
        return max((abs(p[0] - p[1]) for p in places if p is not None), default=0.0)


def _end(motion: JointMotion) -> tuple[float, float]:
    """Median command and position of a joint in the second half of the first episode."""
    half = motion.position.shape[1] // 2
    command, position = motion.command[0, half:], motion.position[0, half:]
    known = np.isfinite(command) & np.isfinite(position)
    if not known.any():
        return float("nan"), float("nan")
    return float(np.median(command[known])), float(np.median(position[known]))
