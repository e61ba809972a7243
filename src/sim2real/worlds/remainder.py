"""A twin's remainder at work: once a control period, a force on each of its joints."""

from __future__ import annotations

import math

import mujoco
import torch
from torch import Tensor

from sim2real.twin import Remainder, control_unit
from sim2real.worlds.hardware import EffectTables


class RemainderForce:
    """The remainder in many worlds; see `twin.remainder` for what it depends on."""

    def __init__(
        self,
        model: mujoco.MjModel,
        remainder: Remainder,
        tables: EffectTables,
        *,
        count: int,
        period_s: float,
    ) -> None:
        self._remainder = remainder
        self._tables = tables
        self._period_s = period_s
        joints = [model.joint(name).id for name in remainder.names]
        device = tables["remainder.weight"].device
        dofs = [int(model.jnt_dofadr[joint]) for joint in joints]
        self.dofs = torch.tensor(dofs, device=device)
        """(joints,) their degrees of freedom."""
        places = [int(model.jnt_qposadr[joint]) for joint in joints]
        self._qpos = torch.tensor(places, device=device)
        controls, gears, servos = zip(*(_drive(model, joint) for joint in joints), strict=True)
        self._control = torch.tensor(controls, device=device)
        self._gear = torch.tensor(gears, dtype=torch.float64, device=device)
        self._servo = torch.tensor(servos, dtype=torch.float64, device=device)
        longest = float(tables["actuator.delay_max"].max()) if model.nu else 0.0
        depth = math.ceil(longest / period_s - 1e-9) + 2
        shape = (count, depth, model.nu + 1)
        self.past = torch.zeros(shape, dtype=torch.float64, device=device)
        """(worlds, periods, controls and nothing) commands on their way, the newest first."""

    def begin(self, ids: Tensor, command: Tensor) -> None:
        """Start worlds `ids` as if `command` (n, controls) had always been there."""
        self.past[ids, :, :-1] = command.double()[:, None, :]

    def note(self, command: Tensor) -> None:
        """Take the command (worlds, controls) of the period that begins."""
        self.past[:, 1:] = self.past[:, :-1].clone()
        self.past[:, 0, :-1] = command

    def features(self, qpos: Tensor, qvel: Tensor, load: Tensor, off: Tensor | None) -> Tensor:
        """(worlds, joints, features) of the period; `off` (worlds, controls) are switched off."""
        position = qpos[:, self._qpos]
        drive = self._acted()[:, self._control] - self._servo * self._gear * position
        idle = self._gear == 0
        if off is not None:
            idle = idle | torch.nn.functional.pad(off, (0, 1))[:, self._control]
        drive = torch.where(idle, 0.0, drive)
        return torch.stack([position, qvel[:, self.dofs], drive, load[:, self.dofs]], dim=-1)

    def __call__(self, features: Tensor) -> Tensor:
        """(worlds, joints) forces at features (worlds, joints, features) [N m or N]."""
        weights = self._tables["remainder.weight"].double()
        return self._remainder.force(features, weights.view(*features.shape[:2], -1))

    def _acted(self) -> Tensor:
        """(worlds, controls and nothing) mean of the command that acts during the period."""
        late = self._tables["actuator.delay"].double() / self._period_s
        late = torch.nn.functional.pad(late, (0, 1)).clamp(0.0, self.past.shape[1] - 2.0)
        whole = late.floor()
        part, at = late - whole, whole.long()[:, None, :]
        newer, older = (self.past.gather(1, at + k)[:, 0] for k in (0, 1))
        return torch.lerp(newer, older, part)


def _drive(model: mujoco.MjModel, joint: int) -> tuple[int, float, bool]:
    """(control, gear, whether it commands a position) of a joint's drive; gear 0 for none."""
    for row in range(model.nactuator):
        through = int(model.actuator_trntype[row]) == int(mujoco.mjtTrn.mjTRN_JOINT)
        if through and int(model.actuator_trnid[row, 0]) == joint and model.actuator_ctrlnum[row]:
            gear = float(model.actuator_gear[int(model.actuator_outadr[row]), 0])
            return int(model.actuator_ctrladr[row]), gear, control_unit(model, row) in ("rad", "m")
    return model.nu, 0.0, False
