"""The classic mistakes of a simulated robot, found before they cost a week."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import mujoco
import numpy as np

from sim2real.twin.attributes import actuator_kind
from sim2real.twin.twin import Twin


@dataclass(frozen=True)
class LintFinding:
    """One thing that looks wrong."""

    severity: str
    """'warning' for what will cause trouble, 'note' for what may."""
    place: str
    message: str
    remedy: str


_warning, _note = partial(LintFinding, "warning"), partial(LintFinding, "note")


def lint(twin: Twin) -> list[LintFinding]:
    """Everything that looks wrong with a twin, warnings first."""
    model = twin.compile().model
    findings = [
        *_contacts(model),
        *_servos(model),
        *_masses(model),
        *_limits(model),
        *_names(model),
        *_time(model),
        *(_latency(twin) if model.nu else ()),
    ]
    return sorted(findings, key=lambda finding: finding.severity != "warning")


def _contacts(model: mujoco.MjModel) -> Iterator[LintFinding]:
    """Grasped things creep out of pyramidal cones, and slip at impratio 1."""
    free = [
        b
        for b in range(1, model.nbody)
        if model.body_jntnum[b]
        and model.jnt_type[model.body_jntadr[b]] == int(mujoco.mjtJoint.mjJNT_FREE)
    ]
    touches = model.nu > 0 and any(
        model.geom_contype[g] or model.geom_conaffinity[g]
        for g in range(model.ngeom)
        if int(model.geom_bodyid[g]) in free
    )
    if not touches:
        return
    if model.opt.cone == int(mujoco.mjtCone.mjCONE_PYRAMIDAL):
        yield _warning(
            "option/cone",
            "pyramidal friction cones let held objects creep",
            'use cone="elliptic"',
        )
    if model.opt.iterations < 50 or model.opt.ls_iterations < 30:
        yield _warning(
            "option/iterations",
            f"with {model.opt.iterations} iterations and {model.opt.ls_iterations} line searches"
            " the solver may stop early, and contacts then feed energy into what they touch",
            "leave both at MuJoCo's defaults: the solver stops when it has converged",
        )
    if model.opt.impratio <= 1.0:
        yield _warning(
            "option/impratio",
            "at impratio 1 friction is as soft as contact, and grasps slip",
            'use impratio="10" with elliptic cones',
        )


def _servos(model: mujoco.MjModel) -> Iterator[LintFinding]:
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    inertia = model.dof_M0
    for row in range(model.nactuator):
        if model.actuator_trntype[row] != int(mujoco.mjtTrn.mjTRN_JOINT):
            continue
        dof = int(model.jnt_dofadr[model.actuator_trnid[row, 0]])
        kp, kd = _gains(model, row)
        gear = float(model.actuator_gear[int(model.actuator_outadr[row]), 0])
        moment = float(inertia[dof]) + float(model.actuator_armature[row]) * gear * gear
        if kp <= 0 or moment <= 0:
            continue
        turn = math.sqrt(kp * gear * gear / moment) * model.opt.timestep
        name = f"actuator/{model.actuator(row).name or row}"
        if turn > 0.7:
            yield _warning(
                name,
                f"the servo (kp {kp:g}) is too stiff for a time step of {model.opt.timestep:g} s:"
                f" its own oscillation advances by {turn:.2f} rad per step",
                "shorten the time step, lower kp, or give the joint its motor's armature",
            )
        ratio = (kd * gear * gear + float(model.dof_damping[dof])) / (
            2 * math.sqrt(kp * gear * gear * moment)
        )
        if ratio < 0.05:
            yield _note(
                name,
                f"the servo is hardly damped (ratio {ratio:.2g})",
                "give it kv, or the joint damping",
            )


def _gains(model: mujoco.MjModel, row: int) -> tuple[float, float]:
    kind = actuator_kind(model, row)
    if kind == "DC motor":
        return float(model.actuator_gainprm[row, 4]), float(model.actuator_gainprm[row, 6])
    if kind == "position servo":
        return -float(model.actuator_biasprm[row, 1]), -float(model.actuator_biasprm[row, 2])
    return 0.0, 0.0


def _masses(model: mujoco.MjModel) -> Iterator[LintFinding]:
    for body in range(1, model.nbody):
        if model.body_weldid[body] == 0:
            continue
        place = f"body/{model.body(body).name or body}"
        mass, inertia = float(model.body_mass[body]), np.sort(model.body_inertia[body])
        moves = model.body_jntnum[body] > 0
        if mass == 0 or (moves and inertia[0] <= 0):
            if moves:
                yield _warning(
                    place,
                    "it moves but has no mass or inertia",
                    "give it an <inertial> or geoms with mass",
                )
            continue
        if not 1e-4 <= mass <= 1e3:
            yield _warning(
                place,
                f"its mass of {mass:g} kg is outside 0.1 g to 1 t",
                "check the units: MJCF uses kilograms and metres",
            )
        if inertia[2] > (inertia[0] + inertia[1]) * (1 + 1e-6):
            yield _warning(
                place,
                "its principal inertias break the triangle inequality: no real body has them",
                "check the inertia's source and frame",
            )
        radius = math.sqrt(float(inertia[2]) / mass)
        reach = _reach(model, body)
        if reach and radius > 2.0 * reach:
            yield _warning(
                place,
                f"its radius of gyration is {radius:.3g} m, but its shapes end at {reach:.3g} m",
                "check the inertia's units (kg m^2)",
            )
        elif reach and radius < 0.05 * reach:
            yield _note(
                place,
                f"its inertia is tiny for its size (radius of gyration {radius:.2g} m, shapes to"
                f" {reach:.2g} m)",
                "check the inertia's units",
            )


def _reach(model: mujoco.MjModel, body: int) -> float:
    first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
    return max(
        (
            float(np.linalg.norm(model.geom_pos[g] - model.body_ipos[body]) + model.geom_rbound[g])
            for g in range(first, first + count)
            if model.geom_rbound[g] > 0
        ),
        default=0.0,
    )


def _limits(model: mujoco.MjModel) -> Iterator[LintFinding]:
    driven = {
        int(model.actuator_trnid[row, 0])
        for row in range(model.nactuator)
        if model.actuator_trntype[row] == int(mujoco.mjtTrn.mjTRN_JOINT)
    }
    for joint in driven:
        name = model.joint(joint).name or joint
        if not model.jnt_limited[joint] and model.jnt_type[joint] != int(
            mujoco.mjtJoint.mjJNT_FREE
        ):
            yield _note(
                f"joint/{name}",
                "it is driven but has no range",
                "give it the hardware's limits, unless it turns endlessly",
            )
    for row in range(model.nactuator):
        if not model.actuator_ctrlnum[row]:
            continue
        place = f"actuator/{model.actuator(row).name or row}"
        control = int(model.actuator_ctrladr[row])
        force = bool(model.actuator_forcelimited[row])
        if model.actuator_trntype[row] == int(mujoco.mjtTrn.mjTRN_JOINT):
            force |= bool(model.jnt_actfrclimited[int(model.actuator_trnid[row, 0])])
        if not model.actuator_ctrllimited[control]:
            yield _warning(
                place,
                "its command has no range",
                "give it a ctrlrange: no hardware accepts every value",
            )
        servo = _gains(model, row)[0] > 0
        if servo and not force:
            yield _warning(
                place,
                "a servo without a force limit is infinitely strong",
                "give it a forcerange, the motor's stall torque",
            )


def _names(model: mujoco.MjModel) -> Iterator[LintFinding]:
    kinds = {"joint": model.njnt, "actuator": model.nactuator, "sensor": model.nsensor}
    for kind, count in kinds.items():
        for row in range(count):
            if not getattr(model, kind)(row).name:
                yield _warning(
                    f"{kind} {row}",
                    f"the {kind} has no name",
                    "name it: parameters, logs and contracts refer to names",
                )


def _time(model: mujoco.MjModel) -> Iterator[LintFinding]:
    if model.opt.timestep > 0.01:
        yield _warning(
            "option/timestep",
            f"a time step of {model.opt.timestep:g} s is long for contact and servos",
            "use 0.005 s or less",
        )
    if model.opt.integrator == int(mujoco.mjtIntegrator.mjINT_EULER) and (
        np.any(model.actuator_biasprm[:, 2] < 0)
    ):
        yield _note(
            "option/integrator",
            "Euler integrates the servos' velocity gains explicitly",
            'use integrator="implicitfast"',
        )


def _latency(twin: Twin) -> Iterator[LintFinding]:
    if not any("delay" in table for table in twin.effects.get("actuator", {}).values()):
        yield _note(
            "effects/actuator",
            "no actuator delay is modelled, and every robot has one",
            'declare delay and delay_max in [effects.actuator."*"]',
        )
