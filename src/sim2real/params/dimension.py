"""The ten dimensions along which a simulation and a robot can differ."""

from __future__ import annotations

from enum import StrEnum


class Dimension(StrEnum):
    """A group of causes of the gap; every parameter belongs to exactly one."""

    DYNAMICS = "dynamics"
    """Masses, inertias, joint friction and damping of the robot itself."""
    CONTACT = "contact"
    """Friction, stiffness and restitution between things that touch."""
    ACTUATION = "actuation"
    """Gains, motor constants, torque limits, backlash."""
    LATENCY = "latency"
    """Delays of sensing and acting, jitter, missed periods."""
    SENSING = "sensing"
    """Noise, bias, drift, quantisation, dropout."""
    VISUAL = "visual"
    """Light, texture, colour, lens, exposure, blur."""
    OBJECT = "object"
    """The handled things: mass, size, friction, compliance."""
    ENVIRONMENT = "environment"
    """Clutter, terrain, wind, pushes, slope."""
    HUMAN = "human"
    """How people move near the robot."""
    NUMERICS = "numerics"
    """Time step, integrator, solver."""


_OF_KIND = {
    "body": Dimension.DYNAMICS,
    "joint": Dimension.DYNAMICS,
    "tendon": Dimension.DYNAMICS,
    "equality": Dimension.DYNAMICS,
    "geom": Dimension.CONTACT,
    "pair": Dimension.CONTACT,
    "actuator": Dimension.ACTUATION,
    "sensor": Dimension.SENSING,
    "site": Dimension.SENSING,
    "camera": Dimension.VISUAL,
    "light": Dimension.VISUAL,
    "material": Dimension.VISUAL,
    "object": Dimension.OBJECT,
    "environment": Dimension.ENVIRONMENT,
    "human": Dimension.HUMAN,
    "option": Dimension.NUMERICS,
}
_LATE = frozenset({"delay", "delay_jitter", "period", "missed"})
_SURROUNDINGS = frozenset({"gravity", "wind", "density", "viscosity", "magnetic"})

KINDS: tuple[str, ...] = tuple(_OF_KIND)
"""The kinds that a parameter's path may begin with."""


def dimension_of(kind: str, attribute: str) -> Dimension:
    """The dimension of `kind/…/attribute`, for parameters that do not state their own."""
    stem = attribute.split("[", 1)[0]
    if kind in ("actuator", "sensor") and stem in _LATE:
        return Dimension.LATENCY
    if stem == "backlash":
        return Dimension.ACTUATION
    if kind == "option" and stem in _SURROUNDINGS:
        return Dimension.ENVIRONMENT
    if kind == "geom" and stem == "rgba":
        return Dimension.VISUAL
    return _OF_KIND[kind]
