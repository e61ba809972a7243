"""Which episodes are taken of what lies in a lake or a folder, and what is said of the others."""

import logging

import numpy as np
import pytest

from sim2real.cli.main import main
from sim2real.data import Consent, Episode, Label, Lake, Provenance, Signal, select, selection
from sim2real.errors import Sim2RealError
from sim2real.robot.recording import Recording
from tests.repository import BUNDLES

BUNDLE = BUNDLES / "pendulum-swingup"


def episode(value: float, *, outcome: str = "failure", **source: object) -> Episode:
    about = {"kind": "real", "twin": "pendulum", "robot": "bench", "serial": "7"} | source
    times = 0.02 * np.arange(5)
    channels = {"sensor/hinge_pos": Signal(times, np.full(5, value), "rad")}
    return Episode(channels=channels, provenance=Provenance(**about), outcome=outcome)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A lake with two episodes that fit, one of them repaired, and one of each kind that does
    not."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIM2REAL_LAKE", raising=False)
    broken = episode(2.0)
    named = {
        "good": episode(1.0, outcome="success"),
        "broken": broken,
        "repaired": episode(2.5, parents=(broken.id,), process="repair: 1 sample"),
        "withdrawn": episode(3.0, consent=(Consent(participant="p7", scope=("evaluation",)),)),
        "other": episode(4.0, twin="arm"),
        "simulated": episode(5.0, kind="simulated", robot="", serial=""),
    }
    lake = Lake.create(tmp_path / "lake")
    lake.append(named.values())
    lake.grant(Consent(participant="p7", scope=()), who="ana")
    return named


def names(kept, taken) -> set[str]:
    ids = {each.id: name for name, each in kept.items()}
    return {ids[each.id] for each in taken}


def test_what_fits_is_taken_and_each_other_episode_has_its_reason(kept):
    found = select("lake", twin="pendulum")
    assert names(kept, found) == {"good", "repaired"}
    why = {one.episode: one.why for one in found.left_out}
    assert set(why) == {kept[n].id for n in ("broken", "withdrawn", "other", "simulated")}
    assert "repaired" in why[kept["broken"].id] and "p7" in why[kept["withdrawn"].id]
    assert "'arm'" in why[kept["other"].id] and "simulated" in why[kept["simulated"].id]
    assert len(list(found.sentences())) == 5


def test_conditions_and_ids_ask_the_default_lake_and_any_other(kept):
    assert names(kept, select("outcome = 'success'", twin="pendulum")) == {"good"}
    assert names(kept, select("lake?outcome = 'success'")) == {"good"}
    assert names(kept, select("lake", where="outcome = 'success'")) == {"good"}
    assert names(kept, select([kept["good"].id[:8], "verdict = 'success'"])) == {"good"}


def test_a_verdict_is_the_label_of_the_lake_and_else_the_outcome(kept):
    Lake.open("lake").label(Label(episode=kept["good"].id, tag="failure", who="ana"))
    found = select("lake", twin="pendulum")
    verdicts = {each.id: found.verdict(each) for each in found}
    assert verdicts == {kept["good"].id: "failure", kept["repaired"].id: "failure"}
    loose = select([kept["good"]], twin="pendulum")
    assert loose.verdict(loose[0]) == "success"


def test_kinds_are_mixed_only_when_asked_for(kept):
    asked = select("kind in ('real', 'simulated')", twin="pendulum")
    assert names(kept, asked) == {"good", "repaired", "simulated"}
    assert names(kept, select("kind = 'simulated'")) == {"simulated"}
    assert names(kept, select([kept["simulated"]])) == {"simulated"}


def test_an_episode_that_is_named_alone_is_refused_instead_of_left_out(kept):
    for name, why in (("other", "another robot"), ("withdrawn", "p7 has not agreed")):
        with pytest.raises(Sim2RealError, match=why):
            select(kept[name].id[:12], twin="pendulum")
    assert names(kept, select(kept["broken"].id[:12])) == {"broken"}


def test_a_purpose_needs_its_own_consent(kept, tmp_path):
    agreed = episode(6.0, consent=(Consent(participant="p8", scope=("evaluation",)),))
    Lake.open(tmp_path / "lake").append(agreed)
    assert agreed.id in {e.id for e in select("lake", twin="pendulum")}
    assert agreed.id not in {e.id for e in select("lake", twin="pendulum", purpose="training")}
    with pytest.raises(Sim2RealError, match="unknown purpose 'trainig'; did you mean 'training'"):
        select("lake", purpose="trainig")


def test_a_recording_of_a_withdrawn_person_is_not_taken_from_a_folder_either(kept, tmp_path):
    source = Provenance(
        kind="real", consent=(Consent(participant="p7", scope=("training", "evaluation")),)
    )
    recording = Recording(tmp_path / "runs" / "x.arrow", {"q": "rad"}, source)
    for k in range(3):
        recording.add(0.1 * k, {"q": [float(k)]})
    recording.close()
    with pytest.raises(Sim2RealError, match="p7 has not agreed to evaluation"):
        select("runs")


def test_robots_that_are_unknown_pass_with_a_note_and_known_ones_do_not():
    unknown = [episode(1.0, twin="", robot=""), episode(2.0, twin="", robot="so101")]
    found = select(unknown, twin="pendulum")
    assert len(found) == 2 and "2 episodes do not say" in found.notes[0]
    mine = [*unknown, episode(3.0, serial="8")]
    found = select(mine, twin="pendulum")
    assert [one.episode for one in found.left_out] == [unknown[1].id]
    assert "7 (1), 8 (1)" in found.notes[-1]


def test_nothing_that_fits_is_an_error_that_says_why(kept):
    with pytest.raises(Sim2RealError, match="none of 1 episodes can be taken: it is of another"):
        select([kept["other"]], twin="pendulum")
    with pytest.raises(Sim2RealError, match="no episode of lake fits"):
        select("outcome = 'never'")
    with pytest.raises(Sim2RealError, match="no such log: nowhere"):
        select("nowhere")
    with pytest.raises(Sim2RealError, match="no lake"):
        select("lake2?outcome = ''")


VERBS = {
    "gap": ("gap", "{bundle}", "--logs"),
    "identify": ("identify", "{bundle}", "--logs"),
    "doctor": ("doctor", "{bundle}", "--logs"),
    "drift": ("drift", "{bundle}", "--logs"),
    "attribute": ("attribute", "{bundle}", "--logs"),
    "failures": ("failures", "{bundle}", "--logs"),
    "ranges": ("randomize", "show", "{bundle}", "--logs"),
    "replay": ("deploy", "{bundle}", "--robot", "unit:7", "--step", "replay", "--logs"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_the_right_episodes_of_a_lake(verb, kept, monkeypatch, capsys):
    taken = []

    def stop(candidates):
        taken.extend(candidates)
        raise Sim2RealError("enough")

    monkeypatch.setattr(selection, "_loaded", stop)
    words = [word.format(bundle=BUNDLE) for word in VERBS[verb]]
    assert main([*words, "lake"]) == 2 and "enough" in capsys.readouterr().err
    assert names(kept, taken) == {"good", "repaired"}


def test_what_was_left_out_is_printed(kept, caplog):
    with caplog.at_level(logging.INFO, logger="sim2real"):
        select("lake", twin="pendulum")
    assert "logs: 2 real episodes" in caplog.text and "left out: " in caplog.text
