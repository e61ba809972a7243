"""Every recording is predicted by a twin that has not seen it."""

from dataclasses import replace

import pytest

from sim2real.errors import Sim2RealError
from sim2real.identification import CrossValidation, cross_validate
from sim2real.identification.cross_validation import Fold
from tests.simulated import bundle_and_twin, simulate

TRUTH = {"joint/hinge/damping": 0.02, "actuator/hinge/delay": 0.018}
OPTIONS = {"folds": 2, "parameters": tuple(TRUTH), "starts": 1}


@pytest.fixture(scope="module")
def recorded():
    bundle, twin = bundle_and_twin("pendulum-swingup")
    return twin, simulate(bundle, twin, count=4, values=TRUTH)


@pytest.mark.slow
def test_each_recording_is_left_out_once_and_an_executor_finds_the_same(recorded, tmp_path):
    twin, logs = recorded
    found = cross_validate(twin, logs, **OPTIONS)
    ids = [episode.id for episode in logs]
    assert [fold.left_out for fold in found.folds] == [tuple(ids[0::2]), tuple(ids[1::2])]
    assert found.fine
    for fold in found.folds:
        for name, truth in TRUTH.items():
            assert abs(fold.values[name] - truth) < 5 * fold.std[name]
    store = str(tmp_path / "store")
    again = cross_validate(twin, logs, **OPTIONS, executor="local", workers=2, store=store)
    assert again == found
    assert CrossValidation.load(found.save(tmp_path / "folds.json")) == found


def test_estimates_that_move_more_than_stated_are_named():
    one = Fold(
        left_out=("a",), ratio=0.5, before={}, after={}, values={"mass": 1.0}, std={"mass": 0.1}
    )
    found = CrossValidation(name="arm", version="", folds=(one, replace(one, values={"mass": 2.0})))
    assert found.moved == {"mass": pytest.approx(5.0)}  # half a kilogram of scatter, 0.1 stated
    assert any("mass (× 5.0)" in line for line in found.sentences())


def test_more_folds_than_recordings_are_refused(recorded):
    with pytest.raises(Sim2RealError, match="at most as many as there are recordings"):
        cross_validate(*recorded, folds=5)
