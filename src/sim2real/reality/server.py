"""The socket of a unit: ZeroMQ on loopback, JSON messages, one answer each.

A malformed message is answered with an error or dropped; the server keeps running. No message
reveals the unit's parameters.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable

import numpy as np
import zmq

from sim2real.errors import Sim2RealError
from sim2real.reality.device import FAULTS, WATCHDOG_S, Device

LONGEST_MESSAGE = 1 << 16
_LONGEST_WAIT_S = 60.0
_FARTHEST = 1e3
_Message = dict[str, object]
"""A request or an answer, as JSON has it."""


class Server:
    """One unit behind a socket.

    In virtual time the device's clock advances when a client waits; in real time, by itself.
    """

    def __init__(self, task: str, number: int, *, virtual: bool, port: int = 0) -> None:
        self._device = Device(task, number)
        self._task, self._number, self._virtual = task, number, virtual
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.MAXMSGSIZE, LONGEST_MESSAGE)
        try:
            if port:
                self._socket.bind(f"tcp://127.0.0.1:{port}")
                self.port = port
            else:
                self.port = self._socket.bind_to_random_port("tcp://127.0.0.1")
        except zmq.ZMQError as error:
            raise Sim2RealError(f"cannot listen on port {port}: {error}") from None
        self._begin = time.monotonic()
        self._going = True
        self._verbs: dict[str, Callable[[_Message], _Message]] = {
            "hello": self._hello,
            "reset": self._reset,
            "enable": self._enable,
            "observe": self._observe,
            "command": self._command,
            "stop": self._stop,
            "relax": self._relax,
            "wait": self._wait,
            "judge": self._judge,
            "fault": self._fault,
            "quit": self._quit,
        }

    def serve(self, *, parent: int = 0) -> None:
        """Answer until someone says quit, or until the process `parent` is gone."""
        while self._going and parent in (0, os.getppid()):
            if self._socket.poll(2):
                self._answer_one()
            if not self._virtual:
                self._device.advance(time.monotonic() - self._begin)
        self._socket.close()

    def _answer_one(self) -> None:
        frames = self._socket.recv_multipart()
        answer = self.answer(frames[0]) if len(frames) == 1 else {"error": "one frame a message"}
        self._socket.send(json.dumps(answer).encode())

    def answer(self, raw: bytes) -> _Message:
        """The answer to any message."""
        try:
            message = json.loads(raw)
            if not isinstance(message, dict) or message.get("do") not in self._verbs:
                return {"error": f"say what to do: {', '.join(self._verbs)}"}
            if not self._virtual:
                self._device.advance(time.monotonic() - self._begin)
            return self._verbs[str(message["do"])](message)
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
            return {"error": f"malformed message: {type(error).__name__}"}

    def _hello(self, _: _Message) -> _Message:
        device = self._device
        return {
            "robot": self._task,
            "serial": f"unit-{self._number}",
            "actuators": list(device.names),
            "safe_stop": "damp" if device.torque_driven else "hold",
            "watchdog_s": WATCHDOG_S,
            "abilities": {"relaxes": not device.torque_driven},
            "clock": "virtual" if self._virtual else "real",
            "goals": device.goals,
            **self._state(),
        }

    def _reset(self, message: _Message) -> _Message:
        seed = message["seed"]
        if not isinstance(seed, int) or not 0 <= seed < 2**32:
            return {"error": "a seed is a whole number from 0 on"}
        return {"goals": self._device.reset(seed), **self._state()}

    def _enable(self, _: _Message) -> _Message:
        self._device.enable()
        return self._state()

    def _observe(self, _: _Message) -> _Message:
        found = self._device.read()
        return {"readings": found, **self._state()}

    def _command(self, message: _Message) -> _Message:
        given = message["values"]
        names = self._device.names
        if not isinstance(given, dict) or set(given) != set(names):
            return {"error": f"a command has a number for each of {', '.join(names)}"}
        values = np.array([_number(given[name]) for name in names])
        if not np.isfinite(values).all() or np.abs(values).max() > _FARTHEST:
            return {"error": "a command is of finite numbers"}
        self._device.send(values)
        return {"sent": dict(zip(names, values.tolist(), strict=True)), **self._state()}

    def _stop(self, _: _Message) -> _Message:
        self._device.stop()
        return self._state()

    def _relax(self, _: _Message) -> _Message:
        self._device.relax("asked to relax")
        return self._state()

    def _wait(self, message: _Message) -> _Message:
        until = _number(message["until_s"])
        if not self._virtual:
            return {"error": "this clock is real: it does not wait"}
        if not self._device.now_s <= until + 1e-6 or until > self._device.now_s + _LONGEST_WAIT_S:
            return {"error": "wait for a moment within the next minute"}
        self._device.advance(until)
        return self._state()

    def _judge(self, _: _Message) -> _Message:
        device = self._device
        judged = {"success": device.succeeded(), "moved_blind_s": device.moved_blind_s}
        return {**judged, **self._state()}

    def _fault(self, message: _Message) -> _Message:
        kind, after = message["kind"], _number(message.get("after_s", 0.0))
        if not isinstance(kind, str) or kind not in FAULTS or not 0 <= after < 1e6:
            return {"error": f"faults are {', '.join(FAULTS)}, after some seconds"}
        self._device.fault(kind, after)
        return self._state()

    def _quit(self, _: _Message) -> _Message:
        self._device.stop("the server ends")
        self._going = False
        return self._state()

    def _state(self) -> _Message:
        device = self._device
        return {
            "now_s": device.now_s,
            "state": device.state,
            "why": device.why,
            "at_rest": device.is_safe() and device.speed() < 0.1,
        }


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("not a number")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("not finite")
    return number
