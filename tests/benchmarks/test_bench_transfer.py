"""`sim2real bench transfer`: outcomes are kept by unit, and added up over days."""

import json
from dataclasses import replace

import pytest
from sim2real.bench import transfer
from sim2real.bench.config import BenchTransfer
from sim2real.bench.transfer import Score, bench_transfer

from sim2real.errors import Sim2RealError

REAL = {"nominal": (2, 4), "wide": (6, 7), "identified": (9, 10)}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A bench whose two units have been tried before."""

    def score(config, task, unit, strategy):
        won = REAL[strategy][unit - 700]
        known = strategy == "identified"
        return Score(
            sim=0.99,
            won=(True,) * won + (False,) * (10 - won),
            expected=(0.95, 1.0) if known else None,
            trials=40 if known else 0,
            recorded_s=51.0 if known else 0.0,
        )

    monkeypatch.setattr(transfer, "_score", score)
    config = BenchTransfer(
        tasks=("pendulum-swingup",),
        strategies=tuple(REAL),
        units=2,
        trials=10,
        kills=0,
        scores=tmp_path,
    )
    for unit in (700, 701):
        transfer._scored(config, "pendulum-swingup", {"commit": "abc"}, unit)
    return config


def test_units_that_were_tried_before_are_added_up(kept):
    found = {result.name: result for result in bench_transfer(kept, lambda text: None)}
    assert found["transfer.pendulum.nominal.real"].value == pytest.approx(0.3)
    assert found["transfer.pendulum.identified.real"].value == pytest.approx(0.95)
    assert found["transfer.pendulum.identified.worst_unit"].value == pytest.approx(0.9)
    assert "40 trials and 51 s" in found["transfer.pendulum.identified.real"].note
    assert found["transfer.prediction_coverage"].value == pytest.approx(0.5)
    assert "+30.0 points" in found["transfer.pendulum.p_identified_over_wide"].note


def test_a_kept_unit_says_when_and_with_what_it_was_tried(kept):
    content = json.loads((kept.scores / "pendulum-swingup" / "unit-700.json").read_text())
    assert content["commit"] == "abc" and content["date"]
    assert content["outcomes"]["nominal"]["won"] == "1100000000"


def test_units_of_another_plan_are_not_added_up(kept):
    with pytest.raises(Sim2RealError, match="another plan"):
        list(bench_transfer(replace(kept, trials=20), lambda text: None))
