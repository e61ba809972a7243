"""Why attempts of a policy on its robot failed, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim2real.attribution.advice import Advice, advise
from sim2real.attribution.failures import Failures, failures_of
from sim2real.data import Logs, read_logs
from sim2real.evaluation import PolicySource, open_policy
from sim2real.files import write_json
from sim2real.policy import open_twin
from sim2real.twin import Twin


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The failures of a policy, explained, and what follows from them."""

    failures: Failures
    advice: tuple[Advice, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return self.failures.to_dict() | {"advice": [one.to_dict() for one in self.advice]}

    def save(self, path: Path | str) -> None:
        """Write it to a JSON file."""
        write_json(path, self.to_dict())


def explain_failures(
    policy: PolicySource,
    logs: Logs,
    *,
    identified: Twin | Path | str | None = None,
    worlds: int = 512,
    seed: int = 0,
    threads: int = 0,
    report: Callable[[int, int], None] = lambda done, of: None,
) -> Explanation:
    """Say why attempts of a policy failed: in phases, by kind, with what reproduces them.

    The attempts say how they ended. They are compared with `worlds` simulated ones as in training,
    and as many over all values that the prior allows, or that were `identified`.
    """
    opened = open_policy(policy)
    failures = failures_of(
        opened.twin,
        opened.task,
        opened.policy,
        read_logs(logs),
        source=opened.source,
        remainder=opened.remainder,
        identified=None if identified is None else open_twin(identified),
        worlds=worlds,
        seed=seed,
        threads=threads,
        report=report,
    )
    return Explanation(failures=failures, advice=tuple(advise(opened.twin, failures=failures)))
