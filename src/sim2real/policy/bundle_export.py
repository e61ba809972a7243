"""From a training run to a bundle: exported, compared with the trained network, and sealed."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

from sim2real.contract import CommandSpec, Contract, JointLimits, Limits
from sim2real.errors import Sim2RealError
from sim2real.learn import Policy
from sim2real.learn.trainer import TrainResult
from sim2real.policy.bundle import Bundle, write_bundle
from sim2real.policy.config import ExportConfig
from sim2real.policy.graphs import (
    OPSET,
    interface_modules,
    interface_widths,
    network_module,
    to_onnx,
)
from sim2real.policy.runtime import Runtime
from sim2real.policy.task_contract import make_contract
from sim2real.tasks import TaskEnv, find_task
from sim2real.twin import Twin

LARGEST_DIFFERENCE = 1e-5
"""Farthest an exported graph may be from what it was made of."""
_WORLDS = 64
_MARGIN = 1.5
"""Limits of what is sent are this many times the largest that was seen in simulation."""
_ROOM = 2.0
"""Limits of how a joint may move: the same, with more room for a robot that is another."""
_SLOW = 1.0
"""A speed, or a change of speed in a period, that is never a cause to stop [rad/s or m/s]: a
resting joint's reading flickers by more than it moves."""
_ROOM_M = 0.05
"""How far beyond where it was seen a tool may go."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What a policy met in its worlds, a row a world and period."""

    observations: np.ndarray
    actions: np.ndarray
    interface: dict[str, np.ndarray]
    """Inputs of the interface graphs, by name."""
    frames: np.ndarray
    commands: np.ndarray
    rates: np.ndarray
    """Change of the command a second."""
    velocities: np.ndarray
    """Speed of each commanded joint, as measured; as it truly is where nothing measures it."""
    accelerations: np.ndarray
    tool: np.ndarray
    """(rows, 3) place of the task's tool [m]; (rows, 0) where it has none."""


def export(
    run: ExportConfig | TrainResult | Path | str,
    *,
    report: Callable[[int, int], None] = lambda done, of: None,
    **options: Any,
) -> Bundle:
    """Make a bundle of a training run; a graph that differs from the network is refused.

    `options` are those of `ExportConfig`, or it is given whole.
    """
    config = run if isinstance(run, ExportConfig) else ExportConfig(run=_folder(run), **options)
    return _exported(config, report)


def _folder(run: TrainResult | Path | str) -> Path:
    return run.run if isinstance(run, TrainResult) else Path(run)


def _exported(config: ExportConfig, report: Callable[[int, int], None]) -> Bundle:
    if config.observations < 1:
        raise Sim2RealError("--observations must be at least 1")
    policy = Policy.open(config.run)
    run = policy.run
    twin = Twin.load(run.twin) if run.twin else None
    source = "prior" if run.source == "adr" else run.source
    env = TaskEnv(find_task(run.task), worlds=_WORLDS, seed=config.seed, source=source, twin=twin)
    out = config.out or config.run / "bundle"
    if out.exists():
        raise Sim2RealError(f"{out} exists already; choose another with --out")
    contract = make_contract(env)
    notes = _notes(contract, config.run)
    widths = interface_widths(env)
    graphs = {
        name: to_onnx(module, widths, name, notes)
        for name, module in interface_modules(env).items()
    }
    graphs["policy"] = to_onnx(network_module(policy), {"obs": policy.width}, "actions", notes)
    seen = look(env, policy, config.observations, report)
    provenance: dict[str, Any] = {
        "task": run.task,
        "policy": policy.id,
        "run": config.run.name,
        "source": source,
        "remainder": run.remainder,
        "twin": env.twin.name,
        "twin_version": env.twin.version,
        "trained_in": policy.twin_version,
        "opset": OPSET,
        "observations": len(seen.observations),
        "software": {
            name: version(name) for name in ("sim2real", "torch", "onnx", "onnxruntime", "mujoco")
        }
        | {"python": platform.python_version()},
    }
    limits = make_limits(env, contract, seen)
    return _checked(out, contract, limits, graphs, env.twin, provenance, seen)


def _checked(
    out: Path,
    contract: Contract,
    limits: Limits,
    graphs: dict[str, bytes],
    twin: Twin,
    provenance: dict[str, Any],
    seen: Seen,
) -> Bundle:
    """Write the bundle if its graphs do what they were made of did."""
    with tempfile.TemporaryDirectory() as folder:
        trial = write_bundle(
            Path(folder) / "trial", contract=contract, limits=limits, graphs=graphs, twin=twin,
            provenance=provenance,
        )  # fmt: skip
        found = differences(Runtime(trial), seen)
    for name, value in found.items():
        if not value < LARGEST_DIFFERENCE:
            raise Sim2RealError(
                f"the exported {name} differs from the trained one by {value:.2g} on"
                f" {len(seen.observations)} observations; {LARGEST_DIFFERENCE:g} is allowed"
            )
    provenance = {**provenance, "largest_difference": found}
    return write_bundle(
        out, contract=contract, limits=limits, graphs=graphs, twin=twin, provenance=provenance
    )


def differences(runtime: Runtime, seen: Seen) -> dict[str, float]:
    """Largest difference of each graph from what was seen in the worlds."""
    inputs = seen.interface
    pairs = {
        "policy": (runtime.policy(seen.observations), seen.actions),
        "observe": (
            runtime.observe(
                inputs["readings"], inputs["goals"], inputs["action"], inputs["command"]
            ),
            seen.frames,
        ),
        "act": (
            runtime.act(
                np.clip(seen.actions, -1, 1), inputs["readings"], inputs["goals"],
                inputs["command"],
            ),
            seen.commands,
        ),
    }  # fmt: skip
    return {name: float(np.abs(one - two).max()) for name, (one, two) in pairs.items()}


def look(env: TaskEnv, policy: Policy, count: int, report: Callable[[int, int], None]) -> Seen:
    """Let the policy act in its worlds and keep what it saw."""
    memory, worlds = env.worlds.memory, env.worlds
    site = [worlds.model.site(env.task.tool).id] if env.task.tool else []
    rows: dict[str, list[torch.Tensor]] = {}

    def keep(**values: torch.Tensor) -> None:
        for name, value in values.items():
            rows.setdefault(name, []).append(value.clone())

    whole = 0
    while whole < count:
        observation = env.actor
        action = policy(observation)
        before = _speeds(env)
        keep(
            observations=observation,
            actions=action,
            readings=worlds.measured,
            goals=torch.cat([memory[name] for name in env.task.goals], dim=1)
            if env.task.goals
            else torch.zeros(worlds.count, 0),
            action=memory["action"],
            command=memory["command"],
            frames=memory["frames"][:, -1],
        )
        last = memory["command"].clone()
        step = env.step(action)
        going = torch.ones(worlds.count, dtype=torch.bool)
        going[step.ended] = False
        whole += int(going.sum())
        # After the end of an episode the memory is of the next one.
        command = torch.where(going[:, None], memory["command"], float("nan"))
        keep(
            commands=command,
            rates=(command - last).abs() * env.task.rate_hz,
            velocities=_speeds(env),
            accelerations=(_speeds(env) - before) * env.task.rate_hz,
            tool=worlds.derived("site_xpos")[:, site].flatten(1),
        )
        report(min(whole, count), count)
    found = {name: torch.cat(parts).cpu().numpy() for name, parts in rows.items()}
    kept = np.isfinite(found["commands"]).all(axis=1)
    found = {name: values[kept] for name, values in found.items()}
    inputs = {name: found.pop(name) for name in ("readings", "goals", "action", "command")}
    return Seen(interface=inputs, **found)


def _speeds(env: TaskEnv) -> torch.Tensor:
    """(worlds, commands) speeds of the commanded joints, as the robot's sensors tell them."""
    worlds, model = env.worlds, env.worlds.model
    kinds, objects = model.sensor_type.tolist(), model.sensor_objid.tolist()
    speeds = []
    for joint in model.actuator_trnid[:, 0].tolist():
        sensors = [
            k
            for k, kind in enumerate(kinds)
            if kind == int(mujoco.mjtSensor.mjSENS_JOINTVEL) and objects[k] == joint
        ]
        if sensors:
            speeds.append(worlds.measured[:, int(model.sensor_adr[sensors[0]])])
        else:
            speeds.append(worlds.state("qvel")[:, int(model.jnt_dofadr[joint])].float())
    return torch.stack(speeds, dim=1)


def make_limits(env: TaskEnv, contract: Contract, seen: Seen) -> Limits:
    """Limits from the model where it has them, else from what was seen, with a margin."""
    frames = seen.frames
    spread = np.ptp(frames, axis=0) + 0.1 * np.abs(frames).max(axis=0) + 0.1
    return Limits(
        joints=tuple(
            _joint_limits(env, command, k, seen) for k, command in enumerate(contract.commands)
        ),
        observation_low=tuple(float(v) for v in frames.min(axis=0) - spread),
        observation_high=tuple(float(v) for v in frames.max(axis=0) + spread),
        tool=env.task.tool,
        workspace_low=tuple(float(v) for v in seen.tool.min(axis=0) - _ROOM_M),
        workspace_high=tuple(float(v) for v in seen.tool.max(axis=0) + _ROOM_M),
    )


def _joint_limits(env: TaskEnv, command: CommandSpec, k: int, seen: Seen) -> JointLimits:
    model = env.worlds.model
    joint = model.joint(command.joint)
    limited = bool(model.jnt_limited[joint.id])
    low, high = (float(v) for v in model.jnt_range[joint.id]) if limited else (-1e9, 1e9)
    force = float(np.abs(model.actuator_forcerange[k]).max())
    if not force:
        # A motor without a limit of its own: what its control range gives.
        gain = abs(float(model.actuator_gainprm[k, 0]) * float(model.actuator_gear[k, 0]))
        force = gain * max(abs(command.low), abs(command.high))
    return JointLimits(
        name=command.joint,
        position_low=low,
        position_high=high,
        velocity=max(_ROOM * float(np.abs(seen.velocities[:, k]).max()), _SLOW),
        acceleration=max(
            _ROOM * float(np.abs(seen.accelerations[:, k]).max()),
            _SLOW * env.task.rate_hz,
            force / float(model.dof_M0[joint.dofadr[0]]),  # what the motor can do
        ),
        torque=force,
        command_low=command.low,
        command_high=command.high,
        command_rate=_MARGIN * max(float(seen.rates[:, k].max()), 1e-3),
    )


def _notes(contract: Contract, run: Path) -> dict[str, str]:
    """Metadata of the graphs, with the keys that mjlab's deployment code reads."""
    commands = contract.commands
    return {
        "run_path": run.name,
        "task": contract.task,
        "joint_names": ",".join(command.joint for command in commands),
        "joint_stiffness": ",".join(f"{command.stiffness:.6g}" for command in commands),
        "joint_damping": ",".join(f"{command.damping:.6g}" for command in commands),
        "default_joint_pos": ",".join(f"{command.default:.6g}" for command in commands),
        "command_names": ",".join(goal.name for goal in contract.goals),
        "observation_names": ",".join(term.name for term in contract.observations),
        "action_scale": ",".join("1" for _ in contract.actions),
        "rate_hz": f"{contract.rate_hz:g}",
    }
