"""Many shards, done side by side: what every executor promises, and how their results come in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from sim2real.errors import Sim2RealError
from sim2real.scale.shard import Shard
from sim2real.scale.shard_store import ShardResult, ShardStore
from sim2real.scale.worker import Order, Outcome

_NAMED = 3
"""Failures that an error names."""


@dataclass(frozen=True, kw_only=True)
class ShardFailure:
    """A shard that could not be done."""

    shard: Shard
    line: str
    """What was wrong, in a line."""
    trace: str = ""
    """Where an exception was raised that does not explain itself."""

    def __str__(self) -> str:
        return f"{self.shard.label}: {self.line}"


class FailedShardsError(Sim2RealError):
    """Some shards could not be done; all others are, and kept."""

    def __init__(self, failures: tuple[ShardFailure, ...], done: int) -> None:
        self.failures = failures
        named = "; ".join(map(str, failures[:_NAMED])) + "; …" * (len(failures) > _NAMED)
        many = "shard" if len(failures) == 1 else "shards"
        super().__init__(f"{len(failures)} {many} failed, {done} are done and kept: {named}")


@dataclass(frozen=True, kw_only=True)
class ShardEvent:
    """Something that happened to a shard, told when it happens."""

    kind: Literal["begun", "done", "kept", "retried", "failed"]
    shard: Shard
    ended: int
    """Shards that have ended so far: done, kept or failed."""
    where: str = ""
    """Machine and process, where that is known."""
    seconds: float | None = None
    """Time it took."""
    line: str = ""
    """What was wrong."""

    def __str__(self) -> str:
        parts = [self.shard.label, self.kind]
        parts += [f"at {self.where}"] if self.where and self.kind == "begun" else []
        parts += [f"in {self.seconds:.1f} s"] if self.seconds is not None else []
        return " ".join(parts) + (f": {self.line}" if self.line else "")


@dataclass(frozen=True, kw_only=True)
class News:
    """What an executor has heard of a shard that it was given."""

    key: str
    begun: str = ""
    """Where an attempt has begun."""
    died: str = ""
    """How the worker died that had it."""
    ended: Outcome | None = None
    """How an attempt ended."""


Report = Callable[[ShardEvent], None]


class Executor(ABC):
    """Does shards side by side; to be used in a `with` block, which ends its workers.

    A subclass knows how to begin a shard somewhere and how to hear of it; what is kept, retried
    and told is the same for all.
    """

    name: ClassVar[str]
    remote: bool = False
    """Whether workers may be on other machines, which see no folder of this one."""

    def __init__(self, *, retries: int = 3) -> None:
        """`retries` is how often a shard is begun again after its worker has died."""
        self.retries = retries

    def run(
        self,
        shards: Iterable[Shard],
        store: ShardStore,
        report: Report = lambda event: None,
        *,
        again: bool = False,
    ) -> Iterator[ShardResult]:
        """Do what is not in the store yet, and give every result as it comes, kept ones first met.

        Shards are taken from the iterable when there is room for them. One that raises an exception
        is a failure, one whose worker dies is begun again. The others go on; after the last result,
        failures are one `FailedShardsError`. What would fail every shard, as a full disk, ends the
        run with a `Sim2RealError`. With `again`, what is kept is done anew.
        """
        store.open()
        one = _Run(self, store, report, kept=set() if again else store.keys())
        try:
            yield from one.results(iter(shards))
        finally:
            self.drop()
        if one.failures:
            raise FailedShardsError(tuple(one.failures), one.ended - len(one.failures))

    @abstractmethod
    def room(self) -> int:
        """How many more shards may be begun now."""

    @abstractmethod
    def begin(self, order: Order) -> None:
        """Let a shard be done by some worker."""

    @abstractmethod
    def news(self) -> list[News]:
        """What has happened since; waits up to about a second until something has."""

    @abstractmethod
    def drop(self) -> None:
        """Give up shards that have begun and not ended."""

    @abstractmethod
    def close(self) -> None:
        """End all workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *why: object) -> None:
        self.close()


@dataclass
class _Run:
    """The state of one run."""

    executor: Executor
    store: ShardStore
    report: Report
    kept: set[str]
    ended: int = 0
    shared: bool = False
    """Whether what a worker has put into the store was seen there."""
    failures: list[ShardFailure] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    running: dict[str, Shard] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)

    def results(self, shards: Iterator[Shard]) -> Iterator[ShardResult]:
        """Every result, as it comes."""
        waiting: deque[Shard] = deque()
        more = True
        while more or waiting or self.running:
            while (more or waiting) and self.executor.room() > 0:
                shard = waiting.popleft() if waiting else next(shards, None)
                if shard is None:
                    more = False
                    break
                found = self._known(shard)
                if found is not None:
                    yield found
                elif shard.key not in self.running and shard.key not in self.seen:
                    self._begin(shard)
            if self.running:
                for news in self.executor.news():
                    yield from self._heard(news, waiting)

    def _known(self, shard: Shard) -> ShardResult | None:
        """The result of a shard that was done before this run."""
        if shard.key in self.seen or shard.key not in self.kept:
            return None
        found = self.store.get(shard.key)
        if found is None:  # damaged: it is done again
            return None
        self.seen.add(shard.key)
        self.ended += 1
        self._tell("kept", shard, where=found.where, seconds=found.seconds)
        return replace(found, kept=True)

    def _begin(self, shard: Shard) -> None:
        self.attempts[shard.key] = self.attempts.get(shard.key, 0) + 1
        self.running[shard.key] = shard
        self.executor.begin(Order.of(shard, self.store))

    def _heard(self, news: News, waiting: deque[Shard]) -> Iterator[ShardResult]:
        shard = self.running.get(news.key)
        if shard is None:
            return
        if news.begun:
            self._tell("begun", shard, where=news.begun)
            return
        del self.running[news.key]
        if news.died:
            self._died(shard, news.died, waiting)
            return
        outcome = news.ended or Outcome()
        if outcome.fatal:
            raise Sim2RealError(outcome.error)
        if outcome.error:
            self._failed(shard, outcome.error, outcome.trace)
            return
        yield self._collected(shard, outcome.done)

    def _collected(self, shard: Shard, told: ShardResult | None) -> ShardResult:
        """The result that a worker has put into the store; the first is looked up there."""
        found = told if self.shared else self.store.get(shard.key)
        found = found or self.store.get(shard.key)
        if found is None:
            raise Sim2RealError(
                f"{shard.label} is done, but {self.store.uri} does not have it: name a store that"
                " all machines see, a shared folder or s3://…"
            )
        self.shared = True
        self.seen.add(shard.key)
        self.ended += 1
        self._tell("done", shard, where=found.where, seconds=found.seconds)
        return found

    def _died(self, shard: Shard, how: str, waiting: deque[Shard]) -> None:
        if self.attempts[shard.key] > self.executor.retries:
            self._failed(shard, f"its worker died {self.attempts[shard.key]} times: {how}")
            return
        self._tell("retried", shard, line=how)
        waiting.append(shard)

    def _failed(self, shard: Shard, line: str, trace: str = "") -> None:
        self.seen.add(shard.key)
        self.ended += 1
        self.failures.append(ShardFailure(shard=shard, line=line, trace=trace))
        self._tell("failed", shard, line=line)

    def _tell(
        self,
        kind: Literal["begun", "done", "kept", "retried", "failed"],
        shard: Shard,
        *,
        where: str = "",
        seconds: float | None = None,
        line: str = "",
    ) -> None:
        self.report(
            ShardEvent(
                kind=kind, shard=shard, ended=self.ended, where=where, seconds=seconds, line=line
            )
        )
