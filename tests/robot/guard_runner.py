"""Drives a robot at 100 Hz until it is killed; re-arms one that stopped itself."""

import math
import os
import sys
import time

from sim2real.errors import Sim2RealError
from sim2real.robot import open_robot

sys.path[:0] = [sys.argv[2]]
robot = open_robot(sys.argv[1])
robot.connect()
robot.enable()
if os.fork() == 0:  # what it starts may live longer, and holds open what it had
    sys.stdout.close()
    time.sleep(2.0)
    os._exit(0)
sys.stdout.write(f"{robot.process.pid}\n")
sys.stdout.flush()
while True:
    try:
        robot.get_observation()
        robot.send_action({"a": 0.2 * math.sin(time.monotonic()), "b": 0.0})
    except Sim2RealError:
        robot.enable()
    time.sleep(0.01)
