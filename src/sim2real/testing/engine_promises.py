"""What worlds promise on any engine, and how each promise is tried."""

from __future__ import annotations

from collections.abc import Callable

import torch

from sim2real.testing.engine_lab import (
    EngineLab,
    LeftOut,
    Missing,
    commands,
    drawn,
    everyone,
    only,
    start,
    without_warnings,
)
from sim2real.worlds import Worlds

Attempt = Callable[[EngineLab], None]


def _members(lab: EngineLab) -> None:
    worlds = lab.worlds()
    public = {*Worlds.__annotations__, *(n for n in vars(Worlds) if not n.startswith("_"))}
    absent = sorted(name for name in public if not hasattr(worlds, name))
    if absent:
        raise Missing(f"there is no {', no '.join(absent)}")


def _shapes(lab: EngineLab) -> None:
    worlds = lab.worlds()
    model, count = worlds.model, worlds.count
    broken = worlds.step(commands(worlds, 0))
    for name, found, shape, kind in (
        ("state('qpos')", worlds.state("qpos"), (count, model.nq), torch.float64),
        ("state('qvel')", worlds.state("qvel"), (count, model.nv), torch.float64),
        ("measured", worlds.measured, (count, model.nsensordata), torch.float32),
        ("values", worlds.values, (count, len(worlds.twin.parameters)), torch.float64),
        ("what step returns", broken, (count,), torch.bool),
    ):
        if tuple(found.shape) != shape or found.dtype != kind:
            raise Missing(f"{name} is {found.dtype} {tuple(found.shape)}, not {kind} {shape}")
        if found.device.type != worlds.device.type:
            raise Missing(f"{name} is on {found.device}, not on {worlds.device}")


def _repeats(lab: EngineLab) -> None:
    one, again = (lab.drive(lab.worlds(seed=3)) for _ in range(2))
    lab.same(one, again, "the same seed gives other worlds")


def _seed(lab: EngineLab) -> None:
    one, other = (lab.drive(lab.worlds("pendulum", seed=seed)) for seed in (3, 4))
    if torch.equal(one, other):
        raise Missing("another seed gives the same noise")


def _count(lab: EngineLab) -> None:
    few, many = (lab.drive(lab.worlds(count=count, seed=3)) for count in (1, 4))
    lab.same(few[:, 0], many[:, 0], "a world depends on how many others there are")


def _reset_alone(lab: EngineLab) -> None:
    undisturbed, worlds = lab.drive(lab.worlds()), lab.worlds()
    before = lab.drive(worlds, 6)
    ids = only(worlds, 1)
    worlds.reset(ids)
    worlds.begin(ids)
    after = torch.cat([before, lab.drive(worlds, 6, first=6)])
    lab.same(after[:, [0, 2]], undisturbed[:, [0, 2]], "reset of some worlds changes others")


def _reset_whole(lab: EngineLab) -> None:
    fresh, worlds = lab.worlds(), lab.worlds()
    lab.drive(worlds, 5)
    start(worlds)
    parts = [(one.state("qpos"), one.state("qvel")) for one in (worlds, fresh)]
    for state, first in zip(*parts, strict=True):
        lab.same(state, first, "a reset world is not in the model's initial state")


def _begin(lab: EngineLab) -> None:
    worlds = lab.worlds("pendulum")
    start(worlds, qpos=0.5)
    others = worlds.derived("sensordata")[[0, 2]].clone()
    ids = only(worlds, 1)
    worlds.reset(ids)
    worlds.state("qpos")[ids, 0] = -0.8
    worlds.begin(ids)
    mine = worlds.derived("sensordata")[1, 0].double()
    if abs(float(mine) + 0.8) > lab.tolerance:
        raise Missing("begin() leaves another world's derived values")
    lab.same(
        worlds.derived("sensordata")[[0, 2]], others, "begin() changes other worlds' derived values"
    )


def _no_compounding(lab: EngineLab) -> None:
    fresh, worlds = lab.worlds(), lab.worlds()
    if not worlds.twin.parameters:
        raise LeftOut("the twin has no parameters")
    for share in (0.9, 0.2, 0.9, 0.7):
        start(worlds, drawn(worlds, share))
    start(fresh, drawn(fresh, 0.7))
    worlds.tick = fresh.tick
    lab.same(lab.drive(worlds), lab.drive(fresh), "parameters compound over two sets")


def _per_world(lab: EngineLab) -> None:
    nominal, worlds = lab.worlds("pendulum"), lab.worlds("pendulum")
    start(nominal)
    values = worlds.values.clone()
    values[1] = drawn(worlds, 0.9)[1].to(worlds.device)
    start(worlds, values)
    plain, varied = lab.drive(nominal), lab.drive(worlds)
    lab.same(varied[:, [0, 2]], plain[:, [0, 2]], "a draw is not per world: it changes others")
    if float((varied[:, 1] - plain[:, 1]).abs().max()) < 1e-3:
        raise Missing("a draw is not per world: it changes nothing")


def _resumes(lab: EngineLab) -> None:
    worlds, other = lab.worlds(seed=3), lab.worlds(seed=3)
    start(worlds, drawn(worlds, 0.7))
    worlds.memory["goal"] = torch.full((worlds.count,), 0.5, device=worlds.device)
    lab.drive(worlds, 7)
    saved = worlds.state_dict()
    expected = lab.drive(worlds, 10, first=7)
    other.load_state_dict(saved)
    words = "state_dict does not resume bit for bit"
    lab.same(lab.drive(other, 10, first=7), expected, words)
    if "goal" not in other.memory or other.tick != worlds.tick:
        raise Missing("state_dict loses the tick or the memory of the task")


def _diverged(lab: EngineLab) -> None:
    worlds, healthy = lab.worlds(), lab.worlds()
    ids = only(worlds, 1)
    live = [[one.state(name) for name in ("qpos", "qvel")] for one in (worlds, healthy)]
    worlds.state("qvel")[1] = 1e12
    with without_warnings():
        broken = worlds.step(commands(worlds, 0))
    healthy.step(commands(healthy, 0))
    if broken.tolist() != [False, True, False] or worlds.diverged != 1:
        raise Missing("diverged worlds are not reported")
    for state, undisturbed in zip(*live, strict=True):
        lab.same(state[[0, 2]], undisturbed[[0, 2]], "a diverged world changes others")
    worlds.reset(ids)
    worlds.begin(ids)
    if bool(worlds.step(commands(worlds, 1)).any()) or not bool(worlds.measured.isfinite().all()):
        raise Missing("a diverged world does not recover by a reset")


def _world(lab: EngineLab) -> None:
    worlds = lab.worlds("pendulum")
    values = worlds.values.clone()
    values[1, 0] = 0.8
    start(worlds, values, qpos=0.3)
    model, data = worlds.world(1)
    if abs(float(data.qpos[0]) - 0.3) > 1e-6 or abs(float(model.body("bob").mass[0]) - 0.8) > 1e-6:
        raise Missing("world() shows another state or other parameters than the world's")
    again, _ = worlds.world(0, model=model)
    if again is not model or abs(float(model.body("bob").mass[0]) - 0.5) > 1e-6:
        raise Missing("world() does not write into the model it is given")


def _inference(lab: EngineLab) -> None:
    worlds = lab.worlds()
    with torch.inference_mode():
        worlds.step(commands(worlds, 0))
        worlds.state("ctrl")
    start(worlds)
    worlds.step(commands(worlds, 1))


def _refusals(lab: EngineLab) -> None:
    abilities = lab.engine.abilities
    timed = abilities.varied_timestep
    for able, twin, switches, what in (
        (abilities.switches, "pendulum", True, "actuators that can be switched off"),
        (abilities.delays, "delayed", False, "delays"),
        (timed, "uneven", False, "time steps of each world's own"),
    ):
        try:
            refused = lab.refused(twin, switches=switches)
        except Exception as error:  # it may fail in any way
            raise Missing(f"it cannot open worlds with {what} ({type(error).__name__})") from None
        if not able and not refused:
            raise Missing(f"it opens worlds with {what}, which it does not declare")
        if able and refused:
            raise Missing(f"it refuses worlds with {what}, which it declares")


def _values_shape(lab: EngineLab) -> None:
    worlds = lab.worlds()
    wide = torch.zeros(worlds.count, len(worlds.twin.parameters) + 1, dtype=torch.float64)
    try:
        worlds.set_parameters(wide.to(worlds.device), everyone(worlds))
    except Exception as error:  # any refusal but silence
        if not str(error):
            raise Missing("values of a wrong shape are refused without a word") from None
        return
    raise Missing("values of a wrong shape are taken")


PROMISES: dict[str, Attempt] = {
    "has all members": _members,
    "gives tensors of the right shape, type and device": _shapes,
    "is the same for the same seed": _repeats,
    "draws other noise for another seed": _seed,
    "computes a world as if it were alone": _count,
    "resets some worlds alone": _reset_alone,
    "resets to the initial state": _reset_whole,
    "begins worlds with their own derived values": _begin,
    "sets parameters from their nominal values": _no_compounding,
    "gives each world its own draw": _per_world,
    "refuses values of a wrong shape": _values_shape,
    "resumes from its state": _resumes,
    "reports what diverges": _diverged,
    "shows a world": _world,
    "works inside and outside inference mode": _inference,
    "refuses what it does not declare": _refusals,
}
"""Requirements on worlds in general."""
