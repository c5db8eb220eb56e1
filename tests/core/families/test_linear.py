"""What all families of two views share."""

import numpy as np
import pytest

from ruzhash_cv.core.families.linear import unit_norm
from ruzhash_cv.models import FundamentalMatrices, Homographies


def test_a_zero_matrix_has_no_unit_norm() -> None:
    models = unit_norm(np.array([[0.0] * 9, [2.0] * 9]))
    assert np.isnan(models[0]).all()
    np.testing.assert_allclose(models[1], 1 / 3)


@pytest.mark.parametrize("width", [0, 1, 8, 18])
def test_models_of_another_width_are_refused_before_a_kernel_reads_them(width: int) -> None:
    data, models = np.random.default_rng(0).random((60, 4)), np.ones((40, width))
    for family in (Homographies(), FundamentalMatrices()):
        for call in (
            lambda family=family: family.squared_residuals(data, models),
            lambda family=family: family.fit(data, np.ones((40, 60)), models),
            lambda family=family: family.step(data, np.ones((40, 60)), models),
        ):
            with pytest.raises(ValueError, match=rf"models must have shape \(m, 9\), got \(40, {width}\)"):
                call()


@pytest.mark.parametrize("shape", [(40, 1), (40, 59), (60, 40), (59,)])
def test_weights_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(0).random((60, 4))
    with pytest.raises(ValueError, match="weights must have shape"):
        Homographies().fit(data, np.ones(shape), np.ones((40, 9)))
