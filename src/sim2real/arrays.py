"""Types of NumPy arrays, by what they hold; shapes are said where an array is described."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Array = NDArray[np.generic]
