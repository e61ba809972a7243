"""Stand-in hardware: a robot with hidden parameters, in a process of its own.

Nothing else in the package imports this room; it is reached through a socket, like hardware.
"""
