"""Evaluation: honest intervals, and parameters that matter told from those that do not."""

import json
import shutil

import numpy as np
import pytest
import torch

from sim2real.data import Lake
from sim2real.errors import Sim2RealError
from sim2real.evaluation.evaluation import SimulatedTrials
from sim2real.evaluation.evaluation_configs import PlayConfig
from sim2real.evaluation.playback import play
from sim2real.evaluation.policy_success import evaluate, summarise
from sim2real.evaluation.simulated_trials import run_trials
from sim2real.intervals import wilson
from sim2real.policy import FunctionPolicy
from sim2real.report.plots import plot_evaluation
from sim2real.tasks import find_task
from tests.golden.cases import MADE


def test_wilson_gives_the_textbook_interval():
    """Newcombe (1998), table I: 81 of 263 and 0 of 20."""
    rate = wilson(81, 263)
    assert (rate.low, rate.high) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    none = wilson(0, 20)
    assert (none.low, none.high) == pytest.approx((0.0, 0.1611), abs=5e-5)


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (3, 2), (-1, 5)])
def test_a_rate_that_is_none_is_refused(successes, n):
    with pytest.raises(Sim2RealError):
        wilson(successes, n)


def planted(rng: np.random.Generator, n: int = 600) -> SimulatedTrials:
    """Trials that fail where the first parameter is high, whatever the others are."""
    values = rng.uniform(0, 1, (n, 6))
    success = values[:, 0] + 0.1 * rng.normal(size=n) < 0.8
    return SimulatedTrials(
        task="t", twin="v", seed=0, names=tuple("abcdef"), values=values, success=success,
        reward=np.zeros(n), diverged=np.zeros(n, dtype=bool),
    )  # fmt: skip


def test_the_parameter_that_matters_comes_first_and_alone():
    result = summarise(planted(np.random.default_rng(0)), source="prior")
    assert result.effects[0].name == "a" and result.effects[0].p_value < 1e-10
    assert result.effects[0].rates[0].value > 0.95
    assert result.effects[0].rates[-1].value < 0.4
    assert all(effect.p_value > 0.05 for effect in result.effects[1:])


def test_equal_values_leave_no_bin_empty():
    values = np.array([0, 1, 5, 5, 5, 6, 7, 8, 9, 10.0])[:, None]
    trials = SimulatedTrials(
        task="t", twin="v", seed=0, names=("a",), values=values, success=np.arange(10) % 2 == 0,
        reward=np.zeros(10), diverged=np.zeros(10, dtype=bool),
    )  # fmt: skip
    (effect,) = summarise(trials, source="prior").effects
    assert sum(rate.n for rate in effect.rates) == 10 and min(rate.n for rate in effect.rates) > 0
    assert len(effect.edges) == len(effect.rates) + 1
    assert (effect.edges[0], effect.edges[-1]) == (0.0, 10.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"confidence": 2.0}, "confidence of 2.0"),
        ({"confidence": float("nan")}, "confidence of nan"),
        ({"seed": -1}, "--seed must be from 0"),
        ({"episodes": 0}, "at least 1"),
    ],
)
def test_options_that_are_none_are_refused_before_anything_is_read(tmp_path, options, words):
    with pytest.raises(Sim2RealError, match=words):
        evaluate(tmp_path / "nowhere", **options)


@pytest.mark.slow
def test_parameters_that_do_not_matter_are_rarely_accused():
    rng = np.random.default_rng(1)
    accused = 0
    for _ in range(200):
        trials = planted(rng, n=100)
        shuffled = SimulatedTrials(**{**vars(trials), "success": rng.permutation(trials.success)})
        accused += any(e.p_value < 0.05 for e in summarise(shuffled, source="prior").effects)
    assert accused / 200 < 0.1


@pytest.mark.slow
def test_a_trial_depends_on_the_seed_and_its_number_alone():
    task = find_task("pendulum-swingup")

    def policy(observations: torch.Tensor) -> torch.Tensor:
        return observations[:, 1:2]

    policy = FunctionPolicy(task, policy)
    few = run_trials(task, policy, episodes=5, seed=3, source="prior")
    more = run_trials(task, policy, episodes=9, seed=3, source="prior")
    assert np.array_equal(few.values, more.values[:5])
    assert np.array_equal(few.reward, more.reward[:5])


@pytest.fixture(scope="module")
def short_run(tmp_path_factory):
    """A run that has learned next to nothing."""
    return shutil.copytree(MADE / "run", tmp_path_factory.mktemp("runs") / "run")


@pytest.mark.slow
def test_evaluate_writes_its_trials_plot_and_json(short_run, tmp_path):
    folder = tmp_path / "out"
    result = evaluate(short_run, episodes=40)
    result.save(folder)
    plot_evaluation(folder / "evaluation.png", result)
    written = json.loads((folder / "evaluation.json").read_text())
    assert written["success"]["n"] == 40
    assert {p["name"] for p in written["parameters"]} == set(result.trials.names)
    saved = np.load(folder / "trials.npz")
    assert saved["values"].shape == (40, len(result.trials.names))
    assert (folder / "evaluation.png").stat().st_size > 1000


@pytest.mark.slow
def test_episodes_are_kept_with_their_draws(short_run, tmp_path):
    uri = str(tmp_path / "lake")
    result = evaluate(short_run, episodes=6, lake=uri)
    lake = Lake.open(uri)
    assert len(lake) == 6
    for k, row in enumerate(
        lake.query("select id from episodes order by (provenance->>'world')::int").to_pylist()
    ):
        one = lake.get(row["id"])
        draw = dict(zip(result.trials.names, result.trials.values[k], strict=True))
        assert one.provenance.parameters == pytest.approx(draw)
        assert one.provenance.twin_version == result.trials.twin
        assert (one.outcome == "success") == result.trials.success[k]
        hinge = one["sensor/hinge_pos"]
        assert hinge.unit == "rad" and hinge.rate_hz == pytest.approx(50)
        # What was measured is the truth but for noise, bias and delay.
        assert np.abs(hinge.values - one["truth/qpos"].values).max() < 0.5
    evaluate(short_run, episodes=6, lake=lake)
    assert len(lake) == 6  # the same seed gives the same episodes


def test_a_file_of_parameters_decides_where_it_is_tried(short_run, tmp_path):
    file = tmp_path / "params.json"
    file.write_text(json.dumps({"body/pole/mass": 1.0}))
    result = evaluate(short_run, episodes=10, params=str(file))
    column = result.trials.names.index("body/pole/mass")
    assert (result.trials.values[:, column] == 1.0).all()
    assert result.effects == ()


@pytest.mark.slow
def test_play_films_its_episodes(short_run, tmp_path):
    import av

    path, outcomes = play(
        PlayConfig(run=short_run, episodes=1, out=tmp_path / "film.mp4", size=(160, 120))
    )
    assert len(outcomes) == 1
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(frames) == 250
    assert frames[0].shape == (120, 160, 3)
    # Something is there, and it moves.
    assert frames[0].std() > 10
    assert np.abs(frames[0].astype(int) - frames[60].astype(int)).max() > 50
