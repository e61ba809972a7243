"""A bundle at work: readings in, commands out, with onnxruntime alone."""

from __future__ import annotations

import numpy as np

from sim2real.arrays import Reals, Singles
from sim2real.errors import Sim2RealError
from sim2real.policy.bundle import GRAPHS, Bundle
from sim2real.policy.onnx_policy import session_of
from sim2real.policy.protocol import PolicyRuntime


class Runtime:
    """The graphs of a bundle, each a function of arrays (rows, width) in float32."""

    def __init__(self, bundle: Bundle) -> None:
        """Load the graphs; one that is damaged or breaks the contract is a `Sim2RealError`."""
        self.contract = bundle.contract
        self._sessions = {
            name: session_of(bundle.graph(name), f"{bundle.folder}: {name}.onnx") for name in GRAPHS
        }
        contract = bundle.contract
        widths = {
            "readings": contract.readings_width,
            "goals": contract.goals_width,
            "action": len(contract.actions),
            "command": len(contract.commands),
            "obs": contract.input_width,
        }
        for name, session in self._sessions.items():
            for entry in session.get_inputs():
                if entry.name not in widths or entry.shape[1:] != [widths[entry.name]]:
                    raise Sim2RealError(
                        f"{bundle.folder}: {name}.onnx has an input {entry.name!r} of shape"
                        f" {entry.shape} that the contract does not have"
                    )

    def start(self) -> None:
        """Begin an attempt; the graphs have no memory."""

    def observe(self, readings: Reals, goals: Reals, action: Reals, command: Reals) -> Singles:
        """One period's observation (rows, frame)."""
        return self._run("observe", readings=readings, goals=goals, action=action, command=command)

    def policy(self, observations: Reals) -> Singles:
        """Actions (rows, actions) for the observations of all periods (rows, input)."""
        return self._run("policy", obs=observations)

    def chunk(self, observations: Reals) -> Singles:
        """The next actions (rows, 1, actions)."""
        return self.policy(observations)[:, None]

    def act(self, action: Reals, readings: Reals, goals: Reals, command: Reals) -> Singles:
        """Commands (rows, commands) for actions; `command` is the last one that was sent."""
        return self._run("act", readings=readings, goals=goals, action=action, command=command)

    def rest(self, readings: Reals) -> Singles:
        """Commands (rows, commands) that keep the robot where it is."""
        rows, contract = len(readings), self.contract
        none = {
            "goals": np.zeros((rows, contract.goals_width)),
            "action": np.zeros((rows, len(contract.actions))),
            "command": np.zeros((rows, len(contract.commands))),
        }
        return self._run("rest", readings=readings, **none)

    def _run(self, name: str, **inputs: Reals) -> Singles:
        given = {key: np.asarray(value, dtype=np.float32) for key, value in inputs.items()}
        found: Singles = self._sessions[name].run(None, given)[0]
        return found


class Pilot:
    """One robot's policy: remembers what it saw and sent, and gives a command each period."""

    def __init__(self, runtime: PolicyRuntime) -> None:
        self.runtime = runtime
        self.contract = runtime.contract
        self._next: list[Singles] = []
        self._frames: Singles | None = None
        self._goals = np.zeros((1, self.contract.goals_width), np.float32)
        self.action = np.zeros((1, len(self.contract.actions)), np.float32)
        self.command = np.zeros((1, len(self.contract.commands)), np.float32)

    def start(self, readings: Reals, goals: Reals) -> None:
        """Begin an episode at readings (numbers,) with goals (numbers,)."""
        self._goals = np.asarray(goals, np.float32)[None]
        self.action = np.zeros_like(self.action)
        self.command = self.runtime.rest(np.asarray(readings)[None])
        self._frames = None
        self._next = []
        self.runtime.start()

    def step(self, readings: Reals) -> tuple[Singles, Singles, Singles]:
        """(frame, action, command) of this period; the command is what the policy asks for.

        Call `sent` with the command that really went to the robot before the next step.
        """
        given = np.asarray(readings, np.float32)[None]
        frame = self.runtime.observe(given, self._goals, self.action, self.command)
        if self._frames is None:
            self._frames = np.repeat(frame[:, None], self.contract.history, axis=1)
        else:
            self._frames = np.concatenate([self._frames[:, 1:], frame[:, None]], axis=1)
        if not self._next:
            self._next = list(self.runtime.chunk(self._frames.reshape(1, -1))[0])
        action = self._next.pop(0)[None]
        self.action = np.clip(np.nan_to_num(action), -1.0, 1.0)
        command = self.runtime.act(self.action, given, self._goals, self.command)
        if not np.isfinite(action).all():
            command = np.full_like(command, np.nan)  # for the supervisor to see
        return frame[0], self.action[0], command[0]

    def sent(self, command: Reals) -> None:
        """Take note of what was really sent, after limits."""
        self.command = np.asarray(command, np.float32)[None]
