"""What drivers and sockets say when they fail, in words that help."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from sim2real.errors import Sim2RealError, one_line

_MEANS = {
    errno.EACCES: "there is no permission for its port (on Linux: join the group dialout)",
    errno.EAGAIN: "it did not answer in time",
    errno.EBUSY: "another program uses its port",
    errno.EIO: "its port does not work any more: was it unplugged?",
    errno.ENODEV: "its port is gone: was it unplugged?",
    errno.ENOENT: "there is no such port: is it plugged in?",
    errno.ENXIO: "its port is gone: was it unplugged?",
    errno.EPERM: "there is no permission for its port (on Linux: join the group dialout)",
    errno.ETIMEDOUT: "it did not answer in time",
}
"""What error numbers of the operating system mean for a robot."""
_NUMBER = re.compile(r"\[Errno (\d+)\]")


def said_by(error: BaseException) -> str:
    """What an exception of a driver says, as one line; error numbers are put into words."""
    text = one_line(error) or type(error).__name__
    if isinstance(error, Sim2RealError):
        return text
    found = _NUMBER.search(text)
    number = int(found[1]) if found else getattr(error, "errno", None)
    if number not in _MEANS:
        return text
    device = re.search(r"/dev/[\w./-]*\w", text)
    return _MEANS[number] + (f" ({device[0]})" if device else "")


@contextmanager
def driver_says(what: str) -> Iterator[None]:
    """An exception of a driver becomes a `Sim2RealError` that says what failed, and why."""
    try:
        yield
    except Sim2RealError:
        raise
    except Exception as error:
        raise Sim2RealError(f"{what}: {said_by(error)}") from None
