"""Trials have one form: worlds, episodes, lakes and files say the same."""

import csv
import json

import numpy as np
import pytest
import torch

from sim2real.data import Episode, Label, Lake, Origin, Provenance, Signal
from sim2real.errors import Sim2RealError
from sim2real.evaluation.evaluation import SimulatedTrials, save_worlds
from sim2real.evaluation.policy_success import summarise
from sim2real.evaluation.simulated_trials import run_trials
from sim2real.evaluation.trial import Trial, trials_of_episodes, trials_of_lake, trials_of_worlds
from sim2real.evaluation.trial_files import read_trials
from sim2real.intervals import clopper_pearson, wilson
from sim2real.policy import FunctionPolicy
from sim2real.tasks import find_task


def policy(observations: torch.Tensor) -> torch.Tensor:
    return observations[:, 1:2]


@pytest.fixture(scope="module")
def tried():
    """Trials of six worlds, two a draw, and their episodes."""
    kept, task = [], find_task("pendulum-swingup")
    trials = run_trials(
        task, FunctionPolicy(task, policy), episodes=6, seed=3, source="prior", threads=1,
        keep=kept.extend, policy_id="p", each=2,
    )  # fmt: skip
    return trials, kept


def test_worlds_that_share_a_draw_begin_differently(tried):
    trials, _ = tried
    found = trials_of_worlds(trials, policy="p")
    assert [t.unit == found[0].unit for t in found] == [True, True, False, False, False, False]
    assert len({t.unit for t in found}) == 3
    assert len({t.condition for t in found}) == 6
    assert trials.reward[0] != trials.reward[1]


def test_worlds_their_episodes_and_the_lake_give_the_same_trials(tried, tmp_path):
    trials, episodes = tried
    lake = Lake.create(tmp_path / "lake")
    lake.append(episodes)

    def told(found):
        return {(t.policy, t.success, t.condition, t.source, t.unit, t.seed) for t in found}

    expected = told(trials_of_worlds(trials, policy="p"))
    assert told(trials_of_episodes(episodes)) == expected
    assert told(trials_of_lake(lake)) == expected


def test_an_evaluation_is_read_back_as_trials(tried, tmp_path):
    trials, _ = tried
    save_worlds(tmp_path / "trials.npz", trials, policy="p")
    assert read_trials(tmp_path) == trials_of_worlds(trials, policy="p")


def test_a_damaged_evaluation_is_refused(tried, tmp_path):
    path = tmp_path / "trials.npz"
    save_worlds(path, tried[0], policy="p")
    whole = bytearray(path.read_bytes())
    for place in range(0, len(whole), 97):
        broken = whole.copy()
        broken[place] ^= 0xFF
        path.write_bytes(broken)
        try:
            read_trials(path)
        except Sim2RealError as error:
            assert "does not hold trials" in str(error)
    path.write_bytes(whole[:100])
    with pytest.raises(Sim2RealError, match="does not hold trials"):
        read_trials(path)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("per_seed", 0, "0 trials per seed"),
        ("each", 0, "0 per draw"),
        ("success", np.full(20, np.nan), "success must be 1 or 0"),
        ("success", np.ones(50, dtype=bool), "different lengths"),
        ("names", np.array(["x", "y"]), "different lengths"),
    ],
)
def test_an_evaluation_that_does_not_fit_together_is_refused(tmp_path, column, value, words):
    columns = {
        "policy": "p", "task": "t", "twin": "v", "seed": 0, "per_seed": 1024, "each": 1,
        "names": np.array(["x"]), "values": np.zeros((20, 1)), "success": np.ones(20, dtype=bool),
        "reward": np.zeros(20), "diverged": np.zeros(20, dtype=bool),
    }  # fmt: skip
    np.savez(tmp_path / "trials.npz", **{**columns, column: value})
    with pytest.raises(Sim2RealError, match=f"does not hold trials.*{words}"):
        read_trials(tmp_path)


def test_a_damaged_compressed_evaluation_is_refused(tmp_path):
    path = tmp_path / "trials.npz"
    np.savez_compressed(path, policy="p", task="t" * 2000)
    whole = bytearray(path.read_bytes())
    place = whole.find(b"task.npy") + len("task.npy") + 25
    whole[place : place + 10] = b"\xff" * 10
    path.write_bytes(whole)
    with pytest.raises(Sim2RealError, match="does not hold trials"):
        read_trials(path)


def test_zeros_of_json_are_names_too(tmp_path):
    rows = [{"policy": 0, "condition": 0, "unit": 0, "success": 0, "seed": 0}]
    (tmp_path / "t.json").write_text(json.dumps(rows))
    (trial,) = read_trials(tmp_path / "t.json")
    assert (trial.policy, trial.condition, trial.unit, trial.seed) == ("0", "0", "0", 0)
    (tmp_path / "t.json").write_text(json.dumps([{"success": 1, "source": 0}]))
    with pytest.raises(Sim2RealError, match="source: '0' is unknown"):
        read_trials(tmp_path / "t.json")


def real(outcome: str, seed: int | None = 5) -> Episode:
    source = Provenance(kind=Origin.REAL, policy="p", serial="unit-2", seed=seed)
    channel = Signal(np.arange(3.0), np.arange(3.0) + (seed or 0))
    return Episode(channels={"q": channel}, provenance=source, outcome=outcome)


def test_a_label_overrules_the_outcome_and_what_nobody_judged_is_left_out(tmp_path):
    lake = Lake.create(tmp_path / "lake")
    ids = lake.append([real("failure"), real("", seed=6)])
    assert [t.success for t in trials_of_lake(lake)] == [False]
    lake.label(Label(episode=ids[0], tag="success", who="x"))
    (trial,) = trials_of_lake(lake)
    assert trial.success and trial.source == "real" and trial.unit == "unit-2"


def test_a_note_in_the_lake_names_the_condition(tried, tmp_path):
    """Real and simulated episodes whose begin somebody set up alike."""
    lake = Lake.create(tmp_path / "lake")
    ids = lake.append([real("success"), tried[1][0]])
    for id_ in ids:
        lake.label(Label(episode=id_, tag="note", value="a remark", who="x"))
        lake.label(Label(episode=id_, tag="note", value="condition: cup left", who="x"))
    found = trials_of_lake(lake)
    assert {trial.source for trial in found} == {"real", "sim"}
    assert [trial.condition for trial in found] == ["cup left", "cup left"]


def test_real_trials_match_by_seed_and_unit_or_not_at_all():
    known, unknown = trials_of_episodes([real("success"), real("success", seed=None)])
    assert known.condition == "seed 5 on unit-2" and unknown.condition == ""


def test_trials_survive_a_file(tmp_path):
    trials = [
        Trial(policy="a, b", success=True, condition="left", reward=0.25, unit="7", seed=3),
        Trial(policy="a, b", success=False, source="sim"),
    ]
    with (tmp_path / "t.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, trials[0].to_dict())
        writer.writeheader()
        writer.writerows(trial.to_dict() for trial in trials)
    assert read_trials(tmp_path / "t.csv") == trials
    (tmp_path / "t.json").write_text(json.dumps([t.to_dict() for t in trials]))
    assert read_trials(tmp_path / "t.json") == trials


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("success\nmaybe\n", "row 1: success must be 1 or 0, not 'maybe'"),
        ("success,sucess\n1,1\n", "no 'sucess'; did you mean 'success'"),
        ("policy\na\n", "success must be 1 or 0"),
        ("success,seed\n1,x\n", "seed must be a number"),
        ("success,reward\n1,nan\n", "reward must be a number"),
        ("success,source\n1,moon\n", "source: 'moon' is unknown"),
        ("success,policy\n1\n", "row 1 does not fit the header"),
        ("success\n1,2\n", "row 1 does not fit the header"),
        ("success\n", "holds no rows"),
        ("", "holds no rows"),
        ("success\n\x001\n", "success must be 1 or 0|not a readable table"),
    ],
)
def test_a_malformed_file_is_named_with_its_row(tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(Sim2RealError, match=words):
        read_trials(tmp_path / "t.csv")


def test_clopper_pearson_gives_the_textbook_interval_and_holds_wilsons():
    """Newcombe (1998), table I: 81 of 263 and 0 of 20."""
    rate = clopper_pearson(81, 263)
    assert (rate.low, rate.high) == pytest.approx((0.2527, 0.3676), abs=5e-5)
    none = clopper_pearson(0, 20)
    assert (none.low, none.high) == pytest.approx((0.0, 0.1684), abs=5e-5)
    assert rate.low < wilson(81, 263).low and rate.high > wilson(81, 263).high


def test_trials_that_share_a_draw_are_not_counted_as_independent():
    """Ten draws that always or never succeed tell as much as ten trials."""
    success = np.repeat([True] * 7 + [False] * 3, 20)
    trials = SimulatedTrials(
        task="t", twin="v", seed=0, names=("a",), values=np.repeat(np.arange(10.0), 20)[:, None],
        success=success, reward=np.zeros(200), diverged=np.zeros(200, dtype=bool), each=20,
    )  # fmt: skip
    found = summarise(trials, source="posterior").success
    ten = wilson(7, 10)
    assert found.n == 200
    assert (found.low, found.high) == pytest.approx((ten.low, ten.high), abs=0.02)
