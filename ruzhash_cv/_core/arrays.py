"""Arrays by what they hold."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
