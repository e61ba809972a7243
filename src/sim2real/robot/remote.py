"""A robot behind a socket: the client of stand-in hardware, an ordinary `Robot`.

It brings its own clock: real hardware runs in real time, a virtual unit in its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import zmq

from sim2real.errors import Sim2RealError, number_at, table_at
from sim2real.plain import of_plain
from sim2real.robot.abilities import RobotAbilities
from sim2real.robot.driver_errors import said_by

OLD_SERVER = RobotAbilities(
    enables=True,
    reports_why_stopped=True,
    measures_torque=True,
    reports_commands=True,
    resets=True,
    judges=True,
    patience=True,
)
"""What a server can do whose hello does not declare it."""
_TOLD = ("relaxes", "measures_torque", "reports_commands", "resets", "judges")
"""Abilities that a hello may declare; the others are the protocol's, or ours to know."""
_START_UP_S = 5.0
"""Longest time in which drives get ready [s]."""


class RemoteRobot:
    """The unit that listens at `tcp://127.0.0.1:PORT`."""

    known: RobotAbilities = OLD_SERVER
    """What it can do as far as is known before it says hello."""

    def __init__(self, address: str) -> None:
        """`address` is a port, `host:port`, or a ZeroMQ address."""
        if address.isdigit():
            address = f"127.0.0.1:{address}"
        self.address = address if "://" in address else f"tcp://{address}"
        self.name, self.serial, self.safe_stop = "", "", "hold"
        self.virtual = False
        self.state = "off"
        """What the robot reports: 'off', 'starting', 'ready' or 'tripped'."""
        self.why = ""
        self.at_rest = False
        """Whether it is in its safe stop and does not move, as its bench sees it."""
        self.patience_s = 2.0
        """How long an answer may take."""
        self._socket: zmq.Socket[bytes] | None = None
        self._held = False
        self._driven = False
        self.abilities = self.known
        self.joint_limits: Mapping[str, Mapping[str, float]] = {}
        """Limits that it states."""
        self._now_s = 0.0

    @property
    def is_connected(self) -> bool:
        """Whether the robot answered the last message."""
        return self._socket is not None

    @property
    def stopped_itself(self) -> str:
        """Why the robot has stopped by itself; '' while it obeys."""
        return self.why or self.state if self.state in ("tripped", "off") else ""

    def connect(self) -> None:
        """Find the robot; another one than at the last time is a `Sim2RealError`."""
        self._close()
        self._held = True
        try:
            told = self._greet()
        except Sim2RealError:
            self._held = False
            raise
        self.name, self.serial = str(told["robot"]), str(told["serial"])
        self.safe_stop, self.virtual = str(told["safe_stop"]), told["clock"] == "virtual"
        self.joint_limits = of_plain(
            dict[str, dict[str, float]], told.get("joint_limits", {}), "the robot's joint_limits"
        )
        declared = of_plain(dict[str, bool], told.get("abilities", {}), "the robot's abilities")
        self.abilities = replace(
            self.known,
            actuators=tuple(str(name) for name in cast(list[object], told["actuators"])),
            virtual_time=self.virtual,
            holds_position=self.safe_stop == "hold",
            states_limits="joint_limits" in told,
            watchdog_s=max(0.0, number_at(told.get("watchdog_s", 0.0), "the robot's watchdog_s")),
            **{name: declared[name] for name in _TOLD if name in declared},
        )

    @property
    def actuators(self) -> tuple[str, ...]:
        """Names of the actuators it takes commands for."""
        return self.abilities.actuators or ()

    def enable(self) -> None:
        """Start the drives; a robot that does not get ready is a `Sim2RealError`."""
        self._driven = True
        self._ask({"do": "enable"})
        end = self.now() + _START_UP_S
        while self.state != "ready":
            if self.now() > end or self.state in ("off", "tripped"):
                raise Sim2RealError(f"{self.name} did not get ready: {self.state} {self.why}")
            self.sleep_until(self.now() + 0.05)
            self._ask({"do": "observe"})

    def reset(self, seed: int) -> dict[str, list[float]]:
        """Have the bench set up the next trial; returns its goals."""
        return self._goals(self._ask({"do": "reset", "seed": seed}))

    def goals(self) -> dict[str, list[float]]:
        """Goals of the trial that is set up."""
        return self._goals(self._ask({"do": "hello"}))

    def get_observation(self) -> Mapping[str, object]:
        """The newest readings; empty where the packet was lost."""
        readings = self._ask({"do": "observe"}).get("readings")
        return table_at(readings or {}, "the robot's readings")

    def send_action(self, action: Mapping[str, float]) -> Mapping[str, float]:
        """Send commands by actuator; what was really sent."""
        values = {name: float(action[name]) for name in self.actuators}
        self._driven = True
        sent = self._ask({"do": "command", "values": values}).get("sent")
        return of_plain(dict[str, float], sent, "what was sent")

    def stop(self) -> None:
        """Go to the safe stop."""
        self._ask({"do": "stop"})

    def relax(self) -> None:
        """Take the torque off the drives."""
        self._ask({"do": "relax"})

    def judge(self) -> bool:
        """Whether the task is done, as the robot's own bench sees it."""
        return bool(self._ask({"do": "judge"})["success"])

    def moved_blind(self) -> float:
        """How long it moved in this trial while its encoders were dead [s]."""
        return number_at(self._ask({"do": "judge"}).get("moved_blind_s"), "moved_blind_s")

    def fault(self, kind: str, after_s: float = 0.0) -> None:
        """Inject a fault."""
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
        """The time of the robot's clock [s]."""
        return self._now_s if self.virtual else time.monotonic()

    def sleep_until(self, moment_s: float) -> None:
        """Wait until a moment of that clock."""
        if self.virtual:
            self._ask({"do": "wait", "until_s": moment_s})
        else:
            time.sleep(max(0.0, moment_s - time.monotonic()))

    def _goals(self, answer: Mapping[str, object]) -> dict[str, list[float]]:
        return of_plain(dict[str, list[float]], answer.get("goals"), "the robot's goals")

    def _ask(self, message: Mapping[str, object]) -> dict[str, object]:
        """The robot's answer to a message; silence, and a refusal, are a `Sim2RealError`."""
        if not self._held:
            raise Sim2RealError(f"not connected to a robot at {self.address}")
        if self._socket is None:
            # After a silence the robot may answer again; or another one, at the same address.
            self._greet()
        return self._exchange(message)

    def _greet(self) -> dict[str, object]:
        """Open the socket and ask who is there, before anything else is sent."""
        self._open()
        told = self._exchange({"do": "hello"})
        needed = {"robot", "serial", "safe_stop", "clock"}
        if not (needed <= set(told) and isinstance(told.get("actuators"), list)):
            raise self._no_robot()
        return told

    def _exchange(self, message: Mapping[str, object]) -> dict[str, object]:
        """The answer to a message on the open socket."""
        socket = self._socket
        assert socket is not None
        patience_ms = int(1000 * self.patience_s)
        try:
            # A socket whose connection has ended takes no message.
            if not socket.poll(patience_ms, zmq.POLLOUT):
                raise zmq.Again()
            socket.send(json.dumps(message).encode(), zmq.NOBLOCK)
            if not socket.poll(patience_ms):
                raise zmq.Again()
            answer = json.loads(socket.recv(zmq.NOBLOCK))
        except zmq.Again:
            self._close()
            raise Sim2RealError(
                f"the robot at {self.address} does not answer: nothing came within"
                f" {self.patience_s:.3g} s"
            ) from None
        except (zmq.ZMQError, ValueError) as error:
            self._close()
            raise Sim2RealError(
                f"the robot at {self.address} does not answer: {said_by(error)}"
            ) from None
        except BaseException:  # an interrupt between question and answer
            self._close()
            raise
        if not isinstance(answer, dict) or "error" in answer:
            said = answer.get("error") if isinstance(answer, dict) else answer
            raise Sim2RealError(f"the robot at {self.address} refuses: {said}")
        self._refuse_other(answer)
        now_s = answer.get("now_s", self._now_s)
        if not isinstance(now_s, int | float):
            raise self._no_robot()
        self._now_s = float(now_s)
        self.state, self.why = str(answer.get("state", self.state)), str(answer.get("why", ""))
        self.at_rest = answer.get("at_rest") is True
        return answer

    def _refuse_other(self, answer: Mapping[str, object]) -> None:
        """Refuse an answer that names another robot than the one that was connected."""
        found = (answer.get("robot", self.name), answer.get("serial", self.serial))
        if self.serial and found != (self.name, self.serial):
            self._close()
            raise Sim2RealError(
                f"another robot answers at {self.address}: {found[0]} {found[1]}, before it was"
                f" {self.name} {self.serial}; it was sent no command"
            )

    def _no_robot(self) -> Sim2RealError:
        self._close()
        return Sim2RealError(f"what answers at {self.address} is not a robot")

    def _open(self) -> None:
        self._close()
        socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REQ)
        self._socket = socket
        socket.setsockopt(zmq.LINGER, 0)
        # ZeroMQ connects again by itself, and a command would go to whoever listens there by then.
        socket.setsockopt(zmq.RECONNECT_IVL, -1)
        try:
            socket.connect(self.address)
        except zmq.ZMQError as error:
            self._close()
            raise Sim2RealError(
                f"{self.address} is not a robot's address ({said_by(error)}): use HOST:PORT"
            ) from None

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
