"""The best poses of essential matrices where there are none, or no rows; test_kernels compares others with their twins."""

import numpy as np

from ruzhash_cv.core.families.epipolar import as_essential
from ruzhash_cv.core.families.poses import placed


def test_without_matrices_or_rows_there_are_poses_of_none() -> None:
    rng = np.random.default_rng(0)
    data, weights, squared, essentials = rng.normal(size=(5, 10)), np.ones(5), np.ones((8, 5)), rng.normal(size=(8, 9))
    assert len(placed(essentials[:0], data, weights, squared[:0], 1.0)[0]) == 0
    rotations, _, in_front = placed(as_essential(essentials), data[:0], weights[:0], squared[:, :0], 1.0)
    np.testing.assert_allclose(np.linalg.det(rotations), 1.0)
    assert in_front.shape == (8, 0)
