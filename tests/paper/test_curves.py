"""What is special to lines and circles. `families/test_protocol.py` tests what all families have."""

from __future__ import annotations

import numpy as np

from ruzhash_cv.paper import Circles


def test_three_points_on_a_line_make_no_circle() -> None:
    samples = np.array([[[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
    models, owner = Circles().solve(samples)
    assert (len(models), owner.tolist()) == (1, [1])
