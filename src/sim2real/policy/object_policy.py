"""A Python object as a policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sim2real.arrays import Ints, Reals
from sim2real.contract import Contract
from sim2real.errors import explaining
from sim2real.policy.protocol import Features, PolicyAbilities


class PolicyObject(Protocol):
    """What a Python object needs to be a policy."""

    id: str
    """What it is called in trials and episodes: change it when the policy changes."""
    contract: Contract | Mapping[str, object]
    """What it sees and returns: a `Contract`, or what a person would write in its place."""

    def start(self, robots: Ints, of: int) -> None:
        """Begin an attempt on these of `of` robots: forget what was seen of them."""

    def act(self, features: Features) -> Reals:
        """(rows, actions) for this period, or (rows, chunk, actions) for this and the next ones."""


class ObjectPolicy:
    """A `PolicyObject` with its whole contract."""

    abilities = PolicyAbilities(kind="a Python object")

    def __init__(self, given: PolicyObject, contract: Contract) -> None:
        self.id, self.contract = str(given.id), contract
        self.given = given

    def start(self, robots: Ints, of: int) -> None:
        """Begin an attempt on these of `of` robots."""
        with explaining(f"policy {self.id} cannot start"):
            self.given.start(robots, of)

    def act(self, features: Features) -> Reals:
        """What the object does."""
        return self.given.act(features)
