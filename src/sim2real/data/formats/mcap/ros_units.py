"""Units that the definitions of ROS messages prescribe, in SI.

A joint state does not say whether a joint turns or slides; nearly all turn, so it is taken to.
"""

from __future__ import annotations

from sim2real.units import ACCELERATION, EFFORT, POSITION, VELOCITY

_POINT = {"position": POSITION.sliding}
_TWIST = {"linear": VELOCITY.sliding, "angular": VELOCITY.turning}
_WRENCH = {"force": EFFORT.sliding, "torque": EFFORT.turning}
_ACCEL = {"linear": ACCELERATION.sliding, "angular": ACCELERATION.turning}
_JOINT = {
    "position": POSITION.turning,
    "velocity": VELOCITY.turning,
    "effort": EFFORT.turning,
}


def _inside(field: str, units: dict[str, str]) -> dict[str, str]:
    return {f"{field}.{name}": unit for name, unit in units.items()}


_UNITS: dict[str, dict[str, str]] = {
    "sensor_msgs/JointState": _JOINT,
    "sensor_msgs/Imu": {
        "angular_velocity": VELOCITY.turning,
        "linear_acceleration": ACCELERATION.sliding,
    },
    "sensor_msgs/MagneticField": {"magnetic_field": "T"},
    "sensor_msgs/FluidPressure": {"fluid_pressure": "Pa"},
    "sensor_msgs/Illuminance": {"illuminance": "lx"},
    "sensor_msgs/Range": {"range": "m", "min_range": "m", "max_range": "m"},
    "sensor_msgs/BatteryState": {"voltage": "V", "current": "A"},
    "geometry_msgs/Twist": _TWIST,
    "geometry_msgs/TwistStamped": _inside("twist", _TWIST),
    "geometry_msgs/Wrench": _WRENCH,
    "geometry_msgs/WrenchStamped": _inside("wrench", _WRENCH),
    "geometry_msgs/Accel": _ACCEL,
    "geometry_msgs/AccelStamped": _inside("accel", _ACCEL),
    "geometry_msgs/Point": {"x": "m", "y": "m", "z": "m"},
    "geometry_msgs/PointStamped": {"point": "m"},
    "geometry_msgs/Pose": _POINT,
    "geometry_msgs/PoseStamped": _inside("pose", _POINT),
    "geometry_msgs/Transform": {"translation": "m"},
    "geometry_msgs/TransformStamped": {"transform.translation": "m"},
    "nav_msgs/Odometry": {**_inside("pose.pose", _POINT), **_inside("twist.twist", _TWIST)},
}


def units_of(message_type: str) -> dict[str, str]:
    """Unit of each field, and of its parts, in a message type such as 'sensor_msgs/Imu'."""
    return _UNITS.get(message_type, {})
