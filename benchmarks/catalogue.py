"""Every benchmark: what it measures, what it costs, and which modules its figures depend on."""

from __future__ import annotations

from benchmarks.benchmark import Benchmark, Tolerance
from sim2real.errors import Sim2RealError, nearest

_SIMULATED = tuple(
    f"sim2real.{room}" for room in ("params", "twin", "worlds", "randomize", "tasks")
)
"""What every simulated episode goes through."""
_FLOWN = tuple(f"sim2real.{room}" for room in ("contract", "data", "policy", "robot", "reality"))
"""What every flight of a bundle on stand-in hardware goes through."""
_IDENTIFIED = (*_SIMULATED, "sim2real.logs", "sim2real.replay", "sim2real.identification")
_TRIED = ("sim2real.evaluation", "sim2real.intervals")

BENCHMARKS = (
    Benchmark(
        name="sim",
        about="Speed and memory of randomised worlds, against MuJoCo, Gymnasium and EnvPool",
        minutes=2,
        modules=(*_SIMULATED, "sim2real.cli"),
        tolerance=Tolerance(relative=0.15),
    ),
    Benchmark(
        name="train",
        about="Training of the built-in tasks, and time to success against Stable-Baselines3's PPO",
        minutes=15,
        modules=(*_SIMULATED, *_TRIED, "sim2real.policy", "sim2real.learn"),
        tolerance=Tolerance(relative=0.02),
    ),
    Benchmark(
        name="data",
        about="Writing, reading and querying episodes, against LeRobot's own data sets",
        minutes=2,
        modules=("sim2real.data", "sim2real.storage"),
        tolerance=Tolerance(relative=0.25),
    ),
    Benchmark(
        name="deploy",
        about="The loop on a robot: time of a period, faults, false stops, hostile robots, kills",
        minutes=45,
        modules=(*_FLOWN, "sim2real.twin", "sim2real.intervals", "sim2real.testing"),
        tolerance=Tolerance(relative=0.2, by_target=("deploy.khz_overruns",)),
    ),
    Benchmark(
        name="doctor",
        about="Faults put into logs of stand-in hardware, and false alarms over clean ones",
        minutes=8,
        modules=(
            *_SIMULATED,
            *_FLOWN,
            "sim2real.logs",
            "sim2real.gap",
            "sim2real.doctor",
            "sim2real.testing",
        ),
        tolerance=Tolerance(absolute=0.02),
        at_once=True,
    ),
    Benchmark(
        name="evaluate",
        about="Whether intervals, tests and predictions keep what they promise",
        minutes=4,
        modules=_TRIED,
        tolerance=Tolerance(absolute=0.005),
    ),
    Benchmark(
        name="identify",
        about="Identification of planted truths: speed against mujoco.sysid and PACE, calibration",
        minutes=17,
        modules=(*_IDENTIFIED, "sim2real.contract", "sim2real.policy", "sim2real.testing"),
        tolerance=Tolerance(relative=0.15, absolute=0.02),
    ),
    Benchmark(
        name="real",
        about="Twins fitted to recordings of real robots, scored on ones they never saw",
        minutes=26,
        modules=(*_IDENTIFIED, "sim2real.data"),
        tolerance=Tolerance(relative=0.05),
    ),
    Benchmark(
        name="attribute",
        about="Attribution of planted gaps: the largest dimension, and those that are right",
        minutes=60,
        modules=(
            *_IDENTIFIED,
            *_TRIED,
            "sim2real.attribution",
            "sim2real.contract",
            "sim2real.learn",
            "sim2real.loop",
            "sim2real.policy",
            "sim2real.testing",
        ),
        at_once=True,
    ),
    Benchmark(
        name="transfer",
        about="Strategies on many units of stand-in hardware, predictions of reality, killed loops",
        minutes=600,
        modules=(
            *_IDENTIFIED,
            *_FLOWN,
            *_TRIED,
            "sim2real.attribution",
            "sim2real.learn",
            "sim2real.loop",
        ),
        tolerance=Tolerance(absolute=0.05),
        at_once=True,
    ),
    Benchmark(
        name="scale",
        about="Shards on Ray against local processes; workers and drivers killed",
        minutes=18,
        modules=("sim2real.scale", "sim2real.storage", "sim2real.evaluation"),
        tolerance=Tolerance(relative=0.2),
    ),
    Benchmark(
        name="shape",
        about="Shape of the package: front doors, imports, sizes, types",
        minutes=0.1,
        modules=("sim2real",),
    ),
    Benchmark(
        name="test-time",
        about="How long the tests take",
        minutes=30,
        modules=("sim2real", "tests"),
        tolerance=Tolerance(relative=0.2),
    ),
)


def named(name: str) -> Benchmark:
    """A benchmark by its name; a `Sim2RealError` where there is none."""
    for benchmark in BENCHMARKS:
        if benchmark.name == name:
            return benchmark
    raise Sim2RealError(f"no benchmark {name!r}{nearest(name, [b.name for b in BENCHMARKS])}")
