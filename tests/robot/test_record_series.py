"""Motions for identification on robots that are stronger than planned for."""

import pytest

from sim2real.errors import Sim2RealError
from sim2real.robot import ExcitedRobot, open_robot, record_series
from sim2real.robot.excite import recordings
from sim2real.tasks import find_task

TASK = "pendulum-swingup"


@pytest.fixture
def strong():
    """A pendulum that gets too fast when it is moved as its twin may be."""
    return open_robot("unit:604", task=TASK)


def recorded(robot, folder, **options):
    task = find_task(TASK)
    subject = ExcitedRobot.open(task.twin, rate_hz=task.rate_hz)
    settings = {"person": "test", "seconds": 48.0, "rearm": lambda why: True} | options
    return record_series(subject, robot, ("multisine", "chirp", "steps"), folder, **settings)


@pytest.mark.slow
def test_what_was_stopped_is_recorded_again_with_less(strong, tmp_path):
    found = recorded(strong, tmp_path)
    stopped = [one for one in found if one.flight.stopped]
    assert stopped and "above its limit" in stopped[0].flight.stopped
    first, after = stopped[0], found[found.index(stopped[0]) + 1]
    assert after.path.name == first.path.name and after.path != first.path
    assert "amplitude 0.35" in after.episode.provenance.process
    assert 40.0 < sum(one.episode.duration_s for one in found) < 55.0
    assert {one.path.stem for one in found} == {"multisine", "chirp", "steps"}


@pytest.mark.slow
def test_a_robot_that_nobody_re_arms_stays_stopped(strong, tmp_path):
    with pytest.raises(Sim2RealError, match="stopped during a recording: joint hinge"):
        recorded(strong, tmp_path, rearm=lambda why: False)


@pytest.mark.slow
def test_a_robot_that_is_stopped_again_and_again_is_left_alone(strong, tmp_path, monkeypatch):
    monkeypatch.setattr(recordings, "_MAX_STOPS", 1)
    with pytest.raises(Sim2RealError, match="stopped during a recording"):
        recorded(strong, tmp_path)
