"""What the gap between a twin and its robot is made of, and which of it costs success."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from sim2real.attribution.attribution import Attribution
from sim2real.attribution.lost_success import attribute_success
from sim2real.attribution.trajectory_error import attribute_trajectory
from sim2real.data import ChannelMap, Episode, Logs, read_logs
from sim2real.errors import Sim2RealError
from sim2real.evaluation import OpenedPolicy, PolicySource, open_policy
from sim2real.files import write_json
from sim2real.identification import identify
from sim2real.logs import aligned_logs
from sim2real.policy import open_twin
from sim2real.twin import Twin

Report: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class GapAttribution:
    """The shares of the error and, for a policy, of the success that it loses."""

    before: Twin
    """The twin as it was."""
    after: Twin
    """The same, identified."""
    identified: bool
    """Whether that was done just now, from the same logs."""
    trajectory: Attribution | None
    """Of the error of predictions; None where there is none to share out, and see `why`."""
    success: Attribution | None
    """Of the lost success; None where no policy was named."""
    why: str = ""

    @property
    def parts(self) -> tuple[Attribution, ...]:
        """What was found."""
        return tuple(part for part in (self.trajectory, self.success) if part is not None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "twin": self.before.name,
            "before": self.before.version,
            "after": self.after.version,
            **({"trajectory": {"why": self.why}} if self.why else {}),
            **{part.of: part.to_dict() for part in self.parts},
        }

    def save(self, folder: Path | str) -> None:
        """Write `result.json` into a folder, and the twin if it was identified just now."""
        if self.identified:
            self.after.save(Path(folder) / "twin")
        write_json(Path(folder) / "result.json", self.to_dict())


def attribute(
    twin: Twin | Path | str,
    logs: Logs,
    *,
    identified: Twin | Path | str | None = None,
    policy: PolicySource | None = None,
    real: tuple[int, int] | None = None,
    channels: ChannelMap | Path | str | None = None,
    rate_hz: float = 0.0,
    horizon_s: float = 0.5,
    segments: int = 32,
    draws: int = 32,
    each: int = 16,
    refits: bool = False,
    seed: int = 0,
    threads: int = 0,
    report: Report = lambda done, of: None,
) -> GapAttribution:
    """Say which dimensions make a twin predict its robot wrongly, and which cost a policy success.

    `identified` is the same twin, identified; by default the twin's own posterior, or else it is
    identified from the logs first. `real` are successes and trials of `policy` on the robot: what
    is missing beyond the identified worlds is unexplained. At most `segments` stretches of
    `horizon_s` are replayed with `draws` of what was identified, and the policy is tried `each`
    times a draw in every combination of dimensions. `refits` fits every combination anew, to see
    whether others could stand in.
    """
    _check(segments=segments, each=each, draws=draws, seed=seed, threads=threads)
    if not 0 < horizon_s < math.inf:
        raise Sim2RealError(f"--horizon-s {horizon_s} is no time")
    if real is not None and policy is None:
        raise Sim2RealError("--real is of a policy: name it with --policy")
    twin = open_twin(twin)
    opened = None if policy is None else _opened(policy, twin)
    episodes = read_logs(logs, channels=channels)
    before, after, new = _before_and_after(
        twin, identified, episodes, rate_hz=rate_hz, seed=seed, threads=threads, report=report
    )
    trajectory, success, why = None, None, ""
    try:
        trajectory = attribute_trajectory(
            before, after, aligned_logs(before, episodes, rate_hz=rate_hz), horizon_s=horizon_s,
            draws=draws, segments=segments, with_refits=refits, seed=seed, threads=threads,
            report=report,
        )  # fmt: skip
    except Sim2RealError as none:
        if opened is None:
            raise
        why = str(none)  # what differs may show in the success only
    if opened is not None:
        success = attribute_success(
            before, after, opened.task, opened.policy, source=opened.source, real=real, draws=draws,
            each=each, seed=seed, threads=threads, report=report,
        )  # fmt: skip
    return GapAttribution(
        before=before, after=after, identified=new, trajectory=trajectory, success=success, why=why
    )


def _check(*, segments: int, each: int, draws: int, seed: int, threads: int) -> None:
    """Refuse what cannot be, before anything is read."""
    if min(segments, each) < 1 or draws < 2:
        raise Sim2RealError("--segments and --each are at least 1, and --draws 2")
    if seed < 0 or threads < 0:
        raise Sim2RealError("--seed and --threads are not negative")


def _opened(policy: PolicySource, twin: Twin) -> OpenedPolicy:
    """The policy, if it is one for that twin."""
    opened = open_policy(policy)
    if opened.twin.name != twin.name:
        name = policy if isinstance(policy, Path | str) else "this"
        raise Sim2RealError(
            f"{name} is a policy for twin {opened.twin.name!r}, not for {twin.name!r}"
        )
    return opened


def _before_and_after(
    twin: Twin,
    identified: Twin | Path | str | None,
    episodes: list[Episode],
    *,
    rate_hz: float,
    seed: int,
    threads: int,
    report: Report,
) -> tuple[Twin, Twin, bool]:
    """(the twin as it was, as it was identified, whether that was done just now)."""
    if identified is not None:
        return twin, open_twin(identified), False
    if twin.posterior is not None:
        return replace(twin, posterior=None, remainder=None), twin, False
    found = identify(twin, episodes, rate_hz=rate_hz, seed=seed, threads=threads, report=report)
    if not found.promoted:
        raise Sim2RealError(f"the twin could not be identified from these logs: {found.why}")
    return twin, found.twin, True
