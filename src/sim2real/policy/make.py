"""The contract of a task, read from the task and its twin."""

from __future__ import annotations

import mujoco

from sim2real.policy.contract import (
    ActionSpec,
    CommandSpec,
    Contract,
    GoalSpec,
    SensorSpec,
    TermSpec,
)
from sim2real.tasks import TaskEnv
from sim2real.twin import Twin
from sim2real.twin.effects import Effects
from sim2real.twin.units import control_unit, sensor_unit

_OBJECTS = {
    int(mujoco.mjtObj.mjOBJ_JOINT): "joint",
    int(mujoco.mjtObj.mjOBJ_SITE): "site",
    int(mujoco.mjtObj.mjOBJ_BODY): "body",
    int(mujoco.mjtObj.mjOBJ_XBODY): "body",
    int(mujoco.mjtObj.mjOBJ_ACTUATOR): "actuator",
    int(mujoco.mjtObj.mjOBJ_GEOM): "geom",
}
_IN_SITE = ("accelerometer", "velocimeter", "gyro", "force", "torque", "magnetometer")


def make_contract(env: TaskEnv) -> Contract:
    """Everything a robot must agree with to be driven by a policy of this task."""
    task, twin, model = env.task, env.twin, env.worlds.model
    effects = twin.place().effects
    widths = [term.read(env.measurements).shape[1] for term in task.actor]
    return Contract(
        task=task.name,
        robot=twin.name,
        twin_version=twin.version,
        rate_hz=task.rate_hz,
        history=task.history,
        sensors=tuple(_sensor(twin, model, effects, k) for k in range(model.nsensor)),
        goals=tuple(GoalSpec(name=name, width=width) for name, width in task.goals.items()),
        observations=tuple(
            TermSpec(
                name=term.name,
                unit=term.unit,
                width=width,
                scale=term.scale,
                sources=term.sources,
            )
            for term, width in zip(task.actor, widths, strict=True)
        ),
        actions=tuple(ActionSpec(name=name) for name in task.actions),
        commands=tuple(_command(model, effects, k) for k in range(model.nu)),
    )


def _sensor(twin: Twin, model: mujoco.MjModel, effects: Effects, row: int) -> SensorSpec:
    name = model.sensor(row).name
    kind = mujoco.mjtSensor(int(model.sensor_type[row])).name.removeprefix("mjSENS_").lower()
    what = _OBJECTS.get(int(model.sensor_objtype[row]), "")
    of = getattr(model, what)(int(model.sensor_objid[row])).name if what else ""
    frame = ""
    if kind in _IN_SITE:
        frame = "site"
    elif kind.startswith("frame"):
        frame = (
            "world"
            if int(model.sensor_reftype[row]) == int(mujoco.mjtObj.mjOBJ_UNKNOWN)
            else ("reference")
        )
    mine = effects.sensors.get(name)
    sources = [f"sensor/{name}"] + ([f"joint/{of}"] if kind == "jointpos" else [])
    return SensorSpec(
        name=name,
        unit=sensor_unit(model, row),
        width=int(model.sensor_dim[row]),
        kind=kind,
        of=of,
        frame=frame,
        quaternion="wxyz" if kind.endswith("quat") else "",
        channel=next((n for n, c in twin.channels.items() if c.source in sources), ""),
        delay_s=mine.delay if mine else 0.0,
    )


def _command(model: mujoco.MjModel, effects: Effects, row: int) -> CommandSpec:
    name = model.actuator(row).name
    joint = int(model.actuator_trnid[row, 0])
    low, high = (float(value) for value in model.actuator_ctrlrange[row])
    if not model.actuator_ctrllimited[row]:
        low, high = -1e9, 1e9
    unit = control_unit(model, row)
    mine = effects.actuators.get(name)
    gain, bias = model.actuator_gainprm[row], model.actuator_biasprm[row]
    servo = unit in ("rad", "m")
    dc = int(model.actuator_biastype[row]) == int(mujoco.mjtBias.mjBIAS_DCMOTOR)
    stiffness = float(gain[4] * gain[1] / gain[0] if dc else gain[0]) if servo else 0.0
    damping = float((gain[6] + gain[1]) * gain[1] / gain[0] if dc else -bias[2]) if servo else 0.0
    return CommandSpec(
        name=name,
        joint=model.joint(joint).name,
        unit=unit,
        low=low,
        high=high,
        default=float(model.qpos0[model.jnt_qposadr[joint]]) if servo else 0.0,
        stiffness=stiffness,
        damping=damping,
        delay_s=mine.delay if mine else 0.0,
    )
