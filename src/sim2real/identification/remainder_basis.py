"""Where a remainder may act: Gaussian bumps, and a support that covers the recorded states."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import mujoco
import numpy as np
from scipy.cluster.vq import kmeans2

from sim2real.arrays import Floats, Ints
from sim2real.logs import ControlLog
from sim2real.replay import Replayer
from sim2real.twin import JointRemainder, Remainder, Twin, one_way_joints

TERMS = {
    "velocity and load": (("velocity", "load"), 20),
    "position": (("position",), 10),
    "drive": (("drive",), 8),
}
"""Features of each term, and its number of bumps per joint; the terms' forces add up."""
_SUPPORT_POINTS = 200
"""Points of the support; with fewer, each would reach too far."""
_REACHED_SHARE = 0.9
"""Share of the recorded states within reach of a support point."""
_SLOW = 0.15
"""Speed up to which distances are linear, in standard deviations of the recorded speeds."""
_MAX_ROWS = 3000
"""Most states that features are computed at, approximately."""


def blank_remainder(
    twin: Twin, logs: Sequence[ControlLog], *, seed: int, threads: int
) -> Remainder:
    """A remainder of all hinges and slides with bumps over the logs' states and zero weights."""
    model = twin.compile().model
    names = one_way_joints(model)
    features = _features(twin, logs, names, threads)
    hinge = int(mujoco.mjtJoint.mjJNT_HINGE)
    joints = []
    for column, name in enumerate(names):
        mine = features[:, column]
        angle = int(model.joint(name).type[0]) == hinge
        turns = angle and bool(np.ptp(mine[:, 0]) > 2 * np.pi)
        joints.append(_joint(name, mine, turns=turns, seed=seed))
    return Remainder(joints=tuple(joints))


def supported_by(
    remainder: Remainder, twin: Twin, logs: Sequence[ControlLog], *, seed: int, threads: int
) -> Remainder:
    """The same bumps, with the support of these logs."""
    features = _features(twin, logs, list(remainder.names), threads)
    joints = []
    for column, joint in enumerate(remainder.joints):
        scales = np.array(joint.scales)
        places = _places(features[:, column], scales, turns=joint.turns)
        seen, reach = _support(places, scales, seed)
        joints.append(replace(joint, seen=seen, reach=reach))
    return Remainder(joints=tuple(joints))


def weight_scales(twin: Twin, remainder: Remainder) -> Floats:
    """(joints,) force that would stop a joint from its usual speed in one second [N m or N]."""
    model = twin.compile().model
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    inertia = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, inertia)
    own = [inertia[(at := int(model.joint(n).dofadr[0])), at] for n in remainder.names]
    speeds = [
        joint.scales[Remainder.features.index("velocity")] / _SLOW for joint in remainder.joints
    ]
    return np.asarray(np.array(own) * np.array(speeds))


def columns(remainder: Remainder, terms: Sequence[str]) -> Ints:
    """Indices, among all weights of all joints, of the bumps of some terms."""
    mine = np.concatenate([np.full(count, name in terms) for name, (_, count) in TERMS.items()])
    return np.flatnonzero(np.tile(mine, len(remainder.joints)))


def _features(twin: Twin, logs: Sequence[ControlLog], names: list[str], threads: int) -> Floats:
    """(rows, joints, features) along the logs."""
    nothing = (0.0,) * len(Remainder.features)
    one = (1.0,) * len(Remainder.features)
    empty = Remainder(
        joints=tuple(
            JointRemainder(
                joint=name, scales=one, centres=(nothing,), widths=(1.0,), weights=(0.0,),
                seen=(nothing,), reach=1.0,
            )
            for name in names
        )
    )  # fmt: skip
    log = ControlLog.join(logs)
    values = twin.best_guess()
    period_s = float(np.median(np.diff(log.times)))
    replayer = Replayer(
        replace(twin, remainder=empty),
        log,
        horizon_s=period_s,
        stride_s=max(1, len(log.times) // _MAX_ROWS) * period_s,
        values=values[None],
        remainder=True,
        threads=threads,
    )
    found = replayer.features(values)
    return found[np.isfinite(found).all(axis=(1, 2))]


def _joint(name: str, features: Floats, *, turns: bool, seed: int) -> JointRemainder:
    spread = _turned(features, turns).std(axis=0)
    scales = np.where(spread > 1e-9, spread, 1.0)
    scales[1] *= _SLOW
    places = _places(features, scales, turns=turns)
    seen, reach = _support(places, scales, seed)
    centres, widths = [], []
    for uses, count in TERMS.values():
        at = [Remainder.features.index(feature) for feature in uses]
        found, _, between = _spread_out(places[:, at], count, seed)
        whole = np.full((count, len(Remainder.features)), np.nan)
        whole[:, at] = found
        centres.append(_features_of(whole, scales))
        widths += [between] * count
    return JointRemainder(
        joint=name,
        scales=tuple(scales.tolist()),
        centres=tuple(
            tuple(None if np.isnan(value) else float(value) for value in row)
            for row in np.concatenate(centres)
        ),
        widths=tuple(widths),
        weights=(0.0,) * len(widths),
        seen=seen,
        reach=reach,
        turns=turns,
    )


def _turned(features: Floats, turns: bool) -> Floats:
    """Features, with positions of freely turning joints wrapped to half a turn around zero."""
    found = features.copy()
    if turns:
        found[:, 0] = np.mod(found[:, 0] + np.pi, 2 * np.pi) - np.pi
    return found


def _places(features: Floats, scales: Floats, *, turns: bool) -> Floats:
    """Features in the remainder's units of distance."""
    found: Floats = _turned(features, turns) / scales
    found[:, 1] = np.arcsinh(found[:, 1])
    return found


def _support(
    places: Floats, scales: Floats, seed: int
) -> tuple[tuple[tuple[float, ...], ...], float]:
    """(support points, in the features' units; their reach)."""
    seen, apart, _ = _spread_out(places, _SUPPORT_POINTS, seed)
    rows = tuple(tuple(row) for row in _features_of(seen, scales).tolist())
    return rows, max(float(np.quantile(apart, _REACHED_SHARE)), 1e-3)


def _features_of(places: Floats, scales: Floats) -> Floats:
    found = places.copy()
    found[:, 1] = np.sinh(found[:, 1])
    return np.asarray(found * scales)


def _spread_out(points: Floats, count: int, seed: int) -> tuple[Floats, Floats, float]:
    """(centres, distance of each point to the nearest, median distance between neighbours)."""
    different = np.unique(points, axis=0)
    if len(different) <= count:
        centres = different[np.arange(count) % len(different)]
    else:
        with warnings.catch_warnings(action="ignore"):  # an empty cluster keeps its centre
            centres, _ = kmeans2(points, count, minit="++", seed=seed)
    apart = np.linalg.norm(points[:, None] - centres, axis=2).min(axis=1)
    between = np.linalg.norm(centres[:, None] - centres, axis=2)
    between[between == 0] = np.inf
    nearest = between.min(axis=1)
    usual = float(np.median(nearest[np.isfinite(nearest)])) if np.isfinite(nearest).any() else 1.0
    return centres, apart, usual
