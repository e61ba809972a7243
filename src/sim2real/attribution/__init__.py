"""What a gap is made of: shares of the prediction error and of the lost success, by dimension.

`attribute` gives the shares with intervals, `explain_failures` says why trials failed, and `advise`
what to do next.

>>> from sim2real.attribution import dimensions_of
>>> from sim2real.tasks import find_task
>>> from sim2real.twin import Twin
>>> twin = Twin.load(find_task("pendulum-swingup").twin)
>>> dimensions_of(twin, [parameter.name for parameter in twin.parameters]).names
('dynamics', 'actuation', 'latency', 'sensing', 'environment')
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "Advice",
    "AttributeConfig",
    "Attribution",
    "Explanation",
    "FailureThresholds",
    "Failures",
    "FailuresConfig",
    "GapAttribution",
    "PartOfGap",
    "Share",
    "advise",
    "attribute",
    "dimensions_of",
    "explain_failures",
]

if TYPE_CHECKING:
    from sim2real.attribution.advice import Advice, advise
    from sim2real.attribution.attribute_config import AttributeConfig, FailuresConfig
    from sim2real.attribution.attribution import (
        Attribution,
        GapAttribution,
        PartOfGap,
        Share,
        dimensions_of,
    )
    from sim2real.attribution.explanation import explain_failures
    from sim2real.attribution.failures import Explanation, Failures
    from sim2real.attribution.gap_attribution import attribute
    from sim2real.attribution.thresholds import FailureThresholds
else:
    __getattr__, __dir__ = attach(__name__, __file__)
