"""Checks of logs: every seeded fault is found and repaired, and clean logs raise nothing."""

from dataclasses import replace

import numpy as np
import pytest

from sim2real.data import CheckThresholds, Episode, Signal, Video
from sim2real.data.check import check_episode, repair_episode
from sim2real.data.check.log_fault import SEVERITIES
from sim2real.errors import Sim2RealError
from tests.check_logs import FAULTS, REAL, arm, changed, faulty, log, names_of, pendulum, with_times

T = np.arange(4000) * 0.005
RNG = np.random.default_rng(7)


def quantised(values: np.ndarray, counts: int = 4096) -> np.ndarray:
    return np.round(values * counts / (2 * np.pi)) * (2 * np.pi / counts)


def bounce() -> tuple[np.ndarray, np.ndarray]:
    """Height and speed of a ball that bounces to rest."""
    place, speed, rows = 1.0, 0.0, []
    for _ in T:
        rows.append((place, speed))
        speed -= 9.81 * 0.005
        place += speed * 0.005
        if place < 0:
            place, speed = 0.0, -0.7 * speed
            speed = 0.0 if abs(speed) < 0.1 else speed
    return np.array(rows).T


def hard_clean_logs() -> dict[str, Episode]:
    """Logs that look odd and are right."""
    sine = np.sin(2 * np.pi * 0.7 * T)
    noise = RNG.standard_normal(len(T))
    steps = np.sign(np.sin(2 * np.pi * 0.25 * T)) * 0.5
    height, speed = bounce()
    stopped = np.clip(1.5 * sine, -1.0, 1.0)
    fallen = 25 / (1 + np.exp(-(T - 8) * 2))
    slow = np.repeat(quantised(sine)[::10], 10)
    late = np.r_[np.zeros(1500), np.sin(2 * np.pi * 0.7 * T[:-1500])]
    jumpy = np.cumsum(RNG.exponential(0.005, len(T)))
    single = T.copy()
    single[700:] += 0.004
    return {
        "a joint at rest with a quantised encoder": log(
            q=Signal(T, quantised(0.3 + 2e-4 * noise), "rad"),
            dq=Signal(T, 0.05 * noise, "rad/s"),
        ),
        "a joint held by static friction under torque": log(
            position=Signal(T, np.full(len(T), 0.123), "rad"),
            velocity=Signal(T, np.round(0.05 * noise / 0.02) * 0.02, "rad/s"),
            torque_cmd=Signal(T, 0.3 * sine, "N m"),
        ),
        "a step reference and its response": log(
            goal_position=Signal(T, steps, "rad"),
            position=Signal(T, quantised(np.convolve(np.r_[np.full(200, steps[0]), steps],
                            np.exp(-np.arange(200) / 20) / 20.5, "full")[200:4200]), "rad"),
        ),
        "a reference without a telling name": log(wanted=Signal(T, steps, "rad")),
        "a switch, a counter and a mode": log(
            enabled=Signal(T, sine > 0), ticks=Signal(T, np.arange(len(T))),
            mode=Signal(T, np.repeat([0, 1, 2, 1], 1000)),
        ),
        "commands that saturate": log(
            action=Signal(T, np.clip(2 * sine, -1, 1), "N m"),
            voltage=Signal(T, np.clip(9 * sine, -6, 6), "V"),
            motor_cmd=Signal(T, np.clip(2 * sine + noise, -1, 1)),
        ),
        "a joint at its stop, with its velocity": log(
            q=Signal(T, quantised(stopped), "rad"),
            dq=Signal(T, np.gradient(stopped, 0.005) + 0.01 * noise, "rad/s"),
        ),
        "a joint at its stop, without one": log(q=Signal(T, quantised(stopped), "rad")),
        "a gripper that opens and closes": log(
            gripper_position=Signal(T, np.round(np.clip(0.5 + 2 * sine, 0, 1), 3)),
        ),
        "a wheel that turns": log(
            wheel_angle=Signal(T, 30 * T + 0.01 * noise, "rad"),
            wheel_speed=Signal(T, 30 + 0.1 * noise, "rad/s"),
        ),
        "a wheel driven to and fro": log(wheel_angle=Signal(T, 80 * sine, "rad")),
        "a pendulum that falls over": log(
            angle=Signal(T, quantised(fallen), "rad"),
            angle_rate=Signal(T, np.gradient(fallen, 0.005), "rad/s"),
        ),
        "an angle that wraps": log(
            yaw=Signal(T, (3.0 * T + 0.002 * noise + np.pi) % (2 * np.pi) - np.pi, "rad"),
            yaw_rate=Signal(T, 3.0 + 0.02 * noise, "rad/s"),
        ),
        "an angle that flickers at its seam": log(
            roll=Signal(T, (180 + 0.2 * noise + 180) % 360 - 180, "deg"),
        ),
        "a ball that bounces": log(
            position=Signal(T, height, "m"), velocity=Signal(T, speed, "m/s"),
            acceleration=Signal(T, np.gradient(speed, 0.005), "m/s^2"),
        ),
        "impacts in an accelerometer": log(
            accel=Signal(T, 0.02 * noise + 30 * (np.arange(len(T)) % 500 == 7), "m/s^2"),
        ),
        "a slow sensor in a fast log": log(position=Signal(T, slow, "rad")),
        "a simulation that starts at rest": log(
            qpos=Signal(T, late, "rad"), qvel=Signal(T, np.gradient(late, 0.005), "rad/s"),
        ),
        "sampling by events": log(q=Signal(jumpy, np.sin(jumpy), "rad")),
        "one late sample": log(q=Signal(single, np.sin(single), "rad")),
        "channels of different rates": log(
            q=Signal(T, sine, "rad", 200.0), imu=Signal(T[::4], sine[::4], "m/s^2", 50.0),
            temperature=Signal(T[::200], np.full(20, 31.5), "degC"),
        ),
        "stamps since 1970": log(
            q=Signal(1.7e9 + T, sine, "rad", 200.0), dq=Signal(1.7e9 + T, np.gradient(sine, 0.005)),
        ),
        "wall time beside the stamps": log(
            q=Signal(T, sine, "rad"), wall_time=Signal(T, 1.7e9 + T + 1e-4 * noise, "s"),
        ),
        "a velocity cruise at full speed": log(
            velocity=Signal(T, np.round(np.clip(3 * sine, -1, 1) / 0.02) * 0.02, "rad/s"),
            position=Signal(T, np.cumsum(np.clip(3 * sine, -1, 1)) * 0.005, "rad"),
        ),
        "a quaternion that flips its sign": log(
            orientation=Signal(T, np.stack([np.cos(T), np.sin(T), 0 * T, 0 * T], 1)
                               * np.where(np.arange(len(T)) % 7 < 3, 1, -1)[:, None]),
        ),
        "few samples": log(q=Signal(T[:3], sine[:3], "rad"), dq=Signal(T[:1], sine[:1], "rad/s")),
        "no samples": log(q=Signal([], np.zeros((0, 3)), "rad")),
        "a target that the joint follows at once": log(
            action=Signal(T, sine), **{"observation.state": Signal(T, np.r_[0, sine[:-1]])},
        ),
        "a stick-slip joint": log(
            q=Signal(T, quantised(np.floor(T * 2 + 0.1 * sine) * 0.05
                                  + 0.05 * np.clip((T * 2 % 1) * 20 - 19, 0, 1)), "rad"),
        ),
    }  # fmt: skip


CLEAN = hard_clean_logs()


@pytest.mark.parametrize("name", CLEAN)
def test_odd_but_clean_logs_raise_nothing(name):
    assert [f"{f.kind} of {f.channel}: {f.message}" for f in check_episode(CLEAN[name])] == []


@pytest.mark.slow
def test_clean_logs_of_many_sorts_raise_nothing():
    for seed in range(20):
        for episode in (arm(seed), pendulum(seed), pendulum(seed, feedback=True)):
            assert [f"{seed} {f.kind}: {f.message}" for f in check_episode(episode)] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULTS)
def test_seeded_faults_are_found_named_and_repaired(kind):
    found, again, seeds = 0, 0, range(100, 112)
    for seed in seeds:
        episode, wanted, channel = faulty(kind, seed)
        findings = check_episode(episode)
        told = [f for f in findings if f.kind == wanted]
        found += any(not channel or channel in f.channels for f in told)
        if any(f.repairable for f in told):
            repaired = repair_episode(episode, findings)
            assert repaired.provenance.parents == (episode.id,)
            assert wanted in repaired.provenance.process
            again += wanted in {f.kind for f in check_episode(repaired)}
    assert found >= LEAST.get(kind, 1.0) * len(seeds)
    assert again <= 1


LEAST = {"clipped": 0.6, "drifting stamps": 0.8, "drifting values": 0.8, "frozen joint": 0.75,
         "frozen channel": 0.75, "other unit": 0.85, "rate of motion": 0.75,
         "shift of a force": 0.9, "shift of a target": 0.9}  # fmt: skip
"""Share of seeded faults that must be found, where physics leaves some without a trace."""


def test_a_finding_tells_where_how_much_and_what_to_do():
    episode, _, _ = faulty("frozen joint", 0)
    finding = next(f for f in check_episode(episode) if f.kind == "stuck")
    times = episode[finding.channel].times
    place = finding.span
    assert times[place.first] == place.start_s < place.end_s == times[place.last]
    assert place.count == place.last - place.first + 1
    assert finding.severity in SEVERITIES
    assert "\n" not in finding.message + finding.remedy and "samples" in finding.message
    assert finding.to_dict()["component"] == place.component


def test_the_worst_findings_come_first():
    episode, _, _ = faulty("samples missing", 1)
    name = names_of(episode)[0]
    values = np.array(episode[name].values, dtype=float)
    values[5] = np.nan
    found = check_episode(changed(episode, name, values=values))
    assert [f.severity for f in found] == ["error", "warning"]


def test_a_log_that_claims_30_frames_and_has_24_is_found():
    times = np.arange(300) / 24
    episode = log(action=Signal(times, np.sin(times), "rad", 30.0))
    (finding,) = check_episode(episode)
    assert finding.kind == "time-rate" and "24 Hz" in finding.message
    assert repair_episode(episode, [finding])["action"].stated_hz == pytest.approx(24.0)


def test_thresholds_decide_what_is_a_fault():
    times = np.r_[np.arange(100), np.arange(102, 300)] / 24
    late = log(action=Signal(times, np.sin(times), "rad", 24.0))
    slow = log(action=Signal(times[:100], np.sin(times[:100]), "rad", 23.0))
    assert [f.kind for f in check_episode(late)] == ["time-gap"]
    assert not check_episode(late, thresholds=CheckThresholds(gap_steps=4.0))
    assert [f.kind for f in check_episode(slow)] == ["time-rate"]
    assert not check_episode(slow, thresholds=CheckThresholds(rate_error=0.1))


def test_stamps_in_milliseconds_are_scaled():
    times = np.arange(1000) * 10.0
    episode = log(q=Signal(times, np.sin(times / 1e3), "rad", 100.0))
    (finding,) = check_episode(episode)
    assert finding.kind == "time-rate"
    assert repair_episode(episode, [finding])["q"].times == pytest.approx(times / 1e3)


def test_a_clock_channel_that_runs_away_is_found():
    fast, off = (log(q=Signal(T, np.sin(T), "rad"), wall=Signal(T, 5 + T * r, "s"))
                 for r in (1.3, 1.002))  # fmt: skip
    assert [f.kind for f in check_episode(fast)] == ["time-rate"]
    (drift,) = check_episode(off)
    assert drift.kind == "clock-drift" and "+2000 ppm" in drift.message


def test_pictures_are_checked_by_their_times_only():
    times = np.arange(20) / 10
    times[12] = times[11]
    frames = [np.zeros((16, 16, 3), np.uint8)] * 20
    episode = Episode(channels={"camera": Video.encode(times, frames)}, provenance=REAL)
    (finding,) = check_episode(episode)
    assert (finding.kind, finding.channel) == ("time-repeated", "camera")
    assert not check_episode(repair_episode(episode, [finding]))


def test_a_faulty_clock_is_told_once_for_all_its_channels():
    episode = with_times(arm(3), lambda t: np.r_[t[:50], t[49], t[51:]])
    (finding,) = check_episode(episode)
    assert finding.kind == "time-repeated"
    assert len(finding.channels) > 3
    fixed = repair_episode(episode, [finding])
    assert all(np.all(np.diff(c.times) > 0) for c in fixed.channels.values())


def test_rows_logged_twice_are_dropped_and_counted():
    twice = np.sort(np.r_[np.arange(400), 100, 250])
    episode = log(q=Signal(T[twice], np.sin(T[twice]), "rad"))
    fixed = repair_episode(episode, check_episode(episode))
    assert fixed["q"].times.tolist() == T[:400].tolist()
    assert "2 samples that were logged twice dropped" in fixed.provenance.process


def test_rows_out_of_order_are_sorted():
    order = np.arange(400)
    order[[100, 101]] = 101, 100
    episode = log(q=Signal(T[order], np.sin(T[order]), "rad"))
    fixed = repair_episode(episode, check_episode(episode))
    assert fixed["q"] == Signal(T[:400], np.sin(T[:400]), "rad")
    assert "2 samples put in order" in fixed.provenance.process


def test_short_holes_are_interpolated_and_long_ones_dropped_with_their_count():
    values = np.sin(T[:500])
    values[[50, 51]] = np.nan
    values[200:220] = np.inf
    episode = log(q=Signal(T[:500], values, "rad"))
    fixed = repair_episode(episode, check_episode(episode))
    assert len(fixed["q"].times) == 480
    assert fixed["q"].values == pytest.approx(np.sin(fixed["q"].times), abs=1e-4)
    assert "2 samples interpolated, 20 dropped" in fixed.provenance.process
    assert {f.kind for f in check_episode(fixed)} == {"time-gap"}


def test_a_late_action_is_moved_by_whole_samples():
    # A servo one step behind its target, whose targets were logged ten steps late.
    wish = np.convolve(RNG.standard_normal(4400), np.hanning(81), "same")[200:4200]
    state = np.r_[wish[0], wish[:-1]]
    action = np.r_[np.full(10, wish[0]), wish[:-10]]
    episode = log(action=Signal(T, action, "rad"), position=Signal(T, state, "rad"))
    (finding,) = check_episode(episode)
    assert finding.kind == "shift" and "9.0" in finding.message
    fixed = repair_episode(episode, [finding])
    assert fixed["action"].times == pytest.approx(T - 9 * 0.005)
    assert not check_episode(fixed)


def test_what_cannot_be_repaired_is_left_and_said():
    episode, _, _ = faulty("samples missing", 0)
    with pytest.raises(Sim2RealError, match="no fault that can be repaired"):
        repair_episode(episode, check_episode(episode))
    with pytest.raises(Sim2RealError, match="to repair"):
        other, _, _ = faulty("huge", 0)
        repair_episode(CLEAN["few samples"], check_episode(other))


def test_scaling_all_values_and_units_changes_no_verdict():
    for seed in (0, 5):
        episode, _, _ = faulty("frozen joint", seed)
        position, velocity, command = names_of(episode)
        scaled = dict(episode.channels)
        for name in (position, velocity, command):
            signal = episode[name]
            unit = signal.unit.replace("rad", "mm").replace("deg", "mm")
            unit = "m" + signal.unit if signal.unit.startswith("m") else unit
            scaled[name] = replace(signal, values=signal.values * 1000.0, unit=unit)
        again = Episode(channels=scaled, provenance=REAL)
        assert {(f.kind, f.channel) for f in check_episode(again)} == {
            (f.kind, f.channel) for f in check_episode(episode)
        }


@pytest.mark.slow
def test_any_mixture_of_faults_is_told_without_a_crash():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        channels = {}
        for name in rng.choice(["q", "dq", "action", "x_pos", "x_vel", "wall_time", "force"], 4):
            times = np.cumsum(
                rng.choice([0.0, 0.01, -0.02, np.nan, 5.0], 200, p=[0.1, 0.8, 0.05, 0.02, 0.03])
            )
            values = rng.choice(
                [0.0, 1.0, np.nan, 1e308, -np.inf, 3.3], (200, int(rng.integers(1, 4)))
            )
            channels[str(name)] = Signal(times, values, str(rng.choice(["rad", "s", "", "m/s"])))
        episode = Episode(channels=channels, provenance=REAL)
        findings = check_episode(episode)
        assert findings
        if any(f.repairable for f in findings):
            repair_episode(episode, findings)


def test_an_encoder_that_never_updates_is_stuck():
    path = np.stack([0.8 * np.sin(2 * np.pi * 0.4 * T), 0.5 * np.cos(2 * np.pi * 0.3 * T)], axis=1)
    speed = np.gradient(path, T, axis=0) + 0.02 * RNG.standard_normal(path.shape)
    frozen = np.tile(path[:1], (len(T), 1))
    (finding,) = check_episode(
        log(joint_pos=Signal(T, frozen, "rad"), joint_vel=Signal(T, speed, "rad/s"))
    )
    assert (finding.kind, finding.severity, finding.channel) == ("stuck", "error", "joint_pos")
    asked = log(joint_pos=Signal(T, frozen, "rad"), action=Signal(T, path, "rad"))
    assert [(f.kind, f.severity) for f in check_episode(asked)] == [("stuck", "warning")]
    still = log(
        joint_pos=Signal(T, frozen, "rad"),
        joint_vel=Signal(T, 0.02 * RNG.standard_normal(path.shape), "rad/s"),
        action=Signal(T, frozen, "rad"),
    )
    assert check_episode(still) == []


@pytest.mark.parametrize("share", [0.6, 0.75, 0.9])
def test_one_flat_top_is_clipped_and_not_stuck(share):
    path = np.exp(-(((T - 8) / 3) ** 2)) + 0.2 * np.sin(2 * np.pi * 0.3 * T)
    speed = np.gradient(path, T)
    cut = np.minimum(path, share * path.max()) + 0.0
    found = check_episode(log(joint_pos=Signal(T, cut, "rad"), joint_vel=Signal(T, speed, "rad/s")))
    assert [finding.kind for finding in found] == ["clipped"]


def test_a_velocity_that_is_part_of_a_state_may_leap():
    speed = np.where(np.sin(2 * np.pi * 0.2 * T) > 0, 100.0, -100.0) + RNG.standard_normal(len(T))
    speed[700:703] = 0.0
    assert check_episode(log(**{"state.vel_meas": Signal(T, speed, "deg/s")})) == []
