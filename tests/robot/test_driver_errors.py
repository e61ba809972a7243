"""What drivers say is put into words."""

import errno
import re

import pytest

from sim2real.errors import Sim2RealError
from sim2real.robot.driver_errors import driver_says, said_by


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "did not answer"),
        (OSError(errno.EIO, "Input/output error"), "unplugged"),
        (PermissionError(errno.EACCES, "Permission denied", "/dev/ttyACM0"), "dialout.*ttyACM0"),
        (RuntimeError("could not open port /dev/ttyACM1: [Errno 2] No such"), "no such port.*ACM1"),
        (RuntimeError("[Errno 16] Device or resource busy"), "another program"),
        (RuntimeError("servo 3\noverload"), "^servo 3 overload$"),
        (KeyError(), "^KeyError$"),
        (Sim2RealError("[Errno 5] is ours"), r"^\[Errno 5\] is ours$"),
    ],
)
def test_an_error_number_of_the_system_is_a_sentence_about_the_robot(error, words):
    with pytest.raises(Sim2RealError) as caught, driver_says("it"):
        raise error
    said = str(caught.value).removeprefix("it: ")
    assert said == said_by(error)
    assert re.search(words, said)
    assert "unavailable" not in said and "\n" not in said
