"""sim2real measures the gap between a simulated robot and the real one, and closes it."""

import os

__version__ = "0.1.0"

# Before anybody loads PyTorch: its threads would spin while they wait for one another, and where
# anything else runs on the same cores, a call of microseconds then takes milliseconds.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
