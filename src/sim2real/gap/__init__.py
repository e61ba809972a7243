"""The gap between a simulated robot and the real one: measured, and its causes named."""
