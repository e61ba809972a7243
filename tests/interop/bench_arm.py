"""A robot of LeRobot's own base class, as another package would bring one: two joints."""

from dataclasses import dataclass
from functools import cached_property

from lerobot.robots import Robot, RobotConfig


@RobotConfig.register_subclass("bench_arm")
@dataclass
class BenchArmConfig(RobotConfig):
    """Its settings."""

    most: float = 90.0


class BenchArm(Robot):
    """Goes where it is told at once, but not farther than `most`."""

    config_class = BenchArmConfig
    name = "bench_arm"

    def __init__(self, config: BenchArmConfig):
        super().__init__(config)
        self.config = config
        self._connected = False
        self._places = {"lift.pos": 10.0, "turn.pos": 0.0}

    @cached_property
    def observation_features(self):
        return dict.fromkeys(self._places, float) | {"front": (2, 2, 3)}

    @cached_property
    def action_features(self):
        return dict.fromkeys(self._places, float)

    @property
    def is_connected(self):
        return self._connected

    @property
    def is_calibrated(self):
        return True

    def connect(self, calibrate=True):
        self._connected = True

    def calibrate(self):
        raise AssertionError("nobody asked for this")

    def configure(self):
        pass

    def get_observation(self):
        return dict(self._places) | {"front": None}

    def send_action(self, action):
        most = self.config.most
        self._places = {key: min(max(value, -most), most) for key, value in action.items()}
        return dict(self._places)

    def disconnect(self):
        self._connected = False
