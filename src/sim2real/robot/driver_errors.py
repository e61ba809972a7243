"""What a driver's failure means to a person: a sentence, and no message of the operating system."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from sim2real.errors import Sim2RealError, one_line

_MEANINGS = {
    errno.EAGAIN: "it did not answer in time",
    errno.ETIMEDOUT: "it did not answer in time",
    errno.EINTR: "the wait for its answer was interrupted",
    errno.EIO: "its cable or its bus failed",
    errno.ENODEV: "it is not plugged in",
    errno.ENXIO: "it is not plugged in",
    errno.ENOENT: "it is not plugged in, or its port has another name",
    errno.EACCES: "this user may not open its port",
    errno.EBUSY: "another program uses its port",
    errno.ECONNREFUSED: "nothing listens at its address",
    errno.ECONNRESET: "it closed the connection",
    errno.EPIPE: "it closed the connection",
    errno.EHOSTUNREACH: "its address cannot be reached",
    errno.ENETUNREACH: "its address cannot be reached",
}
"""Numbers of the operating system's errors, in words."""


@contextmanager
def driving(robot: str, doing: str) -> Iterator[None]:
    """Whatever a driver raises while `doing` something becomes a `Sim2RealError` in a sentence."""
    try:
        yield
    except Sim2RealError:
        raise
    except Exception as error:  # a driver may raise anything
        raise Sim2RealError(f"{robot} failed while {doing}: {meaning(error)}") from None


def meaning(error: BaseException) -> str:
    """What a driver's exception means, in words."""
    if isinstance(error, TimeoutError | BlockingIOError):
        return _MEANINGS[errno.EAGAIN]
    number = error.errno if isinstance(error, OSError) else None
    if number is not None and number in _MEANINGS:
        return _MEANINGS[number]
    said = one_line(error)
    for number, words in _MEANINGS.items():
        if os.strerror(number).lower() in said.lower():  # as other libraries pass it on
            return words
    return f"its driver says {said!r}" if said else f"its driver raised {type(error).__name__}"
