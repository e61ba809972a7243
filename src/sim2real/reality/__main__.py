"""`sim2real-reality serve --unit 7`: a robot in a process of its own."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal

import tyro

from sim2real.errors import Sim2RealError


@dataclass(frozen=True, kw_only=True)
class Serve:
    """Serve a robot on a loopback socket; the first printed line is its port."""

    unit: int = 0
    """Number of the robot in the fleet, from which its hidden parameters are drawn."""
    task: Literal["pendulum-swingup", "arm-reach", "arm-push"] = "pendulum-swingup"
    """Task on the bench."""
    virtual: bool = False
    """Let time advance only when the client waits: faster than real time, and reproducible."""
    port: int = 0
    """Port on 127.0.0.1; any free one by default."""
    parent: int = 0
    """Process that started it, with which it ends."""


def main(arguments: list[str] | None = None) -> int:
    """Serve until told to quit; the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] not in (["serve"], ["--help"], ["-h"]):
        sys.stderr.write("error: say `sim2real-reality serve`\n")
        return 2
    verb = tyro.cli(
        Serve,
        prog="sim2real-reality serve",
        args=[word for word in given if word != "serve"],
        config=(tyro.conf.OmitArgPrefixes,),
    )
    from sim2real.reality.server import Server

    try:
        if verb.unit < 0:
            raise Sim2RealError("a unit is a number from 0 on")
        server = Server(verb.task, verb.unit, virtual=verb.virtual, port=verb.port)
    except Sim2RealError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    try:
        server.serve(parent=verb.parent)
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
