"""From a training run to a bundle: exported, compared with the trained network, and sealed."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sim2real.contract import CommandSpec, Contract, JointLimits, Limits
from sim2real.errors import Sim2RealError, options_as
from sim2real.learn import TrainedPolicy, TrainResult
from sim2real.learn.learn_configs import ExportConfig
from sim2real.learn.onnx_graphs import OPSET, interface_modules, interface_widths, to_onnx
from sim2real.learn.rollout import Rollout, roll_out
from sim2real.policy import Bundle, ExportProvenance, Runtime, make_contract, write_bundle
from sim2real.tasks import TaskEnv, find_task
from sim2real.twin import Twin, range_and_torque

LARGEST_DIFFERENCE = 1e-5
"""Largest difference allowed between an exported graph and what it was made from."""
_WORLDS = 64
_COMMAND_MARGIN = 1.5
"""Limits of commands, relative to the largest values in simulation."""
_MOTION_MARGIN = 2.0
"""The same for the motion of joints, with a larger margin because robots differ."""
_MIN_SPEED_LIMIT = 1.0
"""Speed, or change of speed in a period, that is never a reason to stop [rad/s or m/s]: readings of
a resting joint scatter by more than the joint moves."""
_TOOL_MARGIN_M = 0.05
"""Distance that a tool may go beyond its positions in simulation [m]."""


def export(
    run: ExportConfig | TrainResult | Path | str,
    *,
    report: Callable[[int, int], None] = lambda done, of: None,
    **options: Any,  # fields of ExportConfig
) -> Bundle:
    """Make a bundle of a training run; a graph that differs from the network is refused.

    `options` are fields of `ExportConfig`, which may also be given instead of the run.
    """
    if isinstance(run, ExportConfig):
        config = run
    else:
        folder = run.run if isinstance(run, TrainResult) else Path(run)
        config = options_as(ExportConfig, run=folder, **options)
    if config.observations < 1:
        raise Sim2RealError("--observations must be at least 1")
    policy = TrainedPolicy.open(config.run)
    trained = policy.run
    twin = Twin.load(trained.twin) if trained.twin else None
    source = "prior" if trained.source == "adr" else trained.source
    env = TaskEnv(
        find_task(trained.task), worlds=_WORLDS, seed=config.seed, source=source, twin=twin
    )
    out = config.out or config.run / "bundle"
    if out.exists():
        raise Sim2RealError(f"{out} exists already; choose another folder with --out")
    contract = make_contract(env)
    notes = _notes(contract, config.run)
    widths = interface_widths(env)
    graphs = {
        name: to_onnx(module, widths, name, notes)
        for name, module in interface_modules(env).items()
    }
    network = torch.nn.Sequential(policy.network.obs_normalizer, policy.network.mlp)
    graphs["policy"] = to_onnx(network, {"obs": policy.width}, "actions", notes)
    seen = roll_out(env, policy, config.observations, contract=contract, report=report)
    provenance: ExportProvenance = {
        "task": trained.task,
        "policy": policy.id,
        "run": config.run.name,
        "source": source,
        "remainder": trained.remainder,
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
    provenance = {**provenance, **trained.made_from}
    limits = make_limits(env, contract, seen)
    write = partial(write_bundle, contract=contract, limits=limits, graphs=graphs, twin=env.twin)
    with tempfile.TemporaryDirectory() as folder_of_trial:
        trial = write(Path(folder_of_trial) / "trial", provenance=provenance)
        found = _differences(Runtime(trial), seen)
    return write(out, provenance={**provenance, "largest_difference": found})


def _differences(runtime: Runtime, seen: Rollout) -> dict[str, float]:
    """Largest difference of each graph from the values in the worlds; a large one is refused."""
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
    found = {name: float(np.abs(one - two).max()) for name, (one, two) in pairs.items()}
    for name, value in found.items():
        if not value < LARGEST_DIFFERENCE:
            raise Sim2RealError(
                f"the exported graph {name!r} differs from the trained one by {value:.2g} on"
                f" {len(seen.observations)} observations; at most {LARGEST_DIFFERENCE:g} is allowed"
            )
    return found


def make_limits(env: TaskEnv, contract: Contract, seen: Rollout) -> Limits:
    """Limits from the model if it has them, or else from simulation, with a margin."""
    frames = seen.frames
    spread = np.ptp(frames, axis=0) + 0.1 * np.abs(frames).max(axis=0) + 0.1
    return Limits(
        joints=tuple(
            _joint_limits(env, command, k, seen) for k, command in enumerate(contract.commands)
        ),
        observation_low=tuple(float(v) for v in frames.min(axis=0) - spread),
        observation_high=tuple(float(v) for v in frames.max(axis=0) + spread),
        tool=env.task.tool,
        workspace_low=tuple(float(v) for v in seen.tool.min(axis=0) - _TOOL_MARGIN_M),
        workspace_high=tuple(float(v) for v in seen.tool.max(axis=0) + _TOOL_MARGIN_M),
    )


def _joint_limits(env: TaskEnv, command: CommandSpec, k: int, seen: Rollout) -> JointLimits:
    model = env.worlds.model
    joint = model.joint(command.joint)
    low, high, force = range_and_torque(model, command)
    return JointLimits(
        name=command.joint,
        position_low=low,
        position_high=high,
        velocity=max(_MOTION_MARGIN * float(np.abs(seen.velocities[:, k]).max()), _MIN_SPEED_LIMIT),
        acceleration=max(
            _MOTION_MARGIN * float(np.abs(seen.accelerations[:, k]).max()),
            _MIN_SPEED_LIMIT * env.task.rate_hz,
            force / float(model.dof_M0[joint.dofadr[0]]),  # what the motor can do
        ),
        torque=force,
        command_low=command.low,
        command_high=command.high,
        command_rate=_COMMAND_MARGIN * max(float(seen.rates[:, k].max()), 1e-3),
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
