"""Contract and bundle: what was trained is what is deployed, byte for byte and name for name."""

import json
import shutil

import numpy as np
import onnx
import pytest
import torch

from sim2real.cli import main
from sim2real.contract import Contract, Limits
from sim2real.contract.contract import SCHEMA
from sim2real.errors import Sim2RealError
from sim2real.evaluation.simulated_trials import run_trials
from sim2real.learn import ExportConfig, TrainConfig, TrainedPolicy, export, train
from sim2real.learn import bundle_export as export_module
from sim2real.policy import Bundle, BundlePolicy, Pilot, Runtime, make_contract
from sim2real.policy.bundle import seal
from sim2real.tasks import TaskEnv, find_task, task_names
from tests.repository import ROOT

pytestmark = pytest.mark.slow

TASKS = ("pendulum-swingup", "arm-reach", "arm-push")


@pytest.fixture(scope="module")
def runs(made_once):
    """A run of each task that has learned next to nothing, and its bundle."""

    def make(folder):
        for task in TASKS:
            run = train(TrainConfig(task=task, worlds=16, iterations=2, out=folder)).run
            export(ExportConfig(run=run, observations=1000))

    made = {run.parent.name: run for run in made_once("policies", make).glob("*/*")}
    return {task: (made[task], Bundle.open(made[task] / "bundle")) for task in TASKS}


@pytest.fixture
def bundle(runs, tmp_path) -> Bundle:
    """A copy of the pendulum's bundle, to be spoilt."""
    folder = shutil.copytree(runs["pendulum-swingup"][1].folder, tmp_path / "bundle")
    return Bundle.open(folder)


@pytest.mark.parametrize("task", TASKS)
def test_a_contract_names_everything_in_order(task):
    env = TaskEnv(find_task(task), worlds=2)
    contract = make_contract(env)
    assert contract.frame_width * contract.history == env.actor_width
    assert [term.name for term in contract.observations] == [t.name for t in env.task.actor]
    assert contract.readings_width == env.worlds.measured.shape[1]
    assert contract.rate_hz == env.task.rate_hz
    assert all(sensor.unit and sensor.of for sensor in contract.sensors)
    assert all(command.unit in ("rad", "N m") for command in contract.commands)
    assert {source for term in contract.observations for source in term.sources} <= {
        *(sensor.name for sensor in contract.sensors),
        *(goal.name for goal in contract.goals),
        "action",
        "command",
    }
    again = Contract.from_dict(contract.to_dict())
    assert again == contract and list(contract.differences(again)) == []


def test_contracts_tell_their_differences_by_name():
    contract = make_contract(TaskEnv(find_task("arm-reach"), worlds=1))
    other = contract.to_dict()
    other["rate_hz"] = 50.0
    other["sensors"][0], other["sensors"][1] = other["sensors"][1], other["sensors"][0]
    other["observations"][1]["scale"] = 1.0
    lines = list(contract.differences(Contract.from_dict(other)))
    assert any(line.startswith("rate_hz: 25.0 against 50.0") for line in lines)
    assert any(line.startswith("sensors: shoulder_pan_pos") for line in lines)
    assert any("joint_vel.scale: 0.2 against 1.0" in line for line in lines)
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(schema=SCHEMA + 1), "update sim2real"),
        (lambda c: c.pop("schema"), "schema must be a number from 1 on"),
        (lambda c: c.update(rate="50"), "'rate_hz'"),
        (lambda c: c.update(rate_hz="50"), "rate_hz must be a number"),
        (lambda c: c["sensors"][0].update(width=0), "at least 1"),
        (lambda c: c["observations"][0].update(sources="hinge_pos"), "sources must be a list"),
        (lambda c: c.update(actions=3), "must be a list"),
        (lambda c: c.pop("task"), "task"),
    ],
)
def test_a_contract_that_is_none_is_one_clear_error(change, words):
    data = make_contract(TaskEnv(find_task("pendulum-swingup"), worlds=1)).to_dict()
    change(data)
    with pytest.raises(Sim2RealError, match=words):
        Contract.from_dict(data)


@pytest.mark.parametrize("task", TASKS)
def test_a_bundle_computes_what_the_worlds_and_the_network_compute(runs, task):
    run, bundle = runs[task]
    policy, runtime = TrainedPolicy.open(run), Runtime(bundle)
    assert max(bundle.provenance["largest_difference"].values()) < 1e-5
    env = TaskEnv(find_task(task), worlds=5, seed=7)
    memory, worlds = env.worlds.memory, env.worlds
    for _ in range(20):
        goals = [memory[name] for name in env.task.goals]
        given = torch.cat(goals, dim=1) if goals else torch.zeros(5, 0)
        frame = runtime.observe(
            *(x.numpy() for x in (worlds.measured, given, memory["action"], memory["command"]))
        )
        assert np.abs(frame - memory["frames"][:, -1].numpy()).max() < 1e-5
        action = runtime.policy(env.actor.numpy())
        assert np.abs(action - policy(env.actor).numpy()).max() < 1e-5
        clipped = np.clip(action, -1, 1)
        command = runtime.act(
            clipped, worlds.measured.numpy(), given.numpy(), memory["command"].numpy()
        )
        env.step(torch.from_numpy(action))
        assert np.abs(command - memory["command"].numpy()).max() < 1e-5


@pytest.mark.parametrize("task", TASKS)
def test_a_pilot_flies_as_the_worlds_do(runs, task):
    bundle = runs[task][1]
    pilot = Pilot(Runtime(bundle))
    env = TaskEnv(find_task(task), worlds=1, seed=3, source="nominal")
    memory = env.worlds.memory
    goals = [memory[name][0].numpy() for name in env.task.goals]
    pilot.start(env.worlds.measured[0].numpy(), np.concatenate([*goals, np.zeros(0)]))
    pilot.sent(memory["command"][0].numpy())
    runtime = Runtime(bundle)
    for _ in range(30):
        frame, action, command = pilot.step(env.worlds.measured[0].numpy())
        wanted = runtime.policy(env.actor.numpy())[0]
        assert np.abs(frame - memory["frames"][0, -1].numpy()).max() < 1e-5
        assert np.abs(action - np.clip(wanted, -1, 1)).max() < 1e-4
        env.step(torch.from_numpy(action[None]))
        assert np.abs(command - memory["command"][0].numpy()).max() < 1e-4
        pilot.sent(memory["command"][0].numpy())


def test_a_bundle_succeeds_as_often_as_its_run(runs, tmp_path, capsys):
    run, bundle = runs["pendulum-swingup"]
    found = []
    for what in (run, bundle.folder):
        code = main(["evaluate", str(what), "--episodes", "60", "--json"])
        assert code == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0]["success"] == found[1]["success"]
    assert found[0]["mean_reward"] == pytest.approx(found[1]["mean_reward"], abs=0.5)
    assert Bundle.open(bundle.folder).id == bundle.id  # what was recorded is no change


def test_a_graph_knows_names_gains_and_no_privileged_input(runs):
    bundle = runs["arm-push"][1]
    model = onnx.load_from_string(bundle.graph("policy"))
    notes = {entry.key: entry.value for entry in model.metadata_props}
    assert notes["joint_names"].split(",")[:2] == ["shoulder_pan", "shoulder_lift"]
    assert notes["observation_names"].startswith("joint_pos,joint_vel,joint_lead")
    for key in ("joint_stiffness", "joint_damping", "default_joint_pos"):
        assert len(notes[key].split(",")) == 6
    (given,) = model.graph.input
    assert given.type.tensor_type.shape.dim[1].dim_value == bundle.contract.input_width
    assert bundle.provenance["opset"] == model.opset_import[0].version


@pytest.mark.parametrize("name", ("observe", "policy", "act", "rest"))
def test_a_graph_does_not_tell_where_it_was_made(runs, name):
    content = runs["arm-push"][1].graph(name)
    for word in (b"stack_trace", b".py", str(ROOT).encode()):
        assert word not in content


def test_every_changed_byte_of_a_bundle_is_found(bundle):
    rng = np.random.default_rng(0)
    shutil.rmtree(bundle.records, ignore_errors=True)
    files = [path for path in bundle.folder.rglob("*") if path.is_file()]
    assert len(files) > 8
    for path in files:
        content = path.read_bytes()
        for at in rng.integers(len(content), size=3):
            damaged = bytearray(content)
            damaged[at] ^= 1 << int(rng.integers(8))
            path.write_bytes(damaged)
            with pytest.raises(Sim2RealError):
                Bundle.open(bundle.folder)
        path.write_bytes(content)
    assert Bundle.open(bundle.folder).id == bundle.id


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda f: (f / "policy.onnx").unlink(), "policy.onnx is missing"),
        (lambda f: (f / "extra.py").write_text("x"), "does not belong"),
        (lambda f: (f / "manifest.json").write_text("{"), "not readable JSON"),
        (lambda f: (f / "manifest.json").write_text('{"schema": 9}'), "update sim2real"),
        (lambda f: (f / "manifest.json").unlink(), "no policy at"),
    ],
)
def test_a_spoilt_bundle_is_one_clear_error(bundle, spoil, words, capsys):
    spoil(bundle.folder)
    assert main(["evaluate", str(bundle.folder)]) == 2
    error = capsys.readouterr().err.strip()
    assert words in error or "not a training run" in error
    assert "\n" not in error


def test_a_truncated_graph_is_one_clear_error(bundle):
    path = bundle.folder / "policy.onnx"
    path.write_bytes(path.read_bytes()[:-200])
    seal(bundle.folder)
    with pytest.raises(Sim2RealError, match=r"policy\.onnx cannot be run"):
        Runtime(Bundle.open(bundle.folder))


def test_a_graph_of_another_robot_is_refused(runs, bundle):
    (bundle.folder / "observe.onnx").write_bytes(runs["arm-reach"][1].graph("observe"))
    seal(bundle.folder)
    with pytest.raises(Sim2RealError, match="contract does not have"):
        Runtime(Bundle.open(bundle.folder))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d["joints"][0].update(command_high=99.0), "actuator takes"),
        (
            lambda d: d["joints"][0].update(position_low=99.0, position_high=1.0),
            "must be below position_high",
        ),
        (lambda d: d["joints"][0].update(velocity=-1.0), "must be positive"),
        (lambda d: d["joints"][0].update(name="elbow"), "the commands for"),
        (lambda d: d.update(observation_low=[0.0], observation_high=[1.0]), "numbers of the"),
        (lambda d: d.update(joints={}), "must be a list"),
        (lambda d: d["joints"][0].update(speed=1.0), "has no 'speed'"),
    ],
)
def test_limits_that_contradict_the_robot_are_refused(bundle, change, words):
    path = bundle.folder / "limits.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    seal(bundle.folder)
    with pytest.raises(Sim2RealError, match=words):
        Bundle.open(bundle.folder)


def test_limits_survive_their_own_json(runs):
    for _, bundle in runs.values():
        assert Limits.from_dict(bundle.limits.to_dict()) == bundle.limits


def test_an_export_that_differs_is_refused(runs, tmp_path, monkeypatch):
    run, _ = runs["pendulum-swingup"]
    monkeypatch.setattr(export_module, "LARGEST_DIFFERENCE", 1e-12)
    with pytest.raises(Sim2RealError, match="differs from the trained one"):
        export(ExportConfig(run=run, out=tmp_path / "out", observations=200))
    assert not (tmp_path / "out").exists()


def test_a_bundle_is_not_written_over(runs):
    run, _ = runs["pendulum-swingup"]
    with pytest.raises(Sim2RealError, match="exists already"):
        export(ExportConfig(run=run))


def test_every_task_has_been_exported():
    assert set(task_names()) == set(TASKS)


def test_trials_of_a_bundle_are_reproducible(runs):
    policy = BundlePolicy(runs["pendulum-swingup"][1])
    task = find_task("pendulum-swingup")
    one, two = (run_trials(task, policy, episodes=8, seed=1, source="prior") for _ in range(2))
    assert np.array_equal(one.reward, two.reward)
