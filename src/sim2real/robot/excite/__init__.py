"""Motions that excite a robot's parameters: their shapes, plans inside the limits, recordings."""
