"""A robot as simulated: MJCF, hardware effects, channel names, and what may differ in it.

A `Twin` is a folder that is versioned by its content and never edited in place. It declares the
parameters that can differ between simulation and reality; an `Applier` writes their values into
many worlds, physically whole. `lint` finds the classic mistakes of a model.

>>> from sim2real.tasks import find_task
>>> from sim2real.twin import Twin
>>> twin = Twin.load(find_task("pendulum-swingup").twin)
>>> twin.parameter("actuator/hinge/delay").unit
's'
>>> twin.compile().effects.sensors["hinge_pos"].noise
0.002
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "EFFECTS",
    "Applier",
    "Channel",
    "CompiledTwin",
    "Effect",
    "Effects",
    "Event",
    "JointRemainder",
    "Push",
    "Remainder",
    "SensorEffects",
    "Twin",
    "Wind",
    "command_spec",
    "control_unit",
    "elements",
    "event_attributes",
    "lint",
    "model_limits",
    "one_way_joints",
    "range_and_torque",
    "resolve",
    "sensor_spec",
    "sensor_unit",
    "twin_contract",
]

if TYPE_CHECKING:
    from sim2real.twin.address import resolve
    from sim2real.twin.apply import Applier
    from sim2real.twin.compiled import CompiledTwin
    from sim2real.twin.effects import EFFECTS, Effect, Effects, SensorEffects
    from sim2real.twin.events import Event, Push, Wind, event_attributes
    from sim2real.twin.model_contract import (
        command_spec,
        model_limits,
        range_and_torque,
        sensor_spec,
        twin_contract,
    )
    from sim2real.twin.model_lint import lint
    from sim2real.twin.objects import elements
    from sim2real.twin.remainder import (
        JointRemainder,
        Remainder,
        one_way_joints,
    )
    from sim2real.twin.twin import Channel, Twin
    from sim2real.twin.units import control_unit, sensor_unit
else:
    __getattr__, __dir__ = attach(__name__, __file__)
