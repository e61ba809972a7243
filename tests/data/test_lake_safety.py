"""A lake finds every change in its files, keeps its versions, and forgets who withdraws."""

import io
import itertools
import json
import random
import re
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import av
import numpy as np
import pytest

from sim2real.data import Consent, Episode, Label, Lake, Video
from sim2real.data.arrow_rows import episode_rows, signal_rows
from sim2real.data.mixture import Manifest, Mixture, MixtureShare, Part
from sim2real.data.overview import LakeKeeper
from sim2real.data.windows import Windows
from sim2real.data.withdrawal import withdraw
from sim2real.errors import Sim2RealError
from tests.data.test_lake import episode

TIMES = 3.0 + np.arange(40) / 30


def film(shade: int = 5) -> Video:
    """A film whose frame k is grey of the shade `shade * k`."""
    return Video.encode(
        TIMES, (np.full((32, 48, 3), (shade * k) % 256, np.uint8) for k in range(40))
    )


def filmed(k: int, who: str = "", **consent) -> Episode:
    people = (Consent(**{"participant": who, "scope": ("training",), **consent}),) if who else ()
    one = episode(k, kind="real", consent=people)
    channels = {**one.channels, "camera": film(k % 5 + 1)}
    return Episode(channels=channels, provenance=one.provenance, outcome=one.outcome)


@pytest.fixture
def lake(tmp_path) -> Lake:
    lake = Lake.create(tmp_path / "lake")
    lake.append([episode(k) for k in range(10)])
    lake.append([filmed(50), filmed(51, "p-ana")])
    lake.label(Label(episode=filmed(50).id, tag="note", value="fine", who="ben"))
    return lake


def stored(lake: Lake) -> list[Path]:
    return [path for path in Path(lake.uri).rglob("*") if path.is_file() and path.stat().st_size]


def test_a_video_is_stored_once_and_read_by_time(lake):
    other = episode(99, kind="real")
    again = Episode(
        channels={**other.channels, "camera": film(1)}, provenance=other.provenance, outcome=""
    )
    before = len(list(Path(lake.uri, "videos").iterdir()))
    lake.append(again)
    assert len(list(Path(lake.uri, "videos").iterdir())) == before  # the film of episode 50
    video = lake.get(again.id).videos["camera"]
    assert video.mp4 == film(1).mp4
    found = list(video.frames(TIMES[20], TIMES[23]))
    assert [time for time, _ in found] == list(TIMES[20:23])
    assert [round(float(picture.mean())) for _, picture in found] == pytest.approx(
        [20, 21, 22], abs=1
    )


def test_reading_a_video_decodes_only_what_is_near(monkeypatch):
    video = film()
    decoded = 0

    class Counting:
        def __init__(self, container):
            self._container = container

        def __getattr__(self, name):
            return getattr(self._container, name)

        def __enter__(self):
            return self

        def __exit__(self, *exit_):
            self._container.close()

        def decode(self, stream):
            nonlocal decoded
            for frame in self._container.decode(stream):
                decoded += 1
                yield frame

    opened = Video.open
    monkeypatch.setattr(Video, "open", lambda self: Counting(opened(self)))
    assert len(list(video.frames(TIMES[33], TIMES[35]))) == 2
    assert decoded <= 4  # from the key frame at 32


def test_frames_of_a_film_without_a_steady_rate_keep_their_times():
    ticks = [0, 1, 2, 3, 4, 20, 21, 22, 40, 60]
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as container:
        stream = container.add_stream("h264", rate=30)
        stream.width, stream.height, stream.pix_fmt = 48, 32, "yuv420p"
        stream.options = {"bf": "0", "g": "4"}
        for k, tick in enumerate(ticks):
            frame = av.VideoFrame.from_ndarray(np.full((32, 48, 3), 20 * k, np.uint8), "rgb24")
            frame.pts = tick
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    video = Video(np.array(ticks) / 30, buffer.getvalue())
    for begin in range(10):
        found = list(video.frames(ticks[begin] / 30, 99.0))
        assert [round(time * 30) for time, _ in found] == ticks[begin:]
        for (_, picture), k in zip(found, range(begin, 10), strict=True):
            assert abs(float(picture.mean()) - 20 * k) < 3


@pytest.mark.parametrize("times", [TIMES[:-1], np.empty(0), TIMES[None]])
def test_a_video_needs_a_time_for_each_frame(times):
    with pytest.raises(Sim2RealError):
        Video(times, film().mp4)


def test_a_sound_lake_verifies(lake):
    assert LakeKeeper(lake).verify() == []
    lake.compact()
    assert LakeKeeper(lake).verify() == []


@pytest.mark.slow
def test_a_flipped_bit_is_found_in_every_file(lake):
    lake.append(filmed(52, "p-eve"))
    withdraw(lake, "p-eve")  # leaves a mark of its own
    Windows.of(lake, [episode(1).id], channels=["q"])
    assert LakeKeeper(lake).verify() == []
    rng = random.Random(0)
    for path in stored(lake):
        content = path.read_bytes()
        at = rng.randrange(len(content))
        damaged = bytearray(content)
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        assert LakeKeeper(lake).verify(), f"byte {at} of {path.name} changed and nobody noticed"
        path.write_bytes(content)
    assert LakeKeeper(lake).verify() == []


@pytest.mark.slow
def test_every_lost_file_is_found(lake):
    assert LakeKeeper(lake).verify() == []
    for path in stored(lake):
        if path.suffix == ".sha256":
            continue  # a seal that is gone is made again
        content = path.read_bytes()
        path.unlink()
        assert LakeKeeper(lake).verify(), f"{path.name} is gone and nobody noticed"
        path.write_bytes(content)


@pytest.mark.slow
def test_compacting_keeps_all_versions_and_makes_doubles_one(tmp_path):
    lake = Lake.create(tmp_path / "lake")
    for k in range(12):
        lake.append(episode(k))
    # Two processes that append the same episode at the same moment.
    lake.tables["signals"].append(signal_rows([episode(0)]))
    lake.tables["episodes"].append(episode_rows([episode(0)]))
    before, doubled = lake.version, len(lake)
    assert lake.compact() > 20
    assert (doubled, len(lake)) == (13, 12)
    assert len(lake.tables["episodes"].files()) == 1
    for version in range(1, 13):
        count = lake.query("select count(*) as n from episodes", version=version)
        assert count["n"][0].as_py() == version
    assert lake.get(episode(3).id, version=before) == episode(3)
    assert LakeKeeper(lake).verify() == []


@pytest.mark.slow
def test_checkpoints_are_sealed_and_the_log_is_kept(tmp_path):
    lake = Lake.create(tmp_path / "lake")
    one = lake.append(episode(1))[0]
    for k in range(100):
        lake.label(Label(episode=one, tag="note", value=f"{k}", who="ana"))
    names = {path.name for path in stored(lake)}
    assert f"{100:020d}.checkpoint.parquet" in names
    assert f"{100:020d}.checkpoint.parquet.sha256" in names
    assert f"{0:020d}.json" in names
    assert len(lake.query("select * from labels")) == 100
    assert LakeKeeper(lake).verify() == []


@pytest.mark.slow
def test_data_without_consent_cannot_enter_a_training_set(lake):
    real = (Part(name="real", select="select id from episodes where kind = 'real'", weight=1.0),)
    mixture = Mixture(name="mixed", parts=real)
    person = filmed(51, "p-ana").id
    assert person in mixture.resolve(lake).ids
    for refused, words in [
        (filmed(60, "p-ben", scope=("evaluation",)), "p-ben has not agreed to training"),
        (filmed(61, "p-eve", expires="2020-01-01"), "p-eve expired on 2020-01-01"),
    ]:
        lake.append(refused)
        with pytest.raises(Sim2RealError, match=words) as caught:
            mixture.resolve(lake)
        assert refused.id in str(caught.value)
        # A newer agreement stands above what the episode carries.
        (one,) = refused.provenance.participants
        lake.grant(Consent(participant=one, scope=("training",)), who="ana")
        assert refused.id in mixture.resolve(lake).ids
    lake.grant(Consent(participant="p-ana", scope=()), who="ana")
    with pytest.raises(Sim2RealError, match="p-ana has not agreed"):
        mixture.resolve(lake)


@pytest.mark.slow
def test_who_withdraws_is_gone_from_every_file_and_version(lake):
    person = filmed(51, "p-ana")
    derived = person.derive("cut")
    lake.append(derived)
    lake.label(Label(episode=person.id, tag="note", value="about", who="ben"))
    lake.grant(Consent(participant="p-ana", scope=("training",)), who="ben")
    everything = Part(
        name="all", select="select id from episodes where operator <> 'p-ana'", weight=1.0
    )
    manifest = Mixture(name="m", parts=(everything,)).resolve(lake)
    Windows.of(lake, manifest.ids, channels=["q"])
    lake.record_policy("policy-hash", manifest.id)
    lake.compact()
    versions = range(lake.version + 1)
    counts = [
        lake.query("select count(*) as n from episodes where kind <> 'real'", version=v)["n"][0]
        for v in versions
    ]
    gone = withdraw(lake, "p-ana")
    assert set(gone.episodes) == {person.id, derived.id}
    assert (gone.datasets, gone.policies) == ((manifest.id,), ("policy-hash",))
    for path in stored(lake):
        assert b"p-ana" not in path.read_bytes(), path
    assert not list(Path(lake.uri, "windows").iterdir())
    assert len(list(Path(lake.uri, "videos").iterdir())) == 1
    assert lake.present([person.id, derived.id]) == []
    for version, count in zip(versions, counts, strict=True):
        found = lake.query("select id from episodes", version=version)["id"].to_pylist()
        assert not {person.id, derived.id} & set(found)
        assert sum(1 for _ in lake.read(found, version=version)) == len(found)
        others = lake.query(
            "select count(*) as n from episodes where kind <> 'real'", version=version
        )
        assert others["n"][0] == count
    assert lake.query("select * from labels where value = 'about'").num_rows == 0
    assert LakeKeeper(lake).verify() == []
    with pytest.raises(Sim2RealError, match="was erased"):
        lake.append(person)
    with pytest.raises(Sim2RealError, match="no data of participant"):
        withdraw(lake, "p-ana")


def test_a_withdrawal_names_the_policies_that_were_identified_or_trained_on_the_person(lake):
    person = filmed(51, "p-ana")
    derived = person.derive("cut")
    lake.append(derived)
    keeper = LakeKeeper(lake)
    keeper.record_origin("identified", [derived.id, episode(1).id], purpose="identification")
    keeper.record_origin("started", [person.id], purpose="training")
    keeper.record_origin("checked", [person.id], purpose="check")
    keeper.record_origin("another", [episode(1).id], purpose="identification")
    gone = withdraw(lake, "p-ana")
    assert gone.policies == ("identified", "started") and len(gone.datasets) == 3
    assert keeper.verify() == []


class StoppedError(Exception):
    """The process ends here."""


def stop_at(monkeypatch, lake: Lake, stop: int) -> None:
    """Let the storage die when it is asked to change something for the `stop`-th time."""
    steps = itertools.count()

    def counted(real):
        def act(*arguments):
            if next(steps) == stop:
                raise StoppedError
            real(*arguments)

        return act

    for name in ("write", "delete", "delete_folder"):
        monkeypatch.setattr(lake.storage, name, counted(getattr(lake.storage, name)))


@pytest.mark.slow
def test_a_withdrawal_interrupted_anywhere_ends_when_repeated(lake, tmp_path, monkeypatch):
    person = filmed(51, "p-ana")
    lake.append(person.derive("cut"))
    lake.append(episode(77, kind="generated", parents=(person.id, episode(1).id)))
    lake.grant(Consent(participant="p-ana", scope=("training",)), who="ben")
    Windows.of(lake, [person.id], channels=["q"])
    for stop in itertools.count():
        copy = Lake.open(shutil.copytree(lake.uri, tmp_path / f"{stop}"))
        with monkeypatch.context() as patch:
            stop_at(patch, copy, stop)
            try:
                withdraw(copy, "p-ana")
                break
            except StoppedError:
                pass
        with suppress(Sim2RealError):  # the last change may have been made
            withdraw(copy, "p-ana")
        for path in stored(copy):
            assert b"p-ana" not in path.read_bytes(), path
        assert len(copy) == 11 and LakeKeeper(copy).verify() == []
        assert len(list(Path(copy.uri, "videos").iterdir())) == 1
        assert not list(Path(copy.uri, "windows").iterdir())
    assert stop > 15


def test_a_withdrawal_takes_the_name_out_of_what_others_wrote(lake):
    named = Part(name="o'p-ana", select="select id from episodes where id <> 'p-ana'", weight=1.0)
    manifest = Mixture(name="without p-ana, with p-ana2", parts=(named,)).resolve(lake)
    lake.record_policy("policy of p-ana", manifest.id)
    lake.label(Label(episode=episode(1).id, tag="note", value="seen by p-ana", who="p-ana"))
    lake.grant(Consent(participant="p-ben", scope=()), who="p-ana")
    gone = withdraw(lake, "p-ana")
    assert gone.policies == ("policy of withdrawn",)
    for path in stored(lake):
        assert not re.search(rb"p-ana(?!2)", path.read_bytes()), path
    (row,) = lake.query("select name, manifest, episodes from datasets").to_pylist()
    assert row["name"] == "without withdrawn, with p-ana2"
    assert json.loads(row["manifest"])["parts"][0]["ids"] == list(manifest.parts[0].ids)
    assert lake.query("select value from current_labels where who = 'withdrawn'").num_rows == 1


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_withdrawal_finds_what_a_killed_append_left(lake, monkeypatch, stop):
    person = filmed(53, "p-ana")
    with monkeypatch.context() as patch:
        stop_at(patch, lake, stop)  # after the film, after the samples, after their commit
        with pytest.raises(StoppedError):
            lake.append(person)
    (Path(lake.uri) / "videos" / ".half-written.mp4").write_bytes(person.videos["camera"].mp4)
    withdraw(lake, "p-ana")
    assert len(list(Path(lake.uri, "videos").iterdir())) == 1
    left = lake.tables["signals"].all_rows("episode")["episode"].to_pylist()
    assert person.id not in left and LakeKeeper(lake).verify() == []


def test_what_was_erased_does_not_come_back(lake):
    person = filmed(51, "p-ana")
    withdraw(lake, "p-ana")
    for again in (person, person.derive("cut")):
        with pytest.raises(Sim2RealError, match="was erased"):
            lake.append(again)
    for nobody in ("", "p-nobody"):
        with pytest.raises(Sim2RealError, match=r"name the participant|no data of"):
            withdraw(lake, nobody)
    assert len(lake) == 11


def test_what_was_made_from_data_without_consent_is_refused_too(lake):
    refused = filmed(60, "p-ben", scope=())
    made = episode(61, kind="generated", parents=(refused.id,))
    lake.append([refused, made])
    generated = Part(name="g", select="select id from episodes where kind = 'generated'", weight=1)
    with pytest.raises(
        Sim2RealError, match=f"{made.id} may not be used: it was made from {refused.id}"
    ):
        Mixture(name="m", parts=(generated,)).resolve(lake)
    with pytest.raises(Sim2RealError, match="p-ben has not agreed"):
        Windows.of(lake, [made.id], channels=["q"])


@pytest.mark.slow
def test_writers_compactions_and_withdrawals_at_once_lose_nothing(tmp_path):
    uri = tmp_path / "lake"
    Lake.create(uri).append([filmed(50), filmed(51, "p-ana")])
    problems = []

    def work(act):
        try:
            act(Lake.open(uri))
        except Sim2RealError as error:
            problems.append(error)

    def write(first):
        return lambda lake: [lake.append(episode(first + k)) for k in range(12)]

    def compact(lake):
        for _ in range(6):
            lake.compact(most_bytes=1 << 20)

    def check(lake):
        for _ in range(4):
            assert LakeKeeper(lake).verify() == []

    acts = [write(100), write(100), write(200), compact, compact, check]
    acts.append(lambda lake: withdraw(lake, "p-ana"))
    threads = [threading.Thread(target=work, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    lake = Lake.open(uri)
    ids = lake.query("select id from episodes")["id"].to_pylist()
    assert len(ids) == len(set(ids)) == 25
    assert LakeKeeper(lake).verify() == []


def test_compacting_a_lake_of_nothing_but_doubles(tmp_path):
    lake = Lake.create(tmp_path / "lake")
    lake.append(episode(0))
    lake.tables["episodes"].append(episode_rows([episode(0)]))
    lake.compact()
    lake.compact()
    assert len(lake) == 1 and LakeKeeper(lake).verify() == []


def test_a_seal_that_was_being_written_is_no_damage(lake):
    (Path(lake.uri) / "seals" / "signals" / f".{2:020d}.json-x.sha256").write_bytes(b"half")
    (Path(lake.uri) / "signals" / ".part-x.parquet").write_bytes(b"half")
    assert LakeKeeper(lake).verify() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "weights", [(0.5, 0.3, 0.199, 0.001), (6, 6, 2), (1, 1e-9), (1e300, 3e300), (1 / 3, 2 / 3)]
)
@pytest.mark.parametrize("size", [1, 7, 32])
def test_any_weights_are_kept_at_any_batch_size(weights, size):
    shares = tuple(
        MixtureShare(name=f"{k}", select="", weight=w, ids=(f"{k}",), frames=(1,))
        for k, w in enumerate(weights)
    )
    manifest = Manifest(
        name="m", lake="", version=0, by="episode", clock="", seed=0, purpose="training",
        parts=shares,
    )  # fmt: skip
    exact = np.array(weights) / max(weights)
    exact = exact / exact.sum()
    counts = np.zeros(len(weights))
    for number in range(200):
        counts += np.bincount(manifest.batch(number, size).part, minlength=len(weights))
        n = (number + 1) * size
        assert np.abs(counts - exact * n).max() < 1 + 1e-5 * n


@pytest.fixture
def mixed(tmp_path) -> tuple[Lake, Mixture]:
    lake = Lake.create(tmp_path / "lake")
    lake.append([episode(k) for k in range(30)])
    lake.append([episode(100 + k, kind="real") for k in range(7)])
    parts = (
        Part(name="sim", select="select id from episodes where kind = 'simulated'", weight=70),
        Part(name="real", select="select id from episodes where kind = 'real'", weight=30),
    )
    return lake, Mixture(name="mixed", parts=parts, seed=3)


@pytest.mark.parametrize("by", ["episode", "frame"])
@pytest.mark.parametrize("size", [10, 16, 7])
def test_a_mixture_keeps_its_ratio_exactly(mixed, by, size):
    lake, mixture = mixed
    manifest = Mixture(**{**vars(mixture), "by": by, "clock": "q"}).resolve(lake)
    real = 0
    for number in range(50):
        batch = manifest.batch(number, size)
        assert len(batch.part) == size
        real += int((batch.part == 1).sum())
        assert abs(real - 0.3 * size * (number + 1)) < 1
        for part, which in zip(batch.part, batch.episode, strict=True):
            assert manifest.ids[which] in manifest.parts[part].ids
        if by == "frame":
            assert batch.frame.max() < 20 and len(set(batch.frame)) > 1


def test_a_mixture_is_reproduced_from_its_manifest(mixed, tmp_path):
    lake, mixture = mixed
    manifest = mixture.resolve(lake)
    manifest.save(tmp_path / "manifest.json")
    lake.append(episode(500))
    again = Manifest.load(tmp_path / "manifest.json")
    assert again.id == manifest.id
    assert mixture.resolve(lake, version=manifest.version).id == manifest.id
    assert mixture.resolve(lake).id != manifest.id
    for one, two in zip(
        itertools.islice(manifest.batches(10, start=5), 3),
        (again.batch(n, 10) for n in (5, 6, 7)),
        strict=True,
    ):
        assert (one.episode == two.episode).all() and (one.part == two.part).all()
    stored_as = lake.query(f"select name from datasets where id = '{manifest.id}'")
    assert stored_as["name"].to_pylist() == ["mixed"]


def test_by_episode_none_comes_twice_before_all_came(mixed):
    lake, mixture = mixed
    manifest = mixture.resolve(lake)
    order = [e for n in range(10) for e in manifest.batch(n, 10).episode.tolist()]
    real = [e for e in order if e >= 30]
    assert len(set(real[:7])) == 7 and len(set(real[7:14])) == 7
    assert real[:7] != real[7:14]


@pytest.mark.parametrize(
    ("selects", "words"),
    [
        (("select id from episodes where kind = 'generated'",), "selects no episode"),
        (("select kind from episodes",), "column id"),
        (("select id from episodes", "select id from episodes"), "is in 'p0' and in 'p1'"),
        (("drop everything",), "query failed"),
        (("select 1 as id",), "'1', which is no episode"),
    ],
)
def test_a_mixture_that_is_none_is_refused(mixed, selects, words):
    lake, _ = mixed
    parts = tuple(Part(name=f"p{k}", select=s, weight=1) for k, s in enumerate(selects))
    with pytest.raises(Sim2RealError, match=words):
        Mixture(name="bad", parts=parts).resolve(lake)


def test_windows_are_the_episodes_own_samples(mixed):
    lake, mixture = mixed
    ids = mixture.resolve(lake).ids
    windows = Windows.of(lake, ids, channels=["single", "small"], clock="q")
    found = windows.take(np.array([0, 4]), np.array([3, 17]), 5)
    for row, (which, start) in enumerate([(0, 3), (4, 17)]):
        one = lake.get(ids[which])
        rows = np.minimum(np.arange(start, start + 5), 19)
        assert np.array_equal(found["single"][row], one["single"].values[rows])
        # Five samples in the first 0.1 s, the last of which holds.
        assert np.array_equal(found["small"][row], one["small"].values[np.minimum(rows, 4)])
    with pytest.raises(Sim2RealError, match="no samples of channel 'nothing'"):
        Windows.of(lake, ids, channels=["nothing"], clock="q")
