"""`compare`, `rank`, `power` and `predict` on the command line."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sim2real.cli import main
from sim2real.evaluation.evaluation import SimulatedTrials, save_worlds
from sim2real.evaluation.trial_files import read_trials


def table(path, rows):
    path.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, r.values())) for r in rows)]))
    return str(path)


@pytest.fixture
def files(tmp_path):
    """Two policies under 30 conditions: B succeeds in all, A in a third."""
    rows = [
        {"policy": name, "condition": f"c{k}", "success": int(name == "b" or k % 3 == 0)}
        for name in ("a", "b")
        for k in range(30)
    ]
    return table(tmp_path / "both.csv", rows)


def answer(capsys, *arguments):
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_compare_says_stop_and_who_is_better(files, capsys):
    found = answer(capsys, "compare", f"{files}@a", f"{files}@b")
    assert found["paired"] and found["wins"] == [0, 20]
    assert found["sequential"]["better"] == "B" and found["p_value"] < 1e-4
    assert main(["compare", f"{files}@a", f"{files}@b"]) == 0
    assert "stop: B is better" in capsys.readouterr().out


def test_power_answers_in_trials(capsys):
    found = answer(capsys, "power", "--from", "0.6", "--to", "0.9")
    assert 25 < found["unpaired"] < 40 and found["sequential"] < found["paired"]


def test_rank_gives_a_verdict(tmp_path, capsys):
    rows = [{"policy": k, "sim": k / 10, "real": 1 - k / 10} for k in range(6)]
    found = answer(capsys, "rank", table(tmp_path / "t.csv", rows))
    assert found["verdict"].startswith("simulation does not rank these policies")
    assert found["rankings"][0]["measures"]["pearson"]["value"] == pytest.approx(-1.0)
    assert main(["rank", str(tmp_path / "t.csv")]) == 0
    assert "does not rank" in capsys.readouterr().out


def test_predict_uses_draws_and_real_trials(tmp_path, capsys):
    simulated = [
        {"condition": f"c{k}", "unit": k % 20, "source": "sim", "success": int(k % 5 != 0)}
        for k in range(200)
    ]
    real = [{"condition": f"c{k}", "success": int(k % 5 != 0)} for k in range(15)]
    sim_file = table(tmp_path / "sim.csv", simulated)
    found = answer(
        capsys, "predict", sim_file, "--real", table(tmp_path / "real.csv", real), "--trials", "10"
    )
    assert found["prediction"]["draws"] == 20
    assert found["real"]["narrowing"] < 1.0
    assert found["expected"]["real"] == [sum(row["success"] for row in real), len(real)]
    plain = [{"success": row["success"]} for row in real]
    other = answer(capsys, "predict", sim_file, "--real", table(tmp_path / "plain.csv", plain))
    assert other["expected"]["mean"] == found["expected"]["mean"] and "real" not in other
    assert other["note"].startswith("no estimate by condition: ")
    assert main(["predict", sim_file]) == 0
    assert "20 trials will show" in capsys.readouterr().out


def test_real_trials_of_several_robots_are_not_those_of_one(tmp_path, capsys):
    simulated = [{"policy": "p", "success": k % 2, "source": "sim"} for k in range(20)]
    real = [{"policy": "p", "success": 1, "unit": f"r{k}"} for k in range(4)]
    words = [table(tmp_path / "sim.csv", simulated), "--real", table(tmp_path / "r.csv", real)]
    assert main(["predict", *words]) == 2
    assert "trials of 4: r0, r1, r2" in capsys.readouterr().err


def test_without_draws_the_real_trials_are_still_read(tmp_path, capsys):
    simulated = [
        {"condition": f"c{k}", "source": "sim", "success": int(k % 5 != 0)} for k in range(200)
    ]
    real = [{"condition": f"c{k}", "success": int(k % 5 != 0)} for k in range(15)]
    files = [table(tmp_path / "sim.csv", simulated), table(tmp_path / "real.csv", real)]
    found = answer(capsys, "predict", files[0], "--real", files[1])
    assert found["real"]["narrowing"] < 1.0 and "prediction" not in found
    assert found["note"].startswith("no prediction from draws: 0 draws are too few")
    assert main(["predict", files[0]]) == 2
    assert "`unit`" in capsys.readouterr().err


def test_conditions_named_alike_join_evaluations_with_real_trials(tmp_path, capsys):
    """As the docs do it: a folder of `evaluate` for each load, ten loads tried on the robot."""
    loads = [f"{k / 10}kg" for k in range(30)]
    for k, load in enumerate(loads):
        (tmp_path / "sim" / load).mkdir(parents=True)
        trials = SimulatedTrials(
            task="t", twin="v", seed=0, names=("load",), values=np.full((8, 1), k / 10),
            success=np.arange(8) >= k // 4, reward=np.zeros(8), diverged=np.zeros(8, dtype=bool),
        )  # fmt: skip
        save_worlds(tmp_path / "sim" / load / "trials.npz", trials, policy="p")
    table(
        tmp_path / "sim.csv",
        [
            replace(trial, condition=load.name).to_dict()
            for load in (tmp_path / "sim").iterdir()
            for trial in read_trials(load)
        ],
    )
    real = [
        {"condition": load, "success": int(k < 15)} for k, load in enumerate(loads) if k % 3 == 0
    ]
    file = table(tmp_path / "real.csv", real)
    found = answer(capsys, "predict", str(tmp_path / "sim.csv"), "--real", file)
    assert found["real"]["n_simulated"] == 20 and found["real"]["narrowing"] < 1.0


def test_episodes_that_do_not_divide_by_each_leave_a_prediction(tmp_path, capsys):
    rows = [{"unit": k // 3, "source": "sim", "success": int(k % 5 != 0)} for k in range(100)]
    assert answer(capsys, "predict", table(tmp_path / "t.csv", rows))["prediction"]["draws"] == 33


def test_a_comparison_says_what_was_compared_and_how(tmp_path, capsys):
    rows = [
        {"policy": name, "condition": k, "source": "sim", "unit": k // 10, "success": int(won)}
        for name in ("a", "b")
        for k in range(200)
        for won in [(k // 10 % 2 == 0) == (name == "a")]
    ]
    file = table(tmp_path / "both.csv", rows)
    found = answer(capsys, "compare", f"{file}@a", f"{file}@b")
    assert found["by_unit"] == 20 and found["unit_wins"] == [10, 10] and found["p_value"] == 1.0
    assert found["sequential"]["better"] == "" and found["test"] == "sign test over draws"
    assert main(["compare", f"{file}@a", f"{file}@b"]) == 0
    said = capsys.readouterr().out
    assert "20 draws: more success of A on 10, B on 10" in said
    assert "draws were compared, each by all its trials" in said and "sign test" in said


@pytest.mark.slow
def test_power_says_which_plans_are_too_long(capsys):
    assert main(["power", "--from", "0.5", "--to", "0.55"]) == 0
    said = capsys.readouterr().out
    assert "under independent conditions" in said and "more than 2000 at most" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "nowhere", "nowhere"], "no such log"),
        (["compare", "{both}", "{both}@b"], "trials of 2 policies; choose one"),
        (["compare", "{both}@c", "{both}@b"], "no policy 'c'"),
        (["compare", "{both}@a", "{both}@b", "--source", "sim"], "no simulated trial"),
        (["compare", "nowhere", "nowhere", "--confidence", "2"], "not between 0 and 1"),
        (["predict", "nowhere", "--confidence", "nan"], "not between 0 and 1"),
        (["predict", "nowhere", "--trials", "1000000"], "--trials must be from 1 to 10,000"),
        (["evaluate", "nowhere", "--confidence", "nan"], "not between 0 and 1"),
        (["evaluate", "nowhere", "--seed", "-1"], "got -1"),
        (["power", "--from", "0.6", "--to", "0.9", "--alpha", "nan"], "not between 0 and 1"),
        (["compare", "{both}@a", "{both}@b", "--most", "5"], "more than the 5 planned"),
        (["rank", "nowhere.csv"], "no such file"),
        (["rank", "{both}"], "no column 'sim'"),
        (
            ["rank", "{both}", "--sim", "success", "--real", "success", "--n-real", "trails"],
            "no column 'trails'",
        ),
        (["compare", "", "{both}@b"], "'' is not a file"),
        (["evaluate", "nowhere", "--seed", str(10**30)], "got 1000"),
        (["power", "--from", "0.6", "--to", "0.6"], "the same"),
        (["predict", "{both}@a"], "no simulated trial"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_two(arguments, words, files, capsys):
    assert main([argument.replace("{both}", files) for argument in arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert words in error and "\n" not in error and error.startswith("error: ")
