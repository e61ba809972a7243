"""Motions that tell a robot's parameters: their shapes, a plan inside the limits, its recording."""
