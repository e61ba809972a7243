"""What a gap is made of: shares of the error and of the lost success, by dimension."""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "Advice",
    "AttributeConfig",
    "Attribution",
    "Explanation",
    "Failures",
    "FailuresConfig",
    "GapAttribution",
    "Share",
    "advise",
    "attribute",
    "dimensions_of",
    "explain_failures",
]

if TYPE_CHECKING:
    from sim2real.attribution.advice import Advice, advise
    from sim2real.attribution.attribute_config import AttributeConfig, FailuresConfig
    from sim2real.attribution.attribution import Attribution, Share, dimensions_of
    from sim2real.attribution.explanation import Explanation, explain_failures
    from sim2real.attribution.failures import Failures
    from sim2real.attribution.gap_attribution import GapAttribution, attribute
else:
    __getattr__, __dir__ = attach(__name__, __file__)
