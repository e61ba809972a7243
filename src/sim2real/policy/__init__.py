"""What a policy is, and the policies that are: bundles, ONNX graphs, Python objects.

A `Policy` takes features and returns an action, or a chunk of them. `DrivenWorlds` lets it act in
many worlds, and a `Pilot` drives one robot with it. A `Bundle` is a policy as deployed: a folder of
graphs, contract, limits, twin and provenance, with a hash of each file and without pickle.
`open_twin` takes a twin wherever it is kept, in a folder of its own or in a bundle.

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
    "BundlePolicy",
    "DrivenWorlds",
    "ExportProvenance",
    "Features",
    "FunctionPolicy",
    "ObjectPolicy",
    "OnnxPolicy",
    "Pilot",
    "Policy",
    "PolicyAbilities",
    "PolicyEpisodes",
    "PolicyObject",
    "PolicyRuntime",
    "Runtime",
    "TaskRuntime",
    "WrittenContract",
    "acted",
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
    from sim2real.policy.bundle_policy import BundlePolicy, FunctionPolicy
    from sim2real.policy.driven_worlds import DrivenWorlds
    from sim2real.policy.object_policy import ObjectPolicy, PolicyObject
    from sim2real.policy.observed import TaskRuntime
    from sim2real.policy.onnx_policy import OnnxPolicy
    from sim2real.policy.protocol import (
        Features,
        Policy,
        PolicyAbilities,
        PolicyRuntime,
        acted,
    )
    from sim2real.policy.runtime import Pilot, Runtime
    from sim2real.policy.task_contract import make_contract
    from sim2real.policy.written_contract import WrittenContract
else:
    __getattr__, __dir__ = attach(__name__, __file__)
