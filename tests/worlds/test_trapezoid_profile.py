"""Commands that a servo's firmware approaches with limited acceleration."""

import math

import numpy as np
import pytest
import torch

from sim2real.twin import Twin
from sim2real.worlds import open_worlds
from sim2real.worlds.trapezoid_profile import towards

PERIOD_S = 0.02


def followed(goals: list[float], acceleration: float, top: float = math.inf) -> np.ndarray:
    """(goals, 2) places and speeds after each millisecond."""
    place, speed = torch.zeros(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    limits = {"acceleration": torch.full((1,), acceleration), "top": torch.full((1,), top)}
    rows = []
    for goal in goals:
        place, speed = towards(place, speed, torch.tensor([goal]), after_s=1e-3, **limits)
        rows.append([float(place), float(speed)])
    return np.array(rows)


def commands(make_twin, effects: str, targets: list[float]) -> np.ndarray:
    """What the actuator is given of targets, a period each."""
    twin = Twin.load(make_twin(f"[effects.actuator.hinge]\n{effects}", name=f"twin{len(targets)}"))
    worlds = open_worlds(twin, count=1, period_s=PERIOD_S)
    found = []
    for target in targets:
        worlds.step(torch.tensor([[target, 0.0]]))
        found.append(float(worlds.state("ctrl")[0, 0]))
    return np.array(found)


def test_a_step_takes_the_time_of_two_parabolas():
    moved = followed([0.4] * 300, acceleration=40.0)[:, 0]
    assert moved[49] == pytest.approx(0.5 * 40.0 * 0.05**2)
    assert moved[99] == pytest.approx(0.2)  # halfway after sqrt(0.4 / 40) s
    assert moved[199:] == pytest.approx(0.4)
    assert moved.max() < 0.4 + 1e-6


def test_no_limit_is_broken_and_no_goal_is_missed_while_goals_change():
    draw = np.random.default_rng(3)
    goals = np.repeat(draw.uniform(-1.0, 1.0, 10), draw.integers(10, 300, 10))
    place, speed = followed([*goals, *[0.5] * 1200], acceleration=20.0, top=2.0).T
    assert np.abs(np.diff(speed)).max() <= 20.0 * 1e-3 * (1 + 1e-5)
    assert np.abs(speed).max() <= 2.0 * (1 + 1e-5)
    assert np.diff(place) == pytest.approx(0.5e-3 * (speed[1:] + speed[:-1]), abs=1e-5)
    assert place[-1] == pytest.approx(0.5) and speed[-1] == pytest.approx(0.0, abs=1e-6)


def test_how_often_one_asks_changes_nothing():
    limits = {"acceleration": torch.tensor(30.0), "top": torch.tensor(1.0)}
    start = (torch.tensor(0.1), torch.tensor(-0.7), torch.tensor(0.25))
    once = towards(*start, after_s=0.2, **limits)
    half = towards(*start, after_s=0.1, **limits)
    twice = towards(half[0], half[1], start[2], after_s=0.1, **limits)
    assert [float(x) for x in twice] == pytest.approx([float(x) for x in once], abs=1e-5)


@pytest.mark.slow
def test_a_fast_sine_comes_late_and_small_and_a_slow_one_does_not(make_twin):
    times = PERIOD_S * np.arange(400)
    slow, fast = np.sin(2.0 * times), np.sin(12.0 * times[:300])
    assert commands(make_twin, "acceleration = 40.0", slow) == pytest.approx(slow, abs=0.1)
    assert np.abs(commands(make_twin, "acceleration = 40.0", fast)[200:]).max() < 0.6


def test_a_command_sent_again_is_taken_at_once_after_it_settled(make_twin):
    profiled = commands(make_twin, "acceleration = 4.0", [0.5] * 40)
    assert profiled[20] < 0.35 and profiled[-1] == pytest.approx(0.5)
    settled = commands(make_twin, "acceleration = 4.0\nsettle = 0.04", [0.5] * 5)
    assert settled[:2] == pytest.approx(profiled[:2]) and settled[1] < 0.01
    assert settled[2:] == pytest.approx(0.5)


def test_a_resumed_world_goes_on_in_the_middle_of_its_way(make_twin):
    twin = Twin.load(make_twin("[effects.actuator.hinge]\nacceleration = 4.0\nsettle = 0.4"))
    first, second = (open_worlds(twin, count=1, period_s=PERIOD_S) for _ in range(2))
    for _ in range(10):
        first.step(torch.tensor([[0.5, 0.0]]))
    second.load_state_dict(first.state_dict())
    for _ in range(15):
        for worlds in (first, second):
            worlds.step(torch.tensor([[0.5, 0.0]]))
        assert torch.equal(first.state("ctrl"), second.state("ctrl"))
