"""An arm that is always at 100 degrees, so that a hold cannot be taken for a command."""

import os
import sys
import time


class RobotConfig:
    @staticmethod
    def get_known_choices():
        return {"logged_arm": RobotConfig}


class Bus:
    def __init__(self, arm):
        self._arm = arm

    def disable_torque(self):
        self._arm.note("limp")

    def enable_torque(self):
        self._arm.note("stiff")


class LoggedArm:
    name = "logged_arm"
    is_calibrated = True

    def __init__(self, config):
        self.config, self.id = config, config.id
        self.observation_features = self.action_features = {"a.pos": float, "b.pos": float}
        self.is_connected, self._holds, self._sends = False, 0, 0
        self.bus = Bus(self)
        if getattr(config, "exits", False):
            raise SystemExit("this driver ends programs")

    def note(self, what):
        line = f"{time.monotonic()} {what}\n".encode()
        file = os.open(self.config.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, line)
        os.close(file)

    def connect(self, calibrate=True):
        if getattr(self.config, "port", "") == "missing":
            raise OSError(2, "could not open port /dev/ttyACM0: [Errno 2] No such file")
        sys.stdout.write("a driver that prints\n")
        self.is_connected = True
        self.note("connect")

    def get_observation(self):
        time.sleep(getattr(self.config, "read_s", 0.0))
        return {"a.pos": 100.0, "b.pos": 100.0}

    def send_action(self, action):
        held = action["a.pos"] == 100.0
        self._holds += held
        self._sends += not held
        if held and self._holds <= getattr(self.config, "lost_holds", 0):
            self.note("lost")
            raise ConnectionError("no status packet")
        self.note("hold" if held else f"command {action['a.pos']:.6f}")
        if self._sends == getattr(self.config, "hangs_at", -1):
            time.sleep(0.5)
        return action

    def disconnect(self):
        self.note("disconnect")
        self.is_connected = False
