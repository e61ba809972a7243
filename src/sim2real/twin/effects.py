"""Hardware effects: what a motor, a gear, a bus and a sensor add to the bare model.

Where the engine can do it, it does: delays live in MuJoCo's own history buffers, Stribeck
friction is a passive LuGre element, backlash a small free joint between motor and load. The
rest (command quantisation and slew, sensor noise, bias, hold and dropout, friction that depends
on load or direction) acts once per control period on tensors; see `worlds/hardware.py`.

Each number below is the nominal value of a parameter of the same name
(`actuator/hinge/delay`, `sensor/imu/noise`, `joint/hinge/backlash`).
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import mujoco

from sim2real.errors import Sim2RealError, nearest, table_at
from sim2real.plain import NotNegative, of_plain
from sim2real.twin.objects import names

_MIN_BRISTLE_STIFFNESS = 200.0
"""Stiffness of the LuGre bristles of a joint with little friction [N m/rad or N/m]."""
_MAX_DELAY_S = 10.0
_BACKLASH_SUFFIX = "_backlash"
_FRICTION_SUFFIX = "_stribeck"


@dataclass(frozen=True, kw_only=True)
class DelayEffects:
    """A delay that the engine's history buffer holds."""

    delay: NotNegative = 0.0
    """Mean delay [s], may be fractional; of a command at least one physics step."""
    delay_jitter: NotNegative = 0.0
    """Half-width of the uniform jitter around the mean, redrawn each period [s]."""
    delay_max: NotNegative = 0.0
    """Longest delay the history buffer can hold [s]; asking for more is an error."""


@dataclass(frozen=True, kw_only=True)
class ActuatorEffects(DelayEffects):
    """Between a command leaving the policy and the force at the joint."""

    resistance: NotNegative = 0.0
    """Of a DC motor in place of an ideal servo or motor [ohm]; needs the next two as well."""
    motorconst: NotNegative = 0.0
    """Torque constant of that motor at the joint [N m/A]."""
    voltage_limit: NotNegative = 0.0
    """Supply voltage: torque fades with speed as the back-EMF uses it up [V]."""
    drive: Literal["current", "voltage"] = "current"
    """What a servo's firmware sets from a position error: a "current", whose torque does not depend
    on speed, or, like hobby servos, a "voltage": the back-EMF brakes, and `kp` is in V/rad."""
    quantum: NotNegative = 0.0
    """Step of the command's resolution [control units]; 0 for none."""
    slew: NotNegative = math.inf
    """Largest rate of the command [control units/s]."""
    acceleration: NotNegative = math.inf
    """Largest acceleration of the command: servos' firmware follows a trapezoidal speed profile
    [control units/s^2]."""
    settle: NotNegative = math.inf
    """Time after which an unchanged command is taken at once, whatever the acceleration [s]; some
    firmware does so with a goal that it is sent again."""
    period: NotNegative = 0.0
    """Time between commands the device accepts [s]; 0 accepts every one."""
    missed: NotNegative = 0.0
    """Probability that a command is lost and the last one stays."""


@dataclass(frozen=True, kw_only=True)
class SensorEffects(DelayEffects):
    """Between a quantity and what the robot's computer reads of it."""

    noise: NotNegative = 0.0
    """Standard deviation of white noise [sensor units]."""
    bias: float = 0.0
    """Constant offset [sensor units]."""
    walk: NotNegative = 0.0
    """Growth of the bias's random walk [sensor units / sqrt(s)]."""
    scale: NotNegative = 1.0
    """Ratio of reading to quantity."""
    quantum: NotNegative = 0.0
    """Step of the reading's resolution [sensor units]; 0 for none."""
    period: NotNegative = 0.0
    """Time between new readings [s]; between them the last one is repeated. 0: always new."""
    dropout: NotNegative = 0.0
    """Probability that a reading is lost and the last one is repeated."""


@dataclass(frozen=True, kw_only=True)
class JointEffects:
    """What a gear adds to a joint."""

    backlash: NotNegative = 0.0
    """Full width of the free play between motor and load [rad or m]; 0 for none."""
    encoder: Literal["motor", "output"] = "motor"
    """Side of the backlash on which the joint's position and velocity sensors are."""
    static_friction: NotNegative = 0.0
    """Break-away friction of the Stribeck element [N m or N]; 0 for none."""
    coulomb_friction: NotNegative = 0.0
    """Sliding friction of the Stribeck element [N m or N]."""
    stribeck_velocity: NotNegative = 0.1
    """Speed at which friction falls from static towards sliding [rad/s or m/s]."""
    load_friction: NotNegative = 0.0
    """Extra friction for each unit of force the gear carries [ratio]."""
    load_friction_quadratic: NotNegative = 0.0
    """Extra friction for the square of that force [1/(N m) or 1/N]."""
    friction_asymmetry: float = 0.0
    """Share by which dry friction is higher in the positive direction, and lower in the other."""
    damping_asymmetry: float = 0.0
    """The same of viscous damping."""


Effect = ActuatorEffects | SensorEffects | JointEffects
EFFECTS: dict[str, type[Effect]] = {
    "actuator": ActuatorEffects,
    "sensor": SensorEffects,
    "joint": JointEffects,
}
"""Class of the effects of each kind of object that can have them."""
_Kind = TypeVar("_Kind", ActuatorEffects, SensorEffects, JointEffects)
_Delayed = TypeVar("_Delayed", bound=DelayEffects)


@dataclass(frozen=True, kw_only=True)
class Effects:
    """The hardware effects of a whole twin, by the full name of their object."""

    actuators: Mapping[str, ActuatorEffects]
    sensors: Mapping[str, SensorEffects]
    joints: Mapping[str, JointEffects]

    def of(self, kind: str) -> Mapping[str, Effect]:
        """Effects of all objects of a kind in `EFFECTS`."""
        found: Mapping[str, Effect] = getattr(self, f"{kind}s")
        return found


def read_effects(data: Mapping[str, object], model: mujoco.MjModel) -> Effects:
    """Effects from the `[effects]` table, wildcards resolved against the model's names."""
    for group in data:
        if group not in EFFECTS:
            raise Sim2RealError(f"[effects.{group}] is unknown{nearest(group, EFFECTS)}")
    actuators = _read(data, "actuator", ActuatorEffects, model)
    sensors = _read(data, "sensor", SensorEffects, model)
    _adopt_delays(model, "actuator", actuators, ActuatorEffects)
    _adopt_delays(model, "sensor", sensors, SensorEffects)
    return Effects(
        actuators=actuators, sensors=sensors, joints=_read(data, "joint", JointEffects, model)
    )


def _adopt_delays(
    model: mujoco.MjModel, kind: str, table: dict[str, _Delayed], cls: type[_Delayed]
) -> None:
    """Take over delays that the MJCF itself declares, where the twin says nothing about them.

    A delay that its history buffer cannot hold is a `Sim2RealError`.
    """
    for name in filter(None, names(model, kind)):
        row = getattr(model, kind)(name).id
        samples = int(getattr(model, f"{kind}_history")[row, 0])
        declared = table.get(name, cls())
        if samples > 0 and not declared.delay_max:
            delay = float(getattr(model, f"{kind}_delay")[row])
            longest = samples * model.opt.timestep
            table[name] = replace(declared, delay=delay, delay_max=max(delay, longest))
    for name, effects in table.items():
        most = effects.delay + effects.delay_jitter
        if most > effects.delay_max + 1e-12:
            raise Sim2RealError(
                f"[effects.{kind}.{name}]: delay + jitter = {most:g} s exceeds"
                f" delay_max = {effects.delay_max:g} s"
            )


def add_to_spec(spec: mujoco.MjSpec, effects: Effects, *, timestep_s: float) -> None:
    """Write the effects that the engine holds into the spec.

    `timestep_s` is the shortest time step any world will use: it sizes the history buffers.
    """
    for kind, things in (("actuator", spec.actuators), ("sensor", spec.sensors)):
        table = effects.actuators if kind == "actuator" else effects.sensors
        for thing in things:
            declared = table.get(thing.name)
            if declared is not None and declared.delay_max > _MAX_DELAY_S:
                raise Sim2RealError(
                    f"{kind} {thing.name!r}: delay_max = {declared.delay_max:g} s is longer than"
                    f" {_MAX_DELAY_S:g} s"
                )
            if declared is not None and declared.delay_max > 0:
                thing.nsample = math.ceil(declared.delay_max / timestep_s - 1e-9) + 1
                thing.interp = max(1, int(thing.interp))
                thing.delay = declared.delay
    for name, actuator_effects in effects.actuators.items():
        if actuator_effects.resistance > 0 or actuator_effects.drive == "voltage":
            _make_dcmotor(spec.actuator(name), actuator_effects)
    for name, joint_effects in effects.joints.items():
        joint = spec.joint(name)
        if joint_effects.backlash > 0:
            _add_backlash(spec, joint, joint_effects, timestep_s)
        if joint_effects.static_friction > 0:
            _add_stribeck(spec, joint, joint_effects)


def backlash_joint(name: str) -> str:
    """Name of the joint that holds the free play of joint `name`."""
    return name + _BACKLASH_SUFFIX


def stribeck_actuator(name: str) -> str:
    """Name of the passive element that holds the Stribeck friction of joint `name`."""
    return name + _FRICTION_SUFFIX


def added_names(effects: Effects) -> set[str]:
    """Names of what the effects put into the model; paths and wildcards do not see them."""
    return {name(joint) for joint in effects.joints for name in (backlash_joint, stribeck_actuator)}


def _add_backlash(
    spec: mujoco.MjSpec, joint: mujoco.MjsJoint, effects: JointEffects, timestep_s: float
) -> None:
    """Put the backlash in series: a second joint on the same axis, free within its width.

    The motor and its armature stay on the first joint; the load moves with the sum of both.
    """
    if joint.type not in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
        raise Sim2RealError(f"joint {joint.name!r}: backlash needs a hinge or a slide")
    if not max(joint.armature, 0.0) > 0:
        raise Sim2RealError(
            f"joint {joint.name!r}: backlash needs an armature on the joint (the motor's own"
            " inertia, which moves alone within the backlash)"
        )
    half = effects.backlash / 2
    joint.parent.add_joint(
        name=backlash_joint(joint.name),
        type=joint.type,
        axis=joint.axis,
        pos=joint.pos,
        limited=mujoco.mjtLimited.mjLIMITED_TRUE,
        range=[-half, half],
        solref_limit=[max(4 * timestep_s, 0.004), 1.0],
        damping=[1e-4, 0, 0],
        armature=1e-5,
    )
    if effects.encoder == "motor":
        return
    tendon = spec.add_tendon(name=f"{joint.name}_output")
    tendon.wrap_joint(joint.name, 1.0)
    tendon.wrap_joint(backlash_joint(joint.name), 1.0)
    swap = {
        mujoco.mjtSensor.mjSENS_JOINTPOS: mujoco.mjtSensor.mjSENS_TENDONPOS,
        mujoco.mjtSensor.mjSENS_JOINTVEL: mujoco.mjtSensor.mjSENS_TENDONVEL,
    }
    for sensor in spec.sensors:
        if sensor.type in swap and sensor.objname == joint.name:
            sensor.type = swap[sensor.type]
            sensor.objtype = mujoco.mjtObj.mjOBJ_TENDON
            sensor.objname = tendon.name


def _make_dcmotor(element: mujoco.MjsActuator, effects: ActuatorEffects) -> None:
    """Give an ideal position servo or torque motor the torque-speed limit of a DC motor."""
    if not (effects.resistance > 0 and effects.motorconst > 0 and effects.voltage_limit > 0):
        raise Sim2RealError(
            f"actuator {element.name!r}: a DC motor needs resistance, motorconst and voltage_limit"
        )
    kp, kd = -float(element.biasprm[1]), -float(element.biasprm[2])
    affine = element.biastype == mujoco.mjtBias.mjBIAS_AFFINE
    plain = element.biastype == mujoco.mjtBias.mjBIAS_NONE
    fixed = element.gaintype == mujoco.mjtGain.mjGAIN_FIXED
    if not fixed or not (plain or (affine and kp > 0)):
        raise Sim2RealError(
            f"actuator {element.name!r}: only a position servo or a torque motor can be made a DC"
            " motor"
        )
    if effects.drive == "voltage":
        if not affine or kd > 0:
            raise Sim2RealError(
                f"actuator {element.name!r}: drive = 'voltage' is for a position servo without kv;"
                " its motor's back-EMF brakes it"
            )
        # The engine's controller asks for a torque and makes up for the back-EMF: as damping, it
        # stays there until the voltage is at its limit, and beyond that the engine has it anyway.
        kd = effects.motorconst**2 / effects.resistance
    limit = float(element.forcerange[1]) if element.forcelimited else 0.0
    kind = mujoco.mjtCtrlInput.mjINPUT_POS if affine else mujoco.mjtCtrlInput.mjINPUT_FF
    gains = [kp, 0.0, kd] if affine else [0.0, 0.0, 0.0]
    element.set_to_dcmotor(
        motorconst=[effects.motorconst, 0.0],
        resistance=effects.resistance,
        controller=[*gains, 0.0, 0.0, effects.voltage_limit],
        saturation=[limit, 0.0, 0.0],
        ctrlspec=int(kind),
    )


def _add_stribeck(spec: mujoco.MjSpec, joint: mujoco.MjsJoint, effects: JointEffects) -> None:
    if effects.static_friction < effects.coulomb_friction:
        raise Sim2RealError(
            f"joint {joint.name!r}: static friction {effects.static_friction:g} is below the"
            f" sliding friction {effects.coulomb_friction:g}"
        )
    element = spec.add_actuator(
        name=stribeck_actuator(joint.name),
        target=joint.name,
        trntype=mujoco.mjtTrn.mjTRN_JOINT,
    )
    # Bristles that bend by 1 mrad at the sliding friction, damped critically for a small rotor.
    stiffness = max(_MIN_BRISTLE_STIFFNESS, 1e3 * effects.coulomb_friction)
    element.set_to_dcmotor(
        motorconst=[0.0, 0.0],
        resistance=1.0,
        ctrlspec=int(mujoco.mjtCtrlInput.mjINPUT_NONE),
        lugre=[
            stiffness,
            2 * math.sqrt(stiffness * 1e-3),
            effects.coulomb_friction,
            effects.static_friction,
            effects.stribeck_velocity,
        ],
    )


def _read(
    data: Mapping[str, object], group: str, cls: type[_Kind], model: mujoco.MjModel
) -> dict[str, _Kind]:
    """Tables of one group, later patterns refining earlier ones."""
    valid = [name for name in names(model, group) if name]
    merged: dict[str, dict[str, Any]] = {}
    for pattern, table in table_at(data.get(group, {}), f"[effects.{group}]").items():
        where = f"[effects.{group}.{pattern}]"
        matched = fnmatch.filter(valid, pattern)
        if not matched:
            raise Sim2RealError(f"{where} matches no {group}{nearest(pattern, valid)}")
        of_plain(cls, table, where)
        for name in matched:
            merged.setdefault(name, {}).update(table)
    return {name: cls(**table) for name, table in merged.items()}
