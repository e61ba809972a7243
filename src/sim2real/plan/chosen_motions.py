"""Motions that were chosen to be recorded, and what is expected to be known after each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tomli_w

from sim2real.arrays import Floats
from sim2real.errors import Sim2RealError
from sim2real.files import write_text
from sim2real.plain import PlainData
from sim2real.results import Result

FORMATS = (".toml", ".json")


@dataclass(frozen=True, kw_only=True)
class PlannedMotion(
    PlainData,
    also=("gain_nats=gain", "command=record", "std_after"),
    without=("gain", "record", "std", "names"),
):
    """A chosen motion, and what is expected to be known after it."""

    name: str
    seconds: float
    names: tuple[str, ...]
    """All open parameters, in the twin's order."""
    std: Floats
    """(parameters,) their expected standard deviations after this and all earlier motions."""
    gain: float
    """Reduction of the uncertainty about the wanted parameters [nats]."""
    record: str = ""
    """Shell command that records it."""

    @property
    def std_after(self) -> dict[str, float]:
        """The expected standard deviations by parameter."""
        return dict(zip(self.names, self.std.tolist(), strict=True))


@dataclass(frozen=True, kw_only=True)
class ParameterOutlook:
    """What is known of a parameter, and what the motions promise."""

    unit: str
    prior_std: float
    std_before: float
    std_after: float


@dataclass(frozen=True, kw_only=True, eq=False)
class MotionPlan(
    Result,
    kind="plan",
    also=("parameters",),
    without=("names", "units", "prior", "before"),
):
    """Motions to record, the most informative first."""

    twin: str
    version: str
    candidates: int
    """Number of motions that were evaluated."""
    refused: tuple[str, ...] = ()
    """Motions that would collide or leave the limits, and why."""
    names: tuple[str, ...]
    """All open parameters, in the twin's order."""
    units: tuple[str, ...]
    wanted: tuple[str, ...]
    """Those that the motions were chosen for."""
    prior: Floats
    """(parameters,) standard deviations of the priors."""
    before: Floats
    """(parameters,) present standard deviations: of the posterior, or else of the priors."""
    motions: tuple[PlannedMotion, ...]

    @property
    def after(self) -> Floats:
        """(parameters,) expected after all motions."""
        return self.motions[-1].std if self.motions else self.before

    @property
    def parameters(self) -> dict[str, ParameterOutlook]:
        """The open parameters by name."""
        columns = (self.prior.tolist(), self.before.tolist(), self.after.tolist())
        return {
            name: ParameterOutlook(unit=unit, prior_std=prior, std_before=before, std_after=after)
            for name, unit, prior, before, after in zip(
                self.names, self.units, *columns, strict=True
            )
        }

    def sentences(self) -> Iterator[str]:
        """The motions, a line each."""
        for one in self.motions:
            yield f"{one.name}: {one.seconds:.0f} s, worth {one.gain:.2f} nats: {one.record}"

    def save(self, path: Path | str) -> Path:
        """Write the plan to a `.json` file, or for people to a `.toml` file."""
        path = Path(path)
        if path.suffix not in FORMATS:
            raise Sim2RealError(f"a plan is a .toml or .json file, not {path.name!r}")
        if path.suffix == ".json":
            return super().save(path)
        write_text(path, tomli_w.dumps(self.to_dict()))
        return path
