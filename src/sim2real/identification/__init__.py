"""From recordings to a twin's next version, with a posterior that says what it does not know.

`identify` fits the parameters, checks the fit on held-back recordings, and keeps the new twin only
if it predicts them no worse than the old one. `learn_remainder` covers what no parameter explains.

>>> from sim2real.replay import LeastSquares
>>> from sim2real.tasks import find_task
>>> from sim2real.testing import recordings, truths_of
>>> from sim2real.twin import Twin
>>> twin = Twin.load(find_task("pendulum-swingup").twin)
>>> logs = recordings(twin, truths_of(twin, 1, seed=0), seconds=2.0, rate_hz=50.0)
>>> problem = LeastSquares(twin, logs, horizon_s=0.5)
>>> problem.segments, len(problem.names)
(3, 8)
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "CrossValidateConfig",
    "CrossValidation",
    "HeldBackCheck",
    "Identifiability",
    "Identification",
    "IdentifiedParameter",
    "IdentifyConfig",
    "IdentifyThresholds",
    "before_and_after",
    "costs_of",
    "cross_validate",
    "identify",
    "learn_remainder",
    "scattered",
    "seen_states",
    "tells_state",
    "tempered",
    "weight",
]

if TYPE_CHECKING:
    from sim2real.identification.cross_validation import CrossValidation, cross_validate
    from sim2real.identification.evidence import before_and_after
    from sim2real.identification.identifiability import Identifiability
    from sim2real.identification.identification import (
        HeldBackCheck,
        Identification,
        IdentifiedParameter,
    )
    from sim2real.identification.identified_twin import identify
    from sim2real.identification.identify_config import CrossValidateConfig, IdentifyConfig
    from sim2real.identification.learned_remainder import learn_remainder
    from sim2real.identification.most_probable import costs_of
    from sim2real.identification.parameter_scatter import scattered
    from sim2real.identification.recorded_starts import seen_states, tells_state
    from sim2real.identification.robust_loss import tempered, weight
    from sim2real.identification.thresholds import IdentifyThresholds
else:
    __getattr__, __dir__ = attach(__name__, __file__)
