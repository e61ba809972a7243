"""The learned remainder: it explains what parameters cannot, and nothing outside its data."""

import json
from dataclasses import replace

import mujoco
import numpy as np
import pytest
import torch

from sim2real.errors import Sim2RealError
from sim2real.identification.learned_remainder import learn_remainder
from sim2real.logs.control_log import ControlLog
from sim2real.params import Dimension, Normal, Parameter
from sim2real.replay.replayer import Replayer
from sim2real.tasks import TaskEnv, find_task
from sim2real.twin import JointRemainder, Remainder, Twin, twin_contract
from sim2real.worlds import open_worlds
from tests.tasks.test_tasks import guarded

ROTOR = """
<mujoco model="rotor">
  <compiler angle="radian"/>
  <option timestep="0.005" integrator="implicitfast"><flag contact="disable"/></option>
  <worldbody>
    <body name="arm">
      <joint name="hinge" axis="0 1 0" damping="0.02" armature="0.002"/>
      <inertial mass="0.3" pos="0 0 -0.15" diaginertia="1e-4 1e-4 1e-4"/>
    </body>
  </worldbody>
  <actuator><motor name="hinge" joint="hinge" ctrlrange="-2 2"/></actuator>
  <sensor>
    <jointpos name="angle" joint="hinge"/>
    <jointvel name="speed" joint="hinge"/>
  </sensor>
</mujoco>
"""
EFFECTS = """
[effects.sensor.angle]
noise = 1e-3
[effects.sensor.speed]
noise = 1e-2
[parameters."joint/hinge/damping"]
bounds = [0.0, 1.0]
prior = { kind = "uniform", low = 0.01, high = 0.03 }
"""
PERIOD_S, STEPS = 0.01, 2


def remainder(weight=1.0, **changes):
    """One bump at rest in the middle, whole up to a distance of one and none from two on."""
    nothing = (0.0,) * len(Remainder.features)
    joint = JointRemainder(
        joint="hinge",
        scales=(0.5, 1.0, 1.0, 1.0),
        centres=((0.0, None, None, None),),
        widths=(3.0,),
        weights=(weight,),
        seen=(nothing,),
        reach=1.0,
    )
    return Remainder(joints=(replace(joint, **changes),))


def at(**values):
    row = [values.get(name, 0.0) for name in Remainder.features]
    return torch.tensor([[row]], dtype=torch.float64)


@pytest.fixture
def rotor(make_twin):
    return Twin.load(make_twin(EFFECTS, ROTOR))


def test_the_force_is_exactly_zero_outside_the_data_whatever_leaves_it():
    learned = remainder()
    assert float(learned.force(at())) == pytest.approx(1.0)
    for feature, far in zip(Remainder.features, (1.01, 3.7, 2.01, 2.01), strict=True):
        assert float(learned.force(at(**{feature: far}))) == 0.0
        assert float(learned.force(at(**{feature: 1e6}))) == 0.0
        assert float(learned.basis(at(**{feature: -far})).abs().max()) == 0.0


def test_the_force_fades_without_a_jump():
    places = torch.zeros(2001, 1, len(Remainder.features), dtype=torch.float64)
    places[:, 0, 0] = torch.linspace(-1.2, 1.2, 2001)
    force = remainder().force(places)[:, 0]
    assert float(force.diff().abs().max()) < 5e-3
    assert float(force[0]) == 0.0 == float(force[-1])


def test_positions_a_turn_apart_are_the_same_where_a_joint_turns():
    turning, bound = remainder(turns=True), remainder()
    full_turn = at(position=2 * np.pi + 0.1)
    assert float(turning.force(full_turn)) == pytest.approx(float(turning.force(at(position=0.1))))
    assert float(bound.force(full_turn)) == 0.0


def test_a_twin_keeps_its_remainder_and_is_another_version(rotor, tmp_path):
    learned = rotor.with_remainder(remainder(0.3))
    saved = learned.save(tmp_path / "learned")
    assert saved.remainder == learned.remainder and saved.version == learned.version
    assert learned.version != rotor.version and saved.parent == rotor.version


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda d: d.pop("joints"), "needs 'joints'"),
        (lambda d: d["joints"][0].update(reach=0.0), "must be positive"),
        (lambda d: d["joints"][0].update(weights=[1.0, 2.0]), "a centre, a width and a weight"),
        (lambda d: d["joints"][0].update(joint="hing"), "no hinge or slide 'hing'"),
        (lambda d: d["joints"][0].update(seen=[[0.0]]), "seen of all joints"),
    ],
)
def test_a_spoilt_remainder_is_refused_by_its_fault(rotor, tmp_path, spoil, words):
    file = rotor.with_remainder(remainder()).save(tmp_path / "spoilt").folder / "remainder.json"
    data = json.loads(file.read_text())
    spoil(data)
    file.write_text(json.dumps(data))
    with pytest.raises(Sim2RealError, match=words):
        Twin.load(tmp_path / "spoilt")


def drive(twin, steps=40, **options):
    worlds = open_worlds(twin, count=2, period_s=PERIOD_S, **options)
    for _ in range(steps):
        worlds.step(torch.full((2, 1), 0.05))
    return worlds


def test_worlds_use_it_only_when_asked(rotor):
    learned = rotor.with_remainder(remainder(0.2))
    plain, without, with_it = drive(rotor), drive(learned), drive(learned, remainder=True)
    assert torch.equal(plain.state("qpos"), without.state("qpos"))
    assert float((with_it.state("qpos") - plain.state("qpos")).abs().min()) > 0.05
    with pytest.raises(Sim2RealError, match="has no remainder"):
        drive(rotor, remainder=True)


def test_a_force_in_the_middle_is_that_force(rotor):
    """A joint at rest begins to turn as if its motor had made the torque."""
    pushed = open_worlds(
        rotor.with_remainder(remainder(0.2)), count=1, period_s=PERIOD_S, remainder=True
    )
    driven = open_worlds(rotor, count=1, period_s=PERIOD_S)
    pushed.step(torch.zeros(1, 1))
    driven.step(torch.full((1, 1), 0.2))
    assert float(pushed.state("qvel")) == pytest.approx(float(driven.state("qvel")), rel=1e-6)


def test_weights_are_parameters_of_each_world(rotor):
    weight = Parameter(
        name="joint/hinge/remainder[0]",
        dimension=Dimension.DYNAMICS,
        nominal=0.0,
        prior=Normal(mean=0.0, std=0.1),
    )
    learned = rotor.with_remainder(remainder(0.0))
    worlds = open_worlds(
        replace(learned, parameters=(*learned.parameters, weight)), count=2, period_s=PERIOD_S
    )
    everyone = torch.arange(2)
    worlds.set_parameters(torch.tensor([[0.02, 0.0], [0.02, 0.1]]).double(), everyone)
    worlds.reset(everyone)
    worlds.begin(everyone)
    worlds.step(torch.zeros(2, 1))
    still, moved = worlds.state("qvel")[:, 0].tolist()
    assert still == 0.0 and moved > 0.01


def test_a_resumed_world_goes_on_bit_for_bit(rotor):
    learned = rotor.with_remainder(remainder(0.2, centres=((None, None, 0.05, None),)))
    worlds = drive(learned, remainder=True)
    other = open_worlds(learned, count=2, period_s=PERIOD_S, remainder=True)
    other.load_state_dict(worlds.state_dict())
    for each in (worlds, other):
        each.step(torch.zeros(2, 1))
    assert torch.equal(worlds.state("qpos"), other.state("qpos"))


def test_the_drive_is_seen_as_late_as_it_acts(make_twin):
    late = EFFECTS + "[effects.actuator.hinge]\ndelay = 0.025\ndelay_max = 0.05\n"
    twin = Twin.load(make_twin(late, ROTOR)).with_remainder(remainder())
    worlds = open_worlds(twin, count=1, period_s=PERIOD_S, remainder=True)
    seen = []
    for _ in range(4):
        worlds.step(torch.ones(1, 1))
        seen.append(float(worlds.features[0, 0, Remainder.features.index("drive")]))
    assert seen == pytest.approx([0.0, 0.0, 0.5, 1.0])


def test_a_step_with_it_never_leaves_the_device(monkeypatch):
    task = find_task("pendulum-swingup")
    twin = Twin.load(task.twin, check=False).with_remainder(remainder(0.1))
    env = TaskEnv(task, worlds=4, twin=twin, remainder=True)
    env.step(torch.zeros(4, 1))
    with guarded(monkeypatch):
        env.step(torch.zeros(4, 1))


def hidden(angle, speed):
    """Cogging, and friction that falls with speed: neither is a parameter of the twin."""
    cogging = 0.06 * np.sin(5 * angle)
    return cogging - 0.02 * np.tanh(speed / 0.1) * (1 + np.exp(-((speed / 0.5) ** 2)))


def recorded(twin, seed, *, effect=hidden, seconds=8.0):
    """A log of the rotor under slow, wide torques, with noise."""
    rng = np.random.default_rng(seed)
    model = mujoco.MjModel.from_xml_string(ROTOR)
    data = mujoco.MjData(model)
    count = round(seconds / PERIOD_S)
    times = PERIOD_S * np.arange(count)
    torque = sum(
        rng.uniform(0.06, 0.12) * np.sin(2 * np.pi * rng.uniform(0.1, 0.8) * times + phase)
        for phase in rng.uniform(0, 2 * np.pi, 3)
    )
    readings = np.zeros((count, 2))
    mujoco.mj_forward(model, data)
    for row in range(count):
        readings[row] = data.sensordata
        data.ctrl[0] = torque[row]
        for _ in range(STEPS):
            data.qfrc_applied[0] = effect(data.qpos[0], data.qvel[0])
            mujoco.mj_step(model, data)
    return ControlLog(
        contract=twin_contract(twin, 1 / PERIOD_S),
        episode=f"rotor-{seed}",
        times=times,
        readings=readings + rng.normal(0.0, (1e-3, 1e-2), readings.shape),
        fresh=np.ones((count, 2), dtype=bool),
        command=torque[:, None],
    )


def rms(twin, logs, **options):
    values = twin.best_guess()[None]
    found = Replayer(twin, ControlLog.join(logs), horizon_s=2.0, values=values, **options)(values)
    return float(np.sqrt(np.nanmean(found.errors[0, ..., 0] ** 2)))


@pytest.mark.slow
def test_most_of_a_planted_effect_is_recovered_on_recordings_it_never_saw(rotor):
    learned = learn_remainder(rotor, [recorded(rotor, seed) for seed in range(6)], threads=1)
    assert learned.why == "" and learned.ratio < 0.65
    fresh = [recorded(rotor, seed) for seed in (100, 101)]
    twin = rotor.with_remainder(learned.remainder)
    assert rms(twin, fresh, remainder=True) < 0.4 * rms(rotor, fresh)
    for feature in Remainder.features:
        assert float(learned.remainder.basis(at(**{feature: 50.0})).abs().max()) == 0.0


@pytest.mark.slow
def test_where_nothing_is_missing_there_is_no_remainder(rotor):
    logs = [recorded(rotor, seed, effect=lambda angle, speed: 0.0) for seed in range(3)]
    learned = learn_remainder(rotor, logs, threads=1)
    assert learned.remainder is None and "not below" in learned.why


def test_of_too_few_recordings_nothing_is_learned(rotor):
    learned = learn_remainder(rotor, [recorded(rotor, 0, seconds=1.0)])
    assert learned.remainder is None and "needs 3 recordings" in learned.why
    assert json.loads(json.dumps(learned.to_dict()))["ratio"] is None
