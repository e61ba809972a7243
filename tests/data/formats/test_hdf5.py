"""HDF5 of robomimic and ALOHA: read, written, refused, and damaged."""

import io
import json
import os
from contextlib import closing
from functools import partial
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sim2real.data import Episode, Origin, Provenance, Signal, Video
from sim2real.data.formats import detect, read_episodes, write_episodes
from sim2real.data.formats.hdf5.read import Hdf5Reader, read_hdf5
from sim2real.data.formats.hdf5.write import write_hdf5
from sim2real.errors import Sim2RealError
from tests.data.formats.test_columns import episodes
from tests.format_faults import survives_all

REAL = Provenance(kind="real", robot="panda")
PICTURE = np.indices((16, 24)).sum(0)[..., None].repeat(3, 2).astype("u1") * 5


@pytest.fixture(scope="module")
def reader():
    with closing(Hdf5Reader()) as found:
        yield found


def robomimic(path: Path, *, demos: int = 3, control_freq: float = 20.0, **options) -> Path:
    with h5py.File(path, "w", **options) as file:
        data = file.create_group("data")
        data.attrs["total"] = 5 * demos
        env = {"env_name": "Lift", "type": 1, "env_kwargs": {"control_freq": control_freq}}
        data.attrs["env_args"] = json.dumps(env)
        for number in range(demos):
            demo = data.create_group(f"demo_{number}")
            demo.attrs["num_samples"] = 5
            demo["actions"] = np.full((5, 7), number, "f4")
            demo["rewards"] = np.arange(5.0)
            demo["dones"] = np.array([0, 0, 0, 0, 1])
            demo["states"] = np.zeros((5, 9))
            demo["obs/eef_pos"] = np.ones((5, 3))
            demo["next_obs/eef_pos"] = np.ones((5, 3))
        file["mask/train"] = np.array([b"demo_0"])
    return path


def aloha(path: Path, *, packed: bool = False) -> Path:
    with h5py.File(path, "w") as file:
        file.attrs["sim"] = True
        file.attrs["compress"] = packed
        for name in ("qpos", "qvel", "effort"):
            file[f"observations/{name}"] = np.ones((4, 14), "f4")
        file["action"] = np.zeros((4, 14), "f4")
        frames = np.stack([PICTURE] * 4)
        if packed:
            buffer = io.BytesIO()
            Image.fromarray(PICTURE).save(buffer, "JPEG", quality=95)
            jpeg = np.frombuffer(buffer.getvalue(), "u1")
            frames = np.tile(np.pad(jpeg, (0, 40)), (4, 1))
            file["compress_len"] = np.full((1, 4), len(jpeg))
        file["observations/images/top"] = frames
    return path


def test_robomimic_demonstrations_are_episodes_in_order(tmp_path):
    found = list(read_hdf5(robomimic(tmp_path / "a.hdf5", demos=12), base=REAL))
    assert [e["actions"].values[0, 0] for e in found] == list(range(12))
    one = found[2]
    assert set(one.channels) == {"actions", "rewards", "dones", "states", "obs/eef_pos"}
    assert one["obs/eef_pos"].times.tolist() == [0.0, 0.05, 0.1, 0.15, 0.2]
    assert one["obs/eef_pos"].stated_hz == 20
    assert one["actions"].values.dtype == np.float32
    assert (one.provenance.task, one.provenance.robot) == ("Lift", "panda")
    assert one.provenance.source.startswith("a.hdf5:demo_2 sha256:")


def test_a_rate_that_is_given_counts_and_none_at_all_is_an_error(tmp_path):
    path = robomimic(tmp_path / "a.hdf5", control_freq=0)
    with pytest.raises(Sim2RealError, match="give a rate"):
        list(read_hdf5(path, base=REAL))
    one = next(iter(read_episodes(path, base=REAL, rate_hz=10.0)))
    assert (one["actions"].times[1], one["actions"].stated_hz) == (0.1, 10.0)


@pytest.mark.parametrize("packed", [False, True])
def test_aloha_is_one_episode_with_videos_at_fifty_hertz(tmp_path, packed):
    (one,) = read_hdf5(aloha(tmp_path / "a.hdf5", packed=packed), base=REAL)
    assert one.provenance.kind is Origin.SIMULATED
    assert one["observations/qpos"].shape == (14,) and one["action"].stated_hz == 50
    video = one.videos["observations/images/top"]
    assert video.times.tolist() == [0.0, 0.02, 0.04, 0.06] and video.shape == (16, 24, 3)
    _, picture = next(video.frames(0.0, 0.01))
    assert np.abs(picture.astype(int) - PICTURE).mean() < 8


def test_a_folder_of_files_is_read_in_order_of_name(tmp_path):
    aloha(tmp_path / "episode_1.hdf5")
    aloha(tmp_path / "episode_0.hdf5")
    found = list(read_episodes(tmp_path, base=REAL))
    assert [e.provenance.source.split()[0] for e in found] == ["episode_0.hdf5", "episode_1.hdf5"]


def test_an_hdf5_file_of_another_layout_says_what_it_holds(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["run/q"] = np.ones(3)
    assert detect(tmp_path / "a.h5") == "hdf5"
    with pytest.raises(Sim2RealError, match=r"neither robomimic's layout nor ALOHA's.*'run/q'"):
        list(read_episodes(tmp_path / "a.h5", base=REAL))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_what_was_written_has_the_same_ids_when_read(tmp_path_factory, reader, data):
    path = tmp_path_factory.mktemp("h5") / "a.hdf5"
    made = []
    for episode in data.draw(st.lists(episodes(), min_size=1, max_size=2)):
        times = np.arange(data.draw(st.integers(0, 3))) * 0.02
        channels = {
            name: Signal(times, np.resize(s.values, (len(times), *s.shape)), s.unit, s.stated_hz)
            for name, s in episode.signals.items()
            if s.values.size
        }
        made.append(Episode(channels or {"q": Signal(times, times)}, episode.provenance))
    write_hdf5(path, made)
    assert list(reader.episodes(path, base=REAL)) == made


def mixed() -> Episode:
    times = np.arange(11) * 0.1
    frames = [np.roll(PICTURE, 2 * i, 0) for i in range(6)]
    return Episode(
        {
            "action": Signal(times, np.arange(11.0), "rad"),
            "camera/top": Video.encode(np.arange(6) * 0.2, frames),
            "q": Signal(np.arange(101) * 0.01, np.arange(101.0), "rad"),
        },
        REAL,
        "success",
    )


def test_channels_with_clocks_of_their_own_are_written_at_one_and_name_their_parent(tmp_path):
    with pytest.raises(Sim2RealError, match="give a rate or a clock"):
        write_hdf5(tmp_path / "a.hdf5", [mixed()])
    assert list(tmp_path.iterdir()) == []
    write_episodes(tmp_path / "a.hdf5", [mixed()], format="hdf5", clock="action")
    (one,) = read_hdf5(tmp_path / "a.hdf5", base=REAL)
    assert one.provenance.parents == (mixed().id,)
    assert one.provenance.process == "held at the times of one channel"
    assert one["q"].values == pytest.approx(np.arange(0, 101, 10), abs=1)
    assert len(one.videos["camera/top"].times) == 11 and one.outcome == "success"
    write_hdf5(tmp_path / "b.hdf5", [one])  # Now it has one clock, and is kept as it is.
    assert list(read_hdf5(tmp_path / "b.hdf5", base=REAL)) == [one]


def test_robomimic_finds_its_layout_in_what_was_written(tmp_path):
    write_hdf5(tmp_path / "a.hdf5", [mixed()], rate_hz=5.0)
    with h5py.File(tmp_path / "a.hdf5", "a") as file:
        data = file["data"]
        assert data.attrs["total"] == data["demo_0"].attrs["num_samples"] == 6
        assert json.loads(data.attrs["env_args"])["env_kwargs"] == {"control_freq": 5.0}
        assert data["demo_0/actions"].shape == (6,)
        assert data["demo_0/obs/camera_top"].shape == (6, 16, 24, 3)
        del file["sim2real"]  # As another program would write it.
    (one,) = read_hdf5(tmp_path / "a.hdf5", base=REAL)
    assert one["obs/q"].stated_hz == 5 and "obs/camera_top" in one.videos


def linked(file: h5py.File) -> None:
    file["data/demo_0/obs/x"] = h5py.ExternalLink("/etc/passwd", "/")


def soft(file: h5py.File) -> None:
    file["data/demo_0/obs/x"] = h5py.SoftLink("/data")


def elsewhere(file: h5py.File) -> None:
    file["data/demo_0/obs"].create_dataset("x", (5,), "u1", external=[("/etc/passwd", 0, 5)])


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((5,), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "q", (5,))
    file["data/demo_0/obs"].create_virtual_dataset("x", layout)


def giant(file: h5py.File) -> None:
    file["data/demo_0/obs"].create_dataset("x", (10**9, 10), "f8", chunks=(1000, 10))


def texts(file: h5py.File) -> None:
    file["data/demo_0/obs"].create_dataset("x", data=["a"] * 5, dtype=h5py.string_dtype())


def endless(file: h5py.File) -> None:
    file["data/demo_0/obs/x"] = file["data"]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (linked, "is a link"),
        (soft, "is a link"),
        (elsewhere, "another file"),
        (virtual, "another file"),
        (giant, "far more data"),
        (texts, "instead of numbers"),
        (endless, "nested groups"),
    ],
)
def test_what_leaves_the_file_or_is_no_log_is_refused(tmp_path, spoil, words):
    path = robomimic(tmp_path / "a.hdf5")
    with h5py.File(path, "a") as file:
        spoil(file)
    with pytest.raises(Sim2RealError, match=words) as caught:
        list(read_hdf5(path, base=REAL))
    assert "a.hdf5" in str(caught.value)


@pytest.mark.slow
def test_a_reader_that_dies_or_hangs_is_an_error_and_the_next_file_is_read(tmp_path, monkeypatch):
    path = robomimic(tmp_path / "a.hdf5")
    with closing(Hdf5Reader(patience_s=1.0)) as reader:
        read = partial(reader.episodes, base=REAL)
        assert len(list(read(path))) == 3
        for code in ("import os; os.abort()", "import time; time.sleep(60)"):
            child = tmp_path / "child.py"
            child.write_text(f"input(); {code}")
            with monkeypatch.context() as patch:
                patch.setattr("sim2real.data.formats.hdf5.read.READER_PROCESS", child)
                reader.close()
                with pytest.raises(Sim2RealError, match=r"a\.hdf5: damaged"):
                    list(read(path))
        assert len(list(read(path))) == 3


def test_no_process_is_left_when_reading_stops_early(tmp_path):
    found = read_hdf5(robomimic(tmp_path / "a.hdf5"), base=REAL)
    next(found)
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    before = children.read_text().split()
    found.close()
    assert len(children.read_text().split()) < len(before)


def tiny(path: Path, **options) -> Path:
    """As little as a demonstration can be, so that damage hits what matters."""
    with h5py.File(path, "w", **options) as file:
        demo = file.create_group("data/demo_0")
        file["data"].attrs["env_args"] = '{"env_kwargs": {"control_freq": 20}}'
        demo["actions"] = np.ones((3, 2), "f4")
        demo.create_dataset("obs/q", data=np.arange(6.0), chunks=(3,), compression="gzip")
    return path


def files(folder: Path) -> list[Path]:
    folder.mkdir()
    write_hdf5(folder / "own.hdf5", [Episode({"q": Signal([0.0, 1.0], [1.0, 2.0], "rad")}, REAL)])
    latest = tiny(folder / "new.hdf5", libver="latest")
    return [tiny(folder / "old.hdf5"), latest, folder / "own.hdf5"]


def damage(tmp_path: Path, count: int, *, first_seed: int = 0) -> int:
    passed = 0
    with closing(Hdf5Reader(patience_s=0.5)) as reader:
        read = partial(reader.episodes, base=REAL)
        for seed, path in enumerate(files(tmp_path / "logs"), first_seed):
            passed += survives_all(read, path, count // 3 + 1, seed, time_limit=5.0)
    return passed


@pytest.mark.slow
def test_damaged_hdf5_is_read_or_explained(tmp_path):
    assert damage(tmp_path, 150) < 150


@pytest.mark.slow
def test_thousands_of_damaged_hdf5_files_are_read_or_explained(tmp_path):
    assert damage(tmp_path, 2_500, first_seed=100) < 2_500
