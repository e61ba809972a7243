"""Recordings for the tests of the checks: clean ones of many sorts, and faults to put into them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sim2real.data import Episode, Provenance, Signal

REAL = Provenance(kind="real")
NAMES = [
    ("q", "dq", "q_cmd"),
    ("position", "velocity", "goal_position"),
    ("joint_pos", "joint_vel", "joint_pos_target"),
    ("arm/qpos", "arm/qvel", "arm/ctrl_pos"),
    ("state.pos_meas", "state.vel_meas", "pos_des"),
    ("observation.position", "observation.velocity", "action"),
]


def filtered(values: np.ndarray, step: float, bandwidth_hz: float, damping: float) -> np.ndarray:
    """Response of a servo of second order, by semi-implicit steps small enough to be stable."""
    natural = 2 * np.pi * bandwidth_hz
    small = max(1, int(np.ceil(natural * step / 0.1)))
    h = step / small
    place, speed = values[0].copy(), np.zeros_like(values[0])
    found = np.empty_like(values)
    for k, target in enumerate(values):
        found[k] = place
        for _ in range(small):
            speed = speed + h * (natural**2 * (target - place) - 2 * damping * natural * speed)
            place = place + h * speed
    return found


def wishes(rng: np.random.Generator, times: np.ndarray, joints: int) -> np.ndarray:
    """Commanded positions (samples, joints) [rad]: sines, chirps, way points, steps, random."""
    kind = rng.choice(["sines", "chirp", "points", "steps", "random"])
    t, length = times - times[0], times[-1] - times[0]
    found = np.zeros((len(t), joints))
    for joint in range(joints):
        size = rng.uniform(0.2, 1.2)
        if kind == "sines":
            for _ in range(rng.integers(2, 6)):
                found[:, joint] += (
                    size / 3 * np.sin(2 * np.pi * rng.uniform(0.1, 1.5) * t + rng.uniform(0, 6.3))
                )
        elif kind == "chirp":
            low, high = rng.uniform(0.05, 0.3), rng.uniform(1.0, 2.5)
            if rng.random() < 0.5:
                low, high = high, low
            found[:, joint] = size * np.sin(2 * np.pi * (low + (high - low) * t / length / 2) * t)
        elif kind in ("points", "steps"):
            count = int(length / rng.uniform(1.0, 2.0)) + 2
            points = np.cumsum(rng.uniform(-0.6, 0.6, count)) * 0.6
            at = np.linspace(0, length, count)
            piece = np.clip(np.searchsorted(at, t, side="right") - 1, 0, count - 2)
            part = (t - at[piece]) / (at[1] - at[0])
            part = np.clip(part / 0.7, 0, 1) if kind == "points" else (part > 0.1).astype(float)
            ease = part**3 * (10 - 15 * part + 6 * part**2)
            found[:, joint] = points[piece] + (points[piece + 1] - points[piece]) * ease
        else:
            white = rng.standard_normal(len(t) + 400)
            width = max(2, int(rng.uniform(0.1, 0.4) / (t[1] - t[0])))
            smooth = np.convolve(white, np.hanning(2 * width + 1), mode="same")[200 : 200 + len(t)]
            found[:, joint] = size * smooth / smooth.std()
    return found


def arm(seed: int, *, names: int | None = None, least_s: float = 8.0) -> Episode:
    """A clean log of a position-controlled arm: commands, positions, velocities, torques."""
    rng = np.random.default_rng(seed)
    rate = float(rng.choice([30, 50, 100, 200, 250, 500, 1000]))
    samples = int(np.clip(rate * rng.uniform(least_s, 30), 400, 12000))
    joints = int(rng.integers(1, 8))
    step = 1 / rate
    times = np.arange(samples) * step
    asked = wishes(rng, times, joints)
    late = int(rng.integers(1, max(2, int(0.06 * rate))))
    arrived = np.concatenate([np.repeat(asked[:1], late, axis=0), asked[:-late]])
    place = filtered(arrived, step, rng.uniform(2.0, 8.0), rng.uniform(0.6, 1.2))
    place = place * rng.uniform(0.9, 1.0) + rng.uniform(-0.02, 0.02)
    speed = np.gradient(place, step, axis=0)
    if rng.random() < 0.5:  # the drive's own estimate: filtered and late
        lag = rng.uniform(0.5, 4.0)
        keep = np.exp(-1 / lag)
        for k in range(1, samples):
            speed[k] = keep * speed[k - 1] + (1 - keep) * speed[k]
    noise = rng.choice([0.0, 1e-4, 5e-4])
    place = place + noise * rng.standard_normal(place.shape)
    speed = speed + max(noise, 1e-4) * rng.uniform(5, 40) * rng.standard_normal(speed.shape)
    turn = rng.choice([0, 4096, 65536])
    if turn:
        place = np.round(place * turn / (2 * np.pi)) * (2 * np.pi / turn)
        speed = np.round(speed / 0.02) * 0.02
    jitter = rng.choice([0.0, 0.02, 0.15])
    stamps = times + jitter * step * rng.uniform(-1, 1, samples) + rng.choice([0.0, 1.7e9])
    stated = rate * rng.uniform(0.99, 1.01) if rng.random() < 0.5 else 0.0
    torque = 3 * (arrived - place) + 0.05 * rng.standard_normal(place.shape)
    position, velocity, command = NAMES[rng.integers(len(NAMES)) if names is None else names]
    scale, unit = [(1.0, "rad"), (1.0, "m"), (180 / np.pi, "deg")][rng.integers(3)]
    channels = {
        position: Signal(stamps, place * scale, unit, stated),
        velocity: Signal(stamps, speed * scale, f"{unit}/s", stated),
        command: Signal(stamps, asked * scale, unit, stated),
        "torque": Signal(stamps, torque, "N m", stated),
        "torque_cmd": Signal(stamps, np.clip(torque, -0.5, 0.5), "N m", stated),
        "enabled": Signal(stamps, np.ones(samples, bool)),
        "temperature": Signal(stamps[:: int(rate)], np.full(len(stamps[:: int(rate)]), 31), "degC"),
    }
    return Episode(channels=channels, provenance=REAL)


def names_of(episode: Episode) -> tuple[str, str, str]:
    """The position, the velocity and the command of an `arm`."""
    return next(names for names in NAMES if names[0] in episode.channels)


def pendulum(seed: int, *, feedback: bool = False, samples: int = 4000) -> Episode:
    """A clean log of a driven pendulum with friction: voltage in, angle and speed out."""
    rng = np.random.default_rng(seed)
    rate = float(rng.choice([100, 200, 250, 500]))
    step = 1 / rate
    t = np.arange(samples) * step
    kind = rng.choice(["prbs", "chirp", "sines", "random"])
    if kind == "prbs":
        hold = max(2, int(rng.uniform(0.03, 0.2) * rate))
        drive = np.repeat(rng.choice([-1.0, 1.0], samples // hold + 1), hold)[:samples]
    elif kind == "chirp":
        drive = np.cos(2 * np.pi * (8 * t - 8 * t**2 / t[-1] / 2))
    elif kind == "sines":
        drive = sum(np.sin(2 * np.pi * f * t + f) for f in rng.uniform(0.3, 6, 6)) / 2
    else:
        smooth = np.convolve(rng.standard_normal(samples), np.hanning(int(0.06 * rate) + 3), "same")
        drive = smooth / smooth.std()
    gain, delay = rng.uniform(10, 40), int(rng.integers(0, 4))
    gravity, damping, friction = rng.uniform(0, 30), rng.uniform(0.2, 2), rng.uniform(0, 1)
    angle, speed, log = 0.0, 0.0, np.zeros((samples, 3))
    law = rng.choice(["pd", "energy", "bang"])
    count = 2 * np.pi / 2048
    sent: list[float] = []
    for k in range(samples):
        seen = round(angle / count) * count
        if feedback:
            goal = 1.5 * np.sign(np.sin(0.8 * t[k]))
            if law == "pd":
                force = 2 * (goal - seen) - 0.3 * speed
            elif law == "energy":
                energy = 0.5 * speed**2 - gravity * np.cos(seen) - gravity
                force = -0.1 * energy * np.sign(speed * np.cos(seen) + 1e-9)
            else:
                force = 1.0 if seen + 0.2 * speed < goal else -1.0
            force = float(np.clip(force, -2, 2))
        else:
            force = float(drive[k])
        sent.append(force)
        log[k] = seen, speed + 0.02 * rng.standard_normal(), force
        pull = gain * sent[max(k - delay, 0)] - gravity * np.sin(angle) - damping * speed
        for _ in range(4):
            speed += step / 4 * (pull - friction * np.tanh(speed / 0.05))
            angle += step / 4 * speed
    channels = {
        "angle": Signal(t, log[:, 0], "rad"),
        "angle_rate": Signal(t, log[:, 1], "rad/s"),
        "action": Signal(t, log[:, 2], "V"),
    }
    return Episode(channels=channels, provenance=REAL)


def log(**channels: Signal) -> Episode:
    """An episode of the given channels."""
    return Episode(channels=channels, provenance=REAL)


def changed(episode: Episode, name: str, **fields: object) -> Episode:
    """The episode with some fields of a channel replaced."""
    signal = replace(episode[name], **fields)
    return Episode(channels={**episode.channels, name: signal}, provenance=REAL)


def with_values(episode: Episode, name: str, edit: object) -> Episode:
    """The episode with the values of a channel edited in place by a function."""
    values = np.array(episode[name].values, dtype=np.float64)
    edit(values)
    return changed(episode, name, values=values)


def with_times(episode: Episode, edit: object) -> Episode:
    """The episode with the stamps of all channels of the main clock edited by a function."""
    main = max((c.times for c in episode.channels.values()), key=len)
    new = edit(main.copy())
    channels = {
        n: replace(c, times=new) if np.array_equal(c.times, main) else c
        for n, c in episode.channels.items()
    }
    return Episode(channels=channels, provenance=REAL)


def moving(rng: np.random.Generator, values: np.ndarray, length: int) -> int:
    """A random place in the middle of a log after which a joint moves more than it mostly does."""
    inside = slice(len(values) // 5, 4 * len(values) // 5 - length)
    paths = np.cumsum(np.abs(np.diff(values, prepend=values[0])))
    path = (paths[length:] - paths[:-length])[inside]
    return int(rng.choice(np.flatnonzero(path >= np.median(path)))) + inside.start


def faulty(kind: str, seed: int) -> tuple[Episode, str, str]:
    """A clean log with one fault; the kind and the channel that a check should tell."""
    if kind == "shift of a force":
        episode = pendulum(seed)
        late = int(np.random.default_rng(seed).integers(6, 14))
        return with_values(episode, "action", lambda v: _delay(v, late)), "shift", "action"
    episode = arm(seed, least_s=12.0)
    rng = np.random.default_rng(10_000 + seed)
    position, velocity, command = names_of(episode)
    signal = episode[position]
    count, joints = signal.values.shape
    step = 1 / signal.rate_hz
    length = int(rng.integers(max(12, 0.3 / step), max(20, 1.0 / step)))
    joint = int(rng.integers(joints))
    at = moving(rng, signal.values[:, joint], length)
    span = (count - 1) * step
    if kind == "stamp repeated":
        return with_times(episode, lambda t: _put(t, at, t[at - 1])), "time-repeated", ""
    if kind == "stamp not finite":
        return with_times(episode, lambda t: _put(t, at, np.nan)), "time-not-finite", ""
    if kind == "stamp backward":
        return (
            with_times(episode, lambda t: _put(t, at, t[at - 3] - step / 10)),
            "time-backward",
            "",
        )
    if kind == "clock set back":
        return (
            with_times(episode, lambda t: t - 0.5 * (np.arange(count) >= at)),
            "time-backward",
            "",
        )
    if kind == "samples missing":
        lost = range(at, at + int(rng.integers(3, 40)))
        channels = {
            name: replace(c, times=np.delete(c.times, lost), values=np.delete(c.values, lost, 0))
            if len(c.times) == count
            else c
            for name, c in episode.channels.items()
        }
        return Episode(channels=channels, provenance=REAL), "time-gap", ""
    if kind == "rate other than stated":
        stated = signal.rate_hz * rng.choice([0.8, 0.95, 1.05, 1.25])
        return changed(episode, position, stated_hz=stated), "time-rate", ""
    if kind == "rate of motion":
        factor = rng.choice([0.7, 0.8, 0.85, 1.2, 1.25, 1.4])
        plain = {n: replace(c, stated_hz=0.0) for n, c in episode.channels.items()}
        plain_episode = Episode(channels=plain, provenance=REAL)
        return with_times(plain_episode, lambda t: t[0] + (t - t[0]) * factor), "time-rate", ""
    if kind == "drifting stamps":
        name = str(rng.choice([position, velocity, command]))
        rate = 1 + rng.choice([-1, 1]) * rng.uniform(0.1, 0.3) / span
        stamps = signal.times[0] + (signal.times - signal.times[0]) * rate
        return changed(episode, name, times=stamps), "clock-drift", name
    if kind == "drifting values":
        name = str(rng.choice([position, velocity]))
        ahead = np.linspace(0, rng.uniform(0.1, 0.3), count) * rng.choice([-1, 1])
        drifted = with_values(episode, name, lambda v: _warp(v, signal.times, ahead))
        keep = slice(int(0.4 / step), -int(0.4 / step))  # where there was nothing to read
        channels = {
            n: replace(c, times=c.times[keep], values=c.values[keep])
            if len(c.times) == count
            else c
            for n, c in drifted.channels.items()
        }
        return Episode(channels=channels, provenance=REAL), "clock-drift", name
    if kind == "frozen joint":

        def freeze(v: np.ndarray) -> None:
            v[at : at + length, joint] = v[at, joint]

        return with_values(episode, position, freeze), "stuck", position
    if kind == "frozen channel":
        name = str(rng.choice([position, velocity]))
        return (
            with_values(episode, name, lambda v: _put(v, slice(at, at + length), v[at])),
            "stuck",
            name,
        )
    if kind == "clipped":
        name = str(rng.choice([position, velocity]))
        return with_values(episode, name, _clip), "clipped", name
    name = str(rng.choice([position, velocity, command, "torque"]))
    if kind == "not a number":
        end = at + int(rng.integers(1, 20))
        what = rng.choice([np.nan, np.inf, -np.inf])
        return (
            with_values(episode, name, lambda v: _put(v[:, joint], slice(at, end), what)),
            "not-finite",
            name,
        )
    if kind == "huge":
        what = rng.choice([1.4e306, -1e17, 1e13])
        return with_values(episode, name, lambda v: _put(v[:, joint], at, what)), "absurd", name
    if kind == "spikes":
        name = str(rng.choice([position, velocity]))
        rows = rng.choice(np.arange(50, count - 50), 5, replace=False)

        def spike(v: np.ndarray) -> None:
            size = max(np.ptp(v[:, joint]), 0.1) * rng.uniform(2, 10, 5)
            v[rows, joint] += size * rng.choice([-1, 1], 5)

        return with_values(episode, name, spike), "absurd", name
    factor = {"rad": 180 / np.pi, "m": 1000.0, "deg": np.pi / 180}[signal.unit]
    if kind == "other unit":
        name = str(rng.choice([position, velocity, command]))
        return with_values(episode, name, lambda v: np.multiply(v, factor, out=v)), "unit", name
    if kind == "degrees alone":
        degrees = signal.values * (1.0 if signal.unit == "deg" else 180 / np.pi)
        return log(joint_pos=Signal(signal.times, degrees, "rad")), "unit", "joint_pos"
    late = int((0.25 + rng.uniform(0.05, 0.2)) / step) + 1
    assert kind == "shift of a target", kind
    return with_values(episode, command, lambda v: _delay(v, late)), "shift", command


FAULTS = [
    "stamp repeated", "stamp not finite", "stamp backward", "clock set back", "samples missing",
    "rate other than stated", "rate of motion", "drifting stamps", "drifting values",
    "frozen joint", "frozen channel", "clipped", "not a number", "huge", "spikes", "other unit",
    "degrees alone", "shift of a target", "shift of a force",
]  # fmt: skip


def _put(array: np.ndarray, where: object, what: object) -> np.ndarray:
    array[where] = what
    return array


def _delay(values: np.ndarray, late: int) -> None:
    values[late:] = values[:-late].copy()
    values[:late] = values[late]


def _warp(values: np.ndarray, times: np.ndarray, ahead: np.ndarray) -> None:
    for column in values.T:
        column[:] = np.interp(times + ahead, times, column.copy())


def _clip(values: np.ndarray) -> None:
    low, high = np.quantile(values, [0.1, 0.9], axis=0)
    np.clip(values, low, high, out=values)
