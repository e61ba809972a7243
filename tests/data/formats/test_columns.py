"""Logs made of columns: channel maps, units, round trips, and damaged files."""

import gzip
import io
import json
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sim2real.data import Consent, Episode, Provenance, Signal, Video
from sim2real.data.formats import FORMATS, detect, read_episodes, write_episodes
from sim2real.data.formats.channel_map import ChannelMap
from sim2real.data.formats.columns.csv import write_csv
from sim2real.data.formats.columns.mat import read_mat
from sim2real.data.formats.columns.npz import write_npz
from sim2real.data.formats.columns.read import read_columns
from sim2real.errors import Sim2RealError
from sim2real.units import si_unit
from tests.format_faults import survives_all

REAL = Provenance(kind="real", robot="so101", site="lab")
PLAIN = {"time": {"from": "t"}, "channels": {"q": {"from": "q", "unit": "rad"}}}


def mapped(**changes) -> ChannelMap:
    return ChannelMap.of_tables({**PLAIN, **changes})


def only(path: Path, channels: ChannelMap | None = None, **options) -> Episode:
    (episode,) = read_columns(path, base=REAL, channels=channels, **options)
    return episode


def written(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


# Units


@pytest.mark.parametrize(
    ("unit", "value", "si"),
    [
        ("deg", 0.017453292519943295, "rad"),
        ("mm/s", 1e-3, "m/s"),
        ("us", 1e-6, "s"),
        ("rpm", 0.10471975511965977, "rad/s"),
        ("N mm", 1e-3, "N m"),
        ("Nm", 1.0, "N m"),
        ("m/s^2", 1.0, "m/s^2"),
        ("mm/s2", 1e-3, "m/s^2"),
        ("deg/ms", 17.453292519943295, "rad/s"),
        ("N m s/rad", 1.0, "N m s/rad"),
        ("counts", 1.0, ""),
        ("%", 0.01, ""),
        ("", 1.0, ""),
    ],
)
def test_recorded_units_become_si(unit, value, si):
    factor, offset, name = si_unit(unit)
    assert (factor, offset, name) == (pytest.approx(value, rel=1e-15), 0.0, si)


def test_a_temperature_is_shifted_not_only_scaled():
    assert si_unit("degC") == (1.0, 273.15, "K")


def test_si_units_stay_as_they_are():
    for unit in ("rad", "m/s", "N m", "rad/s^2", "V", "K", "kg m^2"):
        assert si_unit(unit) == (1.0, 0.0, unit)


def test_an_unknown_unit_names_its_neighbours():
    with pytest.raises(Sim2RealError, match="'deg'"):
        si_unit("degs/s")
    with pytest.raises(Sim2RealError, match="scale"):
        si_unit("rpm/V")


# Maps


def test_every_unknown_key_is_an_error_with_the_nearest_valid_one():
    for data, words in [
        ({"fils": "*.csv"}, "'files'"),
        ({"clock": {}}, "has no 'clock'"),
        ({"channels": {"q": {"from": "q", "units": "rad"}}}, "'unit'"),
        ({"channels": {"q": {"form": "q"}}}, "'from'"),
        ({"channels": {"q": {"columns": "q"}}}, "has no 'columns'"),
        ({"time": {"from": "t", "stated": 5}}, "'stated_hz'"),
        ({"provenance": {"robt": "x"}}, "'robot'"),
        ({"provenance": {"task": {"from": "x", "mach": "y"}}}, "'match'"),
        ({"provenance": {"task": {"from": "@fil"}}}, "'@file'"),
    ]:
        with pytest.raises(Sim2RealError, match=words):
            mapped(**data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"channels": {}}, "no channels"),
        ({"time": {"from": "t", "rate_hz": 5}}, "either 'from'"),
        ({"time": {}}, "either 'from'"),
        ({"time": {"from": "t", "unit": "mm"}}, "not a unit of time"),
        ({"time": {"rate_hz": -5}}, "at least 0"),
        ({"skip": -1}, "at least 0"),
        ({"skip": True}, "whole number"),
        ({"header": "no"}, "true or false"),
        ({"files": "../x.csv"}, "names inside the folder"),
        ({"files": []}, "names inside the folder"),
        ({"files": "."}, "names inside the folder"),
        ({"channels": {"q": {"from": "q", "unit": "furlong"}}}, "not known"),
        ({"channels": {"q": {"from": "q", "unit": "m", "unwrap": True}}}, "only angles"),
        ({"channels": {"q": {"from": "q", "dtype": "float65"}}}, "'float64'"),
        ({"channels": {"q": {"from": "q", "signed_bits": 33}}}, "at most 32"),
        ({"channels": {"q": {"from": "q", "file": "../x"}}}, "file name in the folder"),
        ({"channels": {"q": {"from": 3}}}, "from must be text"),
        ({"channels": {"q": {"from": "q", "scale": "2"}}}, "must be a number"),
        ({"channels": {"q": {"from": "q", "file": "a.csv"}, "p": {"from": "p"}}}, "or none"),
        ({"recording": {}}, "list of tables"),
        ({"provenance": {"kind": "reel"}}, "'real'"),
        ({"provenance": {"task": {"from": "x", "match": "("}}}, "not a pattern"),
        ({"provenance": {"task": {"from": "x", "match": "a"}}}, "one group"),
        ({"outcome": 3}, "must be text"),
    ],
)
def test_a_wrong_map_is_one_clear_error(data, words):
    with pytest.raises(Sim2RealError, match=words):
        mapped(**data)


def test_a_map_file_that_is_no_toml_is_named(tmp_path):
    with pytest.raises(Sim2RealError, match=r"map.toml is not readable TOML"):
        ChannelMap.load(written(tmp_path / "map.toml", "[[[["))
    with pytest.raises(Sim2RealError, match="no such file"):
        ChannelMap.load(tmp_path / "none.toml")
    with pytest.raises(Sim2RealError, match=r"map.toml: the map needs 'time'"):
        ChannelMap.load(written(tmp_path / "map.toml", "[channels.q]\nfrom = 'q'"))


# Reading by a map


def test_columns_are_picked_scaled_and_turned_into_si(tmp_path):
    log = written(tmp_path / "a.csv", "stamp, q1, q2, v\n0,90,0,1\n1000,180,45,2\n")
    found = only(
        log,
        mapped(
            time={"from": "stamp", "unit": "us", "stated_hz": 1000},
            channels={
                "q": {"from": ["q1", "q2"], "unit": "deg"},
                "v": {"from": "v", "scale": 0.229, "offset": 1, "unit": "rpm"},
            },
        ),
    )
    assert found["q"].times.tolist() == [0.0, 0.001]
    assert found["q"].values == pytest.approx(np.deg2rad([[90, 0], [180, 45]]))
    assert (found["q"].unit, found["q"].stated_hz) == ("rad", 1000.0)
    assert found["v"].values == pytest.approx((np.array([1, 2]) * 0.229 + 1) * 2 * np.pi / 60)
    assert found.provenance.source.startswith("a.csv sha256:")
    assert (found.provenance.robot, found.provenance.site) == ("so101", "lab")


def test_a_file_without_header_or_times_is_read_by_place_and_rate(tmp_path):
    log = written(tmp_path / "a.csv", "1;2;3\n4;5;6\n7;8;9\n")
    channels = mapped(
        header=False, skip=1, time={"rate_hz": 10},
        channels={"q": {"from": "[0]"}, "p": {"from": "[1:3]"}, "r": {"from": ["[2]", "[0]"]}},
    )  # fmt: skip
    found = only(log, channels)
    assert found["q"].times.tolist() == [0.1, 0.2]  # The skipped row has kept its time.
    assert found["q"].values.tolist() == [4, 7]
    assert found["p"].values.tolist() == [[5, 6], [8, 9]]
    assert found["r"].values.tolist() == [[6, 4], [9, 7]]
    assert found["q"].stated_hz == 10


def test_registers_become_signed_and_angles_continuous(tmp_path):
    log = written(tmp_path / "a.csv", "t,load,q\n0,65535,170\n1,32768,-170\n2,5,-10\n")
    channels = {
        "load": {"from": "load", "signed_bits": 16},
        "q": {"from": "q", "unit": "deg", "unwrap": True},
    }
    found = only(log, mapped(channels=channels))
    assert found["load"].values.tolist() == [-1, -32768, 5]
    assert np.rad2deg(found["q"].values) == pytest.approx([170, 190, 350])
    log.write_text("t,load,q\n0,65536,0\n")
    with pytest.raises(Sim2RealError, match="register of 16 bits"):
        only(log, mapped(channels=channels))


@given(st.integers(1, 32), st.lists(st.integers(0, 2**62), min_size=1, max_size=5))
def test_signed_registers_agree_with_twos_complement(bits, raw):
    from sim2real.data.formats.columns.convert import signed_register

    values = np.array(raw) % 2**bits
    found = signed_register(values, bits)
    assert found.min() >= -(2 ** (bits - 1)) and found.max() < 2 ** (bits - 1)
    assert np.array_equal(found % 2**bits, values)


def test_cells_may_hold_lists_and_truths(tmp_path):
    text = 't,p,on,kind\n0,"[0.5, nan]",True,A\n1,"[1, 2]",False,B\n'
    log = tmp_path / "a.csv.gz"
    log.write_bytes(gzip.compress(text.encode()))
    found = only(
        log, mapped(channels={"p": {"from": "p"}, "p1": {"from": "p[1]"}, "on": {"from": "on"}})
    )
    assert found["p"].values.tolist()[1] == [1.0, 2.0] and np.isnan(found["p"].values[0, 1])
    assert found["p1"].values.shape == (2,)
    assert found["on"].values.tolist() == [True, False]
    assert sorted(only(log).channels) == ["on", "p"]  # Without a map, text is left out.


def test_several_files_make_one_episode_each_with_its_clock(tmp_path):
    for run in ("one", "two"):
        written(tmp_path / run / "a.csv", "t,q\n0,1\n1,2\n")
        written(tmp_path / run / "b.csv", "t,p\n0,1\n0.5,2\n1,3\n")
    written(tmp_path / "half" / "a.csv", "t,q\n0,1\n")
    channels = mapped(
        channels={"q": {"file": "a.csv", "from": "q"}, "p": {"file": "b.csv", "from": "p"}},
        provenance={"task": {"from": "@folder"}},
    )
    one, two = read_columns(tmp_path, base=REAL, channels=channels)
    assert (one.provenance.task, two.provenance.task) == ("one", "two")
    assert len(one["q"].times) == 2 and len(one["p"].times) == 3
    assert only(tmp_path / "one", channels) == one


def test_one_file_may_hold_many_episodes_and_repeats(tmp_path):
    runs = {f"run_{i}": np.arange(12.0).reshape(4, 3) + i for i in range(3)}
    np.savez(tmp_path / "a.npz", **runs, notes=np.arange(2))
    channels = mapped(
        episodes="run_*", time={"from": "[0]"}, channels={"q": {"from": "[1:3]"}},
        provenance={"task": {"from": "@array", "match": "_(.*)"}},
    )  # fmt: skip
    found = list(read_columns(tmp_path, base=REAL, channels=channels))
    assert [e.provenance.task for e in found] == ["0", "1", "2"]
    assert found[1]["q"].values[0].tolist() == [2.0, 3.0]
    assert found[1].provenance.source.startswith("a.npz:run_1 sha256:")
    np.savez(tmp_path / "a.npz", q=np.zeros((5, 4)), t=np.tile(np.arange(4.0), (5, 1)))
    found = list(read_columns(tmp_path, base=REAL, channels=mapped(repeats=True)))
    assert len(found) == 5 and len({e.id for e in found}) == 5


def test_the_first_recording_whose_columns_are_there_is_used(tmp_path):
    written(tmp_path / "a.csv", "t,x\n0,1\n")
    written(tmp_path / "b.csv", "t,y\n0,2\n")
    both = mapped(
        channels={},
        recording=[
            {"channels": {"q": {"from": "x"}}},
            {"channels": {"q": {"from": "y"}}, "provenance": {"task": "b"}},
        ],
    )
    a, b = read_columns(tmp_path, base=REAL, channels=both)
    assert (a["q"].values[0], b["q"].values[0]) == (1, 2)
    assert (a.provenance.task, b.provenance.task) == ("", "b")


def test_scalars_of_the_file_reach_provenance_and_outcome(tmp_path):
    log = written(
        tmp_path / "a.json",
        json.dumps({"mass": 0.5, "who": "sin", "fs": 50, "ok": True,
                    "entries": [{"q": 1.0}, {"q": None}]}),
    )  # fmt: skip
    found = only(
        log,
        mapped(
            rows="entries",
            time={"rate_hz": {"from": "fs"}},
            outcome={"from": "ok"},
            provenance={"task": {"from": "who"}, "calibration": {"m": {"from": "mass"}}},
        ),
    )
    assert (found.provenance.task, found.outcome) == ("sin", "success")
    assert found.provenance.calibration == {"m": 0.5}
    assert found["q"].times.tolist() == [0.0, 0.02] and np.isnan(found["q"].values[1])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("t,p\n0,1\n", "no column 'q'; there are 'p', 't'"),
        ("t,q\n0,1\n0,x\n", "row 2: 'x' is not a number"),
        ("t,q\nx,1\n", "holds text"),
        ("t,q\n,1\n", "time of row 1"),
        ("t,q\n0,1,2\n", "row 1 has 3 cells"),
        ("t,q,q\n0,1,2\n", "two columns are named 'q'"),
        ("", "empty"),
        ('t,q\n0,"[1]"\n1,"[1, 2]"\n', "same length"),
        ("t,q\n0,1_0\n", "not a number"),
    ],
)
def test_a_wrong_csv_says_what_and_where(tmp_path, text, words):
    with pytest.raises(Sim2RealError, match=words) as caught:
        only(written(tmp_path / "log.csv", text), mapped())
    assert "log.csv" in str(caught.value)


def test_a_slice_outside_of_the_array_is_an_error(tmp_path):
    np.savez(tmp_path / "a.npz", t=np.arange(3.0), s=np.zeros((3, 4)))
    for column in ("s[4]", "s[4:6]", "s[0:9]", "s[2:1]", "t[0]", "s[]", "z[0]"):
        with pytest.raises(Sim2RealError, match=r"outside an array|no column"):
            only(tmp_path / "a.npz", mapped(channels={"q": {"from": column}}))


def test_patterns_see_the_folder_also_from_inside_it(tmp_path, monkeypatch):
    written(tmp_path / "noise" / "a.csv", "t,q\n0,1\n")
    channels = mapped(files="noise/*.csv", provenance={"task": {"from": "@folder"}})
    monkeypatch.chdir(tmp_path / "noise")
    assert only(Path("a.csv"), channels) == only(Path(), channels) == only(tmp_path, channels)
    assert only(Path("a.csv"), channels).provenance.task == "noise"


def test_a_folder_the_map_does_not_describe_is_an_error(tmp_path):
    written(tmp_path / "a.txt", "t,q\n0,1\n")
    with pytest.raises(Sim2RealError, match="nothing that the channel map describes"):
        list(read_columns(tmp_path, base=REAL, channels=mapped()))
    assert len(only(tmp_path, mapped(files="*.txt"))["q"].times) == 1


# Reading without a map


def test_without_a_map_a_usual_time_column_is_found(tmp_path):
    found = only(written(tmp_path / "a.csv", "Timestamp_ms,q [deg],note\n0,1,x\n20,2,y\n"))
    assert found["q__deg_"].times.tolist() == [0.0, 0.02]
    found = only(
        written(tmp_path / "b.json", '[{"time": 0, "q": [1, 2]}, {"time": 1, "q": [3, 4]}]')
    )
    assert found["q"].shape == (2,)
    scipy.io.savemat(tmp_path / "c.mat", {"t": np.arange(3.0), "q": np.ones((3, 2)), "kp": 2.0})
    assert list(only(tmp_path / "c.mat").channels) == ["q"]


def test_without_a_map_or_time_the_columns_are_shown(tmp_path):
    log = written(tmp_path / "a.csv", "x,q\n0,1\n")
    with pytest.raises(Sim2RealError, match="give a channel map; there are 'x', 'q'"):
        only(log)
    assert only(log, rate_hz=10.0)["q"].stated_hz == 10


# MATLAB


@settings(max_examples=60)
@given(
    st.dictionaries(
        st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True),
        hnp.arrays(
            st.sampled_from(["f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"]),
            hnp.array_shapes(min_dims=2, max_dims=3, max_side=4),
        ),
        min_size=1,
        max_size=3,
    ),
    st.booleans(),
)
def test_matlab_arrays_are_read_as_scipy_reads_them(tmp_path_factory, arrays, packed):
    path = tmp_path_factory.mktemp("mat") / "a.mat"
    scipy.io.savemat(
        path, {**arrays, "cell": np.array([{}, 1], dtype=object)}, do_compression=packed
    )
    theirs, ours = scipy.io.loadmat(path), read_mat(path)
    for name in arrays:
        found = ours.column(name)
        assert np.array_equal(
            found.reshape(theirs[name].shape), theirs[name], equal_nan=found.dtype.kind == "f"
        )
        assert found.dtype == (bool if arrays[name].dtype == bool else arrays[name].dtype)


# Round trips

names = st.from_regex(r"[a-z][a-z0-9_.:/\-]{0,8}", fullmatch=True) | st.just("time")
floats = st.floats(width=64)


@st.composite
def signals(draw, dtypes=("f8", "f4", "f2", "i8", "i2", "u8", "u1", "?")):
    count = draw(st.integers(0, 4))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
    values = draw(hnp.arrays(st.sampled_from(dtypes), (count, *shape)))
    times = draw(hnp.arrays("f8", count, elements=st.floats(-1e9, 1e9)))
    unit = draw(st.sampled_from(["", "rad", "deg", "m/s2", "N m", "furlong", "°"]))
    return Signal(times, values, unit, draw(st.sampled_from([0.0, 50.0, 49.85])))


@st.composite
def episodes(draw):
    channels = draw(st.dictionaries(names, signals(), min_size=1, max_size=3))
    provenance = Provenance(
        kind=draw(st.sampled_from(["real", "simulated"])),
        task=draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=5)),
        seed=draw(st.none() | st.integers(0, 2**40)),
        parameters=draw(
            st.dictionaries(st.text("ab/ .", min_size=1), st.floats(-9, 9), max_size=2)
        ),
        calibration={"offset": [0.1, 2], "camera": {"fx": 3.5, "file": "from"}},
        consent=(Consent(participant="p1", scope=("training",)),),
        parents=("abc",),
    )
    return Episode(channels, provenance, draw(st.sampled_from(["", "success", "failure"])))


def text_bits(episode: Episode) -> bool:
    """Whether every nan has the plain bits that text can hold."""
    for signal in episode.signals.values():
        values = signal.values
        if values.dtype.kind == "f":
            plain = np.where(np.isnan(values), np.copysign(np.nan, values), values)
            if plain.astype(values.dtype).tobytes() != values.tobytes():
                return False
    return True


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.lists(episodes(), min_size=1, max_size=3))
def test_npz_gives_the_same_episodes_back(tmp_path_factory, given_episodes):
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    write_npz(path, given_episodes)
    assert list(read_columns(path, base=REAL)) == given_episodes


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.lists(episodes().filter(text_bits), min_size=1, max_size=3))
def test_csv_gives_the_same_episodes_back(tmp_path_factory, given_episodes):
    folder = tmp_path_factory.mktemp("csv") / "out"
    write_csv(folder, given_episodes)
    assert list(read_columns(folder, base=REAL)) == given_episodes
    assert list(read_episodes(folder, base=REAL)) == given_episodes


def film() -> Video:
    return Video.encode(np.arange(3) * 0.1, [np.full((16, 16, 3), 40 * i, "u1") for i in range(3)])


def test_npz_holds_pictures_and_csv_says_that_it_cannot(tmp_path):
    episode = Episode({"cam": film(), "q": Signal([0.0], [1.0])}, REAL)
    write_npz(tmp_path / "a.npz", [episode])
    assert list(read_columns(tmp_path / "a.npz", base=REAL)) == [episode]
    with pytest.raises(Sim2RealError, match="'cam' is a video"):
        write_csv(tmp_path / "out", [episode])
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def test_a_changed_export_is_noticed(tmp_path):
    episode = Episode({"q": Signal([0.0, 1.0], [1.0, 2.0])}, REAL)
    write_csv(tmp_path / "out", [episode])
    (log,) = (tmp_path / "out").rglob("*.csv")
    log.write_text(log.read_text().replace("2.0", "2.5"))
    with pytest.raises(Sim2RealError, match="have changed since"):
        only(tmp_path / "out")
    (told,) = (tmp_path / "out").rglob("*.toml")
    told.write_text("\n".join(s for s in told.read_text().splitlines() if not s.startswith("id")))
    assert only(tmp_path / "out")["q"].values.tolist() == [1.0, 2.5]


def test_writing_nothing_or_failing_leaves_nothing(tmp_path):
    def broken():
        yield Episode({"q": Signal([0.0], [1.0])}, REAL)
        raise Sim2RealError("the source ended")

    for format, name in (("npz", "x.npz"), ("csv", "x"), ("hdf5", "x.hdf5"), ("lerobot", "x")):
        with pytest.raises(Sim2RealError, match="no episodes"):
            write_episodes(tmp_path / name, [], format=format)
    for write in (write_npz, write_csv):
        with pytest.raises(Sim2RealError, match="the source ended"):
            write(tmp_path / "x", broken())
    assert list(tmp_path.iterdir()) == []


# The registry


def test_formats_are_detected_by_content_and_name(tmp_path):
    np.savez(tmp_path / "a.npz", t=np.arange(2.0))
    scipy.io.savemat(tmp_path / "a.mat", {"t": np.arange(2.0)})
    written(tmp_path / "a.csv", "t,q\n0,1\n")
    written(tmp_path / "a.json", "[]")
    for name in ("npz", "mat", "csv", "json"):
        assert detect(tmp_path / f"a.{name}") == name
    for content, name in [(b"\x89HDF\r\n\x1a\n", "hdf5"), (b"\x89MCAP0\r\n", "mcap")]:
        (tmp_path / "blob").write_bytes(content)
        assert detect(tmp_path / "blob") == name
    written(tmp_path / "set" / "meta" / "info.json", "{}")
    assert detect(tmp_path / "set") == "lerobot"
    with pytest.raises(Sim2RealError, match="is unknown; give one of"):
        detect(written(tmp_path / "x.bin", "\x07"))
    with pytest.raises(Sim2RealError, match="no such file"):
        detect(tmp_path / "none")


def test_a_wrong_format_name_is_answered_with_the_nearest(tmp_path):
    log = written(tmp_path / "a.csv", "t,q\n0,1\n")
    with pytest.raises(Sim2RealError, match="'hdf5'"):
        list(read_episodes(log, base=REAL, format="hdf"))
    (episode,) = read_episodes(log, base=REAL)
    with pytest.raises(Sim2RealError, match="can only be read; formats to write are"):
        write_episodes(tmp_path / "a.mat", [episode], format="mat")
    with pytest.raises(Sim2RealError, match="remove the rate"):
        write_episodes(tmp_path / "a.npz", [episode], format="npz", rate_hz=5.0)
    write_episodes(tmp_path / "a.npz", [episode], format="npz")
    assert list(read_episodes(tmp_path / "a.npz", base=REAL)) == [episode]
    assert set(FORMATS) == {"csv", "npz", "json", "mat", "hdf5", "mcap", "lerobot", "recording"}


# Hostile and damaged files


def test_a_gzip_bomb_is_refused(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"0" * (80 * 2**20), compresslevel=9))
    with pytest.raises(Sim2RealError, match="decompresses to far more"):
        only(tmp_path / "a.csv.gz")


def test_pickles_in_an_npz_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", t=np.arange(2.0), q=np.array([print, 1], dtype=object))
    with pytest.raises(Sim2RealError, match="instead of numbers"):
        only(tmp_path / "a.npz", mapped())


def test_an_array_that_lies_about_its_shape_costs_no_memory(tmp_path):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    )
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("t.npy", head.getvalue() + bytes(80))
    with pytest.raises(Sim2RealError, match="does not fit its bytes"):
        only(tmp_path / "a.npz", mapped(channels={"q": {"from": "t"}}))


def csv_log(folder: Path) -> tuple[Path, ChannelMap]:
    rows = "".join(f'{20 * i},{i * 0.1:.3f},{65530 + i},"[{i}, 0.5]",True\n' for i in range(6))
    log = written(folder / "log.csv", "stamp, q, load, p, on\n" + rows)
    return log, mapped(
        time={"from": "stamp", "unit": "ms"},
        channels={
            "q": {"from": "q", "unit": "deg", "unwrap": True},
            "load": {"from": "load", "signed_bits": 16},
            "p": {"from": "p[0:2]", "unit": "mm"},
            "on": {"from": "on"},
        },
    )


def gzip_log(folder: Path) -> tuple[Path, ChannelMap]:
    log, channels = csv_log(folder)
    packed = folder / "log.csv.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    return packed, channels


def npz_log(folder: Path) -> tuple[Path, ChannelMap]:
    folder.mkdir()
    np.savez(folder / "log.npz", t=np.arange(6.0), q=np.ones((6, 3), "f4"), n=np.arange(6), k=2.0)
    return folder / "log.npz", mapped(
        channels={"q": {"from": "q[0:2]", "unit": "deg"}, "n": {"from": "n", "signed_bits": 16}},
        provenance={"calibration": {"k": {"from": "k"}}},
    )


def own_npz(folder: Path) -> tuple[Path, None]:
    folder.mkdir()
    episode = Episode({"q": Signal([0.0, 1.0], [[1.0, 2.0]] * 2, "rad")}, REAL)
    write_npz(folder / "log.npz", [episode, episode.derive("again")])
    return folder / "log.npz", None


def json_log(folder: Path) -> tuple[Path, ChannelMap]:
    entries = [{"t": 0.02 * i, "q": [i, 0.5], "on": i > 2, "load": i} for i in range(6)]
    log = written(folder / "log.json", json.dumps({"kp": 3, "who": "x", "entries": entries}))
    return log, mapped(
        rows="entries",
        channels={"q": {"from": "q"}, "on": {"from": "on"}, "load": {"from": "load", "scale": 2}},
        provenance={"task": {"from": "who"}, "calibration": {"kp": {"from": "kp"}}},
    )


def mat_log(folder: Path, *, packed: bool = False) -> tuple[Path, ChannelMap]:
    folder.mkdir()
    arrays = {"t": np.arange(6.0), "q": np.ones((6, 3)), "kp": 3.0, "who": "x", "s": {"a": 1}}
    scipy.io.savemat(folder / "log.mat", arrays, do_compression=packed)
    return folder / "log.mat", mapped(
        channels={"q": {"from": "q", "unit": "deg"}}, provenance={"seed": {"from": "kp"}}
    )


def packed_mat(folder: Path) -> tuple[Path, ChannelMap]:
    return mat_log(folder, packed=True)


LOGS = {"csv": (csv_log, gzip_log), "npz": (npz_log, own_npz), "json": (json_log,),
        "mat": (mat_log, packed_mat)}  # fmt: skip


def damage(tmp_path: Path, kind: str, count: int, *, first_seed: int = 0) -> int:
    passed = 0
    for number, make in enumerate(LOGS[kind], first_seed):
        path, channels = make(tmp_path / f"{kind}{number}")
        share = count // len(LOGS[kind])
        maps = [None, channels] if channels else [None]
        for given_map in maps:
            read = partial(read_columns, base=REAL, channels=given_map)
            passed += survives_all(read, path, share // len(maps), seed=number)
    return passed


@pytest.mark.parametrize("kind", LOGS)
def test_damaged_logs_are_read_or_explained(tmp_path, kind):
    assert damage(tmp_path, kind, 400) < 400


@pytest.mark.slow
def test_a_damaged_export_gives_its_episodes_or_an_error(tmp_path):
    path, _ = own_npz(tmp_path / "npz")
    made = list(read_columns(path, base=REAL))
    write_csv(tmp_path / "csv" / "out", made[:1])
    (log,) = (tmp_path / "csv").rglob("*.csv")

    def read(place: Path):
        found = list(read_columns(place if place == path else place.parent, base=REAL))
        assert {episode.id for episode in found} <= {episode.id for episode in made}
        return found

    assert survives_all(read, path, 200, seed=1) < 200
    assert survives_all(read, log, 200, seed=2) < 200


def test_damaged_maps_are_read_or_explained(tmp_path):
    log, _ = csv_log(tmp_path / "logs")
    text = """
files = "*.csv"
skip = 1
time = { from = "stamp", unit = "ms", stated_hz = 50 }
outcome = "success"
[channels.q]
from = ["q", "p[0:2]"]
unit = "deg"
unwrap = true
[channels.load]
from = "load"
signed_bits = 16
scale = 0.5
dtype = "float32"
[provenance]
robot = "x"
task = { from = "@file" }
calibration = { k = 3.5 }
"""
    path = written(tmp_path / "map" / "log.toml", text)

    def read(place: Path):
        return read_columns(log, base=REAL, channels=ChannelMap.load(place))

    assert len(list(read(path))) == 1
    assert survives_all(read, path, 500, seed=3) < 500


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOGS)
def test_thousands_of_damaged_logs_are_read_or_explained(tmp_path, kind):
    assert damage(tmp_path, kind, 2_500, first_seed=100) < 2_500
