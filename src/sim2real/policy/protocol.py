"""What a policy is: features in, actions out. Ours, an ONNX file, or any Python object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from sim2real.arrays import Array, Ints, Pixels, Reals, Singles
from sim2real.contract import Contract, NumbersFeature
from sim2real.errors import Sim2RealError, explaining, nearest


@dataclass(frozen=True, kw_only=True)
class Features:
    """What a policy sees in one period, a row for each robot.

    `features["speed"]` is one feature by its name in the contract: (rows, width) numbers of the
    newest period, (rows, height, width, channels) pictures, or a text a row.
    """

    contract: Contract
    robots: Ints
    """(rows,) number of the robot in each row, among those of `Policy.start`."""
    numbers: Singles
    """(rows, input width) the whole observation: all its terms of all periods, oldest first."""
    images: Mapping[str, Pixels | Reals] = field(default_factory=dict)
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.robots)

    def __getitem__(self, name: str) -> Array | Sequence[str]:
        if name in self.images:
            return self.images[name]
        if name in self.texts:
            return self.texts[name]
        return self.past(name)[:, -1]

    def past(self, name: str) -> Singles:
        """(rows, periods, width) one of the observation's terms, the newest period last."""
        begin = 0
        for term in self.contract.observations:
            if term.name == name:
                periods = self.numbers.reshape(len(self), self.contract.history, -1)
                return periods[:, :, begin : begin + term.width]
            begin += term.width
        known = [feature.name for feature in self.contract.features]
        raise Sim2RealError(f"the policy has no feature {name!r}{nearest(name, known)}")

    def check(self) -> None:
        """Refuse values that are missing, or not what the contract says they are."""
        if self.numbers.shape != (len(self), self.contract.input_width):
            raise Sim2RealError(
                f"the observation has shape {self.numbers.shape}, but the contract says"
                f" {self.contract.input_width} numbers for each of {len(self)} robots"
            )
        for image in self.contract.images:
            if image.name not in self.images:
                raise Sim2RealError(f"the policy sees a picture {image.name!r}, which nobody gives")
            image.check(self.images[image.name], len(self))
        for text in self.contract.texts:
            if text.name not in self.texts:
                raise Sim2RealError(f"the policy is given a text {text.name!r}, which nobody gives")
            text.check(self.texts[text.name], len(self))


@dataclass(frozen=True, kw_only=True)
class PolicyAbilities:
    """What a policy has beyond its protocol. Who needs more asks here, and says what it skips."""

    kind: str
    """What it is, for sentences: 'a bundle', 'an ONNX graph', 'a Python object'."""
    repeatable: bool = False
    """Whether the observation alone decides its action, so that a log's actions can be recomputed.
    A policy with a memory, or that gives chunks, is not."""
    interface: bool = False
    """Whether it brings graphs from readings to observation and from action to command; without
    them the task's own code computes both."""
    limits: bool = False
    """Whether it brings limits for its robot; without them those of the twin's model hold."""
    provenance: bool = False
    """Whether it says which worlds it was trained in; without that, the prior draws them."""

    before_robots: str = ""
    """What has to be done with it before it may drive a robot; '' if nothing."""

    def missing_for(self, *needed: str) -> Iterator[str]:
        """A line for each thing that is `needed` and missing."""
        lines = {
            "repeatable": "the network is not checked",
            "interface": "readings and commands are computed by the task's code",
            "limits": "its limits are those of the twin's model",
            "provenance": "its worlds are drawn from the twin's prior",
        }
        has = {
            "repeatable": self.repeatable, "interface": self.interface, "limits": self.limits,
            "provenance": self.provenance,
        }  # fmt: skip
        for name in needed:
            if not has[name]:
                yield f"{lines[name]}: this policy is {self.kind}"


class Policy(Protocol):
    """Features in; an action, or a chunk of the next actions, out."""

    @property
    def id(self) -> str:
        """What it is called in trials and episodes; another policy has another one."""

    @property
    def contract(self) -> Contract:
        """What it sees and what it returns."""

    @property
    def abilities(self) -> PolicyAbilities:
        """What it has beyond this."""

    def start(self, robots: Ints, of: int) -> None:
        """Begin an attempt on these of `of` robots: forget what was seen of them."""

    def act(self, features: Features) -> Reals:
        """(rows, actions) for this period, or (rows, chunk, actions) for this and the next ones."""


class PolicyRuntime(Protocol):
    """A policy with its interface, as a robot runs it: rows of readings in, commands out."""

    contract: Contract

    def start(self) -> None:
        """Begin an attempt."""

    def observe(self, readings: Reals, goals: Reals, action: Reals, command: Reals) -> Singles:
        """One period's observation (rows, frame)."""

    def policy(self, observations: Reals) -> Singles:
        """The next action (rows, actions) for the observations of all periods (rows, input)."""

    def chunk(self, observations: Reals) -> Singles:
        """The next actions (rows, chunk, actions), of which `policy` gives the first."""

    def act(self, action: Reals, readings: Reals, goals: Reals, command: Reals) -> Singles:
        """Commands (rows, commands) for actions; `command` is the last one that was sent."""

    def rest(self, readings: Reals) -> Singles:
        """Commands (rows, commands) that keep the robot where it is."""


def acted(policy: Policy, features: Features) -> Singles:
    """(rows, chunk, actions) what a policy gives; another shape is a `Sim2RealError`."""
    name = f"policy {policy.id}"
    features.check()
    with explaining(f"{name} failed"):
        given = policy.act(features)
        found = np.asarray(given, dtype=np.float32)
    wanted = (len(features), len(policy.contract.actions))
    if found.ndim == 2:
        found = found[:, None]
    if found.ndim != 3 or found.shape[::2] != wanted or not found.shape[1]:
        raise Sim2RealError(
            f"{name} gave actions of shape {np.shape(given)} for {wanted[0]} robots; its contract"
            f" has {wanted[1]}: {', '.join(action.name for action in policy.contract.actions)}"
        )
    return found


def refuse_absurd(policy: Policy, features: Features, actions: Singles) -> None:
    """Refuse actions that are not numbers, for features that are."""
    bad = ~np.isfinite(actions).all(axis=tuple(range(1, actions.ndim)))
    if (bad & np.isfinite(features.numbers).all(axis=1)).any():
        raise Sim2RealError(f"policy {policy.id} gave an action that is not a number")


def only_numbers(contract: Contract, place: str) -> None:
    """Refuse a contract with pictures or texts, where there are none."""
    others = [f for f in contract.features if not isinstance(f, NumbersFeature)]
    if others:
        raise Sim2RealError(
            f"the policy sees {', '.join(repr(f.name) for f in others)}, a picture or a text, which"
            f" {place} does not give"
        )
