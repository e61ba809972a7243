"""A robot behind a socket: the client of stand-in hardware, an ordinary `Robot`.

Its clock comes with it: real hardware goes by the wall, a virtual unit by its own time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import zmq

from sim2real.errors import Sim2RealError


class RemoteRobot:
    """The unit that listens at `tcp://127.0.0.1:PORT`."""

    def __init__(self, address: str) -> None:
        """`address` is a port, `host:port`, or a ZeroMQ address."""
        if address.isdigit():
            address = f"127.0.0.1:{address}"
        self.address = address if "://" in address else f"tcp://{address}"
        self.name, self.serial, self.safe_stop = "", "", "hold"
        self.virtual = False
        self.state = "off"
        """What the robot says of itself: 'off', 'starting', 'ready' or 'tripped'."""
        self.why = ""
        self.at_rest = False
        """Whether it is in its safe stop and does not move, as its bench sees it."""
        self.patience_s = 2.0
        """How long an answer may take."""
        self._socket: Any = None
        self._held = False
        self._driven = False
        self._actuators: list[str] = []
        self._now_s = 0.0

    @property
    def is_connected(self) -> bool:
        """Whether the robot answered the last time."""
        return self._socket is not None

    @property
    def stopped_itself(self) -> str:
        """Why the robot has stopped by itself; '' while it obeys."""
        return self.why or self.state if self.state in ("tripped", "off") else ""

    @property
    def actuators(self) -> tuple[str, ...]:
        """Names of what it can be commanded by."""
        return tuple(self._actuators)

    def connect(self) -> None:
        """Find the robot, and wait until its drives are ready."""
        self._open()
        self._held = True
        try:
            told = self._ask({"do": "hello"})
        except Sim2RealError:
            self._held = False
            raise
        try:
            self.name, self.serial = str(told["robot"]), str(told["serial"])
            self.safe_stop, self.virtual = str(told["safe_stop"]), told["clock"] == "virtual"
            self._actuators = [str(name) for name in told["actuators"]]
        except (KeyError, TypeError):
            self._held = False
            self._close()
            raise Sim2RealError(f"what answers at {self.address} is no robot") from None

    def enable(self, *, patience_s: float = 5.0) -> None:
        """Start the drives; one that does not get ready is a `Sim2RealError`."""
        self._driven = True
        self._ask({"do": "enable"})
        end = self.now() + patience_s
        while self.state != "ready":
            if self.now() > end or self.state in ("off", "tripped"):
                raise Sim2RealError(f"{self.name} does not get ready: {self.state} {self.why}")
            self.sleep_until(self.now() + 0.05)
            self._ask({"do": "observe"})

    def reset(self, seed: int) -> dict[str, list[float]]:
        """Have a person set up the next trial; its goals."""
        goals: dict[str, list[float]] = self._ask({"do": "reset", "seed": seed})["goals"]
        return goals

    def goals(self) -> dict[str, list[float]]:
        """Goals of the trial that is set up."""
        found: dict[str, list[float]] = self._ask({"do": "hello"})["goals"]
        return found

    def get_observation(self) -> Mapping[str, Any]:
        """The newest readings; empty where the packet was lost."""
        found: Mapping[str, Any] = self._ask({"do": "observe"})["readings"] or {}
        return found

    def send_action(self, action: Mapping[str, float]) -> Mapping[str, float]:
        """Send commands by actuator; what was really sent."""
        values = {name: float(action[name]) for name in self._actuators}
        self._driven = True
        sent: Mapping[str, float] = self._ask({"do": "command", "values": values})["sent"]
        return sent

    def stop(self) -> None:
        """Go to the safe stop."""
        self._ask({"do": "stop"})

    def judge(self) -> bool:
        """Whether the task is done, as the robot's own bench sees it."""
        return bool(self._ask({"do": "judge"})["success"])

    def moved_blind(self) -> float:
        """How long it has moved in this trial while its encoders were dead [s]."""
        return float(self._ask({"do": "judge"})["moved_blind_s"])

    def fault(self, kind: str, after_s: float = 0.0) -> None:
        """Ask for something to break."""
        self._ask({"do": "fault", "kind": kind, "after_s": after_s})

    def disconnect(self) -> None:
        """Let go of the robot, in its safe stop; one that was never commanded is left alone."""
        if self._held:
            try:
                if self._driven:
                    self.stop()
            finally:
                self._driven = False
                self._held = False
                self._close()

    def now(self) -> float:
        """The clock that the loop goes by [s]."""
        return self._now_s if self.virtual else time.monotonic()

    def sleep_until(self, moment_s: float) -> None:
        """Wait for a moment of that clock."""
        if self.virtual:
            self._ask({"do": "wait", "until_s": moment_s})
        else:
            time.sleep(max(0.0, moment_s - time.monotonic()))

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        if not self._held:
            raise Sim2RealError(f"not connected to a robot at {self.address}")
        if self._socket is None:
            self._open()  # it was silent once; it may answer again
        try:
            self._socket.send(json.dumps(message).encode())
            if not self._socket.poll(int(1000 * self.patience_s)):
                raise zmq.Again()
            answer = json.loads(self._socket.recv(zmq.NOBLOCK))
        except (zmq.ZMQError, ValueError) as error:
            self._close()
            raise Sim2RealError(f"the robot at {self.address} does not answer: {error}") from None
        except BaseException:  # an interrupt between question and answer
            self._close()
            raise
        if not isinstance(answer, dict) or "error" in answer:
            said = answer.get("error") if isinstance(answer, dict) else answer
            raise Sim2RealError(f"the robot at {self.address} refuses: {said}")
        try:
            self._now_s = float(answer.get("now_s", self._now_s))
        except (TypeError, ValueError):
            raise Sim2RealError(f"what answers at {self.address} is no robot") from None
        self.state, self.why = str(answer.get("state", self.state)), str(answer.get("why", ""))
        self.at_rest = answer.get("at_rest") is True
        return answer

    def _open(self) -> None:
        self._close()
        self._socket = zmq.Context.instance().socket(zmq.REQ)
        self._socket.setsockopt(zmq.SNDTIMEO, int(1000 * self.patience_s))
        self._socket.setsockopt(zmq.LINGER, 0)
        try:
            self._socket.connect(self.address)
        except zmq.ZMQError as error:
            self._close()
            raise Sim2RealError(f"{self.address} is no robot's address: {error}") from None

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
