"""Reading recordings: what is none is called so, and what is cut off is told."""

import json

import pyarrow as pa
import pytest

from sim2real.data import Lake, Provenance, select
from sim2real.data.formats import detect
from sim2real.data.formats.recording import read_recording
from sim2real.errors import Sim2RealError
from sim2real.robot import Recording
from sim2real.robot.recording import write_outcome
from sim2real.robot.supervisor import OPERATOR

REAL = Provenance(kind="real", robot="arm-reach", serial="unit-4")


@pytest.mark.parametrize(
    ("columns", "units"),
    [
        ({"time": [0.0], "p": [[1.0]]}, {"q": "rad"}),
        ({"q": [[1.0]]}, {"q": "rad"}),
        ({"time": [0.0, 0.1], "q": [[1.0], None]}, {"q": "rad"}),
        ({"time": [0.0], "q": [1.0]}, {"q": "rad"}),
        ({"time": [0.0], "q": [["fast"]]}, {"q": "rad"}),
        ({"time": [0.0], "q": [[1.0]]}, ["q"]),
    ],
)
def test_an_arrow_file_that_is_no_recording_is_called_so(tmp_path, columns, units):
    table = pa.table(columns)
    told = {"units": json.dumps(units), "provenance": REAL.to_json()}
    with pa.ipc.new_stream(tmp_path / "x.arrow", table.schema.with_metadata(told)) as stream:
        stream.write_table(table.replace_schema_metadata(told))
    with pytest.raises(Sim2RealError, match=r"x\.arrow"):
        read_recording(tmp_path / "x.arrow")


def test_a_recording_that_is_named_twice_is_read_once(tmp_path, caplog):
    recording = Recording(tmp_path / "x.arrow", {"q": "rad"}, REAL)
    for k in range(60):
        recording.add(0.1 * k, {"q": [float(k)]})
    recording.close()
    path = tmp_path / "x.arrow"
    assert len(select([str(path), str(tmp_path)])) == 1 and not caplog.text
    path.write_bytes(path.read_bytes()[:-8])
    assert len(select([str(tmp_path)])) == 1
    assert "x.arrow is cut off after 5.9 s" in caplog.text
    with pytest.raises(Sim2RealError, match="must not be empty"):
        select([""])


def test_recordings_are_a_format_also_beside_files_that_need_a_map(tmp_path):
    recording = Recording(tmp_path / "runs" / "x.arrow", {"q": "rad"}, REAL)
    for k in range(3):
        recording.add(0.1 * k, {"q": [float(k)]})
    recording.close()
    (tmp_path / "runs" / "x.json").write_text('{"outcome": "success"}')
    (tmp_path / "runs" / "killed.arrow").write_bytes(b"")
    (tmp_path / "log.csv").write_text("when,angle\n0,1\n1,2\n")
    (tmp_path / "map.toml").write_text('time = { from = "when" }\n[channels.q]\nfrom = "angle"\n')
    assert detect(tmp_path / "runs") == "recording"
    named = [tmp_path / "runs", str(tmp_path / "log.csv")]
    found = select(named, channels=tmp_path / "map.toml").episodes
    assert [episode.outcome for episode in found] == ["success", ""]
    assert select(found).episodes == found
    assert select(tmp_path / "runs").episodes == found[:1]


def test_why_it_was_stopped_belongs_to_the_episode_and_an_operator_is_no_reason(tmp_path):
    def ended(name, stopped, beside=None):
        recording = Recording(tmp_path / name, {"q": "rad"}, REAL)
        recording.add(0.0, {"q": [1.0]})
        recording.close()
        write_outcome(recording.path, "failure", stopped=stopped, periods=1)
        if beside is not None:
            recording.path.with_suffix(".json").write_text(json.dumps(beside))
        return read_recording(recording.path)

    fast = ended("fast.arrow", "hinge at -12.58 rad/s, limit 12.43")
    assert fast.provenance.stopped == "hinge at -12.58 rad/s, limit 12.43"
    lake = Lake.create(tmp_path / "lake")
    lake.append(fast)
    (row,) = lake.query("select provenance->>'$.stopped' as why from episodes").to_pylist()
    assert row["why"] == fast.provenance.stopped == lake.get(fast.id).provenance.stopped
    whole = ended("whole.arrow", "")
    assert ended("key.arrow", OPERATOR) == whole and not whole.provenance.stopped
    # What an earlier version wrote keeps its id.
    assert ended("old.arrow", "x", {"outcome": "failure", "stopped": "too fast"}) == whole
