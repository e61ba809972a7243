"""A robot as simulated: loaded, saved, versioned, linted, and moved by parameters."""

from sim2real.twin.address import resolve
from sim2real.twin.apply import Applier
from sim2real.twin.effects import ActuatorEffects, Effects, JointEffects, SensorEffects
from sim2real.twin.events import Event, Push, Wind
from sim2real.twin.place import Address, Place, Write
from sim2real.twin.remainder import Remainder
from sim2real.twin.twin import Channel, Twin

__all__ = [
    "ActuatorEffects",
    "Address",
    "Applier",
    "Channel",
    "Effects",
    "Event",
    "JointEffects",
    "Place",
    "Push",
    "Remainder",
    "SensorEffects",
    "Twin",
    "Wind",
    "Write",
    "resolve",
]
