"""Giving a compiled model the form that per-world values need."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

import mujoco

from sim2real.params import split_path
from sim2real.twin.attributes import PSEUDO_INERTIA
from sim2real.twin.compiled import split_index
from sim2real.twin.objects import names as names_of
from sim2real.twin.objects import rows as rows_of


def prepare_model(model: mujoco.MjModel, names: Iterable[str]) -> None:
    """Give the model the form that per-world values of these parameters need.

    Contact stiffness and damping need the direct form of `solref`; geoms and sites that will
    move must not be flagged as coinciding with their body's frame.
    """
    if model.ntree <= 1:
        # One tree is one island: searching for more finds nothing and costs 8 % of the speed.
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
    for name in names:
        kind, pattern, attribute = split_path(name)
        stem, _ = split_index(attribute)
        geoms = _matching_geoms(model, kind, pattern)
        if stem in ("stiffness", "damping") and kind in ("geom", "pair", "object"):
            pair = kind == "pair"
            solref = model.pair_solref if pair else model.geom_solref
            for row in rows_of(model, "pair", pattern) if pair else geoms:
                timeconst, dampratio = solref[row]
                if timeconst > 0:
                    solref[row] = -1 / (timeconst * dampratio) ** 2, -2 / timeconst
        if stem in ("pos", "quat", "size"):
            model.geom_sameframe[geoms] = 0
        if stem in ("pos", "quat", "size") and kind in ("site", "object"):
            model.site_sameframe[:] = 0


def moving_frames(model: mujoco.MjModel, names: Iterable[str]) -> list[str]:
    """Bodies whose inertial frame these parameters move within the body."""
    found = []
    for name in names:
        kind, pattern, attribute = split_path(name)
        stem, _ = split_index(attribute)
        if kind in ("body", "object") and stem in ("ipos", "iquat", "size", PSEUDO_INERTIA):
            found += fnmatch.filter(names_of(model, "body"), pattern)
    return [body for body in dict.fromkeys(found) if body and body != "world"]


def _matching_geoms(model: mujoco.MjModel, kind: str, pattern: str) -> list[int]:
    if kind == "geom":
        return rows_of(model, "geom", pattern)
    if kind != "object":
        return []
    bodies = rows_of(model, "body", pattern)
    return [g for g in range(model.ngeom) if int(model.geom_bodyid[g]) in bodies]
