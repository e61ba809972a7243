"""What crosses a policy's border: features with their units and order, and the robot's limits.

Trainer, exporter, robot and doctor all read the same `Contract`, so nothing about a policy's
interface is left to memory. A `Feature` is numbers, an image or a text. `Limits` say how far the
supervisor lets a robot go. All of it is plain data, checked when it is read from JSON.

>>> from dataclasses import replace
>>> from sim2real.contract import CommandSpec, Contract, SensorSpec
>>> angle = SensorSpec(name="angle", unit="rad", width=1, kind="jointpos", of="hinge")
>>> motor = CommandSpec(name="motor", joint="hinge", unit="V", low=-12, high=12, default=0)
>>> driven = Contract(task="", robot="pendulum", twin_version="1", rate_hz=50, history=1,
...                   sensors=(angle,), commands=(motor,))
>>> wrong = replace(driven, sensors=(replace(angle, unit="deg"),))
>>> list(driven.differences(wrong))
["sensors.angle.unit: 'rad' against 'deg'"]
"""

from sim2real.contract.contract import (
    ActionSpec,
    CommandSpec,
    Contract,
    GoalSpec,
    SensorSpec,
    TermSpec,
)
from sim2real.contract.features import (
    Feature,
    ImageFeature,
    NumbersFeature,
    TextFeature,
)
from sim2real.contract.limits import SOFT_START_S, SOFT_START_SHARE, JointLimits, Limits

__all__ = [
    "SOFT_START_S",
    "SOFT_START_SHARE",
    "ActionSpec",
    "CommandSpec",
    "Contract",
    "Feature",
    "GoalSpec",
    "ImageFeature",
    "JointLimits",
    "Limits",
    "NumbersFeature",
    "SensorSpec",
    "TermSpec",
    "TextFeature",
]
