"""A driver's failure is told in a sentence."""

import errno
import os

import pytest

from sim2real.errors import Sim2RealError
from sim2real.robot.driver_errors import driving, meaning


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)), "did not answer in time"),
        (RuntimeError("Resource temporarily unavailable"), "did not answer in time"),
        (TimeoutError(), "did not answer in time"),
        (OSError(errno.ENODEV, "No such device"), "not plugged in"),
        (PermissionError(errno.EACCES, "Permission denied"), "may not open its port"),
        (ValueError("no motor 3"), "its driver says 'no motor 3'"),
        (KeyError(), "its driver raised KeyError"),
    ],
)
def test_it_is_no_message_of_the_operating_system(error, said):
    assert said in meaning(error) and "temporarily" not in meaning(error)
    with (
        pytest.raises(Sim2RealError, match="arm failed while it was read: "),
        driving("arm", "it was read"),
    ):
        raise error


def test_our_own_errors_pass_as_they_are():
    with pytest.raises(Sim2RealError, match=r"^as it is$"), driving("arm", "it was read"):
        raise Sim2RealError("as it is")
