"""A lake on object storage: everything it does in a folder, it does on `s3://`."""

import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from sim2real.cli import main
from sim2real.data import Lake
from sim2real.data.overview import LakeKeeper
from sim2real.data.withdrawal import withdraw
from sim2real.scale import Shard, ShardStore, open_executor
from tests.data.test_lake import episode
from tests.data.test_lake_safety import filmed
from tests.scale import work

SERVER = Path(__file__).parents[2] / ".venv-interop" / "bin" / "moto_server"
PORT = 5811
ADDRESS = f"http://127.0.0.1:{PORT}"
OPTIONS = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "us-east-1",
    "AWS_ENDPOINT_URL": ADDRESS,
    "AWS_ALLOW_HTTP": "true",
}


@pytest.fixture(scope="module")
def bucket():
    """A bucket of a server that speaks S3 and keeps all in memory."""
    with subprocess.Popen(
        [SERVER, "-H", "127.0.0.1", "-p", str(PORT)], stderr=subprocess.DEVNULL
    ) as server:
        for _ in range(100):
            try:
                put = urllib.request.Request(f"{ADDRESS}/robots", method="PUT")
                urllib.request.urlopen(put, timeout=5).close()
                break
            except urllib.error.URLError:
                time.sleep(0.2)
        yield "s3://robots"
        server.kill()


def test_a_lake_lives_on_object_storage(bucket):
    lake = Lake.create(f"{bucket}/lake", storage_options=OPTIONS)
    for k in range(3):
        lake.append(episode(k))
    person = filmed(51, "p-ana")
    lake.append(person)
    assert lake.get(person.id) == person
    assert lake.query("select count(*) as n from episodes", version=2)["n"][0].as_py() == 2
    assert LakeKeeper(lake).verify() == []
    assert lake.compact() > 0
    assert withdraw(lake, "p-ana").episodes == (person.id,)
    again = Lake.open(f"{bucket}/lake", storage_options=OPTIONS)
    assert len(again) == 3 and LakeKeeper(again).verify() == []
    assert again.storage.names("videos") == []


def test_the_verbs_take_credentials_from_the_environment(bucket, monkeypatch, capsys, tmp_path):
    for name, value in OPTIONS.items():
        monkeypatch.setenv(name, value)
    log = tmp_path / "log.csv"
    log.write_text("time,q\n" + "\n".join(f"{k / 50},{k}" for k in range(20)))
    assert main(["data", "import", str(log), "--lake", f"{bucket}/verbs"]) == 0
    assert main(["data", "verify", "--lake", f"{bucket}/verbs"]) == 0
    assert main(["data", "ls", "--lake", f"{bucket}/nothing-here"]) == 2
    assert "no lake at" in capsys.readouterr().err


def test_results_of_shards_live_on_object_storage(bucket, monkeypatch, tmp_path):
    for name, value in OPTIONS.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "in.txt").write_text("text")
    shards = [Shard.of(work.squares, args=(5, k)) for k in range(3)]
    shards += [Shard.of(work.long_text, files={"file": tmp_path / "in.txt"})]
    found = {}
    for place in (f"{bucket}/shards", str(tmp_path / "local"), f"{bucket}/shards"):
        with open_executor("local", workers=2) as workers:
            found[place] = list(workers.run(shards, ShardStore(place)))
    there, here = ({one.key: one for one in done} for done in found.values())
    assert all(one.kept for one in there.values())
    assert {key: one.digest for key, one in there.items()} == {k: o.digest for k, o in here.items()}
    store = ShardStore(f"{bucket}/shards")
    made = store.fetch(there[shards[-1].key], tmp_path / "back") / "deep" / "text.txt"
    assert made.read_text() == "texttexttext"
    (result,) = (name for name in store.storage.names("results") if shards[0].key in name)
    store.storage.write(result, b"damaged")
    assert store.get(shards[0].key) is None
