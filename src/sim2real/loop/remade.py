"""Why a step is made again, although a result of the same work is kept: what has changed since.

A store may hold results of many steps of a kind. The one that a new step takes the place of is the
one with the fewest differences, among those that nothing else in the loop uses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sim2real.errors import Sim2RealError
from sim2real.files import read_json
from sim2real.plain import of_plain, plain

if TYPE_CHECKING:
    from sim2real.loop.steps import KeptStep

RESULT_FILE = "result.json"
_WORK = ("task", "robot.address", "seed", "source", "from", "first", "remainder")
"""Inputs that say which work a step is: another value is another work, not a change of it."""
_CALLED = {
    "train": "policy", "widen": "ranges", "identify": "twin", "remainder": "twin",
    "scatter": "twin", "record": "recordings", "export": "bundle", "seen": "states to start from",
    "trials": "trials", "ladder": "way up the ladder", "code": "task's code", "twin": "task's twin",
    "robot.behind": "robot", "rate_hz": "control rate",
}  # fmt: skip
"""What a person calls an input, or the result of a kind of step."""


@dataclass(frozen=True, kw_only=True)
class StoredStep:
    """A step whose result is kept, as its file describes it."""

    name: str
    inputs: Mapping[str, object]
    needs: tuple[str, ...]
    """Names of the steps it needed."""
    algorithms: Mapping[str, int] = field(default_factory=dict)
    """Versions it was made with; empty for results of versions before 0.2.0."""

    def changes(self, step: KeptStep) -> list[str]:
        """What has changed from this to a step: algorithms first, then inputs, then needs."""
        found = []
        for name, version in step.algorithms.items():
            old = self.algorithms.get(name)
            if old != version:
                before = "names none" if old is None else f"is of version {old}"
                found.append(f"its algorithm {name} is version {version}, the kept result {before}")
        now, then = _flat(plain(dict(step.inputs))), _flat(self.inputs)
        for name in sorted(now.keys() | then.keys()):
            if now.get(name) != then.get(name):
                found.append(f"its {_CALLED.get(name, name.replace('_', ' '))} changed")
        if len(step.needs) != len(self.needs):
            return [*found, "it is made from more steps, or from fewer"]
        for need, old_need in zip(step.needs, self.needs, strict=True):
            if need.name != old_need:
                found.append(f"its {_CALLED.get(need.kind, need.kind)} changed")
        return found

    def strangers(self, step: KeptStep, replaced: Mapping[str, str]) -> int:
        """Steps that a step needs and that are not made in the place of one that this needed.

        `replaced` says which kept step each new one takes the place of.
        """
        mine = {replaced.get(need.name, need.name) for need in step.needs}
        return len(mine - set(self.needs))

    def same_work(self, step: KeptStep) -> bool:
        """Whether it did what the step does, though perhaps in another way."""
        now, then = _flat(plain(dict(step.inputs))), _flat(self.inputs)
        return all(now.get(name) == then.get(name) for name in _WORK)


def stored_steps(folder: Path, kind: str) -> Iterator[StoredStep]:
    """Steps of a kind that a store's folder holds; damaged files are left out."""
    for path in sorted(folder.glob(f"{kind}-*/{RESULT_FILE}")):
        try:
            content = read_json(path)
            if not isinstance(content, dict) or content.get("kind") != kind:
                continue
            parts = {
                name: content[name] for name in ("inputs", "needs", "algorithms") if name in content
            }
            yield of_plain(StoredStep, {"name": path.parent.name, **parts}, str(path))
        except Sim2RealError:
            continue


def closest(
    step: KeptStep, stored: Iterator[StoredStep], used: Collection[str], replaced: Mapping[str, str]
) -> tuple[StoredStep, str] | None:
    """The kept step that a step takes the place of, and the first thing that changed; or None."""
    found = [one for one in stored if one.name not in used and one.same_work(step)]
    if not found:
        return None
    one = min(found, key=lambda one: (one.strangers(step, replaced), len(one.changes(step))))
    return one, next(iter(one.changes(step)), "its key changed")


def _flat(inputs: Mapping[str, object]) -> dict[str, object]:
    """Inputs with those of inner tables as `outer.inner`."""
    found: dict[str, object] = {}
    for name, value in inputs.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{inner}": part for inner, part in value.items()}
        else:
            found[name] = value
    return found
