"""A lake outlives killed writers, a full disk and a crowd."""

import json
import multiprocessing
import random
import resource
import subprocess
import sys
import time

import numpy as np
import pytest

from sim2real.cli import main
from sim2real.data import Lake
from sim2real.data.overview import LakeKeeper
from tests.lake_writer import small_episode, write

KILLS = 60
WRITERS = 4


@pytest.fixture(scope="module")
def processes():
    """Processes that start at once, because a server has imported everything already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.lake_writer"])
    return context


@pytest.mark.slow
def test_what_was_appended_survives_kills_at_random_moments(tmp_path, processes):
    uri = str(tmp_path / "lake")
    Lake.create(uri)
    rng = random.Random(0)
    starts = 0

    def start():
        nonlocal starts
        starts += 1
        arguments = (uri, 100_000 * starts, None, tmp_path / f"said-{starts}")
        process = processes.Process(target=write, args=arguments)
        process.start()
        return process

    def said():
        return sum(file.stat().st_size for file in tmp_path.glob("said-*"))

    writers = [start() for _ in range(WRITERS)]
    try:
        for _ in range(KILLS):
            before = said()
            while said() == before:  # they are killed at work, not at the start
                time.sleep(0.002)
            time.sleep(rng.uniform(0.0, 0.08))
            victim = rng.randrange(WRITERS)
            writers[victim].kill()
            writers[victim].join()
            writers[victim] = start()
    finally:
        for writer in writers:
            writer.kill()
            writer.join()
    lake = Lake.open(uri)
    returned = {id_ for file in tmp_path.glob("said-*") for id_ in file.read_text().split()}
    there = set(lake.query("select id from episodes")["id"].to_pylist())
    assert len(returned) >= KILLS
    assert returned <= there
    assert sum(1 for _ in lake.read(sorted(there))) == len(there) == len(lake)
    assert LakeKeeper(lake).verify() == []
    assert lake.compact() > 0
    assert len(lake) == len(there) and LakeKeeper(lake).verify() == []


@pytest.mark.slow
def test_eight_writers_of_fifteen_appends_lose_none(tmp_path, processes):
    uri = str(tmp_path / "lake")
    Lake.create(uri)
    writers = [
        processes.Process(target=write, args=(uri, 1000 * w, 15, tmp_path / f"said-{w}"))
        for w in range(8)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 8
    lake = Lake.open(uri)
    expected = {small_episode(1000 * w + k).id for w in range(8) for k in range(15)}
    assert set(lake.query("select id from episodes")["id"].to_pylist()) == expected
    assert len(lake) == 120 and lake.version == 120
    assert LakeKeeper(lake).verify() == []


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 100, 1_000, 3_000, 20_000, 100_000])
def test_a_full_disk_is_a_clear_error_and_leaves_the_lake_whole(tmp_path, limit, capsys):
    uri = tmp_path / "lake"
    lake = Lake.create(uri)
    lake.append([small_episode(k) for k in range(3)])
    log = tmp_path / "log.csv"
    values = np.random.default_rng(0).normal(size=(20_000, 2))
    rows = [f"{k * 0.01},{a},{b}" for k, (a, b) in enumerate(values)]
    log.write_text("time,a,b\n" + "\n".join(rows))
    words = ["data", "import", str(log), "--lake", str(uri)]
    done = subprocess.run(
        [sys.executable, "-m", "sim2real.cli", *words],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    error = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(error) == 1 and "Traceback" not in done.stderr
    assert len(Lake.open(uri)) == 3 and LakeKeeper(lake).verify() == []
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["new"] == 1
    assert len(lake) == 4 and LakeKeeper(lake).verify() == []
