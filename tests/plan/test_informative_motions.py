"""Plans of what to record: they add what is missing, count what is known, and can be played."""

import json
import shlex

import numpy as np
import pytest

from sim2real.cli.main import main
from sim2real.errors import Sim2RealError
from sim2real.identification.identifiability import from_information
from sim2real.params import Empirical, GaussianPosterior
from sim2real.plan.informative_motions import (
    CandidateMotion,
    choose,
    information,
    known_information,
    most_telling,
    possible,
)
from tests.repository import BUNDLES
from tests.simulated import bundle_and_twin

PENDULUM = str(BUNDLES / "pendulum-swingup")


@pytest.fixture(scope="module")
def pendulum():
    bundle, twin = bundle_and_twin("pendulum-swingup")
    return bundle.contract, twin


def candidates():
    """Two seconds each: nothing, a little, and a lot of torque."""
    times = 0.02 * np.arange(100)
    shape = np.sin(2 * np.pi * 1.5 * times)[:, None]
    return [
        CandidateMotion(name="hold", command=0.0 * shape),
        CandidateMotion(name="little", command=0.05 * shape),
        CandidateMotion(name="lot", command=0.8 * shape),
    ]


def gaussian(twin, names, covariance):
    parameters = [twin.parameter(name) for name in names]
    return GaussianPosterior(
        names=tuple(names),
        mean=tuple(p.nominal for p in parameters),
        covariance=tuple(map(tuple, covariance)),
        low=tuple(p.bounds[0] for p in parameters),
        high=tuple(p.bounds[1] for p in parameters),
    )


def test_the_second_motion_is_the_one_that_adds_the_most_not_the_second_best():
    told = {
        0: np.diag([100.0, 0.0])[None],
        1: np.diag([90.0, 0.0])[None],
        2: np.diag([0.0, 5.0])[None],
    }
    known, both = np.eye(2)[None], np.array([0, 1])
    assert most_telling(known, told, [10.0, 10.0, 10.0], both, 2) == [0, 2]
    # What is known already is worth nothing.
    assert most_telling(known + told[0], told, [10.0, 10.0, 10.0], both, 1) == [2]
    # The same in half the time is worth twice as much.
    assert most_telling(known, told, [10.0, 5.0, 10.0], both, 1) == [1]
    # Asked for the second parameter alone, only what tells it counts.
    assert most_telling(known, told, [10.0, 10.0, 10.0], np.array([1]), 1) == [2]


def test_a_motion_that_tells_only_a_sum_is_worth_nothing_for_its_parts():
    told = {0: 1e4 * np.ones((1, 2, 2)), 1: np.diag([3.0, 0.0])[None]}
    known = 1e-3 * np.eye(2)[None]
    assert most_telling(known, told, [1.0, 1.0], np.array([0]), 1) == [1]


def test_what_the_posterior_knows_is_where_the_count_starts(pendulum):
    _, twin = pendulum
    names = ("body/pole/mass", "actuator/hinge/gain")
    scales = np.array([0.05, 0.1])
    covariance = np.array([[4e-4, 3e-4], [3e-4, 9e-4]])
    asked = ("joint/hinge/damping", *names)
    whole = np.array([0.01, *scales])
    found = known_information(twin.with_posterior(gaussian(twin, names, covariance)), asked, whole)
    back = np.linalg.inv(found) * np.outer(whole, whole)
    assert np.allclose(back[1:, 1:], covariance) and back[0, 0] == pytest.approx(1e-4)
    rng = np.random.default_rng(0)
    rows = rng.multivariate_normal([0.57, 1.0], covariance, 2000)
    drawn = Empirical(names=names, samples=tuple(map(tuple, rows)))
    again = known_information(twin.with_posterior(drawn), asked, whole)
    assert np.allclose(again, found, rtol=0.2, atol=0.1)
    assert np.allclose(known_information(twin, asked, whole), np.eye(3))


@pytest.mark.slow
def test_moving_tells_more_than_resting_and_each_motion_adds(pendulum):
    contract, twin = pendulum
    chosen = choose(twin, contract, candidates(), motions=2, draws=2, threads=1)
    assert [motion.name for motion in chosen.motions] == ["lot", "little"]
    assert (chosen.motions[0].std <= chosen.before + 1e-12).all()
    assert (chosen.after <= chosen.motions[0].std + 1e-12).all()
    assert chosen.motions[0].gain > chosen.motions[1].gain > 0
    assert chosen.motions[0].seconds == pytest.approx(2.0)
    told = chosen.to_dict()
    assert told["parameters"]["actuator/hinge/delay"]["std_after"] < 0.2 * 0.0085


@pytest.mark.slow
def test_a_twin_that_knows_already_gains_less(pendulum):
    contract, twin = pendulum
    name = "actuator/hinge/delay"
    sure = twin.with_posterior(gaussian(twin, (name,), [[1e-12]]))
    lot = candidates()[2:]
    gains = [
        choose(t, contract, lot, motions=1, wanted=(name,), draws=1, threads=1).motions[0].gain
        for t in (twin, sure)
    ]
    assert gains[0] > 1.0 > 10 * gains[1] >= 0.0


def test_a_motion_in_which_the_twin_diverges_is_left_out(pendulum):
    contract, twin = pendulum
    broken = CandidateMotion(name="broken", command=np.full((60, 1), np.nan))
    assert information(twin, contract, broken, possible(twin, draws=1), threads=1) is None
    with pytest.raises(Sim2RealError, match="diverges in every motion"):
        choose(twin, contract, [broken], motions=1, draws=1, threads=1)


def test_parameters_that_no_motion_can_tell_are_refused(pendulum):
    contract, twin = pendulum
    with pytest.raises(Sim2RealError, match="no recording can determine sensor/hinge_pos/noise"):
        choose(twin, contract, candidates(), wanted=("sensor/hinge_pos/noise",))
    with pytest.raises(Sim2RealError, match="body/pole/mass"):
        choose(twin, contract, candidates(), wanted=("body/pole/mas",))


def test_advice_names_what_was_not_told_and_how_to_plan_for_it():
    information_ = np.diag([100.0, 0.1, 0.0])
    told = from_information(("a", "body/*/mass", "c"), information_)
    (line,) = told.advice("my/twin")
    assert "sim2real identify plan my/twin --parameters 'body/*/mass' c" in line
    assert from_information(("a",), np.array([[100.0]])).advice("my/twin") == []


def test_mistakes_are_one_line_and_the_verb_of_one_word_still_works(capsys):
    assert main(["identify", "plan", PENDULUM, "--out", "plan.pdf"]) == 2
    assert ".toml or .json" in capsys.readouterr().err
    assert main(["identify", "plan", PENDULUM, "--seconds", "2", "--motions", "4"]) == 2
    assert "at least 1 s" in capsys.readouterr().err
    assert main(["identify", PENDULUM, "--logs", "nowhere"]) == 2
    assert "no such log" in capsys.readouterr().err


@pytest.mark.slow
def test_a_plan_is_written_and_its_commands_can_be_played(tmp_path, capsys):
    out = tmp_path / "plan.toml"
    words = ["--seconds", "2", "--motions", "2", "--threads", "1", "--out", str(out), "--json"]
    assert main(["identify", "plan", PENDULUM, *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["motions"]) == 2 and out.exists() and out.with_suffix(".png").exists()
    for motion in told["motions"]:
        program, *arguments = shlex.split(motion["command"])
        assert program == "sim2real"
        assert main([*arguments, "--json"]) == 0
        (planned,) = json.loads(capsys.readouterr().out)["plans"]
        assert planned["seconds"] == pytest.approx(motion["seconds"])
