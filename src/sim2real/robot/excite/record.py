"""A motion for identification, planned for a robot and small enough to hit nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from sim2real.arrays import Floats
from sim2real.contract import Contract, Limits
from sim2real.errors import Sim2RealError, nearest
from sim2real.plain import PlainData
from sim2real.policy import Bundle, open_twin
from sim2real.robot.excite.clearance import Clearance, Trouble
from sim2real.robot.excite.plan import Envelope, ExcitationPlan, plan_motion, resting
from sim2real.twin import Twin, model_limits, twin_contract

_TOWARDS_DEFAULT = (0.0, 0.5, 1.0)
"""How far towards the twin's default pose a motion is tried."""
_GOOD_SHARE = 0.3
"""Share of the wanted amplitude from which a motion stays where the robot is."""
_SHRINK = 0.75
_MIN_SHARE = 0.05
"""Smallest share of the wanted amplitude that is worth a recording."""


@dataclass(frozen=True, kw_only=True)
class ExcitedRobot:
    """A robot to excite: its twin, and how far it may go."""

    task: str
    """Task of the bundle; '' for a twin."""
    twin: Twin
    contract: Contract
    limits: Limits

    @classmethod
    def open(
        cls,
        source: Twin | Bundle | Path | str,
        *,
        rate_hz: float | None = None,
        speed: float | None = None,
    ) -> ExcitedRobot:
        """The robot of a twin, or of a bundle with its twin, rate and limits.

        `rate_hz` is the control rate of a twin, 50 Hz by default; `speed` as in `model_limits`.
        """
        if isinstance(source, Twin) or not Bundle.is_bundle(source):
            twin = open_twin(source)
            contract = twin_contract(twin, 50.0 if rate_hz is None else rate_hz)
            limits = model_limits(twin, contract, speed=speed)
            return cls(task="", twin=twin, contract=contract, limits=limits)
        bundle = Bundle.open(source)
        if rate_hz is not None and rate_hz != bundle.contract.rate_hz:
            raise Sim2RealError(
                f"the bundle runs at {bundle.contract.rate_hz:g} Hz; for another rate use its"
                f" twin, {bundle.twin}"
            )
        # An excitation observes nothing: what belongs to the policy is left out.
        contract = replace(
            bundle.contract, task="", history=1, goals=(), observations=(), actions=()
        )
        limits = replace(bundle.limits, observation_low=(), observation_high=())
        return cls(
            task=bundle.contract.task,
            twin=Twin.load(bundle.twin, check=False),
            contract=contract,
            limits=limits,
        )

    @cached_property
    def clearance(self) -> Clearance:
        """The twin in which plans are checked."""
        return Clearance(self.twin, self.contract, self.limits)

    def envelope(self, *, speed: float | None = None) -> Envelope:
        """What planned commands may do; `speed` [rad/s or m/s] slows position servos further."""
        return Envelope.of(self.contract, self.limits, speed=speed)


@dataclass(frozen=True)
class CommandRange:
    """What a plan sends to one actuator, in the unit of its command."""

    name: str
    unit: str
    low: float
    high: float
    speed: float
    """Largest change per second."""
    acceleration: float
    """Largest change of the speed per second."""
    amplitude: float
    """Share of half the range."""


@dataclass(frozen=True, kw_only=True)
class PreparedMotion(
    PlainData,
    also=("plan.motion", "plan.seconds", "commands"),
    without=("plan", "contract", "amplitude"),
):
    """A plan that stays clear of obstacles."""

    plan: ExcitationPlan
    contract: Contract
    amplitude: float
    """The amplitude that was asked for."""
    reduced: str
    """Why some joints move less than that; '' if none does."""
    moved: float
    """How far it first goes towards the twin's default pose for more room, from 0 to 1."""

    @property
    def commands(self) -> list[CommandRange]:
        """What would be sent to each command."""
        plan = self.plan
        return [
            CommandRange(command.name, command.unit, *numbers)
            for command, *numbers in zip(
                self.contract.commands,
                plan.commands.min(axis=0).tolist(),
                plan.commands.max(axis=0).tolist(),
                plan.speed.tolist(),
                plan.acceleration.tolist(),
                plan.amplitude.tolist(),
                strict=True,
            )
        ]


def prepare_motion(
    subject: ExcitedRobot,
    motion: str,
    readings: Floats | None = None,
    *,
    seconds: float = 20.0,
    amplitude: float = 0.5,
    joints: Sequence[str] = (),
    speed: float | None = None,
    seed: int = 0,
    home: Floats | None = None,
) -> PreparedMotion:
    """Plan the largest motion from present readings (numbers,) that stays clear of obstacles.

    Without readings it begins in the twin's default pose. A joint that would bring the robot near
    an obstacle, or would get too fast, gets a smaller amplitude. If little is left of it, the
    motion first goes towards the twin's default pose. It ends at `home` (commands,), by default its
    start. If not even a twentieth of the amplitude is safe, it is a `Sim2RealError`.
    """
    contract, clearance = subject.contract, subject.clearance
    envelope = subject.envelope(speed=speed)
    if not 0.0 < amplitude <= 1.0:
        raise Sim2RealError(f"an amplitude must be above 0 and at most 1, not {amplitude:g}")
    here = clearance.default_readings() if readings is None else readings
    start = resting(contract, here)
    end = start if home is None else home
    default = np.array([command.default for command in contract.commands])
    wanted = amplitude * chosen(contract, joints)
    planned = partial(
        plan_motion,
        motion,
        envelope,
        rate_hz=contract.rate_hz,
        start=start,
        seconds=seconds,
        seed=seed,
        home=end,
    )
    best: PreparedMotion | None = None
    problems: list[str] = []
    for moved in _TOWARDS_DEFAULT if envelope.servo.any() else (0.0,):
        plan, problems = _clear_plan(
            partial(planned, around=end + moved * (default - end)),
            lambda plan: clearance.trouble(plan, here, home=end),
            wanted,
            smallest=_MIN_SHARE * amplitude,
        )
        if plan and (best is None or plan.amplitude.sum() > best.plan.amplitude.sum()):
            reduced = problems[0] if problems else ""
            best = PreparedMotion(
                plan=plan, contract=contract, amplitude=amplitude, reduced=reduced, moved=moved
            )
        if best and _moving(best.plan).min(initial=1) >= _GOOD_SHARE * amplitude:
            break
    if best is None:
        raise Sim2RealError(
            f"no {motion} from this pose is safe: {problems[-1]}; move the robot to another pose"
        )
    return best


def _moving(plan: ExcitationPlan) -> Floats:
    """(moving joints,) amplitudes of the joints that move."""
    return plan.amplitude[plan.amplitude > 0]


def _clear_plan(
    planned: Callable[..., ExcitationPlan],
    trouble_of: Callable[[ExcitationPlan], Trouble | None],
    parts: Floats,
    *,
    smallest: float,
) -> tuple[ExcitationPlan | None, list[str]]:
    """The first plan that is clear while amplitudes shrink, and what was wrong with those before.

    None where the joints to blame are at the `smallest` amplitude and it is still not clear.
    """
    problems: list[str] = []
    while True:
        plan = planned(amplitude=parts)
        trouble = trouble_of(plan)
        if trouble is None:
            return plan, problems
        problems.append(f"{trouble.what} at {trouble.row / plan.rate_hz:.1f} s")
        parts = np.where(trouble.blamed, _SHRINK * parts, parts)
        if not (trouble.blamed & (parts > smallest)).any():
            return None, problems


def chosen(contract: Contract, joints: Sequence[str]) -> Floats:
    """(commands,) 1.0 for the joints that move, by their own or their actuators' names."""
    names = {command.joint: k for k, command in enumerate(contract.commands)}
    names |= {command.name: k for k, command in enumerate(contract.commands)}
    found = np.zeros(len(contract.commands))
    for name in joints or list(names):
        if name not in names:
            raise Sim2RealError(f"no joint {name!r} is commanded{nearest(name, names)}")
        found[names[name]] = 1.0
    return found
