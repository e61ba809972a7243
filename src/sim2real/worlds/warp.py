"""Worlds on MuJoCo Warp: a GPU, or for small tests this machine's processor.

The physics is computed in float32. On a GPU a control period, a start and the constants are CUDA
graphs each, recorded at their second use: a call costs one launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import mujoco
import mujoco_warp as mjw
import torch
import warp as wp
from torch import Tensor

from sim2real.errors import Sim2RealError, explaining, nearest
from sim2real.worlds.abilities import EngineAbilities
from sim2real.worlds.engine import Engine, WorldsRequest
from sim2real.worlds.twin_worlds import TwinWorlds
from sim2real.worlds.warp_model import VARIED_FIELDS, WarpModel, room, tensor_of

# Every module that is compiled or loaded would otherwise be a line on the terminal.
wp.config.log_level = max(int(wp.config.log_level), int(wp.LOG_WARNING))

_STATES = (
    "time",
    "qpos",
    "qvel",
    "act",
    "history",
    "plastic",
    "qacc_warmstart",
    "ctrl",
    "qfrc_applied",
    "xfrc_applied",
    "eq_active",
    "mocap_pos",
    "mocap_quat",
    "userdata",
)
"""All that the next step depends on, but the model."""
_FARTHEST = 1e10
"""Positions, velocities and accelerations beyond this are a breakdown, as in MuJoCo itself."""
_POOLED = int(mjw.OverflowType.BROADPHASE | mjw.OverflowType.NARROWPHASE)
"""Contacts beyond the room that all worlds share: nobody knows whose were lost."""
_HARMLESS = int(mjw.OverflowType.ITERATIONS | mjw.OverflowType.LS_ITERATIONS)
"""The solver stopped at its limit of iterations, as it does on any engine."""


class WarpPhysics:
    """`Physics` of MuJoCo Warp; computed fields and the model are tensors over its own memory.

    States are kept in float64 beside it, since that is what tasks write, and are copied around
    each call.
    """

    def __init__(self, model: mujoco.MjModel, request: WorldsRequest) -> None:
        wp.init()
        with explaining(f"engine 'warp' finds no device {request.device!r}"):
            self._place = wp.get_device(request.device or None)
        self.device = torch.device(wp.device_to_torch(self._place))
        cpu = self.device.type == "cpu"
        self.abilities = replace(WARP.abilities, bit_identical=cpu)
        self._host = model
        self._count = request.count
        self._reference = mujoco.MjData(model)
        with wp.ScopedDevice(self._place):
            self._model = WarpModel(model, request.count)
            contacts, rows = room(model, self._model.on_device)
            self._data = mjw.make_data(model, nworld=request.count, nconmax=contacts, njmax=rows)
        self._room = contacts
        self._live = {name: self._over(name) for name in _STATES}
        self._doubles: dict[str, Tensor] = {}
        self._derived: dict[str, Tensor] = {}
        self._overflow = tensor_of(self._data.overflow)
        self._bounded = [self._over(name) for name in ("qpos", "qvel", "qacc")]
        self._first = {name: tensor[0].clone() for name, tensor in self._live.items()}
        self._graphs: dict[tuple[str, int, int], wp.Graph | None] = {}

    @property
    def forces_at_start(self) -> bool:
        """Always: there is no shorter way."""
        return True

    def state(self, name: str) -> Tensor:
        """The live (worlds, ...) float64 tensor of a state field, and the engine's `history`."""
        if name == "history":
            return self._live[name]
        if name not in self._doubles:
            if name not in self._live:
                raise Sim2RealError(f"there is no state {name!r}{nearest(name, _STATES)}")
            with torch.inference_mode(False):
                self._doubles[name] = self._live[name].double()
        return self._doubles[name]

    def derived(self, name: str) -> Tensor:
        """The live (worlds, ...) float32 tensor of a computed field."""
        if name not in self._derived:
            self._derived[name] = self._over(name)
        return self._derived[name]

    def field(self, name: str) -> Tensor:
        """The live (worlds, elements) float32 tensor of a model field."""
        with wp.ScopedDevice(self._place):
            return self._model.field(name)

    def set_constants(self, ids: Tensor) -> None:
        """Compute anew what follows from the fields of the model.

        Worlds other than `ids` get the constants that they have: theirs depend on nothing else.
        """
        with wp.ScopedDevice(self._place):
            self._model.make_constants_differ()
        everyone = torch.ones(self._count, dtype=torch.bool, device=self.device)
        with self._kept(everyone):
            self._run("constants", 1, self._constants)

    def reset(self, ids: Tensor) -> None:
        """Put worlds into the model's initial state."""
        for name, first in self._first.items():
            self._live[name][ids] = first
            if name in self._doubles:
                self._doubles[name][ids] = first.double()

    def forward(self, ids: Tensor) -> None:
        """Compute derived fields from the states."""
        others = torch.ones(self._count, dtype=torch.bool, device=self.device)
        others[ids] = False
        self._push()
        with self._kept(others):
            self._run("forward", 1, self._forward)

    def advance(self, steps: Tensor) -> Tensor:
        """Do physics steps, the same number in all worlds; the mask of those that broke down."""
        self._push()
        count = int(steps[0])
        self._run("steps", count, lambda: self._steps(count))
        flags = self._overflow & ~_HARMLESS
        broken = flags != 0
        for tensor in self._bounded:
            broken |= ~(tensor.abs() <= _FARTHEST).all(dim=1)
        any_broken, any_lost = torch.stack([broken.any(), (flags & _POOLED).any()]).tolist()
        self._overflow.zero_()
        self._pull()
        if any_lost:
            raise Sim2RealError(
                f"worlds have more contacts than the {self._room} each that there is room for; the"
                " model asks for more with <custom><numeric name='warp_nconmax' data='…'/>"
            )
        if any_broken:
            # As MuJoCo does: what broke down starts anew, and nothing of it reaches a reading.
            ids = broken.nonzero().squeeze(-1)
            self.reset(ids)
            self.forward(ids)
        return broken

    def world(
        self, index: int, model: mujoco.MjModel | None
    ) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """One world computed forward by MuJoCo itself, written into `model` where there is one."""
        self._push()
        found = self._model.of_world(index, model)
        data = mujoco.MjData(found)
        for name, tensor in self._live.items():
            row = tensor[index].cpu().numpy()
            if name == "time":
                data.time = float(row)
            elif row.size:
                getattr(data, name)[:] = row
        mujoco.mj_forward(found, data)
        return found, data

    def snapshot(self) -> Tensor:
        """(worlds, numbers) a copy of the states."""
        self._push()
        parts = [tensor.reshape(self._count, -1).float() for tensor in self._live.values()]
        return torch.cat(parts, dim=1)

    def restore(self, rows: Tensor) -> None:
        """Continue from a snapshot."""
        widths = [tensor[0].numel() for tensor in self._live.values()]
        parts = torch.split(rows.to(self.device), widths, dim=1)
        for tensor, part in zip(self._live.values(), parts, strict=True):
            tensor.copy_(part.reshape(tensor.shape))
        self._pull()

    def _over(self, name: str) -> Tensor:
        """A tensor over an array of the engine, shaped as MuJoCo's own."""
        array = getattr(self._data, name, None)
        own = getattr(self._reference, name, None)
        if not isinstance(array, wp.array) or own is None:
            raise Sim2RealError(f"engine 'warp' computes no {name!r}")
        shape = () if isinstance(own, float) else own.shape
        return tensor_of(array).view(self._count, *shape)

    def _push(self) -> None:
        """Hand the states to the engine."""
        for name, double in self._doubles.items():
            self._live[name].copy_(double)

    def _pull(self) -> None:
        """Take the states over from the engine."""
        for name, double in self._doubles.items():
            double.copy_(self._live[name])

    @contextmanager
    def _kept(self, worlds: Tensor) -> Iterator[None]:
        """Leave these worlds (worlds,) as they are, whatever the engine computes meanwhile."""
        live = {**self._derived, "history": self._live["history"]}
        before = {name: tensor.clone() for name, tensor in live.items()}
        yield
        for name, tensor in live.items():
            mine = worlds.view(-1, *(1 for _ in tensor.shape[1:]))
            tensor.copy_(torch.where(mine, before[name], tensor))

    def _constants(self) -> None:
        mjw.set_const(self._model.on_device, self._data, restore=False)

    def _forward(self) -> None:
        mjw.forward(self._model.on_device, self._data)

    def _steps(self, count: int) -> None:
        for _ in range(count):
            mjw.step(self._model.on_device, self._data)

    def _run(self, what: str, count: int, call: Callable[[], None]) -> None:
        """Run a call of the engine, in the order of what torch does around it."""
        if not self._place.is_cuda:
            with wp.ScopedDevice(self._place):
                call()
            return
        around = wp.stream_from_torch(torch.cuda.current_stream(self.device))
        with wp.ScopedDevice(self._place):
            stream = wp.get_stream()
            stream.wait_stream(around)
            # Fields that get rows of their own are other arrays: a graph of before is of no use.
            key = (what, count, self._model.expanded)
            if key not in self._graphs:
                call()
                self._graphs[key] = None
            else:
                if (graph := self._graphs[key]) is None:
                    with wp.ScopedCapture() as capture:
                        call()
                    graph = self._graphs[key] = capture.graph
                wp.capture_launch(graph)
            around.wait_stream(stream)


WARP = Engine(
    abilities=EngineAbilities(
        engine="warp",
        simulator="mujoco-warp",
        version=mjw.__version__,
        devices=("cpu", "cuda"),
        precision="float32",
        fields=VARIED_FIELDS,
        switches=True,
        remainder=True,
        delays=True,
    ),
    open=lambda twin, request: TwinWorlds(twin, request, WarpPhysics),
)
