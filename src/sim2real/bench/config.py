"""Options of the benchmarks; light, so that the command line starts at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal


@dataclass(frozen=True, kw_only=True)
class BenchSim:
    """Speed and memory of randomised worlds, against MuJoCo, Gymnasium and EnvPool."""

    name: ClassVar[str] = "sim"
    worlds: int = 1024
    """Worlds of the speed measurements."""
    seconds: float = 8.0
    """Time for each measured part [s]."""
    out: Path | None = None
    """Also write the JSON here, as `benchmarks/sim.json`."""
    json: bool = False
    """Print the result as one JSON object."""


@dataclass(frozen=True, kw_only=True)
class BenchTrain:
    """Training of the built-in tasks, and time to success against Stable-Baselines3's PPO."""

    name: ClassVar[str] = "train"
    tasks: tuple[str, ...] = ("pendulum-swingup", "arm-reach", "arm-push")
    """Tasks to train."""
    episodes: int = 500
    """Randomised episodes each policy is evaluated over."""
    seed: int = 0
    """Seed of the training runs."""
    peer: bool = True
    """Whether to run Stable-Baselines3 too."""
    peer_limit: float = 10.0
    """Give the peer up after this many times our own time."""
    runs: Path = Path("runs/bench")
    """Folder for the runs."""
    out: Path | None = None
    """Also write the JSON here, as `benchmarks/train.json`."""
    json: bool = False
    """Print the result as one JSON object."""


@dataclass(frozen=True, kw_only=True)
class BenchData:
    """Writing, reading and querying episodes, against LeRobot's own data sets."""

    name: ClassVar[str] = "data"
    lerobot: Path = Path(".venv-interop/bin/python")
    """Python of an environment with LeRobot; `scripts/interop-env` makes it."""
    episodes: int = 10_000
    """Episodes that windows are read from."""
    queried: int = 1_000_000
    """Episodes whose provenance is queried."""
    frames: int = 100_000_000
    """Frames that are queried."""
    folder: Path | None = None
    """Where the lakes are made, several gigabytes; a temporary folder if not given."""
    out: Path | None = None
    """Also write the JSON here, as `benchmarks/data.json`."""
    json: bool = False
    """Print the result as one JSON object."""


@dataclass(frozen=True, kw_only=True)
class BenchDeploy:
    """The loop on a robot: how long a period takes, how late it is, and how it ends when things
    break or are killed."""

    name: ClassVar[str] = "deploy"
    parts: tuple[Literal["kills", "time", "faults"], ...] = ("kills", "time", "faults")
    """What to measure."""
    bundles: Path = Path("examples/bundles")
    """Folder with a bundle of each task."""
    hours: float = 1.0
    """Virtual time on stand-in hardware with random faults [h]."""
    kills: int = 200
    """Times the runner, the robot or the link is killed."""
    seconds: float = 20.0
    """Real time of the loop whose jitter is measured [s]."""
    seed: int = 0
    """Seed of faults and kills."""
    out: Path | None = None
    """Also write the JSON here, as `benchmarks/deploy.json`."""
    json: bool = False
    """Print the result as one JSON object."""


@dataclass(frozen=True, kw_only=True)
class BenchDoctor:
    """Faults put into logs of stand-in hardware: how many the doctor names, and how often it cries
    wolf over clean ones."""

    name: ClassVar[str] = "doctor"
    bundles: Path = Path("examples/bundles")
    """Folder with a bundle of each task."""
    first_unit: int = 300
    """Number of the first unit of stand-in hardware."""
    units: int = 10
    """Units that are flown, a task."""
    flights: int = 10
    """Clean flights, a unit."""
    seeds: int = 10
    """Places and values that each fault is tried with, a magnitude and task."""
    out: Path | None = None
    """Also write the JSON here, as `benchmarks/doctor.json`."""
    json: bool = False
    """Print the result as one JSON object."""


@dataclass(frozen=True, kw_only=True)
class BenchEvaluate:
    """Whether the statistics keep what they promise: coverage, error rates, and published tables
    of policies in simulation and reality."""

    name: ClassVar[str] = "evaluate"
    data: Path | None = None
    """Folder with published tables, each with `train`; without it they are left out."""
    repetitions: int = 2_000
    """Repetitions that coverage and error rates are counted over."""
    seed: int = 0
    out: Path | None = None
    """Also write the JSON here, as `benchmarks/evaluate.json`."""
    json: bool = False
    """Print the result as one JSON object."""


@dataclass(frozen=True, kw_only=True)
class BenchIdentify:
    """Identification with known truths: speed against mujoco.sysid and PACE's recipe, growth, and
    whether posteriors mean what they say."""

    name: ClassVar[str] = "identify"
    parts: tuple[Literal["sysid", "pace", "growth", "calibration"], ...] = (
        "sysid",
        "pace",
        "growth",
        "calibration",
    )
    """What to measure."""
    truths: int = 50
    """Truths that posteriors are checked with."""
    seconds: float = 20.0
    """Length of a recording [s]."""
    seed: int = 0
    """Seed of truths, motions and noise."""
    out: Path | None = None
    """Also write the JSON here, as `benchmarks/identify.json`."""
    json: bool = False
    """Print the result as one JSON object."""


@dataclass(frozen=True, kw_only=True)
class BenchAttribute:
    """Attribution of planted gaps: whether the largest dimension comes out largest, and one that is
    right with zero."""

    name: ClassVar[str] = "attribute"
    bundles: Path = Path("examples/bundles")
    """Folder with a bundle of each task."""
    tasks: tuple[str, ...] = ("pendulum-swingup", "arm-reach", "arm-push")
    """Tasks whose twins gaps are planted in, in turn."""
    combinations: int = 20
    """Planted combinations of dimensions whose error is attributed."""
    losses: int = 10
    """Planted combinations in the pendulum whose lost success is attributed."""
    seconds: float = 10.0
    """Length of the multisine that each world is recorded with, beside its task [s]."""
    seed: int = 0
    """Seed of plants, motions and noise."""
    workers: int = 0
    """Plants at a time; 0 for one a core."""
    store: Path = Path("runs/bench/attribute")
    """Folder of what is done: the same code does not do it again."""
    out: Path | None = None
    """Also write the JSON here, as `benchmarks/attribute.json`."""
    json: bool = False
    """Print the result as one JSON object."""


@dataclass(frozen=True, kw_only=True)
class BenchReal:
    """Twins fitted to recordings of real robots, scored on recordings they never saw, beside the
    published figures."""

    name: ClassVar[str] = "real"
    data: Path
    """Folder with the data sets, each with `train` and perhaps `test`."""
    sets: tuple[str, ...] = ()
    """Names of the data sets; all that are there by default."""
    examples: Path = Path("examples/real")
    """Folder with their twins."""
    seed: int = 0
    out: Path | None = None
    """Also write the JSON here, as `benchmarks/real.json`."""
    json: bool = False
    """Print the result as one JSON object."""


@dataclass(frozen=True, kw_only=True)
class BenchTransfer:
    """Strategies on many units of stand-in hardware: success in simulation and reality, and whether
    reality was predicted."""

    name: ClassVar[str] = "transfer"
    tasks: tuple[str, ...] = ("pendulum-swingup", "arm-reach", "arm-push")
    """Tasks to do."""
    kills: int = 50
    """Kills of loops, which must end with the same numbers."""
    strategies: tuple[str, ...] = ("nominal", "wide", "adr", "identified", "identified+residual")
    """Strategies that are compared."""
    first_unit: int = 700
    """Number of the first unit."""
    units: int = 20
    """Units of the pendulum."""
    arm_units: int = 5
    """Units of each task of the arm."""
    trials: int = 100
    """Attempts a unit and strategy that count."""
    budget: int = 40
    """Attempts a unit that the loop may make before."""
    seconds: float = 48.0
    """Motion a unit that the loop may record [s]."""
    seed: int = 0
    """Seed of trainings and recordings."""
    workers: int = 0
    """Units at a time; 0 for one a core."""
    scores: Path = Path("runs/bench/transfer/scores")
    """Folder of outcomes, a file a unit, as `benchmarks/transfer`; units that are there are not
    tried again."""
    store: Path = Path("runs/bench/transfer")
    """Folder of every step; what is there is not done again."""
    out: Path | None = None
    """Also write the JSON here, as `benchmarks/transfer-arm-push.json`."""
    json: bool = False
    """Print the result as one JSON object."""
