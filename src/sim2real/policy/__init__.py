"""What leaves the trainer: a bundle that a robot runs, with the contract it must keep.

`export` makes a `Bundle` of a training run: graphs, contract, limits, twin and provenance in one
folder, with a hash of each file and without pickle. `Runtime` computes its graphs, and a `Pilot`
drives one robot with them. A robot without a policy has a contract too: `twin_contract`.

>>> from sim2real.policy import twin_contract
>>> from sim2real.tasks import find_task
>>> from sim2real.twin import Twin
>>> contract = twin_contract(Twin.load(find_task("pendulum-swingup").twin), rate_hz=50)
>>> [(command.name, command.unit) for command in contract.commands]
[('hinge', 'N m')]
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "Bundle",
    "ExportConfig",
    "Pilot",
    "Runtime",
    "export",
    "make_contract",
    "model_limits",
    "open_twin",
    "twin_contract",
]

if TYPE_CHECKING:
    from sim2real.policy.bundle import Bundle, open_twin
    from sim2real.policy.bundle_export import export
    from sim2real.policy.config import ExportConfig
    from sim2real.policy.runtime import Pilot, Runtime
    from sim2real.policy.task_contract import make_contract, model_limits, twin_contract
else:
    __getattr__, __dir__ = attach(
        __name__,
        {
            "Bundle": "bundle",
            "open_twin": "bundle",
            "export": "bundle_export",
            "ExportConfig": "config",
            "Pilot": "runtime",
            "Runtime": "runtime",
            "make_contract": "task_contract",
            "model_limits": "task_contract",
            "twin_contract": "task_contract",
        },
    )
