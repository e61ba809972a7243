"""How a policy's interface depends on its inputs, found by probing it.

`observe` takes readings, goals, the last action and the last command. Most of its outputs are
linear in a few of these, so its real inputs can be solved for from its outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from sim2real.arrays import Bools, Floats
from sim2real.contract import Contract, Limits
from sim2real.evaluation import OpenedPolicy, PolicySource, open_policy
from sim2real.policy import PolicyRuntime

_PROBE_POINTS = 16
"""Random inputs at which derivatives are taken."""
_PROBE_STEP = 0.05
"""Step of the central differences, in SI units."""


@dataclass(frozen=True, kw_only=True)
class InputColumn:
    """One number of an input or an output."""

    name: str
    """For people: 'elbow_flex_pos', 'cube_pos[1]', 'last action wrist_roll'."""
    channel: str
    """'reading', 'goal', 'action', 'command' or 'observation'."""
    group: str
    """Columns of one group could be mistaken for each other."""
    quaternion: bool = False
    position: bool = False
    """Whether it is a joint's position."""


@dataclass(frozen=True, kw_only=True)
class GraphInterface:
    """A policy's interface, and how its outputs depend on its inputs."""

    policy: OpenedPolicy
    runtime: PolicyRuntime
    inputs: tuple[InputColumn, ...]
    """Readings, goals, last action, last command."""
    outputs: tuple[InputColumn, ...]
    """The observation of one period."""
    depends: Bools
    """(outputs, inputs) whether an output changes with an input."""
    linear: Bools
    """(outputs,) whether an output is linear in all of its inputs."""
    solve: Floats
    """(inputs, linear outputs) maps differences of outputs to differences of inputs."""
    solvable: Bools
    """(inputs,) whether an input can be solved for in this way."""
    normaliser: tuple[Floats, Floats] | None
    """Mean and scale (input width,) that the network's first layers subtract and divide by."""

    @classmethod
    def of(cls, policy: PolicySource, *, runtime: PolicyRuntime | None = None) -> GraphInterface:
        """The interface of a policy; `runtime` if it is another than the policy's own."""
        opened = open_policy(policy)
        runtime, contract = runtime or opened.runtime(), opened.contract
        inputs = _inputs(contract)
        slopes = _slopes(runtime, contract, len(inputs))
        size = np.abs(slopes).max(axis=0)
        depends = size > 1e-4
        varies = np.ptp(slopes, axis=0) > 2e-3 * np.maximum(1.0, size)
        linear = ~varies.any(axis=1)
        matrix = slopes.mean(axis=0)[linear] * depends[linear]
        solve = np.linalg.pinv(matrix) if linear.any() else np.zeros((len(inputs), 0))
        resolved = solve @ matrix
        solvable = (np.abs(resolved - np.eye(len(inputs))) < 1e-3).all(axis=1)
        return cls(
            policy=opened,
            runtime=runtime,
            inputs=inputs,
            outputs=_outputs(contract),
            depends=depends,
            linear=linear,
            solve=solve,
            solvable=solvable,
            normaliser=_normaliser(opened),
        )

    @property
    def contract(self) -> Contract:
        """What the policy sees and returns."""
        return self.policy.contract

    @property
    def limits(self) -> Limits:
        """How far the supervisor lets the robot go."""
        return self.policy.limits

    def observe(self, inputs: Floats) -> Floats:
        """Observation (rows, outputs) for inputs (rows, inputs)."""
        parts = np.split(np.nan_to_num(inputs), _ends(self.contract), axis=1)
        found = self.runtime.observe(*parts).astype(float)
        # An output that depends on an unknown input is unknown.
        unknown = ~np.isfinite(inputs)
        if unknown.any():
            found[(unknown.astype(int) @ self.depends.T.astype(int)) > 0] = np.nan
        return found

    def stacked(self, frames: Floats) -> Floats:
        """The network's input (rows, history * frame), oldest first; the first frame repeats."""
        history = self.contract.history
        places = np.arange(len(frames))[:, None] + np.arange(1 - history, 1)
        return np.asarray(frames[np.maximum(places, 0)].reshape(len(frames), -1))


def _ends(contract: Contract) -> list[int]:
    widths = [contract.readings_width, contract.goals_width, len(contract.actions)]
    return [int(end) for end in np.cumsum(widths)]


def _inputs(contract: Contract) -> tuple[InputColumn, ...]:
    found = []
    for sensor in contract.sensors:
        found += [
            InputColumn(
                name=name,
                channel="reading",
                group=sensor.kind if sensor.width == 1 else sensor.name,
                quaternion=bool(sensor.quaternion),
                position=sensor.kind == "jointpos",
            )
            for name in sensor.numbers
        ]
    for goal in contract.goals:
        found += [
            InputColumn(name=f"{goal.name}[{k}]", channel="goal", group=f"goal {goal.name}")
            for k in range(goal.width)
        ]
    found += [InputColumn(name=a.name, channel="action", group="action") for a in contract.actions]
    found += [
        InputColumn(name=c.name, channel="command", group="command") for c in contract.commands
    ]
    return tuple(found)


def _outputs(contract: Contract) -> tuple[InputColumn, ...]:
    specs = {sensor.name: sensor for sensor in contract.sensors}
    fed_back: dict[tuple[str, ...], str] = {("action",): "action", ("command",): "command"}
    found = []
    for term in contract.observations:
        sensors = [specs[s] for s in term.sources if s in specs]
        alone = len(sensors) == len(term.sources)
        # A term of one number a sensor is named after its sensors.
        named = alone and sum(s.width for s in sensors) == term.width
        parts = [name for sensor in sensors for name in sensor.numbers]
        for k in range(term.width):
            found.append(
                InputColumn(
                    name=f"{term.name} {parts[k]}" if named else f"{term.name}[{k}]",
                    channel=fed_back.get(term.sources, "observation"),
                    group=term.name,
                    quaternion=any(s.quaternion for s in sensors) and term.width == 4,
                    position=alone and all(s.kind == "jointpos" for s in sensors),
                )
            )
    return tuple(found)


def _slopes(runtime: PolicyRuntime, contract: Contract, count: int) -> Floats:
    """(points, outputs, inputs) derivatives of the observation at some random points."""
    rng = np.random.default_rng(0)
    points = rng.normal(0.0, 0.5, (_PROBE_POINTS, count))
    moved = (
        points[:, None, None, :]
        + _PROBE_STEP * np.array([1.0, -1.0])[:, None] * np.eye(count)[:, None, :]
    )
    parts = np.split(moved.reshape(-1, count), _ends(contract), axis=1)
    found = runtime.observe(*parts).astype(float).reshape(_PROBE_POINTS, count, 2, -1)
    return np.asarray((found[:, :, 0] - found[:, :, 1]).transpose(0, 2, 1) / (2 * _PROBE_STEP))


def _normaliser(policy: OpenedPolicy) -> tuple[Floats, Floats] | None:
    """Mean and scale of a network that starts with (obs - mean) / scale; None for others."""
    if policy.network is None:
        return None
    graph = onnx.load_model_from_string(policy.network).graph
    constants = {i.name: onnx.numpy_helper.to_array(i).astype(float) for i in graph.initializer}
    width = policy.contract.input_width
    mean, scale, at = np.zeros(width), np.ones(width), graph.input[0].name
    for node in graph.node:
        if at not in node.input or node.op_type not in ("Sub", "Div", "Mul", "Add"):
            break
        value = next((constants[n] for n in node.input if n in constants), None)
        if value is None or value.size not in (1, width):
            break
        value = np.broadcast_to(value.ravel(), (width,))
        if node.op_type in ("Sub", "Add"):
            mean = mean + (value if node.op_type == "Sub" else -value) * scale
        else:
            scale = scale * (value if node.op_type == "Div" else 1.0 / value)
        at = node.output[0]
    same = np.allclose(mean, 0.0) and np.allclose(scale, 1.0)
    return None if same else (mean, scale)
