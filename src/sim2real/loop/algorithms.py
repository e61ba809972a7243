"""The algorithms that make the results of steps, each with a version.

The version is part of the key of every step that the algorithm makes, so a raised version makes
these steps again, and a release that raises none keeps them all. Raise it whenever the same inputs
may give another result. `algorithms.toml` holds a hash of every module named here; a test fails
where one has changed and the versions have not, until `python -m benchmarks algorithms` has
recorded which of the two it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim2real.errors import Sim2RealError, nearest


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """Code that decides what a step finds."""

    name: str
    version: int = 1
    modules: tuple[str, ...] = ()
    """Modules it consists of, as patterns of paths in the package; what they import from their
    own room belongs to it too. Modules of the loop are taken alone: they import its bookkeeping."""
    uses: tuple[str, ...] = ()
    """Other algorithms that it builds on."""


ALGORITHMS = (
    Algorithm(
        name="simulation",
        modules=("params/*", "randomize/*", "twin/*", "worlds/*", "tasks/env"),
    ),
    Algorithm(
        name="replay",
        modules=("logs/*", "replay/*", "data/resampling"),
        uses=("simulation",),
    ),
    Algorithm(
        name="training",
        modules=("learn/trainer", "loop/stages/policy"),
        uses=("simulation",),
    ),
    Algorithm(name="widening", modules=("loop/strategies",)),
    Algorithm(
        name="evaluation",
        modules=("evaluation/policy_success", "learn/policy", "loop/stages/policy"),
        uses=("simulation",),
    ),
    Algorithm(
        name="prediction",
        version=2,
        modules=(
            "evaluation/simulated_trials", "learn/policy", "policy/runtime", "loop/packet_loss",
            "loop/stages/policy",
        ),
        uses=("simulation",),
    ),
    Algorithm(
        name="export",
        version=2,
        modules=("learn/bundle_export", "policy/*", "contract/*", "loop/stages/policy"),
        uses=("simulation",),
    ),
    Algorithm(
        name="recording",
        version=2,
        modules=("robot/excite/recordings", "contract/*", "loop/stages/robot"),
        uses=("simulation",),
    ),
    Algorithm(
        name="ladder",
        version=2,
        modules=("robot/ladder_step", "policy/runtime", "contract/*", "loop/stages/robot"),
    ),
    Algorithm(
        name="trials",
        version=2,
        modules=("robot/deployment_session", "policy/runtime", "contract/*", "loop/stages/robot"),
    ),
    Algorithm(
        name="identification",
        modules=("identification/identified_twin", "loop/stages/twin"),
        uses=("replay",),
    ),
    Algorithm(
        name="attribution",
        modules=(
            "attribution/gap_attribution", "evaluation/simulated_trials", "loop/stages/explanation",
        ),
        uses=("identification",),
    ),
    Algorithm(
        name="failures",
        modules=(
            "attribution/explanation", "evaluation/simulated_trials", "loop/stages/explanation",
        ),
        uses=("identification",),
    ),
    Algorithm(
        name="evidence",
        modules=(
            "identification/evidence", "gap/drawn_ranges", "tasks/camera", "loop/stages/evidence",
        ),
        uses=("replay",),
    ),
    Algorithm(name="stand-in", modules=("reality/*",)),
)  # fmt: skip
"""All of them. What a task's own module says is an input of the training, not an algorithm."""


def versions_of(*names: str) -> dict[str, int]:
    """Version of each of some algorithms, and of all that these build on, by name."""
    known = {algorithm.name: algorithm for algorithm in ALGORITHMS}
    found: dict[str, int] = {}
    for name in names:
        if name not in known:
            raise Sim2RealError(f"there is no algorithm {name!r}{nearest(name, known)}")
        found |= {name: known[name].version} | versions_of(*known[name].uses)
    return found
