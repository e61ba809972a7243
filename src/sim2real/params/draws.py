"""Keyed random draws.

A draw is a function of its key and its counter alone: no state, no order, no device. The numbers
are the same on one thread or sixteen, on a CPU or a GPU, for one world or a million, and adding a
parameter or a world changes no other draw.

The generator is Philox 4x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy
as 1, 2, 3", SC 2011) in integer arithmetic on torch tensors. The key comes from (seed, name),
the counter from (world, episode, index).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_MASK = 0xFFFFFFFF
_MULTIPLIER_0, _MULTIPLIER_1 = 0xD2511F53, 0xCD9E8D57
_WEYL_0, _WEYL_1 = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_PIECE = 1 << 15


@dataclass(frozen=True)
class Key:
    """A 64-bit stream of draws, made from a seed and a name."""

    low: int
    high: int

    @classmethod
    def of(cls, seed: int, name: str) -> Key:
        """The stream of `name` under `seed`; different names never share draws."""
        digest = hashlib.blake2b(f"{seed}\x1f{name}".encode(), digest_size=8).digest()
        return cls(int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little"))


def philox(
    counter: tuple[Tensor, Tensor, Tensor, Tensor], keys: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Four 32-bit words (in int64 tensors) for each counter, under a schedule of round keys.

    Counters broadcast together; `keys` is what `key_schedule` gives for the counters' device.
    """
    c0, c1, c2, c3 = _broadcast(*counter)
    # Both halves of a round go through each operation together: small draws are bound by the
    # number of operations, not by their size.
    even, odd = torch.stack([c2, c0]), torch.stack([c1, c3])
    ones = (1,) * (c0.dim() + 1 - (keys.dim() - 1))
    keys = keys.view(_ROUNDS + 1, 2, *ones, *keys.shape[2:])
    for round_ in range(_ROUNDS):
        # int64 products wrap, but their bits are those of the unsigned product.
        product = even * keys[_ROUNDS]
        high_word = (product >> 32).bitwise_and_(_MASK)
        even = high_word.bitwise_xor_(odd).bitwise_xor_(keys[round_]).flip(0)
        odd = product.bitwise_and_(_MASK)
    return even[1], odd[0], even[0], odd[1]


def key_schedule(keys: Sequence[Key], *, device: torch.device | str) -> Tensor:
    """(rounds + 1, 2, keys) key words of each round, and last the two multipliers."""
    rounds = [
        [
            [(key.low + r * _WEYL_0) & _MASK for key in keys],
            [(key.high + r * _WEYL_1) & _MASK for key in keys],
        ]
        for r in range(_ROUNDS)
    ]
    multipliers = [[_MULTIPLIER_1] * len(keys), [_MULTIPLIER_0] * len(keys)]
    return torch.tensor([*rounds, multipliers], dtype=torch.int64, device=device)


def _broadcast(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(torch.broadcast_tensors(*tensors))  # type: ignore[no-untyped-call]


def uniform(key: Key, *, worlds: Tensor, episodes: Tensor, index: int = 0) -> Tensor:
    """Uniform draws in (0, 1), float64 with 52 random bits, one for each (world, episode)."""
    worlds, episodes = _broadcast(worlds, episodes)
    shape = worlds.shape
    # Pieces that stay in the cache are several times faster than one long pass.
    pieces = zip(
        torch.split(worlds.reshape(-1), _PIECE),
        torch.split(episodes.reshape(-1), _PIECE),
        strict=True,
    )
    schedule = key_schedule([key], device=worlds.device)
    drawn = []
    for world, episode in pieces:
        counter = (world & _MASK, episode & _MASK, torch.full_like(world, index), world >> 32)
        words = philox(counter, schedule)
        drawn.append(to_unit(words[0], words[1]))
    return (torch.cat(drawn) if len(drawn) != 1 else drawn[0]).view(shape)


class DrawTable:
    """Uniform draws of many named streams in one pass."""

    def __init__(
        self, names: Sequence[str], *, seed: int, device: torch.device | str = "cpu"
    ) -> None:
        self._count = len(names)
        self._schedule = key_schedule([Key.of(seed, name) for name in names], device=device)

    def draw(self, worlds: Tensor, episodes: Tensor) -> Tensor:
        """(worlds, names) float64 in (0, 1): what `uniform` gives for each name."""
        return self.draw_several(worlds, episodes, 1)[0]

    def draw_several(self, worlds: Tensor, episodes: Tensor, count: int) -> Tensor:
        """(count, worlds, names): what `uniform` gives for each index below `count`."""
        world = worlds[None, :, None].expand(count, -1, self._count)
        index = torch.arange(count, device=worlds.device)[:, None, None]
        counter = (world & _MASK, episodes[:, None] & _MASK, index, world >> 32)
        words = philox(counter, self._schedule)
        return to_unit(words[0], words[1])


def uniform_block(key: Key, *, worlds: Tensor, ticks: Tensor, channels: int) -> Tensor:
    """Uniform draws in (0, 1), float32 (ticks, worlds, channels), for noise that runs on.

    A value depends on (key, world, tick, channel) alone.
    """
    group = torch.arange(-(-channels // 4), dtype=torch.int64, device=worlds.device)
    world, tick = worlds[None, :, None], ticks[:, None, None]
    counter = (world & _MASK, tick & _MASK, group + ((tick >> 32) << 16), world >> 32)
    words = philox(counter, key_schedule([key], device=worlds.device))
    # 23 bits and a half step stay strictly inside (0, 1) in float32.
    unit = (torch.stack(words, dim=-1) >> 9).float().add_(0.5).mul_(1.0 / (1 << 23))
    return unit.flatten(-2)[..., :channels]


def normal_block(key: Key, *, worlds: Tensor, ticks: Tensor, channels: int) -> Tensor:
    """Standard normal draws like `uniform_block`, by the Box-Muller transform."""
    unit = uniform_block(key, worlds=worlds, ticks=ticks, channels=channels + channels % 2)
    radius = torch.sqrt(-2.0 * torch.log(unit[..., 0::2]))
    angle = 2 * torch.pi * unit[..., 1::2]
    pair = torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=-1)
    return pair.flatten(-2)[..., :channels]


def to_unit(word: Tensor, other: Tensor) -> Tensor:
    """A float64 strictly between 0 and 1 from two 32-bit words."""
    bits = (word << 20) | (other >> 12)
    return (bits.double() + 0.5) * (1.0 / (1 << 52))
