"""Parameters for episodes, from ranges, priors or posteriors, and events that disturb them."""

from sim2real.randomize.adr import AutomaticRanges
from sim2real.randomize.events import Events
from sim2real.randomize.sampler import (
    SOURCES,
    FromPosterior,
    Independent,
    Sampler,
    drawn,
    make_sampler,
)

__all__ = [
    "SOURCES",
    "AutomaticRanges",
    "Events",
    "FromPosterior",
    "Independent",
    "Sampler",
    "drawn",
    "make_sampler",
]
