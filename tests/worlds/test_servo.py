"""Servos as hardware drives them: by a voltage, through a lossy gear, and sometimes not at all."""

import pytest
import torch

from sim2real.errors import Sim2RealError
from sim2real.twin import Twin
from sim2real.worlds import Worlds, open_worlds

PERIOD_S = 0.005
KP, MOTORCONST, RESISTANCE, SUPPLY = 10.0, 0.4, 2.0, 8.0
ARM = """
<mujoco>
  <option timestep="0.001" integrator="implicitfast"/>
  <worldbody>
    <body name="arm">
      <joint name="hinge" axis="0 1 0" armature="0.01"/>
      <inertial mass="0.3" pos="0 0 -0.1" diaginertia="1e-4 1e-4 1e-4"/>
    </body>
  </worldbody>
  <actuator><position name="hinge" joint="hinge" kp="2.0"/></actuator>
  <sensor><jointpos name="angle" joint="hinge"/></sensor>
</mujoco>
"""
VOLTAGE = f"""
[effects.actuator.hinge]
drive = "voltage"
motorconst = {MOTORCONST}
resistance = {RESISTANCE}
voltage_limit = {SUPPLY}
"""
PARAMETERS = """
[parameters."actuator/hinge/kp"]
prior = { kind = "uniform", low = 1.0, high = 40.0 }
[parameters."actuator/hinge/motorconst"]
prior = { kind = "uniform", low = 0.1, high = 1.0 }
[parameters."actuator/hinge/resistance"]
prior = { kind = "uniform", low = 0.5, high = 8.0 }
"""


def torque_at(worlds: Worlds, angle: float, speed: float, command: float) -> torch.Tensor:
    """(worlds,) torque at the hinge in a state."""
    everyone = torch.arange(worlds.count)
    worlds.derived("qfrc_actuator")
    worlds.reset(everyone)
    worlds.state("qpos")[:, 0] = angle
    worlds.state("qvel")[:, 0] = speed
    worlds.state("ctrl")[:, 0] = command
    worlds.begin(everyone)
    return worlds.derived("qfrc_actuator")[:, 0].clone()


@pytest.mark.parametrize("speed", [0.0, 3.0, -3.0])
@pytest.mark.parametrize("error", [0.0, 0.2, -0.5, 5.0])
def test_a_servo_that_sets_a_voltage_is_braked_by_its_back_emf(make_twin, error, speed):
    twin = Twin.load(make_twin(VOLTAGE + PARAMETERS, ARM))
    worlds = open_worlds(twin, count=3, switches=True, period_s=PERIOD_S)
    values = torch.tensor(
        [[KP, MOTORCONST, RESISTANCE], [2 * KP, MOTORCONST, RESISTANCE], [KP, 0.7, 5.0]]
    ).double()
    worlds.set_parameters(values, torch.arange(3))
    found = torque_at(worlds, 0.1, speed, 0.1 + error)
    for (kp, motorconst, resistance), torque in zip(values.tolist(), found.tolist(), strict=True):
        volts = max(-SUPPLY, min(SUPPLY, kp * error)) - motorconst * speed
        assert torque == pytest.approx(motorconst * volts / resistance, abs=1e-9)


def test_a_gain_in_volts_starts_from_the_torque_the_model_states(make_twin):
    twin = Twin.load(make_twin(VOLTAGE + PARAMETERS, ARM))
    assert twin.parameter("actuator/hinge/kp").nominal == pytest.approx(KP)


@pytest.mark.parametrize(
    ("toml", "xml", "message"),
    [
        (VOLTAGE.replace('"voltage"', '"steam"'), ARM, "'current', 'voltage'"),
        ('[effects.actuator.hinge]\ndrive = "voltage"', ARM, "needs resistance"),
        (VOLTAGE, ARM.replace('kp="2.0"', 'kp="2.0" kv="0.1"'), "without kv"),
        (
            VOLTAGE
            + '[parameters."actuator/hinge/kd"]\n'
            + 'prior = { kind = "uniform", low = 0.0, high = 1.0 }',
            ARM,
            "back-EMF",
        ),
    ],
)
def test_a_voltage_drive_that_cannot_be_is_one_line(make_twin, toml, xml, message):
    with pytest.raises(Sim2RealError, match=message) as caught:
        Twin.load(make_twin(toml, xml))
    assert "\n" not in str(caught.value)


def test_a_drive_that_is_off_neither_drives_nor_brakes(make_twin):
    with_motor = open_worlds(
        Twin.load(make_twin(VOLTAGE, ARM)), count=2, switches=True, period_s=PERIOD_S
    )
    weak = VOLTAGE.replace(f"resistance = {RESISTANCE}", "resistance = 1e12")
    free = open_worlds(
        Twin.load(make_twin(weak, ARM, "free")), count=1, switches=True, period_s=PERIOD_S
    )
    for worlds in (with_motor, free):
        worlds.state("qpos")[:, 0] = 1.0
        worlds.begin(torch.arange(worlds.count))
    for _ in range(100):
        with_motor.step(torch.tensor([[torch.nan], [1.0]]))
        free.step(torch.tensor([[torch.nan]]))
    swinging, held = with_motor.state("qpos")[:, 0].tolist()
    assert swinging == pytest.approx(float(free.state("qpos")[0, 0]), abs=1e-6)
    assert held > 0.7 > swinging


def test_a_drive_holds_again_once_it_is_on(make_twin):
    worlds = open_worlds(
        Twin.load(make_twin(VOLTAGE, ARM)), count=1, switches=True, period_s=PERIOD_S
    )
    for command, near in ((0.5, True), (torch.nan, False), (0.5, True)):
        for _ in range(400):
            worlds.step(torch.tensor([[command]]))
        gap = abs(float(worlds.state("qpos")[0, 0]) - 0.5)
        assert gap < 0.15 if near else gap > 0.3
    worlds.step(torch.tensor([[torch.nan]]))
    worlds.reset(torch.arange(1))
    assert torque_at(worlds, 0.0, 0.0, 0.5)[0] > 0.5


def test_friction_follows_the_square_of_the_load(make_twin):
    toml = "[effects.joint.hinge]\nload_friction = 0.1\nload_friction_quadratic = 0.3"
    worlds = open_worlds(Twin.load(make_twin(toml, ARM)), count=1, switches=True, period_s=PERIOD_S)
    for _ in range(5):
        load = float(worlds.derived("qfrc_actuator")[0, 0].abs())
        worlds.step(torch.tensor([[0.8]]))
        friction = float(worlds.field("dof_frictionloss")[0, 0])
        assert friction == pytest.approx(0.1 * load + 0.3 * load**2, abs=1e-6)
    assert friction > 0.3
