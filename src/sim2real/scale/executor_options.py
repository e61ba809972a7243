"""Options that verbs share whose work can be done elsewhere."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ExecutorOptions:
    """Where independent parts of the work are done, and kept."""

    executor: str = ""
    """Where parts of the work are done: `local` in processes, `ray` on a cluster of this machine,
    `ray:HOST:PORT` on that one; by default in this process."""
    workers: int = 0
    """Parts at once; 0 for as many as there are cores."""
    store: str = ""
    """Folder or `s3://` prefix where parts are kept, so that a killed run goes on; all machines of
    a cluster must see it."""
