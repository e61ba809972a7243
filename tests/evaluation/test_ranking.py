"""Simulation against reality: measures as published, and a verdict in plain words."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sim2real.cli.main import main
from sim2real.errors import Sim2RealError
from sim2real.evaluation.ranking import ScoredPolicy, mmrv, rank, unranked
from sim2real.evaluation.ranking_table import ScoreColumns, read_scored
from tests.repository import REAL_DATA, skip_without_data


def scored(sim, real, **options):
    return [
        ScoredPolicy(policy=str(k), sim=s, real=r, **options)
        for k, (s, r) in enumerate(zip(sim, real, strict=True))
    ]


def test_mmrv_is_the_mean_of_each_policys_worst_mistake():
    """By hand: 0 and 1 are the wrong way round, 0.3 apart in reality; 2 is right with both."""
    assert mmrv(np.array([0.5, 0.4, 0.9]), np.array([0.2, 0.5, 0.8])) == pytest.approx(0.2)
    assert mmrv(np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.6, 0.9])) == 0.0


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=8))
def test_correlations_are_those_of_scipy(rows):
    sim, real = (np.array(column, float) for column in zip(*rows, strict=True))
    if np.ptp(sim) == 0 or np.ptp(real) == 0:
        return
    (found,) = rank(scored(sim, real))
    for name, function in (
        ("pearson", stats.pearsonr), ("spearman", stats.spearmanr), ("kendall", stats.kendalltau),
    ):  # fmt: skip
        assert found.measures[name].value == pytest.approx(function(sim, real).statistic, abs=1e-8)


def test_the_verdict_follows_the_order():
    up = np.linspace(0.1, 0.9, 7)
    (good,) = rank(scored(up, up**2))
    (bad,) = rank(scored(up, 1 - up))
    (few,) = rank(scored([0.1, 0.5, 0.9], [0.2, 0.3, 0.4]))
    assert good.verdict.startswith("simulation ranks these policies (21 of 21")
    assert bad.verdict.startswith("simulation does not rank these policies, it misleads (0 of 21")
    assert few.verdict.startswith("it is not shown")
    (flat,) = rank(scored([0.1, 0.2, 0.3, 0.4], [0.1 + 0.2, 0.3, 0.3, 0.3]))
    assert flat.verdict.startswith("nothing to rank: these policies do equally well")
    assert (good.loss, bad.loss) == (0.0, pytest.approx(0.8))


def test_a_weak_relation_is_not_enough_to_choose_by():
    rng = np.random.default_rng(1)
    sim = rng.random(80)
    (found,) = rank(scored(sim, 0.2 * sim + 0.5 * rng.random(80)))
    assert found.p_value < 0.01 and found.measures["kendall"].value < 0.3
    assert found.verdict.startswith("simulation says something about the order")


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_a_simulation_that_scores_all_alike_tells_nothing_apart(order):
    (found,) = rank(scored([0.5] * 5, np.linspace(0.1, 0.5, 5)[order]))
    assert found.verdict == "simulation cannot tell these policies apart"
    told = json.loads(json.dumps(found.to_dict()))["measures"]
    assert all(told[name]["value"] is None for name in ("pearson", "spearman", "kendall"))
    assert found.loss == pytest.approx(0.2)  # any of them may be taken


def test_a_wrong_order_is_shown_by_trials_or_not_at_all():
    """Two policies 0.1 apart the wrong way round: ten trials do not show it, a thousand do."""
    (few,), (many,) = (rank(scored([0.4, 0.5], [0.6, 0.5], n_real=n)) for n in (10, 1000))
    assert few.tau_most == 1.0 and few.verdict.startswith("it is not shown")
    assert many.tau_most == -1.0 and "it misleads (0 of 1" in many.verdict
    rng = np.random.default_rng(0)
    near = [
        rank([
            ScoredPolicy(policy=str(k), sim=k, real=float(t.mean()), real_trials=tuple(t))
            for k, t in enumerate(rng.normal(size=(3, 4)))
        ])[0]
        for _ in range(60)
    ]  # fmt: skip
    # Equals in reality: whatever their means, five would be one chance in a hundred.
    assert sum("does not rank" in found.verdict for found in near) < 5


def draws(rng, groups, policies):
    """Scores in simulation and reality, both of them noisy."""
    quality = rng.normal(size=(groups, policies))
    sim, real = quality + rng.normal(size=(2, groups, policies))
    return [
        ScoredPolicy(policy=str(k), group=str(g), sim=sim[g, k], real=real[g, k])
        for g in range(groups)
        for k in range(policies)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "policies"), [(6, 2), (6, 3), (1, 6), (1, 15)])
def test_intervals_of_rank_violations_hold_their_mean(groups, policies, monkeypatch):
    monkeypatch.setattr("sim2real.evaluation.ranking.RESAMPLES", 10)
    monkeypatch.setattr("sim2real.evaluation.ranking.PERMUTATIONS", 10)
    rng = np.random.default_rng(0)
    found = [rank(draws(rng, groups, policies))[0].measures["mmrv"] for _ in range(200)]
    mean = np.mean([measure.value for measure in found])
    given = [measure for measure in found if measure.low is not None]
    assert len(given) > 170 and all(measure.value == 0 for measure in found if not measure.high)
    # 95 % are promised; so few would be one chance in a thousand.
    assert np.mean([measure.low <= mean <= measure.high for measure in given]) > 0.89


def test_the_scale_of_one_groups_scores_does_not_change_what_all_say():
    rows = draws(np.random.default_rng(3), 4, 5)
    larger = [
        replace(row, sim=1e4 * row.sim + 7, real=1e-6 * row.real) if row.group == "2" else row
        for row in rows
    ]
    (before, *_), (after, *groups) = rank(rows), rank(larger)
    assert after.loss == pytest.approx(before.loss, abs=1e-6) and after.p_value == before.p_value
    for name, measure in before.measures.items():
        assert after.measures[name].value == pytest.approx(measure.value, abs=1e-6)
        assert after.measures[name].high == pytest.approx(measure.high, abs=1e-6)
    assert groups[2].measures["mmrv"].value < 1e-5  # a group alone is told in its own scores


def test_one_group_of_many_does_not_decide_by_its_scale():
    rows = [row for g in range(4) for row in scored(range(6), range(6), group=f"small {g}")]
    rows += scored(1000.0 * np.arange(5), -1000.0 * np.arange(5), group="large")
    together, *_ = rank(rows)
    assert together.verdict.startswith("simulation ranks these policies (60 of 70")
    assert together.measures["pearson"].value > 0.5


def test_noise_is_rarely_taken_for_a_ranking():
    rng = np.random.default_rng(0)
    found = [rank(scored(*rng.random((2, 6))))[0] for _ in range(60)]
    assert sum(r.verdict.startswith("simulation ranks") for r in found) <= 8


def test_groups_are_compared_within_themselves():
    """Each group is ranked backwards, though groups together correlate."""
    rows = [
        *scored([0.1, 0.2, 0.3], [0.3, 0.2, 0.1], group="low"),
        *scored([0.7, 0.8, 0.9], [0.9, 0.8, 0.7], group="high"),
    ]
    together, *groups = rank(rows)
    assert together.pooled_pearson > 0.8 and together.measures["pearson"].value == -1.0
    assert "does not rank" in together.verdict
    assert [g.group for g in groups] == ["low", "high"] and together.right == 0


def test_a_group_of_one_policy_is_named_as_left_out():
    rows = [*scored([0.1, 0.2], [0.1, 0.2], group="two"), *scored([0.3], [0.3], group="one")]
    assert [found.group for found in rank(rows)] == ["two"]
    assert unranked(rows) == ["one 0: the only policy of its group"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--confidence", "2"], "a confidence of 2.0 is not between 0 and 1"),
        (["--confidence", "nan"], "a confidence of nan is not between 0 and 1"),
        (["--seed", "-1"], "--seed must not be negative, got -1"),
    ],
)
def test_an_option_that_is_none_is_one_line(tmp_path, capsys, options, words):
    (tmp_path / "t.csv").write_text("policy,sim,real\na,1,1\nb,2,2\n")
    assert main(["rank", str(tmp_path / "t.csv"), *options]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1


def test_trials_of_few_policies_tell_how_sure_their_order_is():
    sure = rank(scored([0.1, 0.9], [0.2, 0.8], n_real=200))[0]
    unsure = rank(scored([0.1, 0.9], [0.45, 0.55], n_real=10))[0]
    assert sure.over == "trials" and sure.measures["kendall"].low == 1.0
    assert unsure.measures["kendall"].low == -1.0
    assert rank(scored([0.1, 0.9], [0.2, 0.8]))[0].measures["pearson"].low is None


def test_rows_of_the_same_policy_are_its_trials(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("policy,sim,real,task\na,.5,0,t\na,.5,1,t\nb,.4,,t\nb,,1,t\nc,.2,.5,u\n")
    found, left_out = read_scored(path)
    assert [(s.policy, s.group, s.real) for s in found] == [("a", "t", 0.5), ("c", "u", 0.5)]
    assert found[0].real_trials == (0.0, 1.0)
    assert left_out == ["row 3, t b: no real", "row 4, t b: no sim"]


def test_numbers_of_trials_are_added_up(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("policy,sim,real,n_real\na,.5,.5,10\na,.5,.9,90\nb,.4,.2,10\n")
    first, second = read_scored(path)[0]
    assert first.real == pytest.approx(0.86) and first.n_real == 100 and not first.real_trials
    assert second.real == pytest.approx(0.2) and second.n_real == 10


def test_resamples_of_many_policies_are_looked_at_in_parts(monkeypatch):
    rng = np.random.default_rng(0)
    real = rng.random(12)
    rows = scored(real + 0.3 * rng.random(12), real)
    whole = rank(rows)[0].measures
    monkeypatch.setattr("sim2real.evaluation.ranking.AT_ONCE", 5_000)
    for name, measure in rank(rows)[0].measures.items():
        assert (measure.low, measure.high) == pytest.approx((whole[name].low, whole[name].high))


def test_a_policy_may_be_named_zero(tmp_path):
    (tmp_path / "t.json").write_text('[{"policy": 0, "sim": 0, "real": 0, "task": 0}]')
    found, left_out = read_scored(tmp_path / "t.json")
    assert found == [ScoredPolicy(policy="0", group="0", sim=0.0, real=0.0)] and not left_out


def test_two_tables_are_joined_by_name(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"sim": {"g": {"a": 1, "b": 0}}, "real": {"g": {"b": 0.5, "c": 1}}}))
    found, left_out = read_scored(path)
    assert found == [ScoredPolicy(policy="b", group="g", sim=0.0, real=0.5)]
    assert left_out == ["g a: only in one of the tables", "g c: only in one of the tables"]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("t.csv", "policy,sim,rael\na,1,1\n", "no column 'real'; did you mean 'rael'"),
        ("t.csv", "policy,sim,real\na,1,x\n", "row 1: real must be a number, not 'x'"),
        ("t.csv", "policy,sim,real\n,1,1\n", "row 1: no policy"),
        ("t.csv", "policy,sim,real,n_real\na,1,1,2.5\n", "n_real must be a whole number"),
        ("t.csv", "policy,sim,real,n_real\na,1,1,1e20\n", "n_real must be a whole number"),
        ("t.json", '[{"policy": "a", "sim": 1, "real": 1' + 400 * "0" + "}]", "must be a number"),
        ("t.csv", "policy,sim,real,n_real\na,1,7,2\n", "must be from 0 to 1"),
        (
            "t.csv",
            "policy,sim,real\na,.5,.5\na,.9,.9\n",
            "separate them by columns named with --group",
        ),
        ("t.csv", "policy,sim,real,n_real\na,1,1,2\na,1,1,\n", "only some state their number"),
        ("t.json", '{"sim": {}}', "no table 'real'"),
        ("t.json", '{"sim": {"a": "x"}, "real": {}}', "must be a number"),
        ("t.json", "[1]", "list of rows"),
        ("t.json", "[", "not readable JSON"),
    ],
)
def test_a_malformed_table_is_named_with_its_place(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(Sim2RealError, match=words):
        read_scored(tmp_path / name)


def test_simpler_is_ranked_as_published():
    path = REAL_DATA / "simpler_table" / "train" / "simpler_real_vs_sim.json"
    if not path.is_file():
        skip_without_data(path.parent)
    found, _ = read_scored(path, ScoreColumns(sim="simpler_visual_matching"))
    together, *tasks = rank(found)
    assert round(together.pooled_pearson, 3) == 0.907
    assert [round(float(t.measures["mmrv"].value), 3) for t in tasks] == [
        0.031, 0.111, 0, 0.123, 0, 0, 0.111, 0, 0,
    ]  # fmt: skip
    assert [round(float(t.measures["pearson"].value), 3) for t in tasks] == [
        0.975, 0.856, 0.983, 0.771, 0.969, 0.827, 0.571, 1.0, 0.989,
    ]  # fmt: skip
    assert together.verdict.startswith("simulation ranks these policies")


def test_simulation_that_misleads_is_called_so():
    path = REAL_DATA / "realaigym_scores" / "train" / "realaigym_paired_scores.csv"
    if not path.is_file():
        skip_without_data(path.parent)
    columns = ScoreColumns(
        policy="controller", sim="sim_score", real="real_score", group=("robot", "edition")
    )
    found, left_out = read_scored(path, columns)
    assert len(left_out) == 10 and all("no sim_score" in reason for reason in left_out)
    together, *groups = rank(found)
    assert [reason.split(" ilqr")[0] for reason in unranked(found)] == [
        "acrobot v2_perturbed_baseline", "pendubot v2_perturbed_baseline",
    ]  # fmt: skip
    assert together.verdict.startswith("simulation does not rank these policies (11 of 27")
    by_name = {g.group: g for g in groups}
    for name in ("acrobot v2_iros2024", "pendubot v2_iros2024"):
        assert by_name[name].verdict.startswith("simulation does not rank these policies")
    assert "it misleads" in by_name["acrobot v2_iros2024"].verdict
