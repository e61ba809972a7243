"""Writing, reading and querying episodes, against LeRobot's data sets."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.benchmark import Options, Result, report, side_by_side
from benchmarks.machine import ROOT
from sim2real.data import Episode, Lake, Origin, Provenance, Signal, Windows, write_episodes
from sim2real.data.arrow_rows import EPISODES, SIGNALS
from sim2real.data.labels import LABELS
from sim2real.errors import Sim2RealError

_CHANNELS, _RATE_HZ = 16, 50
_FRAMES = 500
_BATCH, _WINDOW = 256, 16
_LEROBOT = ROOT / ".venv-interop" / "bin" / "python"
"""Python of an environment with LeRobot."""
_FILTER = """
select episodes.task, count(*) as failed, avg(duration_s) as seconds
from episodes join current_labels on current_labels.episode = episodes.id
where kind = 'real' and robot = 'arm-3' and twin_version = 'v7'
    and parameters['body/pole/mass'] > 1.0 and tag = 'failure'
group by episodes.task order by failed desc
"""
_SCAN = """
import re, sys, time
from sim2real.data import Lake
begin = time.perf_counter()
lake = Lake.open(sys.argv[1])
opened = time.perf_counter() - begin
answer = lake.query('''
    select channel, count(*) as n, avg(v) as mean, max(abs(v)) as most
    from (select channel, unnest(f32) as v from signals) group by channel order by channel
''')
frames = answer["n"][0].as_py()
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 2**20
print(peak, frames, opened, time.perf_counter() - begin)
"""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sizes of the measurement."""

    written: int = 800
    """Episodes that are written."""
    peer_written: int = 40
    """Episodes that the peer writes."""
    read: int = 10_000
    """Episodes that windows are read from."""
    batches: int = 40
    """Batches of windows that are read."""
    queried: int = 1_000_000
    """Episodes whose provenance is queried."""
    frames: int = 100_000_000
    """Frames that are queried."""


_FULL = Plan()
_QUICK = Plan(written=100, peer_written=2, read=50, batches=2, queried=20_000, frames=1_000_000)


def _shards(options: Options) -> tuple[str, ...]:
    return ("write", "read", "episodes", "frames")


def _lacking(shard: str, options: Options) -> str:
    if shard in ("write", "read") and not _LEROBOT.exists():
        return f"LeRobot at {_LEROBOT}: run scripts/interop-env"
    return ""


def _run(shard: str, options: Options) -> Iterator[Result]:
    plan = _QUICK if options.quick else _FULL
    measure = {"write": _writing, "read": _reading, "episodes": _episodes, "frames": _frames}[shard]
    with tempfile.TemporaryDirectory(prefix="bench-data-") as made:
        yield from measure(plan, Path(made))


def _writing(plan: Plan, folder: Path) -> Iterator[Result]:
    report("LeRobot writes")
    options = ["--episodes", str(plan.peer_written), "--frames", str(_FRAMES)]
    peer = _peer("write", folder / "peer", *options)
    peer_rate = peer["frames"] / peer["seconds"]
    for name, split, target in (("", True, ">= 50"), (".vector", False, "")):
        report("sim2real writes" + (" 16 channels" if split else " one channel of 16"))
        lake = Lake.create(folder / f"written{name}")
        values = _motion(plan.written, _FRAMES)
        begin = time.perf_counter()
        for first in range(0, plan.written, 100):
            lake.append(_episode(values, k, split=split) for k in range(first, first + 100))
        rate = plan.written * _FRAMES / (time.perf_counter() - begin)
        yield Result(
            name=f"data.write_over_lerobot{name}",
            value=rate / peer_rate,
            unit="ratio",
            target=target,
            peer="LeRobotDataset.add_frame, save_episode, finalize",
            note=f"{rate:,.0f} against {peer_rate:,.0f} frames/s; "
            + ("16 channels" if split else "one channel of 16 values")
            + f", {_RATE_HZ} Hz, {_FRAMES} frames an episode, 100 episodes an append",
        )


def _reading(plan: Plan, folder: Path) -> Iterator[Result]:
    frames = 100
    report(f"{plan.read} episodes to read windows from, as a lake and as LeRobot has them")
    lake = Lake.create(folder / "read")
    values = _motion(plan.read, frames)
    ids: list[str] = []
    for first in range(0, plan.read, 500):
        some = range(first, min(first + 500, plan.read))
        ids += lake.append(_episode(values, k, split=False) for k in some)
    write_episodes(folder / "lerobot", lake.read(ids), format="lerobot", rate_hz=_RATE_HZ)
    report("LeRobot reads")
    options = ["--batches", str(plan.batches), "--window", str(_WINDOW)]
    peer = _peer("read", folder / "lerobot", *options)
    report("sim2real reads")
    begin = time.perf_counter()
    windows = Windows.of(lake, ids, channels=["observation.state"])
    opened = time.perf_counter() - begin
    rng = np.random.default_rng(0)
    begin = time.perf_counter()
    for _ in range(plan.batches):
        which = rng.integers(len(ids), size=_BATCH)
        found = windows.take(which, rng.integers(frames, size=_BATCH), _WINDOW)
        if found["observation.state"].shape != (_BATCH, _WINDOW, _CHANNELS):
            raise Sim2RealError("a batch of windows has the wrong shape")
    ours = (time.perf_counter() - begin) / plan.batches
    theirs = peer["seconds"] / peer["batches"]
    yield Result(
        name="data.read_over_lerobot",
        value=theirs / ours,
        unit="ratio",
        target=">= 5",
        peer=f"LeRobotDataset with delta_timestamps, DataLoader of {peer['workers']:g} processes",
        note=f"{1e3 * ours:.2f} against {1e3 * theirs:.1f} ms a batch of {_BATCH} windows of"
        f" {_WINDOW} frames, {plan.read:,} episodes; first opened in {opened:.1f} s"
        f" against {peer['open_seconds']:.1f} s",
    )


def _episodes(plan: Plan, folder: Path) -> Iterator[Result]:
    report(f"{plan.queried:,} episodes to query")
    lake = Lake.create(folder / "queried")
    _fill_episodes(lake, plan.queried)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        rows = Lake.open(folder / "queried").query(_FILTER).num_rows
        times.append(time.perf_counter() - begin)
    yield Result(
        name="data.query_1m_episodes_s",
        value=float(np.median(times)),
        unit="s",
        target="<= 1.0",
        note=f"filter on five fields and a parameter, join on labels, {rows} rows;"
        f" {plan.queried:,} episodes, {plan.queried // 2:,} labels; median of five,"
        " the opening included",
    )


def _frames(plan: Plan, folder: Path) -> Iterator[Result]:
    report(f"{plan.frames:,} frames to query")
    big = Lake.create(folder / "frames")
    _fill_frames(big, plan.frames)
    done = subprocess.run(
        [sys.executable, "-c", _SCAN, str(folder / "frames")],
        check=True,
        capture_output=True,
        text=True,
    )
    peak, frames, opened, seconds = (float(word) for word in done.stdout.split())
    if frames != plan.frames:
        raise Sim2RealError(f"the query saw {frames:,.0f} frames of {plan.frames:,}")
    yield Result(
        name="data.query_peak_gib",
        value=peak,
        unit="GiB",
        target="<= 1.0",
        note=f"peak of the whole process, {frames:,.0f} frames aggregated in {seconds:.1f} s",
    )
    yield Result(
        name="data.open_s",
        value=opened,
        unit="s",
        note=f"opening that lake of {frames:,.0f} frames: no frame is read",
    )


def _peer(command: str, folder: Path, *options: str) -> dict[str, float]:
    """Numbers that LeRobot's side prints."""
    script = Path(__file__).with_name("lerobot_peer.py")
    done = subprocess.run(
        [str(_LEROBOT), str(script), command, str(folder), *options],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise Sim2RealError(f"LeRobot failed: {' '.join(done.stderr.split())[-300:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _motion(episodes: int, frames: int) -> np.ndarray:
    """Joint motions (episodes, frames, channels), each its own: a sine and encoder noise."""
    rng = np.random.default_rng(1)
    time_s = np.arange(frames)[None, :, None] / _RATE_HZ
    pace, phase = rng.uniform(0.2, 3.0, (2, episodes, 1, _CHANNELS))
    clean: np.ndarray = np.sin(pace * time_s + phase) + rng.normal(
        scale=1e-3, size=(episodes, frames, 1)
    )
    return np.asarray(clean, dtype=np.float32)


def _episode(values: np.ndarray, k: int, *, split: bool) -> Episode:
    times = np.arange(values.shape[1]) / _RATE_HZ
    if split:
        channels = {f"joint_{j}": Signal(times, values[k, :, j], "rad") for j in range(_CHANNELS)}
    else:
        channels = {"observation.state": Signal(times, values[k], "rad")}
    source = Provenance(kind=Origin.SIMULATED, task="bench", seed=k)
    return Episode(channels=channels, provenance=source)


def _fill_episodes(lake: Lake, count: int) -> None:
    """Rows of provenance as appends write them, and a label on every second one."""
    rng = np.random.default_rng(2)
    at_once = 100_000
    for first in range(0, count, at_once):
        n = min(at_once, count - first)
        ids = [f"{first + k:08x}" + "0" * 24 for k in range(n)]
        mass = rng.uniform(0.5, 1.5, n)
        columns = {
            "id": ids,
            "kind": rng.choice(["real", "simulated"], n),
            "task": rng.choice([f"task-{k}" for k in range(20)], n),
            "robot": rng.choice([f"arm-{k}" for k in range(5)], n),
            "twin_version": rng.choice([f"v{k}" for k in range(10)], n),
            "outcome": rng.choice(["success", "failure"], n),
            "parameters": [[("body/pole/mass", value)] for value in mass],
            "duration_s": rng.uniform(1, 20, n),
            "provenance": [f'{{"kind":"real","parameters":{{"m":{value}}}}}' for value in mass],
        }
        lake.tables["episodes"].append(_padded(columns, EPISODES, n))
        said = {
            "id": [f"label-{first + k}" for k in range(0, n, 2)],
            "episode": ids[::2],
            "tag": rng.choice(["failure", "success"], len(ids[::2])),
            "supersedes": [""] * len(ids[::2]),
            "created": [datetime.now(UTC)] * len(ids[::2]),
        }
        lake.tables["labels"].append(_padded(said, LABELS, len(ids[::2])))


def _fill_frames(lake: Lake, frames: int) -> None:
    """Episodes of 5000 frames; the values differ, as measured ones do."""
    rng = np.random.default_rng(3)
    length, at_once = 5000, 200
    times = pa.array(np.arange(length) / 500)
    for first in range(0, frames // length, at_once):
        n = min(at_once, frames // length - first)
        ids = [f"{first + k:08x}" + "0" * 24 for k in range(n)]
        values = np.cumsum(rng.integers(-3, 4, n * length)).astype(np.float32) * 1.5e-3
        starts = pa.array(np.arange(n + 1, dtype=np.int32) * length)
        columns = {
            "episode": ids,
            "channel": ["q"] * n,
            "times": pa.ListArray.from_arrays(starts, pa.concat_arrays([times] * n)),
            "f32": pa.ListArray.from_arrays(starts, pa.array(values)),
        }
        lake.tables["signals"].append(_padded(columns, SIGNALS, n))
        lake.tables["episodes"].append(_padded({"id": ids}, EPISODES, n))


def _padded(columns: Mapping[str, object], schema: pa.Schema, rows: int) -> pa.Table:
    """A table of the schema; what is not given is empty."""
    arrays = []
    for entry in schema:
        given = columns.get(entry.name)
        if isinstance(given, np.ndarray):
            given = given.tolist()
        arrays.append(
            pa.nulls(rows, entry.type) if given is None else pa.array(given, type=entry.type)
        )
    return pa.Table.from_arrays(arrays, schema=schema)


MEASUREMENT = side_by_side(_shards, _run, plan=_FULL, lacking=_lacking)
