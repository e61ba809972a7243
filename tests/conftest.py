"""Small twins that tests make for themselves, and the last line of a run."""

import fcntl
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.repository import WANT

# One thread for each worker of a run, before any library asks; numbers do not depend on it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# No lake in the folder that tests are run in.
os.environ["SIM2REAL_LAKE"] = ""

SLIDER = """
<mujoco model="slider">
  <compiler angle="radian"/>
  <option timestep="0.002" integrator="implicitfast" cone="elliptic" impratio="10"/>
  <worldbody>
    <light name="key" pos="0 0 2" diffuse="0.5 0.6 0.7"/>
    <camera name="front" pos="0 -2 0.5" xyaxes="1 0 0 0 0 1" fovy="45"/>
    <geom name="floor" type="plane" size="2 2 0.1" friction="0.3 0.005 0.0001"/>
    <body name="arm" pos="0 0 0.6">
      <joint name="hinge" axis="0 1 0" damping="0.05" armature="0.01" range="-2.5 2.5"/>
      <geom name="link" type="capsule" size="0.02" fromto="0 0 0 0.3 0 0.05" mass="0.4"
            contype="0" conaffinity="0"/>
      <body name="fore" pos="0.3 0 0.05">
        <joint name="elbow" axis="0 1 0" damping="0.02" armature="0.005" range="-2 2"/>
        <geom name="tip" type="box" size="0.1 0.02 0.03" pos="0.1 0 0" mass="0.2"
              contype="0" conaffinity="0"/>
      </body>
    </body>
    <body name="block" pos="0.2 0.5 0.05">
      <freejoint name="block"/>
      <geom name="block" type="box" size="0.05 0.05 0.05" mass="0.3" friction="0.5 0.005 0.0001"/>
    </body>
    <body name="wall" pos="1 1 0.5"><geom name="wall" type="box" size="0.1 0.1 0.5"/></body>
  </worldbody>
  <actuator>
    <position name="hinge" joint="hinge" kp="20" kv="1" ctrlrange="-2 2" forcerange="-5 5"/>
    <dcmotor name="elbow" joint="elbow" motorconst="0.5 0" resistance="2" input="pos"
             controller="8 0 0.125 0 0 12" saturation="2 0 0" ctrlrange="-2 2"/>
  </actuator>
  <sensor>
    <jointpos name="hinge_pos" joint="hinge"/>
    <jointvel name="hinge_vel" joint="hinge"/>
    <jointpos name="elbow_pos" joint="elbow"/>
  </sensor>
</mujoco>
"""


@pytest.fixture(autouse=True)
def _own_tasks():
    """A test that adds tasks adds them for itself alone."""
    from sim2real.tasks import registry  # here: libraries ask for threads when they are imported

    before = dict(registry.ADDED)
    yield
    registry.ADDED.clear()
    registry.ADDED.update(before)


@pytest.fixture
def make_twin(tmp_path: Path):
    """Writes a twin folder from TOML text (and MJCF), and gives its path."""

    def make(toml: str = "", xml: str = SLIDER, name: str = "twin") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "model.xml").write_text(xml)
        (folder / "twin.toml").write_text(f'[twin]\nname = "slider"\nmodel = "model.xml"\n{toml}')
        return folder

    return make


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """Makes a folder that tests only read, once for all workers of a run, and gives its path.

    `make` gets the path of a folder that is not there yet; of what it gives nothing is kept.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, make) -> Path:
        folder, done = shared / f"made-{name}", shared / f"made-{name}.done"
        with (shared / f"made-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                make(folder)
                done.touch()
        return folder

    return made


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session):
    """Say last, after the count of tests, what was skipped for want of something."""
    result = yield
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        reasons = [str(report.longrepr[2]) for report in terminal.stats.get("skipped", ())]
        if reasons:
            terminal.write_line(left_out(reasons))
    return result


def left_out(reasons: list[str]) -> str:
    """One line on skipped tests: how many for want of what, and of which data."""
    wanted, data, other = Counter(), Counter(), 0
    for reason in reasons:
        _, found, rest = reason.partition(WANT)
        what, _, detail = rest.partition(": ")
        if not found:
            other += 1
        elif what == "data":
            data[detail] += 1
        else:
            wanted[what] += 1
    parts = []
    if data:
        folders = ", ".join(f"{folder}: {n}" for folder, n in sorted(data.items()))
        parts.append(f"of data: {data.total()} tests ({folders})")
    parts += [f"of {what}: {n}" for what, n in sorted(wanted.items())]
    said = [f"skipped for want {'; '.join(parts)}"] if parts else []
    said += [f"skipped for other reasons: {other}"] if other else []
    return "; ".join(said)
