"""Short names for the arrays that rooms hand each other.

They say what is in an array; its shape stands in the docstring of whoever takes or gives it, as
`(segments, periods, numbers)`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
"""Counts, and places in other arrays."""
Bools = NDArray[np.bool_]
