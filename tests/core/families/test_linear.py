"""What all families of two views share; test_bad_arguments has the shapes that they refuse."""

import numpy as np

from ruzhash_cv.core.families.linear import unit_norm


def test_a_zero_matrix_has_no_unit_norm() -> None:
    models = unit_norm(np.array([[0.0] * 9, [2.0] * 9]))
    assert np.isnan(models[0]).all()
    np.testing.assert_allclose(models[1], 1 / 3)
