"""The stages of the loop, each a step whose result is stored: see `steps`.

Paths in results are relative to the step's folder.
"""

from sim2real.loop.stages.evidence import EvidenceStages
from sim2real.loop.stages.explanation import ExplanationStages
from sim2real.loop.stages.policy import PolicyStages
from sim2real.loop.stages.robot import RobotStages
from sim2real.loop.stages.twin import TwinStages


class Stages(PolicyStages, RobotStages, TwinStages, ExplanationStages, EvidenceStages):
    """Makes the steps of a loop for one task and one robot."""
