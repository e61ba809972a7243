"""Engines: opened by name, honest about what they cannot do, and held to what worlds promise."""

import copy
from importlib.metadata import EntryPoint

import mujoco
import pytest
import torch

from sim2real.errors import Sim2RealError
from sim2real.tasks import TaskEnv, find_task
from sim2real.testing import check_engine
from sim2real.twin import Twin
from sim2real.worlds import (
    Engine,
    EngineAbilities,
    TwinWorlds,
    engine_names,
    find_engine,
    open_worlds,
    registry,
)

PENDULUM = find_task("pendulum-swingup").twin


class HingePhysics:
    """One hinge with a weight on it, integrated in torch: nothing of MuJoCo moves it."""

    forces_at_start = False
    gravity, explicit = 9.81, False

    def __init__(self, model, request):
        if model.njnt != 1 or model.jnt_type[0] != mujoco.mjtJoint.mjJNT_HINGE:
            raise Sim2RealError("this engine simulates one hinge")
        self.device = torch.device("cpu")
        self.model, self.count = model, request.count
        zeros = torch.zeros(request.count, 1, dtype=torch.float64)
        self.states = {name: zeros.clone() for name in ("qpos", "qvel", "ctrl")}
        self.computed = {"sensordata": zeros.repeat(1, 2), "qfrc_actuator": zeros.clone()}
        self.fields = {}

    def state(self, name):
        return self.states[name]

    def derived(self, name):
        return self.computed[name]

    def field(self, name):
        if name not in self.fields:
            row = torch.from_numpy(getattr(self.model, name).reshape(-1).copy())
            self.fields[name] = row.repeat(self.count, 1)
        return self.fields[name]

    def set_constants(self, ids):
        pass

    def reset(self, ids):
        for state in self.states.values():
            state[ids] = 0.0

    def forward(self, ids):
        sensed = torch.cat([self.states["qpos"], self.states["qvel"]], dim=1)
        self.computed["sensordata"][ids] = sensed[ids]

    def advance(self, steps):
        angle, speed = self.states["qpos"][:, 0], self.states["qvel"][:, 0]
        mass, length = self.field("body_mass")[:, 1], float(-self.model.body_ipos[1, 2])
        inertia = self.field("body_inertia")[:, 4] + mass * length**2
        torque = self.field("actuator_gainprm")[:, 0] * self.states["ctrl"][:, 0]
        self.computed["qfrc_actuator"][:, 0] = torque
        step = self.model.opt.timestep
        for _ in range(int(steps[0])):
            weight = mass * self.gravity * length * torch.sin(angle)
            before = speed.clone()
            speed += step * (torque - weight) / inertia
            angle += step * (before if self.explicit else speed)
        broken = ~(speed.abs() < 1e6)
        self.forward(torch.arange(self.count))
        return broken

    def world(self, index, model):
        model = copy.copy(self.model) if model is None else model
        for name, values in self.fields.items():
            getattr(model, name).reshape(-1)[:] = values[index].numpy()
        data = mujoco.MjData(model)
        for name, values in self.states.items():
            getattr(data, name)[:] = values[index].numpy()
        mujoco.mj_forward(model, data)
        return model, data

    def snapshot(self):
        return torch.cat(list(self.states.values()), dim=1)

    def restore(self, rows):
        for state, column in zip(self.states.values(), rows.split(1, dim=1), strict=True):
            state.copy_(column)


def engine(physics=HingePhysics, worlds=TwinWorlds, **abilities) -> Engine:
    declared = {"engine": "hinge", "simulator": "torch", "version": "1", "bit_identical": True}
    able = EngineAbilities(**declared | abilities)
    mine = type("Physics", (physics,), {"abilities": able})
    return Engine(abilities=able, open=lambda twin, request: worlds(twin, request, mine))


MOVED = frozenset(["body_mass", "body_inertia", "actuator_gainprm"])
HINGE = engine(fields=MOVED)


def missing(broken: Engine) -> dict[str, str]:
    return {one.name: one.why for one in check_engine(broken).missing}


def test_the_engine_of_this_machine_does_all_that_is_asked_of_engines():
    found = check_engine("cpu")
    assert {one.outcome for one in found.requirements} == {"met"}, list(found.sentences())


@pytest.mark.slow
@pytest.mark.parametrize("task", ["pendulum-swingup", "arm-push"])
def test_it_does_so_with_other_twins(task):
    assert check_engine("cpu", twin=find_task(task).twin).passed


def test_a_small_engine_of_ones_own_passes_but_for_what_it_does_not_declare():
    found = check_engine(HINGE)
    assert found.passed, list(found.sentences())
    left_out = {one.name: one.why for one in found.requirements if one.outcome == "left out"}
    assert set(left_out) == {
        "lets things fall",
        "delays commands",
        "switches actuators off",
        "gives worlds their own time steps",
    }
    assert "one hinge" in left_out["lets things fall"]
    assert len(found.requirements) - len(left_out) > 20


def test_parameters_that_compound_are_found():
    class Compounding(TwinWorlds):
        def set_parameters(self, values, ids):
            super().set_parameters(values, ids)
            mass = self.field("body_mass")
            mass[ids, 1] *= self.factor[ids] if hasattr(self, "factor") else 1.0
            self.factor = mass[:, 1] / 0.5

    found = missing(engine(worlds=Compounding, fields=MOVED))
    assert "compound over two sets" in found["sets parameters from their nominal values"]
    assert "lets things fall" not in found and "swings a pendulum" not in found


def test_worlds_that_share_their_state_are_found():
    class Shared(HingePhysics):
        def reset(self, ids):
            super().reset(torch.arange(self.count))

    found = missing(engine(Shared, fields=MOVED))
    assert "reset of some worlds changes others" in found["resets some worlds alone"]


def test_a_member_that_is_not_there_is_named():
    class Blind:
        def __init__(self, twin, request, physics):
            self.inside = TwinWorlds(twin, request, physics)

        def __getattr__(self, name):
            if name in ("world", "inside"):
                raise AttributeError(f"no {name}")
            return getattr(self.inside, name)

    found = missing(engine(worlds=Blind, fields=MOVED))
    assert found["has all members"] == "there is no world"
    assert "AttributeError" in found["shows a world"]


@pytest.mark.parametrize(
    ("fault", "name", "words"),
    [
        ({"gravity": 9.0}, "swings a pendulum", "period of 1.3"),
        ({"explicit": True}, "keeps energy", "undamped pendulum"),
        ({"forward": lambda self, ids: None}, "begins worlds", "leaves another world's derived"),
        ({"snapshot": lambda self: self.states["qpos"].repeat(1, 3)}, "resumes", "bit for bit"),
    ],
)
def test_faults_of_the_physics_are_found(fault, name, words):
    broken = type("Broken", (HingePhysics,), fault)
    found = missing(engine(broken, fields=MOVED))
    assert any(one.startswith(name) and words in why for one, why in found.items()), found


@pytest.mark.slow
def test_faults_of_worlds_are_found():
    class Perfect(TwinWorlds):
        def step(self, command):
            super().step(command)
            self.measured.copy_(self.derived("sensordata"))
            return torch.zeros(self.count, dtype=torch.bool)

    class Rushed(TwinWorlds):
        def _set_friction(self, ids, *, load):
            if ids == slice(None):
                self.state("ctrl").mul_(1.0 + torch.rand(1, dtype=torch.float64))

    found = missing(engine(worlds=Perfect, fields=MOVED))
    assert "ignore the twin's noise model" in found["reads with the twin's noise"]
    assert "diverged worlds are not reported" in found["reports what diverges"]
    found = missing(engine(worlds=Rushed, fields=MOVED))
    assert "the same seed gives other worlds" in found["is the same for the same seed"]


def test_abilities_that_are_declared_and_not_there_are_found():
    class Prompt(HingePhysics):
        def __init__(self, model, request):
            super().__init__(model, request)
            self.states["history"] = torch.zeros(self.count, model.nhistory, dtype=torch.float64)

    found = missing(engine(Prompt, fields=None, delays=True, switches=True, varied_timestep=True))
    assert found["delays commands"].endswith("[0, 1, 4] periods arrive [0, 0, 0] periods later")
    assert "does not switch an actuator off" in found["switches actuators off"]
    assert "time steps of each world's own" in found["refuses what it does not declare"]


def test_an_unknown_engine_is_answered_with_the_nearest():
    with pytest.raises(Sim2RealError, match="unknown engine 'wrap'; did you mean 'warp'"):
        open_worlds(PENDULUM, 1, engine="wrap")
    assert set(engine_names()) >= {"cpu", "warp"}


def test_an_engine_whose_package_is_missing_says_what_to_install(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name="mujoco_warp")

    monkeypatch.setattr(registry, "import_module", absent)
    with pytest.raises(Sim2RealError, match=r"needs mujoco_warp: pip install 'sim2real\[gpu\]'"):
        find_engine("warp")


def test_other_packages_add_engines_by_entry_point(monkeypatch):
    point = EntryPoint(name="hinge", value=f"{__name__}:HINGE", group=registry.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda self: HINGE)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    assert "hinge" in engine_names() and find_engine("hinge") is HINGE
    monkeypatch.undo()
    broken = EntryPoint(name="broken", value="nowhere:ENGINE", group=registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [broken])
    with pytest.raises(Sim2RealError, match="'broken' of nowhere:ENGINE cannot be loaded: No mod"):
        find_engine("broken")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"switches": True}, "'hinge' cannot switch actuators off"),
        ({"remainder": True}, "'hinge' cannot apply a learned remainder"),
        ({"device": "cuda:0"}, "'hinge' does not compute on 'cuda:0', but on cpu"),
        ({"rate_hz": 50.0, "period_s": 0.02}, "not both"),
    ],
)
def test_what_an_engine_cannot_do_is_an_error_and_never_silence(options, words):
    with pytest.raises(Sim2RealError, match=words):
        open_worlds(PENDULUM, 1, engine=HINGE, **options)


def test_a_field_that_an_engine_cannot_vary_is_named_with_its_parameter():
    twin = Twin.load(PENDULUM)
    few = engine(fields=MOVED, delays=True)
    with pytest.raises(Sim2RealError, match=r"values of body_ipos, which body/pole/ipos\[2\] move"):
        open_worlds(twin, 1, engine=few)
    with pytest.raises(Sim2RealError, match="cannot delay commands or readings"):
        open_worlds(twin, 1, engine=HINGE)


def test_a_task_runs_on_the_engine_that_is_asked_for():
    with pytest.raises(Sim2RealError, match="'hinge' cannot delay"):
        TaskEnv(find_task("pendulum-swingup"), worlds=2, engine=HINGE)
