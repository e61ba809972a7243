"""What the gap between a twin and its robot is made of, and which of it costs success."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sim2real.attribution.attribution import GapAttribution
from sim2real.attribution.lost_success import attribute_success
from sim2real.attribution.trajectory_error import attribute_trajectory
from sim2real.data import ChannelMap, Episode, Logs, select
from sim2real.errors import Sim2RealError
from sim2real.evaluation import OpenedPolicy, PolicySource, open_policy
from sim2real.identification import identify
from sim2real.logs import aligned_logs
from sim2real.phases import Report, phase
from sim2real.policy import open_twin
from sim2real.twin import Twin


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
    """Say which dimensions cause a twin's prediction error, and which cost a policy its success.

    `identified` is the same twin, identified; by default the twin with its own posterior, or else
    one that is identified from the logs first. `real` are successes and trials of `policy` on the
    robot: what it loses beyond the identified worlds is unexplained. At most `segments` segments of
    `horizon_s` are replayed with `draws` draws of the posterior, and the policy is tried `each`
    times per draw in every combination of dimensions; with `refits` each is also refitted.
    """
    if min(segments, each) < 1 or draws < 2:
        raise Sim2RealError("--segments and --each must be at least 1, and --draws at least 2")
    if seed < 0 or threads < 0:
        raise Sim2RealError("--seed and --threads must not be negative")
    if not 0 < horizon_s < math.inf:
        raise Sim2RealError(f"--horizon-s must be a positive number of seconds, not {horizon_s}")
    if real is not None and policy is None:
        raise Sim2RealError("--real needs --policy: the policy that was tried")
    twin = open_twin(twin)
    opened = None if policy is None else _opened(policy, twin)
    episodes = select(logs, twin=twin.name, channels=channels).episodes
    before, after, new = _before_and_after(
        twin, identified, episodes, rate_hz=rate_hz, seed=seed, threads=threads, report=report
    )
    trajectory, success, why = None, None, ""
    try:
        trajectory = attribute_trajectory(
            before, after, aligned_logs(before, episodes, rate_hz=rate_hz), horizon_s=horizon_s,
            draws=draws, segments=segments, with_refits=refits, seed=seed, threads=threads,
            report=phase(report, "trajectory"),
        )  # fmt: skip
    except Sim2RealError as none:
        if opened is None:
            raise
        why = str(none)  # the gap may show only in the success rate
    if opened is not None:
        success = attribute_success(
            before, after, opened.task, opened.policy, source=opened.source, real=real, draws=draws,
            each=each, seed=seed, threads=threads, report=phase(report, "success"),
        )  # fmt: skip
    return GapAttribution(
        twin=before.name,
        before=before.version,
        after=after.version,
        trajectory=trajectory,
        success=success,
        why=why,
        notes=() if opened is None else opened.notes,
        identified=after if new else None,
    )


def _opened(policy: PolicySource, twin: Twin) -> OpenedPolicy:
    """The policy, if it was trained for that twin."""
    opened = open_policy(policy)
    if opened.twin.name != twin.name:
        raise Sim2RealError(
            f"{opened.place or opened.id} is a policy for twin {opened.twin.name!r}, not for"
            f" {twin.name!r}"
        )
    return opened


def _before_and_after(
    twin: Twin,
    identified: Twin | Path | str | None,
    episodes: Sequence[Episode],
    *,
    rate_hz: float,
    seed: int,
    threads: int,
    report: Report,
) -> tuple[Twin, Twin, bool]:
    """(the twin before identification, after it, whether it was done here)."""
    if identified is not None:
        return twin, open_twin(identified), False
    if twin.posterior is not None:
        return replace(twin, posterior=None, remainder=None), twin, False
    found = identify(twin, episodes, rate_hz=rate_hz, seed=seed, threads=threads, report=report)
    if not found.promoted:
        raise Sim2RealError(f"the twin could not be identified from these logs: {found.why}")
    return twin, found.twin, True
