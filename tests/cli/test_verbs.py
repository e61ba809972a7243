"""The registry of verbs: its help fits a screen, and options are the arguments of functions."""

import inspect
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from sim2real import __version__
from sim2real.attribution.attribute_config import AttributeConfig, FailuresConfig
from sim2real.attribution.explanation import explain_failures
from sim2real.attribution.gap_attribution import attribute
from sim2real.cli.main import main, parse
from sim2real.cli.verbs import VERBS, find_verb, help_text
from sim2real.doctor.doctor import diagnose
from sim2real.doctor.doctor_config import DoctorConfig
from sim2real.errors import Sim2RealError, options_as
from sim2real.evaluation.comparison import compare
from sim2real.evaluation.evaluation_configs import (
    CompareConfig,
    EvaluateConfig,
    PowerConfig,
    PredictConfig,
    RankConfig,
)
from sim2real.evaluation.expectation import expect
from sim2real.evaluation.policy_success import evaluate
from sim2real.evaluation.ranking_table import rank_table
from sim2real.evaluation.trial_plan import plan_trials
from sim2real.gap.drawn_ranges import look_at_ranges
from sim2real.gap.gap_config import GapConfig
from sim2real.gap.measure import measure_gap
from sim2real.gap.ranges_config import RangesConfig
from sim2real.identification.identified_twin import identify
from sim2real.identification.identify_config import IdentifyConfig
from sim2real.learn import TrainConfig
from sim2real.plan.motion_plan import plan_motions
from sim2real.plan.plan_config import PlanConfig
from sim2real.robot.drift.drift_config import DriftConfig
from sim2real.robot.drift.monitor import watch_drift

OPTIONS_OF = [
    (GapConfig, measure_gap),
    (IdentifyConfig, identify),
    (PlanConfig, plan_motions),
    (AttributeConfig, attribute),
    (FailuresConfig, explain_failures),
    (RangesConfig, look_at_ranges),
    (DoctorConfig, diagnose),
    (DriftConfig, watch_drift),
    (EvaluateConfig, evaluate),
    (CompareConfig, compare),
    (RankConfig, rank_table),
    (PowerConfig, plan_trials),
    (PredictConfig, expect),
]


def test_the_help_fits_one_screen_and_names_every_verb():
    lines = help_text([]).splitlines()
    assert len(lines) <= 30 and max(map(len, lines)) <= 80
    for verb in VERBS:
        assert verb.words in "\n".join(lines) or verb.words in help_text(verb.words.split()[:1])


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.words.replace(" ", "-"))
def test_every_verb_has_help_with_an_example_and_something_that_runs_it(verb, capsys):
    assert callable(verb.runner)
    with pytest.raises(SystemExit) as end:
        parse([*verb.words.split(), "--help"])
    assert end.value.code == 0
    example = f"Example: sim2real {verb.words} {verb.example}"
    assert " ".join(example.split()) in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["gpa"], "sim2real has no verb 'gpa'; did you mean 'gap'"),
        (["identfy", "x"], "did you mean 'identify'"),
        (["data", "improt"], "sim2real data has no verb 'improt'; did you mean 'import'"),
        (["data", "consent", "list"], "sim2real data consent has no verb 'list'"),
        (["data"], "sim2real data needs one of: check, compact, consent"),
        (["randomize"], "sim2real randomize needs one of: show"),
        (["--colour"], "no verb '--colour'"),
        (["verbs"], "sim2real has no verb 'verbs'; `sim2real --help` lists them"),
    ],
)
def test_what_is_no_verb_is_one_line_that_names_the_nearest(words, said, capsys):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_the_version_is_printed(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"sim2real {__version__}\n"


def test_overviews_are_printed(capsys):
    assert main(["--help"]) == 0 and main([]) == 2
    assert main(["data", "--help"]) == 0 and main(["data", "consent", "-h"]) == 0
    assert "data consent withdraw" in capsys.readouterr().out
    assert find_verb(["identify", "plan", "x"])[0].words == "identify plan"
    assert find_verb(["identify", "planner"])[0].words == "identify"


@pytest.mark.parametrize(("config", "function"), OPTIONS_OF, ids=lambda value: value.__name__)
def test_options_are_arguments_with_the_same_defaults(config, function):
    parameters = inspect.signature(function).parameters
    for field in fields(config):
        if field.name in ("json", "out"):
            continue
        parameter = parameters[field.name]
        if field.default is MISSING:
            assert parameter.default is inspect.Parameter.empty
        else:  # '' and () stand on the command line for what is not given
            assert (parameter.default or None) == (field.default or None)


def test_from_python_paths_may_be_text_and_a_wrong_option_is_told_the_nearest():
    asked = options_as(TrainConfig, task="arm-reach", out="runs", begin=Path("run"), worlds=4)
    assert asked == TrainConfig(task="arm-reach", out=Path("runs"), begin=Path("run"), worlds=4)
    with pytest.raises(Sim2RealError, match="no option 'iteratons'; did you mean 'iterations'"):
        options_as(TrainConfig, iteratons=3)


def test_a_folder_that_is_not_empty_is_refused_before_the_work(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("years of work")
    words = ["nowhere", "--logs", "nowhere.csv", "--out", str(tmp_path)]
    for verb in ("gap", "identify", "attribute"):
        assert main([verb, *words]) == 2
        assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in Path(tmp_path).iterdir()] == ["thesis.tex"]
