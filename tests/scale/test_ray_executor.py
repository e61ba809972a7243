"""The same shards on Ray: a cluster of two nodes, and one of our own."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from sim2real.cli import main
from sim2real.errors import Sim2RealError
from sim2real.scale import FailedShardsError, Shard, ShardStore, open_executor
from tests.repository import want
from tests.scale import work
from tests.scale.test_local_executor import BUNDLE, alive, driver, heard

try:
    from ray.cluster_utils import Cluster
except ImportError:
    pytest.skip(want("extra ray", "pip install 'sim2real[ray]'"), allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
NODE = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20}


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of a core each, on this machine."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = Cluster(initialize_head=True, head_node_args=NODE)
    made.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    yield f"ray:{made.address}"
    made.shutdown()


def ran(executor, shards, store):
    events = []
    with open_executor(executor, workers=2, ships=["tests"]) as workers:
        done = list(workers.run(shards, ShardStore(store), events.append))
    return {one.key: one for one in done}, [event.kind for event in events]


def test_two_nodes_give_the_bytes_of_this_machine_whatever_dies(cluster, tmp_path, capfd):
    (tmp_path / "in.txt").write_text("text")
    marks = [str(tmp_path / f"mark-{k}") for k in range(2)]
    shards = [Shard.of(work.squares, args=(100, k)) for k in range(6)]
    shards += [Shard.of(work.long_text, files={"file": tmp_path / "in.txt"})]
    shards += [Shard.of(work.killed_once, args=(mark, k)) for k, mark in enumerate(marks)]
    there, kinds = ran(cluster, shards, tmp_path / "ray")
    assert kinds.count("retried") == 2 and kinds.count("done") == len(shards)
    for mark in marks:
        Path(mark).unlink()
    here, _ = ran("local", shards, tmp_path / "local")
    assert {k: one.digest for k, one in there.items()} == {k: o.digest for k, o in here.items()}
    for one in there.values():
        assert ShardStore(tmp_path / "ray").get(one.key).result == here[one.key].result
    assert "(raylet)" not in capfd.readouterr().out  # where a verb prints its JSON


def test_the_package_and_the_environment_travel_and_failures_come_back(cluster, tmp_path):
    store, results = ShardStore(tmp_path), []
    environment = Shard.of(work.environment, args=(["OMP_NUM_THREADS", "OMP_WAIT_POLICY"],))
    package = Shard.of(work.module_file, args=("sim2real",))
    odd = Shard.of(work.refused, args=(3,), name="odd")
    full = [Shard.of(work.on_a_full_disk, args=(k,)) for k in range(4)]
    with open_executor(cluster, ships=["tests"]) as workers:
        with pytest.raises(FailedShardsError, match=r"1 shard failed, 2 are done .*odd: 3 is odd"):
            results.extend(workers.run([odd, environment, package], store))
        with pytest.raises(Sim2RealError, match="No space left on device"):
            list(workers.run(full, store))
    found = {one.key: one.result for one in results}
    assert found[environment.key] == {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}
    assert "py_modules" in found[package.key]  # not the one that is installed here
    assert store.keys() == {environment.key, package.key}


def test_a_driver_on_a_cluster_is_killed_and_resumed(cluster, tmp_path):
    with driver(cluster, tmp_path, "slow", 8) as first:
        _, worker = heard(first, "begun")
        os.kill(worker, signal.SIGKILL)
        heard(first, "retried")
        heard(first, "done")
        first.kill()
    before = ShardStore(tmp_path).keys()
    with driver(cluster, tmp_path, "slow", 8) as second:
        _, error = second.communicate(timeout=200)
    assert second.returncode == 0, error
    store = ShardStore(tmp_path)
    assert before and before <= store.keys() and len(store.keys()) == 8
    shards = [Shard.of(work.slow, args=(k,)) for k in range(8)]
    assert [store.get(one.key).result for one in shards] == [k / 7 for k in range(8)]


def test_a_cluster_of_our_own_ends_with_its_driver_even_if_that_is_killed(tmp_path):
    with driver("ray", tmp_path, "slow", 100) as process:
        heard(process, "begun")
        mine = descendants(process.pid)
        process.kill()
    # Helpers of Ray's that have nothing to do notice up to a minute later.
    mine = {n: name for n, name in mine.items() if name[:9] in ("gcs_serve", "raylet", "ray::_per")}
    assert len(mine) >= 3, "no server, no raylet or no worker was found"
    end = time.monotonic() + 30
    while any(map(alive, mine)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not {number: name for number, name in mine.items() if alive(number)}


def descendants(process):
    """Names of all processes below one, by their numbers."""
    lines = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,comm="], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    rows = [line.split(None, 2) for line in lines]
    found, last = {}, {process}
    while last:
        new = {int(pid): name for pid, parent, name in rows if int(parent) in last}
        found |= new
        last = set(new)
    return found


def test_an_address_where_nobody_answers_is_one_line_soon(tmp_path, capsys):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        for address, said in (
            (f"ray:127.0.0.1:{port}", "something listens there, but it is not Ray"),
            ("ray://127.0.0.1:1", "Connection refused"),
            ("ray:127.0.0.1:1", "Connection refused"),
            ("ray:nowhere", "write host:port or auto"),
        ):
            begin = time.monotonic()
            words = ["--executor", address, "--store", str(tmp_path / "store")]
            assert main(["evaluate", str(BUNDLE), *words]) == 2
            assert time.monotonic() - begin < 20
            error = capsys.readouterr().err.strip()
            assert said in error and "\n" not in error


def test_an_evaluation_on_ray_is_the_one_here(cluster, tmp_path):
    from sim2real.evaluation import evaluate

    options = {"episodes": 12, "each": 600}
    found = evaluate(BUNDLE, executor=cluster, workers=1, store=str(tmp_path), **options)
    assert found.to_dict() == evaluate(BUNDLE, **options).to_dict()
