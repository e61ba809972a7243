"""Files come into a lake the same way, read here or by an executor."""

from pathlib import Path

import numpy as np
import pytest

from sim2real.data import (
    Episode,
    Lake,
    Provenance,
    Signal,
    import_episodes,
    write_episodes,
)
from sim2real.data.episode_folder import EpisodeFolder
from sim2real.errors import Sim2RealError

BASE = Provenance(kind="real", robot="arm")


def episode(seed: int) -> Episode:
    draws = np.random.default_rng(seed)
    times = np.arange(20) / 50.0
    channels = {
        "elbow": Signal(times, draws.normal(size=20), "rad", 50.0),
        "flags": Signal(times, draws.integers(0, 2, (20, 3)).astype(np.uint8)),
    }
    return Episode(channels, BASE, "success" if seed % 2 else "")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder of MCAP files, one of which is damaged, and a CSV file."""
    folder = tmp_path / "logs"
    (folder / "bags").mkdir(parents=True)
    for seed in range(2):
        write_episodes(folder / "bags" / f"{seed}.mcap", [episode(seed)], format="mcap")
    whole = (folder / "bags" / "1.mcap").read_bytes()
    (folder / "bags" / "2.mcap").write_bytes(whole[:200])
    (folder / "a.csv").write_text("time,elbow\n0.0,0.1\n0.02,0.2\n0.04,0.3\n")
    return folder


def test_a_folder_of_episodes_gives_them_back_and_its_bytes_are_always_the_same(tmp_path):
    some = [episode(3), episode(1)]
    for name in ("one", "two"):
        EpisodeFolder(tmp_path / name).write(some)
        assert [one.id for one in EpisodeFolder(tmp_path / name).read()] == [e.id for e in some]
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
    EpisodeFolder(tmp_path / "none").write([])
    assert list(EpisodeFolder(tmp_path / "none").read()) == []


@pytest.mark.slow
def test_an_executor_imports_what_is_imported_without(logs, tmp_path):
    paths = [logs / "a.csv", logs / "bags"]
    here = import_episodes(paths, tmp_path / "here", base=BASE)
    store = str(tmp_path / "store")
    there = import_episodes(
        paths, tmp_path / "there", base=BASE, executor="local", workers=2, store=store
    )
    assert there.episodes == here.episodes and here.new == there.new == 3
    assert len(here.problems) == len(there.problems) == 1
    assert str(logs / "bags" / "2.mcap") in there.problems[0]
    mine, other = (Lake.open(tmp_path / name) for name in ("here", "there"))
    for id_ in here.episodes:
        assert mine.get(id_).provenance == other.get(id_).provenance


@pytest.mark.slow
def test_a_single_file_that_cannot_be_read_makes_no_lake(logs, tmp_path):
    bad = logs / "bags" / "2.mcap"
    for options in ({}, {"executor": "local", "workers": 1}):
        with pytest.raises(Sim2RealError, match=r"2\.mcap"):
            import_episodes([bad], tmp_path / "lake", base=BASE, **options)
        assert not (tmp_path / "lake").exists()
