"""Automatic domain randomisation: ranges that grow as far as the policy can follow.

Every range starts at the nominal value. Some worlds put one parameter at an edge of its range;
when enough of their episodes have ended, the edge moves out while success there holds, and back
in when it does not (OpenAI et al., "Solving Rubik's Cube with a robot hand", 2019).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sim2real.params import Parameter
from sim2real.randomize.sampler import Sampler

_EDGE_SHARE = 0.4
"""Share of the episodes with a parameter at an edge of its range."""
_MIN_EPISODES = 32
"""Episodes at an edge before it moves."""
_STEP = 0.1
"""Share of the widest range that an edge moves by."""
_WIDEN_AT, _NARROW_AT = 0.8, 0.5
"""Success rates from which, and down to which, an edge moves out, and in."""


class AutomaticRanges(Sampler):
    """Ranges that follow success at their edges.

    A prior's support is the widest a range may become; a range moves in tenths of it.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        *,
        worlds: int,
        device: torch.device | str = "cpu",
    ) -> None:
        def row(values: list[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float64, device=device)

        half = torch.tensor([0.001, 0.999], dtype=torch.float64)
        reach = [parameter.prior.quantile(half).tolist() for parameter in parameters]
        self._nominal = row([p.nominal for p in parameters])
        self._least = torch.minimum(row([r[0] for r in reach]), self._nominal)
        self._most = torch.maximum(row([r[1] for r in reach]), self._nominal)
        self.low, self.high = self._nominal.clone(), self._nominal.clone()
        self.streams = (*(parameter.name for parameter in parameters), "adr/edge")
        self._edges = 2 * len(parameters)
        self.edge = torch.full((worlds,), -1, dtype=torch.int64, device=device)
        """Edge that each world tests: 2 * parameter + side, or -1 for none."""
        self.tried = torch.zeros(self._edges, dtype=torch.float64, device=device)
        self.succeeded = torch.zeros(self._edges, dtype=torch.float64, device=device)

    def values(self, p: Tensor, worlds: Tensor, episodes: Tensor) -> Tensor:
        """Values inside the current ranges, with one parameter at an edge in some worlds."""
        values = self.low + (self.high - self.low) * p[:, :-1]
        share = p[:, -1]
        edge = (share / _EDGE_SHARE * self._edges).long()
        edge = torch.where(share < _EDGE_SHARE, edge.clamp(max=self._edges - 1), -1)
        self.edge[worlds] = edge
        ends = torch.stack([self.low, self.high], dim=1).flatten()
        column = edge.clamp(min=0) // 2
        mine = torch.arange(values.shape[1], device=values.device) == column[:, None]
        at_edge = mine & (edge >= 0)[:, None]
        return torch.where(at_edge, ends[edge.clamp(min=0)][:, None], values)

    def observe(self, worlds: Tensor, success: Tensor) -> None:
        """Count the edges tried in `worlds` (n,), and move those tried often enough."""
        edge = self.edge[worlds]
        weight = (edge >= 0).double()
        at = edge.clamp(min=0)
        self.tried.index_add_(0, at, weight)
        self.succeeded.index_add_(0, at, weight * success.double())
        enough = self.tried >= _MIN_EPISODES
        rate = self.succeeded / self.tried.clamp(min=1)
        move = torch.where(rate >= _WIDEN_AT, 1.0, torch.where(rate <= _NARROW_AT, -1.0, 0.0))
        move = torch.where(enough, move, 0.0).view(-1, 2) * _STEP
        self.low = torch.clamp(
            self.low - move[:, 0] * (self._nominal - self._least), self._least, self._nominal
        )
        self.high = torch.clamp(
            self.high + move[:, 1] * (self._most - self._nominal), self._nominal, self._most
        )
        self.tried.masked_fill_(enough, 0.0)
        self.succeeded.masked_fill_(enough, 0.0)

    def width(self) -> Tensor:
        """(parameters,) share of the widest range that each has reached."""
        whole = self._most - self._least
        return torch.where(whole > 0, (self.high - self.low) / whole.clamp(min=1e-300), 1.0)

    def state_dict(self) -> dict[str, Tensor]:
        return {
            name: getattr(self, name).clone()
            for name in ("low", "high", "edge", "tried", "succeeded")
        }

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        for name, tensor in state.items():
            setattr(self, name, tensor.to(getattr(self, name).device, copy=True))
