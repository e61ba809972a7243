"""LeRobot data sets: written, read back, and read as LeRobot itself lays them out."""

import io
import json
import logging
from pathlib import Path

import av
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from sim2real.data import Episode, Provenance, Signal, Video
from sim2real.data.formats.lerobot.files import filled, read_parquet
from sim2real.data.formats.lerobot.read import read_lerobot
from sim2real.data.formats.lerobot.write import write_lerobot
from sim2real.errors import Sim2RealError
from tests.format_faults import MEMORY_LIMIT_BYTES, _peak_bytes, mutations, survives

BASE = Provenance(kind="real", site="lab")
FRAMES = 12
RATE = 20.0


def pictures(count: int, *, seed: int = 0, size: tuple[int, int] = (32, 48)) -> list[np.ndarray]:
    """Pictures of one colour each: they survive the encoder well enough to tell them apart."""
    rng = np.random.default_rng(seed)
    return [np.full((*size, 3), colour, np.uint8) for colour in rng.integers(0, 256, (count, 3))]


def episode(seed: int = 0, *, count: int = FRAMES, video: bool = False, **changes) -> Episode:
    rng = np.random.default_rng(seed)
    times = 0.5 + np.arange(count) / RATE + rng.normal(0, 1e-3, count)
    channels = {
        "observation.state": Signal(times, rng.normal(size=(count, 3)).astype("f4"), "rad", RATE),
        "action": Signal(times, rng.normal(size=(count, 2)), "N m", RATE),
        "wrench/force": Signal(times, rng.normal(size=(count, 2, 3)), "N", RATE),
        "reward": Signal(times, rng.normal(size=count), "", RATE),
        "one": Signal(times, rng.normal(size=(count, 1)), "", RATE),
        "contact": Signal(times, rng.random(count) > 0.5, "", RATE),
        "count": Signal(times, rng.integers(0, 9, count), "", RATE),
    }
    if video:
        channels["camera"] = Video.encode(times, pictures(count, seed=seed), stated_hz=RATE)
    provenance = Provenance(kind="simulated", task=f"task {seed % 2}", robot="arm", seed=seed)
    return Episode(
        **{"channels": channels, "provenance": provenance, "outcome": "success"} | changes
    )


def assert_same_values(one: Episode, other: Episode) -> None:
    assert list(one.channels) == list(other.channels)
    for name, signal in one.signals.items():
        np.testing.assert_array_equal(signal.values, other[name].values)
        assert signal.values.dtype == other[name].values.dtype


@pytest.mark.parametrize("video", [False, True])
def test_what_was_written_comes_back_with_the_same_ids(tmp_path, video):
    episodes = [episode(seed, count=FRAMES + seed, video=video) for seed in range(3)]
    write_lerobot(tmp_path / "set", episodes)
    assert [e.id for e in read_lerobot(tmp_path / "set", base=BASE)] == [e.id for e in episodes]


def test_without_our_notes_it_is_a_data_set_like_any_other(tmp_path):
    episodes = [episode(seed, video=True) for seed in range(2)]
    write_lerobot(tmp_path / "set", episodes)
    (tmp_path / "set/meta/sim2real.json").unlink()
    found = list(read_lerobot(tmp_path / "set", base=BASE))
    assert [e.provenance.task for e in found] == ["task 0", "task 1"]
    assert found[0].provenance.robot == "arm" and found[0].provenance.site == "lab"
    assert found[1].provenance.source.startswith("set/data/chunk-000/file-000.parquet#1 sha256:")
    for one, other in zip(episodes, found, strict=True):
        state = other["observation.state"]
        np.testing.assert_array_equal(state.times, one["observation.state"].times)
        np.testing.assert_array_equal(state.values, one["observation.state"].values)
        np.testing.assert_array_equal(other["wrench.force"].values, one["wrench/force"].values)
        assert state.stated_hz == RATE
        assert other.videos["camera"].mp4 == one.videos["camera"].mp4


def test_the_metadata_counts_what_is_there(tmp_path):
    write_lerobot(tmp_path / "set", [episode(seed, video=True) for seed in range(3)])
    info = json.loads((tmp_path / "set/meta/info.json").read_text())
    assert info["total_episodes"] == 3 and info["total_frames"] == 3 * FRAMES
    assert info["fps"] == 20 and info["total_tasks"] == 2
    assert info["features"]["observation.state"]["shape"] == [3]
    assert info["features"]["camera"]["shape"] == [32, 48, 3]
    rows = pq.read_table(tmp_path / "set/meta/episodes/chunk-000/file-000.parquet")
    assert rows["dataset_to_index"].to_pylist() == [FRAMES, 2 * FRAMES, 3 * FRAMES]
    stats = json.loads((tmp_path / "set/meta/stats.json").read_text())
    states = np.concatenate([episode(seed)["observation.state"].values for seed in range(3)])
    np.testing.assert_allclose(stats["observation.state"]["mean"], states.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(stats["observation.state"]["std"], states.std(axis=0), rtol=1e-5)
    np.testing.assert_array_equal(stats["observation.state"]["max"], states.max(axis=0).tolist())
    assert np.shape(stats["camera"]["mean"]) == (3, 1, 1)
    first = rows["stats/observation.state/q50"][0].as_py()
    np.testing.assert_allclose(first, np.median(states[:FRAMES], axis=0), rtol=1e-6)


def test_channels_of_other_rates_are_held_and_the_parent_is_named(tmp_path):
    fast, slow = np.arange(100) / 100, np.arange(10) / 10
    films = Video.encode(slow, pictures(10), stated_hz=10)
    channels = {"q": Signal(fast, fast), "slow": Signal(slow, slow), "camera": films}
    one = Episode(channels, BASE)
    with pytest.raises(Sim2RealError, match="give a rate or a clock"):
        write_lerobot(tmp_path / "none", [one])
    assert not (tmp_path / "none").exists()
    write_lerobot(tmp_path / "set", [one], rate_hz=50)
    (found,) = read_lerobot(tmp_path / "set", base=BASE)
    assert found.provenance.parents == (one.id,) and "50 Hz" in found.provenance.process
    assert len(found["q"].times) == 46
    np.testing.assert_array_equal(found["slow"].values[:6], [0, 0, 0, 0, 0, 0.1])
    shown = [picture[8, 8].astype(int) for _, picture in found.videos["camera"].frames(0, 9)]
    wanted = [picture[8, 8].astype(int) for picture in pictures(10)]
    for index in range(46):
        np.testing.assert_allclose(shown[index], wanted[index // 5], atol=24)


def test_episodes_must_have_the_same_channels_and_rate(tmp_path):
    one = episode()
    other = Episode({"action": one["action"]}, BASE)
    with pytest.raises(Sim2RealError, match="other channels than the first: 'contact'"):
        write_lerobot(tmp_path / "set", [one, other])
    quick = {n: Signal(s.times / 2, s.values, s.unit, RATE) for n, s in one.signals.items()}
    with pytest.raises(Sim2RealError, match="runs at"):
        write_lerobot(tmp_path / "set", [one, Episode(quick, BASE)])
    assert list(tmp_path.iterdir()) == []


def test_large_data_sets_are_split_into_files(tmp_path, monkeypatch):
    monkeypatch.setattr("sim2real.data.formats.lerobot.tables.DATA_BYTES", 16384)
    monkeypatch.setattr("sim2real.data.formats.lerobot.tables.CHUNK_FILES", 2)
    episodes = [episode(seed) for seed in range(20)]
    write_lerobot(tmp_path / "set", episodes)
    assert len(list((tmp_path / "set/data").glob("*/*.parquet"))) > 2
    assert len(list((tmp_path / "set/data").iterdir())) > 1
    assert [e.id for e in read_lerobot(tmp_path / "set", base=BASE)] == [e.id for e in episodes]


def shared_film(folder: Path, films: list[Video], rate: float) -> list[float]:
    """All films one after the other in one file, as LeRobot lays them; where each begins [s]."""
    folder.parent.mkdir(parents=True)
    begins, total = [], 0
    with av.open(str(folder), "w", format="mp4") as out:
        copy = None
        for film in films:
            begins.append(total / rate)
            with av.open(io.BytesIO(film.mp4)) as source:
                stream = source.streams.video[0]
                if copy is None:
                    copy = out.add_stream_from_template(stream)
                    copy.time_base = 1 / stream.average_rate
                for packet in source.demux(stream):
                    if packet.size:
                        packet.stream, packet.time_base = copy, 1 / stream.average_rate
                        packet.pts = packet.dts = total
                        packet.duration = 1
                        out.mux(packet)
                        total += 1
    return begins


def packets(video: Video) -> list[bytes]:
    """The encoded frames of a video."""
    with av.open(io.BytesIO(video.mp4)) as film:
        return [bytes(packet) for packet in film.demux(video=0) if packet.size]


def frames_out_of_order(shown: list[np.ndarray], keys: list[int]) -> bytes:
    """A film whose frames are decoded in another order than shown, with key frames at `keys`."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as out:
        stream = out.add_stream("h264", rate=int(RATE))
        stream.height, stream.width = shown[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        stream.options = {"bf": "2", "g": "250", "x264-params": "b-adapt=0:scenecut=0:open-gop=0"}
        for index, picture in enumerate(shown):
            frame = av.VideoFrame.from_ndarray(picture, "rgb24")
            if index in keys:
                frame.pict_type = 1
            out.mux(stream.encode(frame))
        out.mux(stream.encode())
    with av.open(io.BytesIO(buffer.getvalue())) as film:
        order = [packet.pts for packet in film.demux(video=0) if packet.size]
    assert order != sorted(order)
    return buffer.getvalue()


def in_av1(shown: list[np.ndarray], key_every: int) -> bytes:
    """A film in the codec that LeRobot records in."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as out:
        stream = out.add_stream("libsvtav1", rate=int(RATE))
        stream.height, stream.width = shown[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        stream.options = {"g": str(key_every), "crf": "20", "preset": "12"}
        for picture in shown:
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        out.mux(stream.encode())
    return buffer.getvalue()


@pytest.mark.parametrize("film", ["key frames", "no key frames", "out of order", "av1"])
def test_an_episode_is_cut_from_a_film_it_shares(tmp_path, film):
    """Where the cut is at no key frame, the pictures are the same, but encoded again."""
    counts = [5, 20, 9]
    shown = [pictures(count, seed=seed) for seed, count in enumerate(counts)]
    times = [np.arange(count) / RATE for count in counts]
    films = [Video.encode(t, p, stated_hz=RATE) for t, p in zip(times, shown, strict=True)]
    folder = tmp_path / "set"
    write_lerobot(
        folder, [Episode({"camera": f, "q": Signal(f.times, f.times)}, BASE) for f in films]
    )
    (folder / "meta/sim2real.json").unlink()
    file = folder / "videos/camera/chunk-000/shared.mp4"
    together = [picture for part in shown for picture in part]
    if film == "key frames":
        begins = shared_film(tmp_path / "x/shared.mp4", films, RATE)
        data = (tmp_path / "x/shared.mp4").read_bytes()
    else:
        data = Video.encode(np.arange(34) / RATE, together, stated_hz=RATE).mp4
        if film == "out of order":
            data = frames_out_of_order(together, [5, 25])
        elif film == "av1":
            data = in_av1(together, 5)
        begins = [0.0, 5 / RATE, 25 / RATE]
    for old in file.parent.iterdir():
        old.unlink()
    (file.parent / "file-000.mp4").write_bytes(data)
    rows = folder / "meta/episodes/chunk-000/file-000.parquet"
    table = pq.read_table(rows)
    for name, values in (("file_index", [0, 0, 0]), ("from_timestamp", begins)):
        at = table.column_names.index(f"videos/camera/{name}")
        table = table.set_column(at, f"videos/camera/{name}", pa.array(values))
    pq.write_table(table, rows)
    found = [e.videos["camera"] for e in read_lerobot(folder, base=BASE)]
    if film == "key frames":
        assert [packets(video) for video in found] == [packets(video) for video in films]
    for video, count, wanted in zip(found, counts, shown, strict=True):
        got = [picture[16, 24].astype(int) for _, picture in video.frames(-1, 99)]
        assert len(got) == count
        for one, other in zip(got, wanted, strict=True):
            np.testing.assert_allclose(one, other[16, 24], atol=30)


def version_2(folder: Path, *, frames: int = 6, episodes: int = 3) -> list[np.ndarray]:
    """A data set as LeRobot 2.1 lays it out, with one camera in mp4 and one in Parquet."""
    states = []
    (folder / "meta").mkdir(parents=True)
    kinds = {
        "observation.state": {"dtype": "float32", "shape": [2], "names": ["a", "b"]},
        "next.success": {"dtype": "bool", "shape": [1], "names": None},
        "observation.images.top": {"dtype": "video", "shape": [32, 48, 3], "names": None},
        "observation.image": {"dtype": "image", "shape": [33, 47, 3], "names": None},
        "note": {"dtype": "string", "shape": [1], "names": None},
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
        "episode_index": {"dtype": "int64", "shape": [1], "names": None},
    }
    info = {
        "codebase_version": "v2.1", "robot_type": "so100", "fps": 10, "chunks_size": 2,
        "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "video_path": "videos/chunk-{episode_chunk:03d}/{video_key}/"
        "episode_{episode_index:06d}.mp4",
        "features": kinds, "total_episodes": episodes,
    }  # fmt: skip
    (folder / "meta/info.json").write_text(json.dumps(info))
    lines = [{"episode_index": i, "tasks": ["pick"], "length": frames} for i in range(episodes)]
    (folder / "meta/episodes.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (folder / "meta/tasks.jsonl").write_text(json.dumps({"task_index": 0, "task": "pick"}))
    for index in range(episodes):
        state = np.random.default_rng(index).normal(size=(frames, 2)).astype("f4")
        states.append(state)
        encoded = []
        for picture in pictures(frames, seed=index, size=(33, 47)):
            buffer = io.BytesIO()
            Image.fromarray(picture).save(buffer, "PNG")
            encoded.append({"bytes": buffer.getvalue(), "path": "x.png"})
        table = pa.table(
            {
                "observation.state": pa.array(list(state)),
                "next.success": [False] * (frames - 1) + [index == 1],
                "observation.image": encoded,
                "note": ["x"] * frames,
                "timestamp": (np.arange(frames) / 10).astype("f4"),
                "episode_index": np.full(frames, index),
            }
        )
        chunk = f"chunk-{index // 2:03d}"
        file = folder / f"data/{chunk}/episode_{index:06d}.parquet"
        film = folder / f"videos/{chunk}/observation.images.top/episode_{index:06d}.mp4"
        for path in (file, film):
            path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, file)
        video = Video.encode(np.arange(frames) / 10, pictures(frames, seed=index), stated_hz=10)
        film.write_bytes(video.mp4)
    return states


def test_version_2_1_is_read(tmp_path):
    states = version_2(tmp_path / "set")
    found = list(read_lerobot(tmp_path / "set", base=BASE))
    assert [e.outcome for e in found] == ["failure", "success", "failure"]
    for index, (one, state) in enumerate(zip(found, states, strict=True)):
        np.testing.assert_array_equal(one["observation.state"].values, state)
        np.testing.assert_array_equal(one["observation.state"].times, np.arange(6) / 10)
        assert one.provenance.task == "pick" and one.provenance.robot == "so100"
        assert one.provenance.calibration["names"]["observation.state"] == ["a", "b"]
        assert one.videos["observation.image"].shape == (34, 48, 3)
        for name in ("observation.images.top", "observation.image"):
            shown = [picture[9, 9].astype(int) for _, picture in one.videos[name].frames(0, 9)]
            for got, wanted in zip(shown, pictures(6, seed=index), strict=True):
                np.testing.assert_allclose(got, wanted[9, 9], atol=30)


@pytest.mark.parametrize(
    "template",
    [
        "../../x", "/etc/passwd", "data/../../x", "{episode_index.__class__}", "{0}", "{}",
        "data/{video_key}", "data\\..\\x", "C:/x", "{episode_index:999999999d}", "{unknown}", "",
        "data/{chunk_index!r}", "data/{chunk_index:{file_index}}",
    ],
)  # fmt: skip
def test_a_path_that_is_not_one_inside_is_refused(template):
    values = {"episode_index": 1, "chunk_index": 0, "file_index": 0, "video_key": "../../x"}
    with pytest.raises(Sim2RealError, match="path"):
        filled(template, values)


def test_a_data_set_that_was_changed_is_not_read_as_the_old_one(tmp_path):
    write_lerobot(tmp_path / "set", [episode()])
    file = tmp_path / "set/data/chunk-000/file-000.parquet"
    table = pq.read_table(file)
    at = table.column_names.index("reward")
    pq.write_table(table.set_column(at, "reward", pa.array(np.zeros(FRAMES))), file)
    with pytest.raises(Sim2RealError, match="has changed since"):
        list(read_lerobot(tmp_path / "set", base=BASE))


@pytest.mark.slow
@pytest.mark.parametrize("column", ["reward", "picture"])
def test_a_table_that_repeats_itself_without_end_is_refused(tmp_path, column):
    """A small file of one value a hundred million times, and of one picture very often."""
    file = tmp_path / "x.parquet"
    if column == "reward":
        part = pa.table({column: np.zeros(1_000_000)})
        with pq.ParquetWriter(file, part.schema, compression="zstd") as writer:
            for _ in range(100):
                writer.write_table(part)
    else:
        part = pa.table({column: pa.DictionaryArray.from_arrays([0] * 4000, [bytes(100_000)])})
        pq.write_table(part, file, compression="zstd", store_schema=False)
    assert file.stat().st_size < 500_000
    with pytest.raises(Sim2RealError, match="unpacks to more than"):
        read_parquet(file, [column])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda i: i.update(codebase_version="v1.6"), "version 'v1.6' cannot be read"),
        (lambda i: i.update(fps=0), "fps must be more than 0"),
        (lambda i: i.update(fps="x"), "fps must be a number"),
        (lambda i: i.update(data_path="../../x"), "leads outside"),
        (lambda i: i.update(data_path="data/nothing.parquet"), "no such file"),
        (lambda i: i.update(features=[]), "must be a table"),
        (lambda i: i["features"].update(q={"dtype": "float32"}), "no column 'q'"),
        (lambda i: i["features"].update({"../x": {"dtype": "video"}}), "has no column"),
        (lambda i: i["features"].update({"\ud800": {"dtype": "float32"}}), "no column"),
        (lambda i: i["features"].pop("action"), "has changed since|no feature"),
    ],
)
def test_metadata_that_does_not_fit_is_one_clear_error(tmp_path, change, words):
    write_lerobot(tmp_path / "set", [episode()])
    file = tmp_path / "set/meta/info.json"
    info = json.loads(file.read_text())
    change(info)
    file.write_text(json.dumps(info))
    with pytest.raises(Sim2RealError, match=words) as caught:
        list(read_lerobot(tmp_path / "set", base=BASE))
    assert "\n" not in str(caught.value)


def test_metadata_that_cannot_be_kept_is_one_clear_error(tmp_path):
    write_lerobot(tmp_path / "set", [episode()])
    (tmp_path / "set/meta/sim2real.json").unlink()
    file = tmp_path / "set/meta/info.json"
    file.write_text(file.read_text().replace('"names": null', '"names": [1e999]', 1))
    with pytest.raises(Sim2RealError, match="cannot be kept as JSON"):
        list(read_lerobot(tmp_path / "set", base=BASE))


def small_sets(folder: Path) -> list[Path]:
    """Small data sets: version 3.0 with and without a film and our notes, and version 2.1."""
    times = np.arange(3) / RATE
    signals = {"observation.state": Signal(times, np.ones((3, 2), "f4"), "rad", RATE)}
    film = {"camera": Video.encode(times, pictures(3, size=(16, 16)), stated_hz=RATE)}
    write_lerobot(folder / "noted", [Episode(signals, BASE)] * 2)
    write_lerobot(folder / "plain", [Episode(signals, BASE)] * 2)
    write_lerobot(folder / "film", [Episode({**signals, **film}, BASE)])
    for name in ("plain", "film"):
        (folder / name / "meta/sim2real.json").unlink()
    version_2(folder / "old", frames=2, episodes=1)
    return [folder / name for name in ("noted", "plain", "film", "old")]


@pytest.mark.slow
def test_thousands_of_damaged_data_sets_load_or_explain(tmp_path, caplog):
    """Any file of a data set may be damaged; statistics are not read, and left out here."""
    caplog.set_level(logging.CRITICAL)
    read, before = set(), _peak_bytes()
    files = [
        (data, file)
        for data in small_sets(tmp_path / "sets")
        for file in sorted(data.rglob("*.*"))
        if file.is_file() and file.name not in ("stats.json", "tasks.parquet", "tasks.jsonl")
    ]
    for number, (data, file) in enumerate(files):
        original = file.read_bytes()
        for damaged in mutations(original, 2_500 // len(files) + 1, number):
            file.write_bytes(damaged)
            if survives(lambda path: read_lerobot(path, base=BASE), data, 5.0):
                read.add(file)
        file.write_bytes(original)
    assert _peak_bytes() - before < MEMORY_LIMIT_BYTES, "memory grows without bound"
    assert len(read) > len(files) // 2, "most damage should not hide behind the first check"
