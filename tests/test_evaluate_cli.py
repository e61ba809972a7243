"""`compare`, `rank`, `power` and `predict` on the command line."""

import json

import pytest

from sim2real.cli import main


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
    assert main(["predict", sim_file]) == 0
    assert "20 trials will show" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "nowhere", "nowhere"], "no such log"),
        (["compare", "{both}", "{both}@b"], "trials of 2 policies; say which"),
        (["compare", "{both}@c", "{both}@b"], "no policy 'c'"),
        (["compare", "{both}@a", "{both}@b", "--source", "sim"], "no simulated trial"),
        (["compare", "{both}@a", "{both}@b", "--confidence", "2"], "not between 0 and 1"),
        (["compare", "{both}@a", "{both}@b", "--most", "5"], "more than the 5 planned"),
        (["rank", "nowhere.csv"], "no such file"),
        (["rank", "{both}"], "no column 'sim'"),
        (["power", "--from", "0.6", "--to", "0.6"], "the same"),
        (["predict", "{both}@a"], "no simulated trial"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_two(arguments, words, files, capsys):
    assert main([argument.replace("{both}", files) for argument in arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert words in error and "\n" not in error and error.startswith("error: ")
