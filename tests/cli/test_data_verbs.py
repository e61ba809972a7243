"""`sim2real data …`: what each verb prints, and one clear line for every mistake."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sim2real.cli import main
from sim2real.data import Consent, Episode, Lake, Provenance, Signal
from tests.data.test_lake import episode


@pytest.fixture
def lake(tmp_path, monkeypatch) -> Lake:
    monkeypatch.chdir(tmp_path)
    lake = Lake.create(tmp_path / "lake")
    lake.append([episode(k) for k in range(4)])
    person = Consent(participant="p-ana", scope=("evaluation",))
    lake.append(episode(9, kind="real", robot="so101", consent=(person,)))
    return lake


def data(capsys, *arguments: str, code: int = 0):
    """What `sim2real data … --json` prints."""
    assert main(["data", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def say(capsys, *arguments: str, code: int = 0) -> str:
    assert main(["data", *arguments]) == code
    return capsys.readouterr().out


def test_query_ls_and_stats_tell_what_is_there(lake, capsys):
    assert data(capsys, "query", "select count(*) as n from episodes") == [{"n": 5}]
    assert data(capsys, "query", "select count(*) as n from episodes", "--version", "1") == [
        {"n": 4}
    ]
    (row,) = data(capsys, "ls", "--where", "kind = 'real'")
    assert row["robot"] == "so101"
    assert len(data(capsys, "ls", "--limit", "2")) == 2
    found = data(capsys, "stats")
    assert found["episodes"] == 5 and found["version"] == 2
    assert {group["kind"] for group in found["groups"]} == {"simulated", "real"}
    for verb in (["query", "select kind from episodes"], ["ls"], ["stats"]):
        assert "sim" in say(capsys, *verb)


@pytest.mark.slow
def test_show_draws_the_channels(lake, capsys, tmp_path):
    one = episode(3)
    found = data(capsys, "show", one.id[:10])
    assert found["id"] == one.id and found["channels"]["q"]["unit"] == "rad"
    text = say(capsys, "show", one.id, "--channels", "single")
    assert any("⠀" < sign <= "⣿" for sign in text) and "small" not in text
    say(capsys, "show", one.id, "--png", str(tmp_path / "one.png"))
    assert (tmp_path / "one.png").stat().st_size > 10_000


def test_labels_are_said_and_corrected(lake, capsys):
    one = episode(1).id
    first = data(capsys, "label", one[:12], "phase", "--value", "grasp", "--who", "ana")
    assert first["episode"] == one
    data(
        capsys,
        *("label", one, "phase", "--value", "lift", "--start", "0.1", "--end", "0.2"),
        *("--supersedes", first["label"]),
    )
    sql = "select value, start_s from current_labels"
    assert data(capsys, "query", sql) == [{"value": "lift", "start_s": 0.1}]
    assert "lift" in say(capsys, "show", one)


def test_lineage_shows_parents_and_children(lake, capsys):
    child = episode(1).derive("cut to 1 s")
    lake.append(child)
    walk = data(capsys, "lineage", episode(1).id)
    assert [(row["id"], row["steps"]) for row in walk] == [(episode(1).id, 0), (child.id, 1)]
    assert "cut to 1 s" in say(capsys, "lineage", child.id)


def test_lineage_shows_the_policies_that_come_from_an_episode_and_the_one_that_acted_in_it(
    lake, capsys
):
    flown = episode(7, policy="flier")
    child = flown.derive("cut to 1 s")
    lake.append([flown, child])
    lake.keeper.record_origin("learner", [child.id], purpose="identification")
    walk = data(capsys, "lineage", flown.id)
    assert [(row["id"], row["steps"], row["kind"], row["process"]) for row in walk][::3] == [
        ("flier", -1, "policy", "trial"), ("learner", 2, "policy", "identification"),
    ]  # fmt: skip
    said = say(capsys, "lineage", flown.id)
    assert "flier  policy, which acted in it" in said
    assert "learner  policy, made from it: identification" in said


def test_where_robots_were_recorded_the_verbs_find_their_lake(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIM2REAL_LAKE")
    Lake.create("runs/lake").append(episode(1))
    assert data(capsys, "stats")["episodes"] == 1
    Lake.create("lake")
    assert data(capsys, "stats")["episodes"] == 0
    monkeypatch.setenv("SIM2REAL_LAKE", "runs/lake")
    assert data(capsys, "stats")["episodes"] == 1


def test_verify_has_an_exit_code(lake, capsys):
    assert data(capsys, "verify") == {"sound": True, "damage": []}
    data(capsys, "compact")
    part = sorted(Path(lake.uri).glob("signals/part-*.parquet"))[0]
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    found = data(capsys, "verify", code=1)
    assert not found["sound"] and any(part.name in one["file"] for one in found["damage"])


def test_versions_are_listed(lake, capsys):
    found = data(capsys, "versions")
    assert [(row["version"], row["rows"]) for row in found] == [(0, 0), (1, 4), (2, 5)]


def test_a_verdict_is_the_last_word(lake, capsys):
    one = episode(1).id
    assert data(capsys, "ls", "--where", f"id = '{one}'")[0]["verdict"] == "success"
    data(capsys, "label", one, "failure", "--who", "ana")
    assert data(capsys, "ls", "--where", "verdict = 'failure'")[0]["verdict"] == "failure"
    assert "failure" in say(capsys, "show", one).splitlines()[0]


def test_what_can_be_read_is_imported_and_the_rest_is_told(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "a": "time,q\n0,1\n1,2\n",
        "b": "nonsense",
        "c": "time,q\n0,3\n1,4\n",
    }.items():
        (tmp_path / f"{name}.csv").write_text(text)
    assert main(["data", "import", "a.csv", "b.csv", "c.csv", "--json"]) == 2
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["new"] == 2 and len(found["problems"]) == 1 and "b.csv" in said.err


def test_a_recording_that_was_withdrawn_does_not_come_back_under_another_name(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("time,q\n0,1\n1,2\n")
    (tmp_path / "who.toml").write_text(
        '[[consent]]\nparticipant = "p1"\nscope = ["training"]\nexpires = 2030-12-31\n'
    )
    data(capsys, "import", "log.csv", "--provenance", "who.toml")
    data(capsys, "consent", "withdraw", "p1")
    assert main(["data", "import", "log.csv", "--robot", "so101"]) == 2
    assert "was erased" in capsys.readouterr().err
    assert len(Lake.open("lake")) == 0


def test_channels_are_renamed_on_the_way_out(lake, capsys, tmp_path):
    out = tmp_path / "out.npz"
    data(capsys, "export", str(out), "--ids", episode(1).id, "--format", "npz",
         "--rename", "q=observation.state", "single=action")  # fmt: skip
    done = data(capsys, "import", str(out), "--lake", "other")
    one = Lake.open("other").get(done["episodes"][0])
    assert {"observation.state", "action"} <= set(one.channels) and "q" not in one.channels
    assert one.provenance.parents == (episode(1).id,)


@pytest.mark.slow
def test_a_closed_pipe_is_no_traceback(lake, tmp_path):
    command = f"{sys.executable} -m sim2real.cli data show {episode(1).id} | head -1"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert "Traceback" not in done.stderr and done.stdout


def test_a_lake_whose_log_is_damaged_is_verified_all_the_same(lake, capsys):
    log = Path(lake.uri) / "episodes" / "_delta_log" / f"{1:020d}.json"
    content = log.read_bytes()
    for damaged in (content[:-5], b"{", content.replace(b"add", b"bdd")):
        log.write_bytes(damaged)
        assert any(log.name in one["file"] for one in data(capsys, "verify", code=1)["damage"])
    log.unlink()
    assert data(capsys, "verify", code=1)["damage"]


@pytest.mark.slow
def test_consent_is_granted_listed_and_withdrawn(lake, capsys, tmp_path):
    person = data(capsys, "ls", "--where", "kind = 'real'")[0]["id"]
    assert main(["data", "export", str(tmp_path / "out.npz"), "--ids", person[:9],
                 "--format", "npz"]) == 2  # fmt: skip
    error = capsys.readouterr().err
    assert person in error and "p-ana has not agreed to training" in error
    assert not (tmp_path / "out.npz").exists()
    data(capsys, "consent", "grant", "p-ana", "--scope", "training", "--expires", "2030-01-31")
    (row,) = data(capsys, "consent", "ls")
    assert (row["participant"], row["episodes"], row["scope"]) == ("p-ana", 1, ["training"])
    assert (row["expires"], row["from"]) == ("2030-01-31", "granted")
    made = data(capsys, "export", str(tmp_path / "out.npz"), "--ids", person, "--format", "npz")
    dry = data(capsys, "consent", "withdraw", "p-ana", "--dry-run")
    assert dry["episodes"] == [person] and len(lake) == 5
    gone = data(capsys, "consent", "withdraw", "p-ana")
    assert gone["episodes"] == [person] and gone["datasets"] == [made["dataset"]]
    assert len(lake) == 4 and data(capsys, "consent", "ls") == []


@pytest.mark.slow
def test_what_is_exported_imports_again(lake, capsys, tmp_path):
    for format_ in ("npz", "csv", "mcap"):
        out = tmp_path / f"out-{format_}"
        name = out.with_suffix(".npz") if format_ == "npz" else out
        data(capsys, "export", str(name), "--where", "kind = 'simulated'", "--format", format_)
        again = data(capsys, "import", str(name), "--lake", str(tmp_path / format_))
        assert again["new"] == 4
        assert sorted(again["episodes"]) == sorted(episode(k).id for k in range(4))


def test_import_takes_provenance_from_flags_and_files(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text("time,q\n" + "\n".join(f"{k / 50},{k}" for k in range(20)))
    (tmp_path / "who.toml").write_text(
        'commit = "1a2b"\n[[consent]]\nparticipant = "p1"\nscope = ["training"]\n'
    )
    done = data(capsys, "import", "log.csv", "--robot", "so101", "--provenance", "who.toml")
    source = Lake.open("lake").get(done["episodes"][0]).provenance
    assert (source.robot, source.commit, source.participants) == ("so101", "1a2b", ["p1"])
    assert source.source.startswith("log.csv sha256:")
    assert data(capsys, "import", "log.csv", "--robot", "so101", "--provenance", "who.toml")[
        "new"
    ] == 0  # fmt: skip


@pytest.mark.slow
def test_check_finds_and_repairs_in_the_lake(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    times = np.arange(500) * 0.01
    values = np.sin(3 * times)
    clean = Episode(
        channels={"joint_pos": Signal(times, values, "rad")}, provenance=Provenance(kind="real")
    )
    broken = values.copy()
    broken[100] = 1.4e306
    damaged = clean.derive("seeded", channels={"joint_pos": Signal(times, broken, "rad")})
    lake = Lake.create(tmp_path / "lake")
    lake.append([clean, damaged])
    assert data(capsys, "check", clean.id)["episodes"][0]["findings"] == []
    (row,) = data(capsys, "check", damaged.id, code=1)["episodes"]
    assert [finding["kind"] for finding in row["findings"]] == ["absurd"]
    (row,) = data(capsys, "check", damaged.id, "--repair", code=1)["episodes"]
    fixed = lake.get(row["repaired"])
    assert fixed.provenance.parents == (damaged.id,) and "repair" in fixed.provenance.process
    assert np.abs(fixed["joint_pos"].values).max() < 1.1
    assert data(capsys, "check", fixed.id)["episodes"][0]["findings"] == []
    assert "nothing wrong" in say(capsys, "check")  # what was repaired is not told again
    assert "1.4" in say(capsys, "check", "--all", code=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["query", "selec 1"], "query failed"),
        (["query", "select 1", "--lake", "nowhere"], "no lake at"),
        (["query", "select * from episodes", "--version", "99"], "no version 99"),
        (["query", "select 1 as a", "--version", "-1"], "no version -1"),
        (["query", "select timestamp '20000-01-01'"], "cannot be shown"),
        (["check", "f" * 5000], "not an episode's id"),
        (["check", ""], "not an episode's id"),
        (["show", "", "--png", "x.xyz"], "not an episode's id"),
        (["label", "ffff", "note", "--value", "\udcff"], "no episode"),
        (["consent", "withdraw", ""], "name the participant"),
        (["ls", "--lake", "s3://"], "cannot hold files|cannot list|no lake|cannot read"),
        (["ls", "--where", "nothing = 1"], "query failed"),
        (["show", "ffff"], "no episode"),
        (["show", "../x"], "not an episode's id"),
        (["label", "ffff", "success"], "no episode"),
        (["lineage", "ffff"], "no episode"),
        (["import", "nothing.csv"], "no such file"),
        (["import", "."], "no file of a known format"),
        (["export", "x"], "choose episodes"),
        (["export", "x", "--where", "kind = 'generated'"], "selects no episode"),
        (["check", "nothing.csv"], "no such file"),
        (["consent", "withdraw", "nobody"], "no data of participant"),
        (["consent", "grant", "p", "--scope", "none", "--expires", "soon"], "is not a date"),
        (
            ["label", episode(1).id, "note", "--value", "x", "--start", "9", "--end", "10"],
            "outside",
        ),
        (["export", "x", "--where", "kind = 'simulated'", "--format", "npz"], "must end in"),
        (["export", "x.npz", "--where", "id > ''", "--format", "npz", "--rename", "q"], "OLD=NEW"),
        (["verify", "--lake", "nowhere"], "no lake at"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_two(lake, arguments, words, capsys, tmp_path):
    (tmp_path / "empty").mkdir()
    if arguments == ["import", "."]:
        arguments = ["import", "empty"]
    assert main(["data", *arguments]) == 2
    error = capsys.readouterr().err.strip().splitlines()
    assert re.search(words, error[-1]) and error[-1].startswith("error: ")
    assert len(lake) == 5
