"""MCAP recordings: JSON, Protobuf and ROS 2 messages."""
