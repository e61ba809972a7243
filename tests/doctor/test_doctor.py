"""The doctor names what was broken in a log, and nothing where nothing was."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sim2real.cli.adapter import runner_of
from sim2real.contract import SensorSpec, TermSpec
from sim2real.data import Episode, Provenance, Signal, select
from sim2real.data.formats.recording import read_recording
from sim2real.doctor.doctor import Doctor, diagnose
from sim2real.doctor.doctor_config import DoctorConfig
from sim2real.doctor.findings import Fault, Finding
from sim2real.doctor.graph_interface import GraphInterface
from sim2real.doctor.physical_faults import PhysicalReference
from sim2real.doctor.signal_relations import RelationKind, relate
from sim2real.doctor.simulated_reference import simulated
from sim2real.doctor.software_chain import SoftwareChain
from sim2real.errors import Sim2RealError
from sim2real.evaluation import open_policy
from sim2real.logs.control_log import ControlLog
from sim2real.params import Empirical
from sim2real.policy import Bundle, ObjectPolicy, Pilot, Runtime
from sim2real.robot import Recording, StandIn, Supervisor, fly
from sim2real.testing import FaultyRobot, inject, possible
from tests.golden.cases import MADE
from tests.repository import BUNDLES
from tests.simulated import bundle_and_twin, simulate

TASKS = ("pendulum-swingup", "arm-reach", "arm-push")


def free(bundle):
    """Limits that let a robot go on in spite of a fault."""
    width = bundle.contract.frame_width
    joints = (
        replace(joint, velocity=1e9, acceleration=1e9, position_low=-1e9, position_high=1e9)
        for joint in bundle.limits.joints
    )
    return replace(
        bundle.limits,
        joints=tuple(joints),
        observation_low=(-1e9,) * width,
        observation_high=(1e9,) * width,
    )


def flown(task, folder, unit, *, seconds=3.0, spoil=None):
    """A recorded flight of a task's bundle on one unit."""
    bundle = Bundle.open(BUNDLES / task)
    path = folder / f"{task}-{unit}.arrow"
    with StandIn(unit, task) as robot:
        # A pole that hangs at zero until it is pushed reads what one without a sensor would.
        goals = robot.reset(2 if task == "pendulum-swingup" else 1)
        robot.enable()
        seen = robot if spoil is None else spoil(robot, bundle.contract)
        fly(
            seen, Pilot(Runtime(bundle)), Supervisor(bundle.contract, free(bundle)),
            robot, goals=goals, seconds=seconds, person="ana", execute=True,
            recording=Recording.of(bundle.contract, path, Provenance(kind="real")),
        )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flights")
    return {task: flown(task, folder, 11) for task in TASKS}


@pytest.fixture(scope="module")
def doctors():
    return {task: Doctor(Bundle.open(BUNDLES / task)) for task in TASKS}


def names(doctor, *episodes):
    return [finding.fault for finding in doctor.diagnose(episodes).findings]


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_a_clean_log_of_a_robot_that_is_not_the_twin_raises_no_alarm(paths, doctors, task):
    found = doctors[task].diagnose([read_recording(paths[task])])
    assert found.findings == ()
    assert "fine" in found.verdict


FAULTS = [
    (task, fault)
    for task in TASKS
    for fault in Fault
    if fault is not Fault.QUATERNION and possible(fault, Bundle.open(BUNDLES / task).contract)
]


@pytest.mark.slow
@pytest.mark.parametrize(("task", "fault"), FAULTS)
def test_an_injected_fault_is_named_first(paths, doctors, task, fault):
    doctor = doctors[task]
    clean = read_recording(paths[task])
    for seed in range(2):
        spoilt = inject(doctor.interface, clean, fault, level=2, seed=seed)
        assert names(doctor, spoilt)[:1] == [fault]


@pytest.mark.slow
def test_whole_turns_of_a_free_joint_are_the_same_pose(paths, doctors):
    clean = read_recording(paths["pendulum-swingup"])
    angle = clean["sensor/hinge_pos"]
    turned = replace(angle, values=angle.values + 4 * np.pi)
    turned = clean.derive("turned", channels={**clean.channels, "sensor/hinge_pos": turned})
    assert doctors["pendulum-swingup"].diagnose([turned]).findings == ()


@pytest.mark.slow
def test_a_fault_that_motion_shows_in_one_of_many_logs_is_a_note(paths, doctors):
    doctor, clean = doctors["arm-reach"], read_recording(paths["arm-reach"])
    offset = Finding(Fault.OFFSET, ("elbow_flex",), "it moves so", 0.8)
    diagnosis = {count: _with_motion(doctor, clean, [offset], count, logs=5) for count in (1, 2)}
    assert diagnosis[1].fine and "1 of 5 logs looks like zero offset" in diagnosis[1].notes[0]
    assert [finding.fault for finding in diagnosis[2].findings] == [Fault.OFFSET]
    frozen = Finding(Fault.STALE, ("elbow_flex position",), "it keeps one value", 0.9)
    assert not _with_motion(doctor, clean, [frozen], 1, logs=5).fine


def _with_motion(doctor, clean, findings, count, *, logs):
    """Diagnosis of copies of a clean log, whose motion shows something in the first `count`."""
    shown = iter([findings] * count + [[]] * (logs - count))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PhysicalReference, "findings", lambda self, log: next(shown))
        return doctor.diagnose([clean] * logs)


@pytest.mark.slow
def test_two_logs_with_one_fault_are_one_finding(paths, doctors):
    doctor, clean = doctors["arm-reach"], read_recording(paths["arm-reach"])
    spoilt = [
        inject(doctor.interface, clean, Fault.OFFSET, level=level, seed=3) for level in (1, 2)
    ]
    found = doctor.diagnose(spoilt)
    assert [f.fault for f in found.findings] == [Fault.OFFSET]
    assert "In 2 of 2 logs" in found.findings[0].evidence
    assert found.logs == 2 and found.periods == 2 * len(clean["action"].times)


@pytest.mark.slow
def test_a_driver_that_negates_everything_is_found_by_physics_alone(tmp_path, doctors):
    doctor = doctors["pendulum-swingup"]
    path = flown(
        "pendulum-swingup", tmp_path, 12, seconds=4.0,
        spoil=lambda robot, contract: FaultyRobot(robot, contract, Fault.SIGN, level=2, seed=0),
    )  # fmt: skip
    assert names(doctor, read_recording(path))[:1] == [Fault.SIGN]


@pytest.mark.slow
def test_what_a_simulated_world_of_the_twin_does_is_no_fault(doctors):
    doctor = doctors["arm-reach"]
    limits = doctor.thresholds
    reference, _ = simulated(doctor.interface, worlds=limits.worlds, wider=limits.wider)
    rate = doctor.policy.contract.rate_hz
    times = np.arange(reference.readings.shape[1]) / rate
    for world in range(3):
        channels = {"command": Signal(times, reference.command[world], "rad")}
        for k, sensor in enumerate(doctor.policy.contract.sensors):
            values = reference.readings[world, :, k : k + 1]
            channels[f"sensor/{sensor.name}"] = Signal(times, values, sensor.unit)
        episode = Episode(channels=channels, provenance=Provenance(kind="simulated"))
        found = doctor.diagnose([episode])
        assert found.findings == ()
        assert any("no action" in note for note in found.notes)


@pytest.mark.slow
def test_the_verb_tells_by_its_exit_code_and_in_json(paths, doctors, capsys, tmp_path):
    config = DoctorConfig(policy=BUNDLES / "arm-reach", logs=(str(paths["arm-reach"]),), json=True)
    run_doctor = runner_of(diagnose)
    assert run_doctor(config) == 0
    assert json.loads(capsys.readouterr().out)["fine"] is True
    assert run_doctor(replace(config, json=False)) == 0
    assert "1 log, " in capsys.readouterr().out
    with pytest.raises(Sim2RealError, match="no such log"):
        run_doctor(replace(config, logs=(str(tmp_path / "nothing"),)))
    with pytest.raises(Sim2RealError, match="no policy at"):
        run_doctor(replace(config, policy=tmp_path))


class Attitude:
    """Graphs of a policy that sees a quaternion, plain or as the direction of gravity."""

    def __init__(self, *, plain):
        self._plain = plain

    def observe(self, readings, goals, action, command):
        w, x, y, z = readings[:, 2:6].T
        down = np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=1)
        seen = readings[:, 2:6] if self._plain else down
        return np.concatenate([readings[:, :2], seen], axis=1)

    def policy(self, observations):
        return np.zeros((len(observations), 1))

    def act(self, action, readings, goals, command):
        return np.zeros((len(action), 1))


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("turn", [1, -1])
def test_the_order_of_a_quaternion_is_named(plain, turn):
    bundle = Bundle.open(BUNDLES / "pendulum-swingup")
    old = bundle.contract
    quat = SensorSpec(name="imu", unit="", width=4, kind="framequat", quaternion="wxyz")
    joint = TermSpec(
        name="joint", unit="rad", width=2, scale=1.0, sources=("hinge_pos", "hinge_vel")
    )
    seen = TermSpec(name="attitude", unit="", width=4 if plain else 3, scale=1.0, sources=("imu",))
    contract = replace(old, sensors=(*old.sensors, quat), observations=(joint, seen), history=1)
    policy = ObjectPolicy(SimpleNamespace(id="attitude"), contract)
    opened = replace(open_policy(bundle), policy=policy)
    interface = GraphInterface.of(opened, runtime=Attitude(plain=plain))
    rng = np.random.default_rng(2)
    turns = np.cumsum(rng.normal(0, 0.05, (60, 4)), axis=0) + np.array([1.0, 0.3, -0.2, 0.1])
    turns /= np.linalg.norm(turns, axis=1, keepdims=True)
    joints = np.cumsum(rng.normal(0, 0.05, (60, 2)), axis=0)
    readings = np.concatenate([joints, turns], axis=1)
    none = np.zeros((60, 0))
    frames = interface.runtime.observe(readings, none, none, none)
    log = ControlLog(
        contract=contract,
        episode="",
        times=np.arange(60) / contract.rate_hz,
        readings=np.concatenate([joints, np.roll(turns, turn, axis=1)], axis=1),
        fresh=np.ones((60, 3), dtype=bool),
        command=np.zeros((60, 1)),
        observation=frames,
        goals=none,
    )
    assert [f.fault for f in SoftwareChain(interface, log).findings()][:1] == [Fault.QUATERNION]


def test_no_log_is_one_clear_error():
    with pytest.raises(Sim2RealError, match="no log"):
        diagnose(Bundle.open(BUNDLES / "pendulum-swingup"), [])


def test_an_unknown_task_leaves_physics_out_and_says_so(monkeypatch):
    bundle = Bundle.open(BUNDLES / "pendulum-swingup")
    doctor = Doctor(replace(bundle, contract=replace(bundle.contract, task="somebody's own")))
    times = np.arange(20) / bundle.contract.rate_hz
    wave = np.sin(times)[:, None]
    channels = {
        name: Signal(times, wave)
        for name in ("sensor/hinge_pos", "sensor/hinge_vel", "actuator/hinge")
    }
    episode = Episode(channels=channels, provenance=Provenance(kind="real"))
    found = doctor.diagnose([episode])
    assert found.findings == ()
    assert any("unknown task" in note for note in found.notes)


def test_readings_that_a_network_saw_are_worked_out_from_its_observation():
    interface = GraphInterface.of(Bundle.open(BUNDLES / "arm-reach"))
    rng = np.random.default_rng(1)
    given = rng.normal(0.0, 0.4, (30, len(interface.inputs)))
    other = given.copy()
    other[:, 4] += 0.2  # wrist_roll_pos
    off = interface.observe(other) - interface.observe(given)
    solved = off[:, interface.linear] @ interface.solve.T
    assert interface.solvable[4]
    assert np.allclose(solved[:, 4], 0.2, atol=1e-4)
    assert np.abs(np.delete(solved, 4, axis=1)).max() < 1e-4


def test_the_normaliser_is_read_from_the_graph():
    interface = GraphInterface.of(Bundle.open(BUNDLES / "pendulum-swingup"))
    mean, scale = interface.normaliser
    assert mean.shape == scale.shape == (interface.contract.input_width,)
    assert (scale > 0).all() and not np.allclose(scale, 1.0)


@pytest.mark.parametrize(
    ("spoil", "kind", "value"),
    [
        (lambda x: -x, RelationKind.NEGATED, -1.0),
        (lambda x: x + 0.01, RelationKind.OFFSET, 0.01),
        (lambda x: 1.05 * x, RelationKind.SCALED, 1.05),
        (np.degrees, RelationKind.DEGREES, 180 / np.pi),
        (np.radians, RelationKind.DEGREES, np.pi / 180),
        (lambda x: np.concatenate([x[:1], x[:1], x[:1], x[:-3]]), RelationKind.SHIFTED, 3),
        (lambda x: np.clip(x, -0.5, 0.5), RelationKind.CLIPPED, 0.0),
        (lambda x: np.where(np.arange(len(x)) > 50, x[50], x), RelationKind.HELD, 0.0),
        (lambda x: x[np.arange(len(x)) // 5 * 5], RelationKind.HELD, 0.0),
        (np.zeros_like, RelationKind.ABSENT, 0.0),
        (lambda x: np.full_like(x, np.nan), RelationKind.ABSENT, 0.0),
        (lambda x: np.full_like(x, 0.3), RelationKind.STUCK, 0.3),
        (lambda x: 1.4 * x + 0.2, RelationKind.AFFINE, 1.4),
        (lambda x: np.where(np.arange(len(x)) > 60, -x, x), RelationKind.NEGATED, -1.0),
    ],
)
def test_a_relation_between_series_is_found(spoil, kind, value):
    rng = np.random.default_rng(0)
    true = np.cumsum(rng.normal(0, 0.1, (120, 3)), axis=0)
    logged = true.copy()
    logged[:, 1] = spoil(true[:, 1])
    rows = np.ones(120, dtype=bool)
    (found,) = relate(logged, true, rows, ["a", "a", "b"])
    assert (found.kind, found.column) == (kind, 1)
    assert found.value == pytest.approx(value, rel=1e-3)


def test_channels_in_each_others_places_are_found_also_where_one_rests():
    rng = np.random.default_rng(0)
    true = np.cumsum(rng.normal(0, 0.1, (80, 3)), axis=0)
    true[:, 2] = 0.0
    found = relate(true[:, [1, 2, 0]], true, np.ones(80, dtype=bool), ["a", "a", "a"])
    assert [(r.kind, r.value) for r in found] == [
        (RelationKind.PERMUTED, 1), (RelationKind.PERMUTED, 2), (RelationKind.PERMUTED, 0),
    ]  # fmt: skip


def test_equal_series_have_no_relation():
    true = np.random.default_rng(0).normal(0, 1, (50, 4))
    assert relate(true + 1e-6, true, np.ones(50, dtype=bool), ["a"] * 4) == []


@pytest.mark.slow
def test_a_bundle_that_moved_between_two_looks_is_compared_with_its_worlds_all_the_same(tmp_path):
    """A log that fails the first checks needs no reference; the next one does, from elsewhere."""
    pilot = Episode(
        channels={"sensor/hinge_pos": Signal([0.0, 0.02], [[0.0], [0.1]])},
        provenance=Provenance(kind="real"),
    )
    first = shutil.copytree(BUNDLES / "pendulum-swingup", tmp_path / "first")
    diagnose(first, [pilot])
    shutil.rmtree(first)
    log = select([str(MADE / "flown")])
    assert "not checked" not in " ".join(diagnose(BUNDLES / "pendulum-swingup", log).notes)


def later(episode, periods):
    """A recording whose joints answer later than they did."""
    channels = {
        name: Signal(signal.times[periods:], signal.values[: -periods or None], signal.unit)
        for name, signal in episode.signals.items()
        if name.startswith("sensor/")
    }
    sent = episode["command"]
    channels["command"] = Signal(sent.times[periods:], sent.values[periods:], sent.unit)
    return Episode(channels=channels, provenance=Provenance(kind="real"))


@pytest.mark.slow
def test_a_delay_is_a_fault_unless_the_bundles_own_twin_knows_it():
    bundle, twin = bundle_and_twin("arm-reach")
    slow = {"actuator/*/delay": 0.0735, "joint/*/damping": 3.0}
    slow |= {p.name: 0.5 for p in twin.parameters if p.name.endswith("/kp")}
    logs = simulate(bundle, twin, count=4, seed=3, values=slow)
    late = [Fault.ACTION_DELAYED]

    def delays(opened, periods=0):
        return [f for f in names(opened, *(later(log, periods) for log in logs)) if f in late]

    opened = open_policy(bundle)
    known = Empirical(
        names=tuple(slow),
        samples=tuple(tuple(f * v for v in slow.values()) for f in np.linspace(0.97, 1.02, 12)),
    )
    knows = Doctor(replace(opened, twin=replace(twin, posterior=known), source="posterior"))
    assert delays(Doctor(opened)) == late
    assert delays(knows) == [] and delays(knows, 3) == late
