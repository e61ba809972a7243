"""Short names for the arrays that rooms hand each other.

They say what is in an array; its shape stands in the docstring of whoever takes or gives it, as
`(segments, periods, numbers)`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
"""Counts, and indices into other arrays."""
Bools = NDArray[np.bool_]
Reals = NDArray[np.floating]
"""Numbers of either precision: a network's are single, a solver's are double."""
Singles = NDArray[np.float32]
"""Numbers as a network takes and gives them."""
Pixels = NDArray[np.uint8]
"""(height, width, 3) RGB image."""
Array = NDArray[np.generic]
"""Numbers or booleans of any type, as a file has them."""
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Header and rows of a table of text, as a terminal and a page show it."""
