"""A recorded log replayed in a twin: what the twin predicts, against what happened.

Segments are cut from a log with their measured starting states, the recorded commands are applied
to many worlds at once, and finite differences give the sensitivity to the twin's parameters.

>>> from sim2real.replay import open_parameters
>>> from sim2real.tasks import find_task
>>> from sim2real.twin import Twin
>>> twin = Twin.load(find_task("pendulum-swingup").twin)
>>> [parameter.name for parameter in open_parameters(twin)][:2]
['body/pole/mass', 'body/pole/ipos[2]']
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "GAP",
    "LeastSquares",
    "MeasuredStates",
    "Replay",
    "ReplayedNumber",
    "ReplayedNumbers",
    "Replayer",
    "Segments",
    "Sensitivity",
    "Unknowns",
    "around",
    "at_bounds",
    "chosen_parameters",
    "clusters_of",
    "lead_periods",
    "log_of",
    "moves_randomly",
    "open_parameters",
    "places_of",
    "replayed_numbers",
    "seconds_of",
    "sensitivity",
    "simulated_logs",
    "spread_evenly",
]

if TYPE_CHECKING:
    from sim2real.replay.least_squares import LeastSquares
    from sim2real.replay.linearization import Sensitivity, sensitivity
    from sim2real.replay.measured_states import MeasuredStates
    from sim2real.replay.randomness import moves_randomly
    from sim2real.replay.replayed_number import (
        ReplayedNumber,
        ReplayedNumbers,
        replayed_numbers,
    )
    from sim2real.replay.replayer import Replay, Replayer, lead_periods, places_of
    from sim2real.replay.segments import (
        GAP,
        Segments,
        clusters_of,
        log_of,
        seconds_of,
        spread_evenly,
    )
    from sim2real.replay.simulation import simulated_logs
    from sim2real.replay.unknowns import (
        Unknowns,
        around,
        at_bounds,
        chosen_parameters,
        open_parameters,
    )
else:
    __getattr__, __dir__ = attach(__name__, __file__)
