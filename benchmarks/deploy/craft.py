"""What is flown: the bundles of the examples, and the sizes of the measurement."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.machine import ROOT
from sim2real.errors import Sim2RealError
from sim2real.policy import Bundle, Runtime
from sim2real.robot.kinematics import Kinematics
from sim2real.twin import Twin

TASKS = ("pendulum-swingup", "arm-reach", "arm-push")
BUNDLES = ROOT / "examples" / "bundles"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Sizes of the measurement."""

    faults: int = 110
    """Faults of each kind."""
    runs: int = 540
    """Runs without a fault."""
    run_shards: int = 6
    sequences: int = 10_000
    """Sequences of a hostile robot."""
    hostile_shards: int = 2
    without: int = 12
    """Faults of each kind that are tried without each guard, until one slips through."""
    kills: int = 200
    """Times the runner, the robot or the link is killed."""
    seconds: float = 20.0
    """Real time of the loop whose jitter is measured [s]."""
    periods: int = 5000
    """Periods whose computing is timed."""
    khz_seconds: float = 60.0
    """Time of the loop at 1 kHz [s]."""
    rates_hz: tuple[float, float] = (100.0, 1000.0)
    """Rates of the loop whose jitter is measured, and of the one whose overruns are counted."""
    seed: int = 0
    """Seed of faults and kills."""


@dataclass(frozen=True, kw_only=True)
class Craft:
    """A bundle, ready to fly."""

    bundle: Bundle
    runtime: Runtime
    kinematics: Kinematics

    @classmethod
    def load(cls, task: str) -> Craft:
        """A task's bundle with what is needed to fly it."""
        bundle = bundle_of(task)
        twin = Twin.load(bundle.twin)
        return cls(
            bundle=bundle,
            runtime=Runtime(bundle),
            kinematics=Kinematics(twin, bundle.contract, bundle.limits),
        )


def bundle_of(task: str) -> Bundle:
    """The bundle of a task."""
    if not Bundle.is_bundle(BUNDLES / task):
        raise Sim2RealError(f"the benchmark needs a bundle of {task} in {BUNDLES}")
    return Bundle.open(BUNDLES / task)
