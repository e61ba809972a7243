"""The policy of a training run, ready to use."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from sim2real.arrays import Ints, Reals
from sim2real.contract import Contract
from sim2real.errors import Sim2RealError
from sim2real.learn.checkpoint import latest_checkpoint, load_checkpoint
from sim2real.learn.run import Run
from sim2real.policy import Features, PolicyAbilities, make_contract
from sim2real.tasks import TaskEnv, find_task
from sim2real.twin import Twin


class TrainedPolicy:
    """A trained actor: observations in, the mean action out, deterministic."""

    abilities: ClassVar = PolicyAbilities(
        kind="a training run",
        repeatable=True,
        provenance=True,
        before_robots="make a bundle of it first: sim2real export",
    )

    def __init__(self, run: Run) -> None:
        """Load the newest checkpoint of a run."""
        from tensordict import TensorDict  # slow to import, and bundles do without it

        from sim2real.learn.ppo import make_actor

        self.run = run
        path = latest_checkpoint(run.folder)
        content = load_checkpoint(path)
        self.id = hashlib.sha256(path.read_bytes()).hexdigest()[:32]
        """Hash of the checkpoint."""
        weights = content["average"]
        self.twin_version: str = content["twin"]
        """Version of the twin it was trained in."""
        width = int(weights["mlp.0.weight"].shape[1])
        actions = int(weights["distribution.log_std_param"].shape[0])
        like = TensorDict({"actor": torch.zeros(1, width)}, batch_size=[1])
        self.network = make_actor(like, actions, run.training)
        try:
            self.network.load_state_dict(weights)
        except RuntimeError as error:
            raise Sim2RealError(f"{path} does not fit its run's configuration: {error}") from None
        self.network.eval()
        self.width = width

    @property
    def digest(self) -> str:
        """Hash of what it computes with; `id` is of a file that also says how long it took."""
        digest = hashlib.sha256()
        for name, weights in sorted(self.network.state_dict().items()):
            digest.update(name.encode() + weights.numpy().tobytes())
        return digest.hexdigest()

    @classmethod
    def open(cls, folder: Path | str) -> TrainedPolicy:
        """The policy of the run in a folder."""
        return cls(Run.open(Path(folder)))

    @cached_property
    def contract(self) -> Contract:
        """That of its task and twin."""
        twin = Twin.load(self.run.twin) if self.run.twin else None
        return make_contract(TaskEnv(find_task(self.run.task), worlds=1, twin=twin, threads=1))

    def start(self, robots: Ints, of: int) -> None:
        """It has no memory."""

    def act(self, features: Features) -> Reals:
        """(rows, actions) for the whole observation."""
        found: Reals = self(torch.from_numpy(features.numbers)).numpy()
        return found

    def __call__(self, observations: Tensor) -> Tensor:
        """(n, actions) actions for the actor's observations (n, width)."""
        if observations.shape[1] != self.width:
            raise Sim2RealError(
                f"the policy of {self.run.folder} observes {self.width} numbers, but the task gives"
                f" {observations.shape[1]}: the task has changed since training"
            )
        from tensordict import TensorDict

        with torch.inference_mode():
            batch = TensorDict({"actor": observations}, batch_size=[len(observations)])
            action: Tensor = self.network(batch)
        return action
