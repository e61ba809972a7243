"""A task's interface and a trained network as ONNX graphs, so that a robot needs neither.

`observe`: readings, goals, last action and last command become one period's observation.
`policy`: the observations of all periods become the action; the normaliser is inside.
`act`: the action becomes the command for the actuators. `rest`: the command that keeps still.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping

import onnx
import torch
from torch import Tensor

from sim2real.errors import Sim2RealError, explaining
from sim2real.learn import TrainedPolicy
from sim2real.tasks import Measurements, Task, TaskEnv

OPSET = 20


class _Graph(torch.nn.Module):
    """A function of measurements as a module."""

    def __init__(self, task: Task, compute: Callable[[Measurements], Tensor]) -> None:
        super().__init__()
        self._task, self._compute = task, compute

    def forward(self, readings: Tensor, goals: Tensor, action: Tensor, command: Tensor) -> Tensor:
        widths = self._task.goals
        parts = torch.split(goals, list(widths.values()), dim=1) if widths else ()
        given = {"readings": readings, "action": action, "command": command}
        given |= dict(zip(widths, parts, strict=True))
        return self._compute(Measurements(self._task.worlds, tuple(widths), given))


def interface_modules(env: TaskEnv) -> dict[str, torch.nn.Module]:
    """`observe`, `act` and `rest` of a task, each of (readings, goals, action, command)."""
    task = env.task

    def observe(m: Measurements) -> Tensor:
        return torch.cat([term.read(m) * term.scale for term in task.actor], dim=1)

    return {
        "observe": _Graph(task, observe),
        "act": _Graph(task, lambda m: task.command(m.action.clamp(-1.0, 1.0), m)),
        "rest": _Graph(task, task.rest),
    }


def interface_widths(env: TaskEnv) -> dict[str, int]:
    """Widths of the interface graphs' inputs, by name and in order."""
    return {
        "readings": env.worlds.measured.shape[1],
        "goals": sum(env.task.goals.values()),
        "action": len(env.task.actions),
        "command": env.worlds.model.nu,
    }


def network_module(policy: TrainedPolicy) -> torch.nn.Module:
    """The network with its normaliser, observations in, mean action out."""
    return torch.nn.Sequential(policy.network.obs_normalizer, policy.network.mlp)


def to_onnx(
    module: torch.nn.Module, inputs: Mapping[str, int], output: str, notes: Mapping[str, str]
) -> bytes:
    """The graph of a module as ONNX, for any number of rows; `notes` become its metadata.

    A module that cannot be a graph is a `Sim2RealError`.
    """
    example = tuple(torch.zeros(3, width) for width in inputs.values())
    rows = torch.export.Dim("rows")
    quiet = logging.getLogger("torch.onnx")
    level = quiet.level
    quiet.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), explaining(f"{output} cannot be exported as a graph"):
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                module,
                example,
                dynamo=True,
                input_names=list(inputs),
                output_names=[output],
                dynamic_shapes=tuple({0: rows} for _ in inputs),
                opset_version=OPSET,
                verbose=False,
            )
    finally:
        quiet.setLevel(level)
    assert program is not None  # it is None for the exporter that is not used
    model = program.model_proto
    for value in (*model.graph.input, *model.graph.output):
        if not value.type.tensor_type.shape.dim[0].dim_param:
            raise Sim2RealError(
                f"the graph of {output} holds for one number of rows only: use x.shape[0] in the"
                " task, not len(x)"
            )
    _forget_where_it_was_made(model)
    onnx.helper.set_model_props(model, dict(notes))
    onnx.checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString()
    return content


def _forget_where_it_was_made(model: onnx.ModelProto) -> None:
    """Take the exporter's traces out: they name files of the machine, and nothing reads them."""
    graph = model.graph
    for part in (graph, *graph.node, *graph.value_info, *graph.input, *graph.output,
                 *graph.initializer):  # fmt: skip
        del part.metadata_props[:]
        part.ClearField("doc_string")
