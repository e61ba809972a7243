"""Stand-in hardware: a robot that hides what it is made of. It runs as a process of its own.

Nothing else in the package imports this room; it is reached over a socket, like hardware.
"""
