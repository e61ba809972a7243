"""The benchmark `transfer`: units that were kept are added up, whatever day they were tried on."""

import pytest

from benchmarks.benchmark import Options
from benchmarks.catalogue import named
from benchmarks.kept import kept_shards, parsed, plan_of
from benchmarks.transfer.bench import MEASUREMENT, Tried
from benchmarks.transfer.units import Score

REAL = {"nominal": (2, 4), "wide": (6, 7), "identified": (9, 10)}


def score(unit, strategy):
    won = REAL[strategy][unit - 700]
    known = strategy == "identified"
    return Score(
        sim=0.99,
        won="1" * won + "0" * (10 - won),
        expected=(0.95, 1.0) if known else None,
        trials=40 if known else 0,
        recorded_s=51.0 if known else 0.0,
    )


def test_units_are_added_up():
    data = {
        f"pendulum-swingup/unit-{unit}": Tried(outcomes={name: score(unit, name) for name in REAL})
        for unit in (700, 701)
    }
    data["kills/1"] = Tried(kills=10, explained=0, same=(True, True, False, True))
    found = {result.name: result for result in MEASUREMENT.results(data, Options())}
    assert found["transfer.pendulum.nominal.real"].value == pytest.approx(0.3)
    assert found["transfer.pendulum.identified.real"].value == pytest.approx(0.95)
    assert found["transfer.pendulum.identified.worst_unit"].value == pytest.approx(0.9)
    assert "40 trials and 51 s" in found["transfer.pendulum.identified.real"].note
    low, high = found["transfer.pendulum.identified.real"].interval
    assert low < 0.95 < high
    assert found["transfer.prediction_coverage"].value == pytest.approx(0.5)
    assert "+30.0 points" in found["transfer.pendulum.p_identified_over_wide"].note
    assert found["transfer.killed_loops_same"].value == 0.75


def test_units_of_long_ago_are_read_as_they_were_kept():
    work = named("transfer").load()
    kept = kept_shards("transfer", work.shards(Options()), plan_of(work))
    pendulums = [shard for shard in kept if shard.startswith("pendulum-swingup/")]
    if len(pendulums) < 20:
        pytest.skip("measured again with another plan")
    results = work.results(parsed(work, {shard: kept[shard] for shard in pendulums}), Options())
    found = {result.name: result for result in results}
    assert "20 units" in found["transfer.pendulum.identified.real"].note
    assert found["transfer.pendulum.identified.real"].value > 0.9
