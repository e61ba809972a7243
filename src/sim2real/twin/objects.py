"""The named objects of a MuJoCo model, by kind."""

from __future__ import annotations

import fnmatch

import mujoco

KINDS = {
    "body": "body",
    "joint": "jnt",
    "geom": "geom",
    "pair": "pair",
    "actuator": "actuator",
    "sensor": "sensor",
    "camera": "cam",
    "light": "light",
    "material": "mat",
    "site": "site",
    "tendon": "tendon",
    "equality": "eq",
}
"""Kinds of objects, and what the names of their fields in the model begin with."""


def names(model: mujoco.MjModel, kind: str) -> list[str]:
    """Names of all objects of a kind; an unnamed one is ''."""
    count = len(getattr(model, f"name_{KINDS[kind]}adr"))
    return [getattr(model, kind)(row).name for row in range(count)]


def rows(model: mujoco.MjModel, kind: str, pattern: str) -> list[int]:
    """Rows of the objects of a kind whose names match a pattern."""
    return [getattr(model, kind)(name).id for name in fnmatch.filter(names(model, kind), pattern)]


def elements(model: mujoco.MjModel, kind: str, row: int) -> range:
    """An actuator's controls, the numbers of a sensor's reading, or a joint's first dof."""
    if kind == "actuator":
        first, width = model.actuator_ctrladr[row], model.actuator_ctrlnum[row]
    elif kind == "sensor":
        first, width = model.sensor_adr[row], model.sensor_dim[row]
    else:
        first, width = model.jnt_dofadr[row], 1
    return range(int(first), int(first) + int(width))
