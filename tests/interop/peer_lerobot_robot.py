"""What runs with LeRobot and this package in one process; prints JSON.

python peer_lerobot_robot.py SITE_PACKAGES_OF_LEROBOT {drive|so101|build} FILE.toml
"""

import json
import sys
import types
from pathlib import Path

import torchvision

from sim2real.errors import Sim2RealError
from sim2real.robot import Robot
from sim2real.robot.lerobot_file import from_config, read_file

sys.path.append(sys.argv[1])

# LeRobot imports these for pictures; driving a robot calls nothing of them.
for _name in ("transforms", "transforms.functional", "transforms.v2", "transforms.v2.functional"):
    sys.modules[f"torchvision.{_name}"] = types.ModuleType(f"torchvision.{_name}")
torchvision.transforms.functional = sys.modules["torchvision.transforms.functional"]


def drive(path: Path) -> dict[str, object]:
    robot = from_config(path)
    assert isinstance(robot, Robot) and not robot.is_connected
    robot.connect()
    first = dict(robot.get_observation())
    sent = dict(robot.send_action({"lift": 0.5, "turn": 9.0}))
    second = dict(robot.get_observation())
    robot.stop()
    robot.disconnect()
    told = {"name": robot.name, "serial": robot.serial, "connected": robot.is_connected}
    return {"first": first, "sent": sent, "second": second, **told}


def so101(path: Path) -> dict[str, object]:
    """What LeRobot's own class for the arm says of its numbers, through our names for them."""
    from lerobot.motors import MotorCalibration

    robot = from_config(path)
    follower = robot._robot
    names = read_file(path).names
    bus = follower.bus
    bus.calibration = {
        motor: MotorCalibration(
            id=entry.id, drive_mode=0, homing_offset=0, range_min=1000, range_max=3000
        )
        for motor, entry in bus.motors.items()
    }
    found = {}
    for ticks in (1000, 2000, 3000):
        read = bus._normalize({entry.id: ticks for entry in bus.motors.values()})
        found[ticks] = {
            motor: names.sensors[f"{motor}_pos"].to_si(read[entry.id])
            for motor, entry in bus.motors.items()
        }
        back = bus._unnormalize(
            {
                entry.id: names.commands[motor].from_si(found[ticks][motor])
                for motor, entry in bus.motors.items()
            }
        )
        assert max(abs(value - ticks) for value in back.values()) <= 1, back
    return {
        "keys": sorted(follower.action_features),
        "units": {motor: entry.norm_mode.value for motor, entry in bus.motors.items()},
        "stiff after": not follower.config.disable_torque_on_disconnect,
        "si": found,
    }


def build(path: Path) -> dict[str, object]:
    try:
        from_config(path)
    except Sim2RealError as error:
        return {"error": str(error)}
    return {"error": ""}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(globals()[sys.argv[2]](Path(sys.argv[3]))))
