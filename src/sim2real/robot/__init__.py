"""Driving hardware: robots behind one protocol, the supervisor, the ladder of trust, drift.

`deploy` takes a bundle one step up the ladder on a robot, `record_motions` excites a robot for
identification, and `DriftMonitor` notices when a deployed robot moves away from its twin. Nothing
moves without `execute`; a `Supervisor` always stands between a policy and its robot.

>>> from sim2real.robot import ExcitedRobot, prepare_motion
>>> from sim2real.tasks import find_task
>>> robot = ExcitedRobot.open(find_task("pendulum-swingup").twin, rate_hz=50)
>>> plan = prepare_motion(robot, "steps", seconds=2).plan
>>> plan.motion, plan.commands.shape
('steps', (151, 1))
"""

from typing import TYPE_CHECKING

from sim2real.lazy import attach

__all__ = [
    "DeployConfig",
    "Deployment",
    "DriftConfig",
    "DriftReport",
    "DriftThresholds",
    "ExcitationPlan",
    "ExcitedRobot",
    "OperatorPrompts",
    "PassedOnRobot",
    "PreparedMotion",
    "RecordConfig",
    "RecordedMotions",
    "Recording",
    "Robot",
    "RobotAbilities",
    "StandIn",
    "Supervisor",
    "deploy",
    "fly",
    "open_robot",
    "prepare_motion",
    "record_motions",
    "record_series",
    "robot_scheme",
    "watch_drift",
]

if TYPE_CHECKING:
    from sim2real.robot.abilities import RobotAbilities
    from sim2real.robot.connect import open_robot, robot_scheme
    from sim2real.robot.deploy_config import DeployConfig
    from sim2real.robot.deployment import Deployment, OperatorPrompts
    from sim2real.robot.drift.drift_config import DriftConfig
    from sim2real.robot.drift.drift_report import DriftReport
    from sim2real.robot.drift.monitor import watch_drift
    from sim2real.robot.drift.thresholds import DriftThresholds
    from sim2real.robot.excite.plan import ExcitationPlan
    from sim2real.robot.excite.record import ExcitedRobot, PreparedMotion, prepare_motion
    from sim2real.robot.excite.record_config import RecordConfig
    from sim2real.robot.excite.recordings import RecordedMotions, record_motions, record_series
    from sim2real.robot.ladder_step import deploy
    from sim2real.robot.passed_on import PassedOnRobot
    from sim2real.robot.protocol import Robot
    from sim2real.robot.recording import Recording
    from sim2real.robot.runner import fly
    from sim2real.robot.standin import StandIn
    from sim2real.robot.supervisor import Supervisor
else:
    __getattr__, __dir__ = attach(__name__, __file__)
