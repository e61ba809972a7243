"""sim2real measures the gap between a simulated robot and the real one, and closes it.

    import sim2real as s2r

    print(s2r.measure_gap("twins/arm", "logs/").verdict)
    found = s2r.identify("twins/arm", "logs/")
    run = s2r.train("arm-reach", twin=found.twin, source="posterior")
    print(s2r.evaluate(run).success)
    print(*s2r.attribute("twins/arm", "logs/", identified=found.twin).parts)

Functions take values, or where they are kept, and give values that know `to_dict` and, where there
is something to keep, `save`. Each name is loaded when it is first used.
"""

import os
from typing import TYPE_CHECKING

from sim2real.lazy import attach

__version__ = "0.2.0"
__all__ = [
    "Bundle",
    "Deployment",
    "Diagnosis",
    "Episode",
    "Evaluation",
    "Gap",
    "GapAttribution",
    "Identification",
    "Lake",
    "LoopResult",
    "Sim2RealError",
    "Task",
    "TrainResult",
    "Twin",
    "attribute",
    "close_the_loop",
    "deploy",
    "diagnose",
    "evaluate",
    "export",
    "identify",
    "measure_gap",
    "open_twin",
    "open_worlds",
    "select",
    "train",
]

# Before anybody loads PyTorch: its threads would spin while they wait for one another, and where
# anything else runs on the same cores, a call of microseconds then takes milliseconds.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

if TYPE_CHECKING:
    from sim2real.attribution import GapAttribution, attribute
    from sim2real.data import Episode, Lake, select
    from sim2real.doctor import Diagnosis, diagnose
    from sim2real.errors import Sim2RealError
    from sim2real.evaluation import Evaluation, evaluate
    from sim2real.gap import Gap, measure_gap
    from sim2real.identification import Identification, identify
    from sim2real.learn import TrainResult, export, train
    from sim2real.loop import LoopResult, close_the_loop
    from sim2real.policy import Bundle, open_twin
    from sim2real.robot import Deployment, deploy
    from sim2real.tasks import Task
    from sim2real.twin import Twin
    from sim2real.worlds import open_worlds
else:
    __getattr__, __dir__ = attach(__name__, __file__)
