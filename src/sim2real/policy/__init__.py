"""A policy as deployed: the bundle that a robot runs, with the contract it must keep.

A `Bundle` is a folder: graphs, contract, limits, twin and provenance, with a hash of each file and
without pickle. `Runtime` computes its graphs, and a `Pilot` drives one robot with them. `open_twin`
takes a twin wherever it is kept, in a folder of its own or in a bundle.

>>> from sim2real.policy import make_contract
>>> from sim2real.tasks import TaskEnv, find_task
>>> contract = make_contract(TaskEnv(find_task("pendulum-swingup"), worlds=1, threads=1))
>>> [(command.name, command.unit) for command in contract.commands]
[('hinge', 'N m')]
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "Bundle",
    "ExportProvenance",
    "Pilot",
    "PolicyEpisodes",
    "Runtime",
    "make_contract",
    "open_twin",
    "write_bundle",
]

if TYPE_CHECKING:
    from sim2real.policy.bundle import (
        Bundle,
        ExportProvenance,
        PolicyEpisodes,
        open_twin,
        write_bundle,
    )
    from sim2real.policy.runtime import Pilot, Runtime
    from sim2real.policy.task_contract import make_contract
else:
    __getattr__, __dir__ = attach(__name__, __file__)
