"""Policies that were not made here: Python objects and ONNX graphs go where bundles go."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from sim2real.attribution import attribute
from sim2real.cli import main
from sim2real.contract import Contract, ImageFeature, TextFeature
from sim2real.data import select
from sim2real.doctor import diagnose
from sim2real.errors import Sim2RealError
from sim2real.evaluation import evaluate, open_policy, play
from sim2real.evaluation.evaluation_configs import PlayConfig
from sim2real.policy import Bundle, DrivenWorlds, Features, OnnxPolicy, acted
from sim2real.robot import deploy
from sim2real.tasks import TaskEnv, find_task
from tests.golden.cases import MADE
from tests.repository import BUNDLES

TASK = "pendulum-swingup"
BUNDLE = BUNDLES / TASK
WRITTEN = """
task = "pendulum-swingup"
rate_hz = 50
history = 3
observations = ["direction", "speed", "last_action"]
actions = ["torque"]
"""


class Swinging:
    """Pumps energy in: ten lines that somebody would write."""

    id = "swinging-1"
    contract = {  # noqa: RUF012
        "task": "pendulum-swingup", "rate_hz": 50, "history": 1,
        "observations": [{"name": "speed", "sources": ["hinge_vel"], "scale": 0.15}],
    }  # fmt: skip

    def start(self, robots, of):
        self.begun = [*getattr(self, "begun", []), (len(robots), of)]

    def act(self, features):
        return np.sign(features["speed"])


@pytest.fixture
def graph(tmp_path) -> Path:
    """The network of a bundle as somebody else would hand it on: a file, and what it means."""
    file = tmp_path / "policy.onnx"
    file.write_bytes(Bundle.open(BUNDLE).graph("policy"))
    file.with_suffix(".toml").write_text(WRITTEN)
    return file


def trials(policy, **options):
    return evaluate(policy, episodes=4, seed=3, params="nominal", threads=1, **options)


def linear(file: Path, inputs: dict[str, list], *, rows="rows", outputs=1, chunk=0) -> Path:
    """A graph that sums its inputs into actions, written with any shape of inputs."""
    made = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [rows, *s]) for n, s in inputs.items()
    ]
    nodes = [
        helper.make_node("ReduceSum", [name, "axes"], [f"sum_{name}"], keepdims=1)
        for name in inputs
    ]
    nodes.append(helper.make_node("Sum", [f"sum_{name}" for name in inputs], ["one"]))
    nodes.append(helper.make_node("Concat", ["one"] * outputs, ["flat"], axis=1))
    constants = [helper.make_tensor("axes", TensorProto.INT64, [1], [1])]
    shape = [rows, outputs]
    if chunk:
        nodes.append(helper.make_node("Reshape", ["flat", "to"], ["action"]))
        constants.append(helper.make_tensor("to", TensorProto.INT64, [3], [-1, chunk, 1]))
        shape = [rows, chunk, 1]
    else:
        nodes.append(helper.make_node("Identity", ["flat"], ["action"]))
    out = [helper.make_tensor_value_info("action", TensorProto.FLOAT, shape)]
    model = helper.make_model(
        helper.make_graph(nodes, "g", made, out, constants),
        opset_imports=[helper.make_opsetid("", 18)], ir_version=9,
    )  # fmt: skip
    onnx.save(model, file)
    file.with_suffix(".toml").write_text(WRITTEN)
    return file


@pytest.mark.slow
def test_a_graph_with_a_written_contract_does_what_its_bundle_does(graph):
    foreign, own = trials(graph), trials(BUNDLE)
    assert np.array_equal(foreign.trials.success, own.trials.success)
    assert foreign.trials.reward == pytest.approx(own.trials.reward, rel=1e-5)
    assert foreign.policy != own.policy and foreign.folder == graph.with_suffix("") / "evaluate"
    assert open_policy(graph).source == "prior"  # it does not say what it was trained with


@pytest.mark.slow
def test_a_graph_for_one_robot_at_a_time_does_the_same_for_many(tmp_path):
    many = linear(tmp_path / "many.onnx", {"obs": [12]})
    one = linear(tmp_path / "one.onnx", {"obs": [12]}, rows=1)
    assert open_policy(one).policy.one_by_one and not open_policy(many).policy.one_by_one
    assert np.array_equal(trials(one).trials.reward, trials(many).trials.reward)


def test_inputs_go_by_name_in_whatever_order(tmp_path):
    policy = open_policy(linear(tmp_path / "p.onnx", {"speed": [3], "direction": [6]})).policy
    numbers = np.arange(24, dtype=np.float32).reshape(2, 12)
    seen = Features(contract=policy.contract, robots=np.arange(2), numbers=numbers)
    # A period is two numbers of direction, one of speed, one of the last action.
    wanted = numbers.reshape(2, 3, 4)[:, :, :3].sum((1, 2))
    assert acted(policy, seen)[:, 0, 0] == pytest.approx(wanted)
    assert seen["speed"][:, 0].tolist() == [10.0, 22.0]


def test_a_chunk_is_acted_out_before_the_policy_is_asked_again(tmp_path):
    file = linear(tmp_path / "p.onnx", {"obs": [12]}, outputs=4, chunk=4)
    opened = open_policy(file)
    assert not opened.policy.abilities.repeatable
    env = TaskEnv(find_task(TASK), worlds=3, threads=1, twin=opened.twin)
    driven = DrivenWorlds(env, opened.policy)
    actions = []
    for _ in range(8):
        actions.append(driven.actions().clone())
        driven.advance(actions[-1])
    rows = np.stack([a.numpy()[:, 0] for a in actions])
    assert (rows[:4] == rows[0]).all() and (rows[4:] == rows[4]).all()
    assert (rows[0] != rows[4]).all()


class Counting(Swinging):
    """Gives three actions at once, and notes for whom it was asked."""

    def __init__(self):
        self.asked = []

    def act(self, features):
        self.asked.append(features.robots.tolist())
        return np.zeros((len(features), 3, 1))


def test_a_world_that_begins_again_is_asked_for_alone():
    opened = open_policy(Counting())
    env = TaskEnv(find_task(TASK), worlds=3, threads=1, twin=opened.twin)
    driven = DrivenWorlds(env, opened.policy)
    given = opened.policy.given
    given.asked, given.begun = [], []
    driven.step()
    env.worlds.memory["age"][1] = env.steps - 1  # its episode ends with this period
    for _ in range(5):
        driven.step()
    assert given.begun == [(1, 3)]
    # The second world is asked when it begins, the others when their three actions are over.
    assert given.asked == [[0, 1, 2], [1], [0, 2], [1]]


def test_an_own_observation_is_what_its_sources_measured():
    class Remembering(Swinging):
        contract = {**Swinging.contract, "history": 2}  # noqa: RUF012

        def act(self, features):
            seen.append(features.past("state").copy())
            return np.zeros((len(features), 1))

    seen = []
    Remembering.contract["observations"] = [
        {"name": "state", "sources": ["hinge_pos", "action", "hinge_vel"], "scale": 2.0}
    ]
    opened = open_policy(Remembering())
    env = TaskEnv(find_task(TASK), worlds=2, threads=1, twin=opened.twin)
    seen.clear()
    driven = DrivenWorlds(env, opened.policy)
    measured = []
    for _ in range(3):
        measured.append(env.worlds.measured.numpy().copy())
        driven.step()
    assert (seen[0][:, 0] == seen[0][:, 1]).all()  # the past of a beginning is its first period
    assert np.allclose(seen[2][:, :, [0, 2]], 2 * np.stack(measured[1:], axis=1))
    assert (seen[2][:, :, 1] == 0).all()
    env.worlds.memory["age"][0] = env.steps - 1
    driven.step()
    driven.step()
    assert (seen[-1][0, 0] == seen[-1][0, 1]).all() and (seen[-1][1, 0] != seen[-1][1, 1]).any()


def test_an_object_of_ten_lines_is_evaluated_and_starts_each_attempt():
    policy = Swinging()
    found = trials(policy)
    assert found.policy == "swinging-1" and len(found.trials.success) == 4
    assert policy.begun[:2] == [(1, 1), (4, 4)]  # once to see that it fits, then in the worlds
    assert sum(rows for rows, of in policy.begun[2:]) == 4  # and where an episode ended
    assert found.notes == ()  # its worlds were named


def test_what_is_guessed_for_a_policy_is_said(graph, capsys, tmp_path):
    words = ["--episodes", "2", "--threads", "1", "--out", str(tmp_path / "out")]
    assert main(["evaluate", str(graph), *words]) == 0
    assert "drawn from the twin's prior: this policy is an ONNX graph" in capsys.readouterr().out
    assert main(["evaluate", str(BUNDLE), *words]) == 0
    assert "this policy is" not in capsys.readouterr().out


@pytest.mark.slow
def test_the_doctor_checks_a_graph_like_a_bundle_and_an_object_without_its_network(graph):
    logs = [MADE / "flown" / "trial-0001.arrow"]
    own, foreign = diagnose(BUNDLE, logs), diagnose(graph, logs)
    assert foreign.verdict == own.verdict and foreign.gap == pytest.approx(own.gap, rel=1e-4)
    assert foreign.notes[0].endswith("by the task's code: this policy is an ONNX graph")
    broken = flipped(select(logs)[0], "sensor/hinge_vel")
    assert not diagnose(BUNDLE, [broken]).fine and not diagnose(graph, [broken]).fine
    blind = diagnose(Swinging(), logs)
    assert "the network is not checked: this policy is a Python object" in blind.notes


def flipped(episode, channel):
    signal = episode[channel]
    return replace(
        episode, channels={**episode.channels, channel: replace(signal, values=-signal.values)}
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["graph", "object"])
def test_lost_success_is_attributed_for_any_policy(kind, graph):
    found = attribute(
        BUNDLE / "twin", [MADE / "motions" / "steps.arrow"], identified=MADE / "identified",
        policy=graph if kind == "graph" else Swinging(), segments=2, draws=2, each=1, threads=1,
    )  # fmt: skip
    assert found.success is not None and found.success.samples == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["graph", "object"])
def test_a_dry_run_on_a_robot_sends_nothing_and_says_what_the_policy_lacks(
    kind, graph, monkeypatch
):
    sent = "sim2real.robot.remote.RemoteRobot.send_action"
    monkeypatch.setattr(sent, lambda *_: pytest.fail("it sent something"))
    said, seen = [], []
    prompts = replace_prompts(said, seen)
    policy = graph if kind == "graph" else Swinging()
    found = deploy(policy, robot="unit:3", seconds=0.5, prompts=prompts)
    assert found.trials[0].periods == 25 and found.trials[0].stopped == ""
    assert len(said) == 3 and "its limits are those of the twin's model" in said[1]
    if kind == "graph":
        own = []
        deploy(BUNDLE, robot="unit:3", seconds=0.5, prompts=replace_prompts([], own))
        assert np.array(seen) == pytest.approx(np.array(own), abs=1e-4)


def replace_prompts(said, seen):
    from sim2real.robot import OperatorPrompts

    return OperatorPrompts(tell=said.append, show=lambda t, wanted, sent: seen.append(wanted[0]))


@pytest.mark.slow
def test_a_policy_of_others_climbs_the_ladder(graph, tmp_path):
    logs = [MADE / "flown" / "trial-0001.arrow", MADE / "flown" / "trial-0002.arrow"]
    found = deploy(graph, step="replay", logs=logs)
    assert found.record.passed and found.record.bundle == open_policy(graph).id
    assert list((graph.with_suffix("")).glob("*-replay.json"))


@pytest.mark.slow
def test_a_policy_of_others_is_filmed(tmp_path):
    file = linear(tmp_path / "p.onnx", {"obs": [12]})
    path, outcomes = play(PlayConfig(run=file, episodes=1, size=(32, 32)))
    assert path == tmp_path / "p" / "play.mp4"
    assert path.stat().st_size > 0 and len(outcomes) == 1


def test_a_class_is_named_on_the_command_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "class Idle:\n"
        "    id = 'idle'\n"
        "    contract = {'task': 'pendulum-swingup', 'history': 1}\n"
        "    def start(self, robots, of): pass\n"
        "    def act(self, features): return np.zeros((len(features), 1))\n"
    )
    monkeypatch.chdir(tmp_path)
    words = ["--episodes", "2", "--threads", "1", "--json"]
    assert main(["evaluate", "mine:Idle", *words, "--out", "out"]) == 0
    assert json.loads(capsys.readouterr().out)["success"]["value"] == 0
    assert main(["evaluate", "mine:Busy", *words]) == 2
    assert "there is no policy mine:Busy" in capsys.readouterr().err


class Wrong(Swinging):
    """A policy whose answer is of the caller's choice."""

    def __init__(self, answer, **contract):
        self.answer, self.contract = answer, {**Swinging.contract, **contract}

    def act(self, features):
        return self.answer(len(features))


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Wrong(lambda n: np.zeros((n, 2))), r"actions of shape \(1, 2\) for 1 robots"),
        (Wrong(lambda n: np.full((n, 1), np.nan)), "not a number"),
        (Wrong(lambda n: 1 / 0), "failed: division by zero"),
        (Wrong(lambda n: "left"), "failed: could not convert"),
        (Wrong(lambda n: np.zeros((n, 1)), rate_hz=25), r"rate_hz: 25.0 against 50.0"),
        (Wrong(lambda n: np.zeros((n, 1)), task="swing"), "unknown task 'swing'"),
        (Wrong(lambda n: np.zeros((n, 1)), robot="arm"), "robot: 'arm' against 'pendulum'"),
        (Wrong(lambda n: np.zeros((n, 1)), actions=["force"]), "actions: force against torque"),
        (Wrong(lambda n: np.zeros((n, 1)), observations=["height"]), "no observation 'height'"),
        (Wrong(lambda n: np.zeros((n, 1)), rate=50), "has no 'rate'; did you mean 'rate_hz'"),
        (
            Wrong(lambda n: np.zeros((n, 1)), observations=[{"name": "a", "sources": ["arm_pos"]}]),
            "a source 'arm_pos', which the robot does not have",
        ),
        (object(), "is no policy: it has no id, contract, start, act"),
    ],
)
def test_what_does_not_fit_is_one_clear_line_and_nothing_is_written(policy, said, tmp_path):
    lake = tmp_path / "lake"
    with pytest.raises(Sim2RealError, match=said) as error:
        trials(policy, lake=lake)
    assert "\n" not in str(error.value) and not lake.exists()
    with pytest.raises(Sim2RealError, match=said):
        deploy(policy, robot="unit:3", out=tmp_path / "flights")
    assert not (tmp_path / "flights").exists()


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"obs": [11]}, "takes 11 numbers a robot, but the contract gives 12"),
        ({"speed": [3], "height": [1]}, "an input 'height', which the contract does not name"),
        ({"speed": [1], "direction": [6]}, "takes 1 numbers a robot, but the contract gives 3"),
    ],
)
def test_a_graph_that_breaks_its_contract_exits_with_2(inputs, said, tmp_path, capsys):
    file = linear(tmp_path / "p.onnx", inputs)
    assert main(["evaluate", str(file), "--episodes", "2"]) == 2
    assert said in capsys.readouterr().err
    assert not file.with_suffix("").exists()


def test_a_damaged_graph_and_one_without_contract_are_told_apart(tmp_path, graph, capsys):
    graph.write_bytes(graph.read_bytes()[:100])
    assert main(["evaluate", str(graph)]) == 2
    assert "cannot be run" in capsys.readouterr().err
    graph.with_suffix(".toml").unlink()
    assert main(["evaluate", str(graph)]) == 2
    assert "has no contract: write what it sees" in capsys.readouterr().err
    graph.with_suffix(".json").write_text("{")
    assert main(["evaluate", str(graph)]) == 2


def test_a_whole_contract_is_a_written_one_too(graph):
    graph.with_suffix(".toml").unlink()
    shutil.copy(BUNDLE / "contract.json", graph.with_suffix(".json"))
    assert open_policy(graph).contract == Bundle.open(BUNDLE).contract


def test_a_run_must_become_a_bundle_before_it_drives_a_robot():
    with pytest.raises(Sim2RealError, match="make a bundle of it first"):
        deploy(MADE / "run", robot="unit:3")


class Seeing:
    """Takes a picture and a text, and returns numbers."""

    id = "seeing"
    contract = {  # noqa: RUF012
        "task": "pendulum-swingup",
        "images": [{"name": "wrist", "height": 4, "width": 6, "rate_hz": 30, "delay_s": 0.02}],
        "texts": [{"name": "order", "longest": 20}],
    }

    def start(self, robots, of):
        pass

    def act(self, features):
        bright = features["wrist"].mean(axis=(1, 2, 3))
        told = np.array(["up" in text for text in features["order"]])
        return (bright / 255 * told)[:, None]


def test_a_policy_takes_a_picture_and_a_text_and_returns_numbers():
    opened = open_policy(Seeing())
    contract = Contract.from_dict(json.loads(json.dumps(opened.contract.to_dict())))
    assert contract == opened.contract and contract.to_dict()["schema"] == 2
    assert [f.name for f in contract.features][-2:] == ["wrist", "order"]
    pictures = np.zeros((2, 4, 6, 3), np.uint8)
    pictures[0] = 255
    numbers = np.zeros((2, contract.input_width), np.float32)
    seen = Features(
        contract=contract, robots=np.arange(2), numbers=numbers, images={"wrist": pictures},
        texts={"order": ["swing up", "swing up"]},
    )  # fmt: skip
    assert acted(opened.policy, seen)[:, 0, 0].tolist() == [1.0, 0.0]
    for wrong, said in (
        (replace(seen, images={}), "which nobody gives"),
        (replace(seen, images={"wrist": pictures[:, :3]}), "rgb8 of shape"),
        (replace(seen, images={"wrist": pictures / 255}), "uint8"),
        (replace(seen, texts={"order": ["up"]}), "for each of 2 robots"),
        (replace(seen, texts={"order": ["x" * 21, ""]}), "at most 20 characters"),
    ):
        with pytest.raises(Sim2RealError, match=said):
            acted(opened.policy, wrong)
    with pytest.raises(Sim2RealError, match="'wrist', 'order', a picture or a text"):
        trials(Seeing())
    with pytest.raises(Sim2RealError, match="this robot does not give"):
        deploy(Seeing(), robot="unit:3")


def test_an_old_contract_is_written_as_it_was_read():
    for bundle in BUNDLES.iterdir():
        text = (bundle / "contract.json").read_text()
        contract = Contract.from_dict(json.loads(text))
        assert json.dumps(contract.to_dict(), indent=2) + "\n" == text
        image = ImageFeature(name="wrist", height=4, width=4, rate_hz=30)
        more = replace(contract, images=(image,), texts=(TextFeature(name="order"),))
        assert Contract.from_dict(more.to_dict()) == more
        assert list(contract.differences(more)) == ["schema: 1 against 2", "images:  against wrist",
                                                    "texts:  against order"]  # fmt: skip


def test_two_features_of_a_name_are_refused():
    contract = Bundle.open(BUNDLE).contract
    with pytest.raises(Sim2RealError, match="two features of the name 'speed'"):
        replace(contract, texts=(TextFeature(name="speed"),))


def test_a_graph_knows_its_features_by_the_contract(graph):
    contract = open_policy(graph).contract
    assert OnnxPolicy(graph, contract).id != OnnxPolicy(graph, replace(contract, episode_s=9)).id
