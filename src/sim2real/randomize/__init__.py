"""Parameters for episodes, from ranges, priors or posteriors, and events that disturb them.

A `Sampler` gives each episode of each world its values, `AutomaticRanges` widen as a policy copes,
and `Events` push the robot and blow at it. A word or a file says where values come from: `nominal`,
`prior`, `posterior`, `adr`, or a TOML or JSON file of ranges.

>>> from sim2real.randomize import drawn
>>> from sim2real.tasks import find_task
>>> from sim2real.twin import Twin
>>> values = drawn(Twin.load(find_task("pendulum-swingup").twin), "prior", count=4)
>>> values.shape
torch.Size([4, 11])
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = ["AutomaticRanges", "Events", "Sampler", "drawn", "make_sampler"]

if TYPE_CHECKING:
    from sim2real.randomize.adr import AutomaticRanges
    from sim2real.randomize.events import Events
    from sim2real.randomize.sampler import Sampler, drawn, make_sampler
else:
    __getattr__, __dir__ = attach(__name__, __file__)
