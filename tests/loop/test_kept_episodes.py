"""What a loop records goes to its lake, once, and not after a person withdrew."""

import pytest

from sim2real.data import Consent, Lake, Provenance
from sim2real.errors import Sim2RealError
from sim2real.loop.kept_episodes import LoopLake
from sim2real.loop.steps import KeptResult, KeptStep
from sim2real.robot.recording import Recording


def test_recordings_are_kept_once_and_those_of_a_withdrawn_person_stop_the_loop(tmp_path):
    folder = tmp_path / "record-1"
    person = Consent(participant="p7", scope=("training", "evaluation"))
    for name, consent in (("a", ()), ("b", (person,))):
        about = Provenance(kind="real", consent=consent)
        recording = Recording(folder / f"{name}.arrow", {"q": "rad"}, about)
        for k in range(3):
            recording.add(0.1 * k, {"q": [float(k)]})
        recording.close()
    step = KeptStep(kind="record", inputs={}, work=lambda folder, needs: {})
    done = KeptResult(step=step, folder=folder, result={}, seconds=1.0, kept=False)
    kept = LoopLake.create(str(tmp_path / "lake"))
    kept.add(step, None)
    kept.add(step, done)
    kept.add(step, done)
    assert len(kept.lake) == 2
    kept.lake.keeper.withdraw("p7")
    with pytest.raises(Sim2RealError, match=rf"1 of 2 recordings in {folder} .* delete that"):
        kept.add(step, done)
    assert len(Lake.open(tmp_path / "lake")) == 1
