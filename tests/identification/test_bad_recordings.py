"""Recordings and twins that cannot be identified from: one line that helps, and nothing written."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from sim2real.cli.main import main
from sim2real.data.formats import write_episodes
from sim2real.errors import Sim2RealError
from sim2real.identification.inputs import another_robot
from sim2real.identification.most_probable import fit
from sim2real.logs import LogThresholds, aligned
from sim2real.params import Uniform
from sim2real.replay.least_squares import LeastSquares
from sim2real.twin import Twin
from tests.repository import BUNDLES
from tests.simulated import bundle_and_twin, simulate

TASK = "pendulum-swingup"
FITTED = ("joint/hinge/damping", "body/pole/ipos[2]")
KEPT = ("command", "sensor/hinge_pos", "sensor/hinge_vel")


@pytest.fixture(scope="module")
def recordings():
    bundle, twin = bundle_and_twin(TASK)
    found = simulate(bundle, twin, count=3, values={"joint/hinge/damping": 0.02})
    return [replace(e, channels={name: e.signals[name] for name in KEPT}) for e in found]


@pytest.mark.parametrize(
    ("channel", "value"), [("sensor/hinge_vel", 1e6), ("sensor/hinge_pos", 1e30)]
)
def test_a_reading_that_cannot_be_is_left_out_and_counted(recordings, channel, value):
    _, twin = bundle_and_twin(TASK)
    episode, signal = recordings[0], recordings[0].signals[channel]
    spoilt = signal.values.copy()
    spoilt[100] = value
    signals = {**episode.signals, channel: replace(signal, values=spoilt)}
    log, clean = aligned(replace(episode, channels=signals), twin), aligned(episode, twin)
    assert (log.left_out, clean.left_out) == (1, 0)
    assert np.nanmax(np.abs(log.readings)) <= np.nanmax(np.abs(clean.readings))


def changed(episodes, **changes):
    """Episodes with channels changed: by name ('_' for '/'), `readings`, `command` or `all`."""

    def of(name, signal):
        for key in ("all", "command" if name == "command" else "readings", name.replace("/", "_")):
            if key in changes:
                signal = changes[key](signal)
        return signal

    return [replace(e, channels={n: of(n, s) for n, s in e.signals.items()}) for e in episodes]


def times(function):
    return lambda signal: replace(signal, times=function(signal.times))


def values(function):
    return lambda signal: replace(signal, values=function(signal.values))


def holes(share, what=np.nan):
    rng = np.random.default_rng(0)
    return values(lambda v: np.where(rng.random(v.shape) < share, what, v))


def noise(v):
    return np.random.default_rng(0).normal(0.0, 1e-3, v.shape)


def fast(v):
    """A swing that no pendulum of the twin's kind makes."""
    return 3 * np.sin(9 * 0.02 * np.arange(len(v)))[:, None]


def fast_rate(v):
    return 27 * np.cos(9 * 0.02 * np.arange(len(v)))[:, None]


REFUSED = {
    "rests": ({"readings": values(noise), "command": values(lambda v: 0 * v)}, "robot rests"),
    "stamps that stand": ({"all": times(lambda t: 0 * t)}, "repeat the one before"),
    "stamps backwards": ({"all": times(lambda t: t[::-1])}, "step back"),
    "milliseconds": ({"all": times(lambda t: 1000 * t)}, "give them in seconds"),
    "a thousandth": ({"all": times(lambda t: t / 1000)}, "in seconds"),
    "clocks that drift": ({"command": times(lambda t: 1.05 * t)}, "clock runs .* against"),
    "no stamps": ({"all": times(lambda t: np.nan * t)}, "not finite"),
    "0.2 s": ({"all": lambda signal: signal.between(0.0, 0.2)}, "at least 1 s are needed"),
    "readings lost": ({"readings": holes(0.4)}, r"\d\d% of the values of 'sensor/hinge_"),
    "commands lost": ({"command": holes(0.4, np.inf)}, r"\d\d% of the values of 'command'"),
    "nothing left": ({"readings": holes(1.1)}, "100% of the values"),
    "a stuck command": ({"command": values(lambda v: 0 * v + 0.3)}, "command never changes"),
    "beyond limits": ({"command": values(lambda v: 9.0 * np.sign(v))}, "beyond its limits -1.5"),
}


def identify(capsys, tmp_path, *arguments, twin=BUNDLES / TASK, parameters=FITTED):
    """Exit code, and what is said; the output folder is tmp_path/out."""
    options = ["--out", tmp_path / "out", "--starts", 1, "--threads", 1, "--json"]
    code = main(["identify", *map(str, [twin, *options, "--parameters", *parameters, *arguments])])
    said = capsys.readouterr()
    return code, said.err.strip() or said.out


@pytest.mark.parametrize("fault", REFUSED)
def test_recordings_that_spoil_a_fit_are_refused_in_one_line(recordings, fault, tmp_path, capsys):
    changes, words = REFUSED[fault]
    write_episodes(tmp_path / "log.npz", changed(recordings, **changes), format="npz")
    before = Twin.load(BUNDLES / TASK / "twin", check=False).version
    code, said = identify(capsys, tmp_path, "--logs", tmp_path / "log.npz")
    assert code == 2 and len(said.splitlines()) == 1, said
    assert re.search(words, said), said
    assert not (tmp_path / "out").exists()
    assert Twin.load(BUNDLES / TASK / "twin", check=False).version == before


def test_channels_of_another_robot_are_named(recordings, tmp_path, capsys):
    other = [
        replace(e, channels={"wheel": e.signals["command"], "gps": e.signals["sensor/hinge_pos"]})
        for e in recordings
    ]
    write_episodes(tmp_path / "log.npz", other, format="npz")
    code, said = identify(capsys, tmp_path, "--logs", tmp_path / "log.npz")
    assert code == 2 and "gps, wheel" in said and "another robot" in said
    silent = [replace(e, channels={n: e.signals[n] for n in KEPT[1:]}) for e in recordings]
    write_episodes(tmp_path / "silent.npz", silent, format="npz")
    code, said = identify(capsys, tmp_path, "--logs", tmp_path / "silent.npz")
    assert code == 2 and "has no commands" in said and "[channels]" in said


def test_what_is_no_log_is_told(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").write_text("hello\n")
    (tmp_path / "torn.npz").write_bytes(b"PK\x03\x04torn")
    (tmp_path / "torn.arrow").write_bytes(b"xx")
    for name in ("empty", "note.txt", "torn.npz", "torn.arrow", "missing"):
        code, said = identify(capsys, tmp_path, "--logs", tmp_path / name)
        assert code == 2 and name in said and len(said.splitlines()) == 1, said
        assert not (tmp_path / "out").exists()


def test_a_recording_cannot_be_fitted_and_held_back(recordings, tmp_path, capsys):
    write_episodes(tmp_path / "log.npz", recordings, format="npz")
    write_episodes(tmp_path / "last.npz", recordings[2:], format="npz")
    code, said = identify(
        capsys, tmp_path, "--logs", tmp_path / "log.npz", "--held-back", tmp_path / "last.npz"
    )
    assert code == 2 and "1 of 1 held-back recordings" in said


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("bounds = [0.2, 0.1]", "above the upper bound"),
        ("bounds = [0.05, 0.1]", "exclude the nominal"),
        ("bounds = [0.0, 0.02]", "prior reaches 0 .. 0.03, outside the bounds"),
        ('prior = { kind = "uniform", low = 0.2, high = 0.1 }', "low"),
    ],
)
def test_contradictory_bounds_are_told_by_name(recordings, line, words, tmp_path, capsys):
    twin = Twin.load(BUNDLES / TASK / "twin", check=False)
    folder = tmp_path / "twin"
    twin.save(folder)
    text = (folder / "twin.toml").read_text()
    head, tail = text.split('[parameters."joint/hinge/damping"]', 1)
    key = line.split(" ")[0]
    rows = tail.split("\n")
    if key == "bounds":  # written as a list over several lines
        first = rows.index("bounds = [")
        rows[first : rows.index("]", first) + 1] = [line]
    else:
        first = next(k for k, row in enumerate(rows) if "damping" in row and "prior" in row)
        last = next(k for k in range(first + 1, len(rows)) if rows[k].startswith("["))
        rows[first:last] = ['[parameters."joint/hinge/damping".prior]', 'kind = "uniform"',
                            "low = 0.2", "high = 0.1", ""]  # fmt: skip
    (folder / "twin.toml").write_text(head + '[parameters."joint/hinge/damping"]' + "\n".join(rows))
    write_episodes(tmp_path / "log.npz", recordings, format="npz")
    code, said = identify(capsys, tmp_path, "--logs", tmp_path / "log.npz", twin=folder)
    assert code == 2 and "joint/hinge/damping" in said and words in said, said
    assert not (tmp_path / "out").exists()


def test_thresholds_decide_how_many_samples_may_be_lost(recordings):
    _, twin = bundle_and_twin(TASK)
    (spoilt,) = changed(recordings[:1], readings=holes(0.2))
    with pytest.raises(Sim2RealError, match="at most 10% can be left out"):
        aligned(spoilt, twin)
    assert aligned(spoilt, twin, thresholds=LogThresholds(lost_samples=0.5)).left_out > 0


@pytest.mark.slow
def test_a_few_lost_samples_are_left_out_and_a_resampled_log_keeps_its_name(recordings):
    _, twin = bundle_and_twin(TASK)
    (spoilt,) = changed(recordings[:1], readings=holes(0.03), command=holes(0.01))
    log, whole = aligned(spoilt, twin), aligned(recordings[0], twin)
    assert np.isfinite(log.readings[5:]).all() and log.fresh.mean() < whole.fresh.mean()
    lost = ~np.isfinite(log.command[:, 0])
    assert lost.any() and log.episode == spoilt.id  # not held: what was sent is not known
    (uneven,) = changed(recordings[:1], all=times(lambda t: t + 0.004 * np.sin(40 * t)))
    assert aligned(uneven, twin).episode == uneven.id
    good = fit(LeastSquares(twin, [log], 0.5, fitted=FITTED, threads=1))
    assert good.values[0] == pytest.approx(0.02, abs=0.004)


def test_a_robot_of_another_kind_is_noticed_by_its_errors(recordings):
    _, twin = bundle_and_twin(TASK)
    other = changed(recordings, sensor_hinge_pos=values(fast), sensor_hinge_vel=values(fast_rate))
    assert "another robot" in another_robot(twin, [aligned(e, twin) for e in other])
    assert another_robot(twin, [aligned(e, twin) for e in recordings]) == ""


@pytest.mark.slow
def test_held_back_recordings_of_another_robot_promote_nothing(recordings, tmp_path, capsys):
    other = changed(
        recordings[2:], sensor_hinge_pos=values(fast), sensor_hinge_vel=values(fast_rate)
    )
    short = changed(recordings[:2], all=lambda signal: signal.between(0.0, 2.5))
    write_episodes(tmp_path / "log.npz", short, format="npz")
    write_episodes(tmp_path / "other.npz", other, format="npz")
    (tmp_path / "out").mkdir()  # an empty folder may be there
    logs = ("--logs", tmp_path / "log.npz", "--held-back", tmp_path / "other.npz")
    code, said = identify(capsys, tmp_path, *logs, parameters=FITTED[:1])
    found = json.loads(said)
    assert code == 1 and not found["promoted"] and found["why"]
    assert not (tmp_path / "out" / "twin").exists()
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.slow
def test_worlds_that_diverge_cost_much_and_the_fit_goes_on(recordings):
    _, twin = bundle_and_twin(TASK)
    # Damping of that sign feeds the swing until numbers run out.
    wild = tuple(
        replace(p, bounds=(-60.0, 0.2), prior=Uniform(low=-50.0, high=0.03))
        if p.name == FITTED[0]
        else p
        for p in twin.parameters
    )
    problem = LeastSquares(
        replace(twin, parameters=wild), [aligned(recordings[0], twin)], 0.5,
        fitted=FITTED[:1], threads=1,
    )  # fmt: skip
    problem = problem.prepared(np.zeros(1))
    low = problem.bounds[0]
    assert not np.isfinite(problem.errors(low[None])).all()
    assert np.isfinite(problem.residuals(low[None])).all()
    found = fit(problem, starts=2)
    assert found.values[0] == pytest.approx(0.02, abs=0.02)


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_nothing_and_can_be_run_again(
    recordings, tmp_path, capsys, monkeypatch
):
    import sim2real.cli.identify as verb

    short = changed(recordings[:2], all=lambda signal: signal.between(0.0, 2.5))
    write_episodes(tmp_path / "log.npz", short, format="npz")
    write, work, done = verb.write_page, verb.identify, []

    def once(*given, **options):  # the work is the same both times
        done[:] = done or [work(*given, **options)]
        return done[0]

    def killed(path, *rest):
        path.write_text("half a page")
        raise KeyboardInterrupt

    arguments = ["--logs", tmp_path / "log.npz"]
    monkeypatch.setattr(verb, "identify", once)
    monkeypatch.setattr(verb, "write_page", killed)
    quick = FITTED[:1]
    assert identify(capsys, tmp_path, *arguments, parameters=quick)[0] == 130
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log.npz"]
    monkeypatch.setattr(verb, "write_page", write)
    code, _ = identify(capsys, tmp_path, *arguments, parameters=quick)
    always, promoted = {"report.html", "result.json"}, {"twin", "starts.json"}
    written = {p.name for p in (tmp_path / "out").iterdir()}
    assert written == (always | promoted if code == 0 else always)
    code, said = identify(capsys, tmp_path, *arguments)
    assert code == 2 and "not empty" in said


def test_a_twin_must_have_something_to_fit(recordings):
    _, twin = bundle_and_twin(TASK)
    with pytest.raises(Sim2RealError, match="no recording can determine"):
        LeastSquares(twin, [aligned(recordings[0], twin)], 0.5, fitted=("sensor/hinge_vel/noise",))
