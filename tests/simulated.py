"""Episodes of the example bundles, flown in their twins at chosen parameters."""

import json
import tempfile
from pathlib import Path

import numpy as np

from sim2real.evaluation.simulated_trials import run_trials
from sim2real.policy import Bundle, BundlePolicy
from sim2real.tasks import find_task
from sim2real.twin import Twin
from tests.repository import BUNDLES


def bundle_and_twin(task):
    bundle = Bundle.open(BUNDLES / task)
    return bundle, Twin.load(bundle.twin, check=False)


def policy_of(bundle):
    """The bundle's policy, for worlds."""
    return BundlePolicy(bundle)


def simulate(bundle, twin, *, count, seed=0, **values):
    """Episodes of the policy at the nominal parameters, but for those given."""
    episodes = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "values.json"
        file.write_text(json.dumps(values.pop("values", {}) | values))
        run_trials(
            find_task(bundle.contract.task),
            policy_of(bundle),
            episodes=count,
            seed=seed,
            source=str(file),
            twin=twin,
            keep=episodes.extend,
            policy_id=bundle.id[:32],
        )
    return episodes


def rows(twin, name, values):
    """Nominal parameter vectors with one parameter at each of `values`."""
    found = np.array([[p.nominal for p in twin.parameters]] * len(values))
    found[:, [p.name for p in twin.parameters].index(name)] = values
    return found
