"""Fundamental matrices of seven matches, of rank 2 also when they are fitted, and least Sampson distances."""

import cv2
import numpy as np
from scipy.optimize import least_squares
from two_views import motion

from ruzhash_cv.models import FundamentalMatrices

FAMILY = FundamentalMatrices()


def determinants(models: np.ndarray) -> np.ndarray:
    return np.abs(np.linalg.det(models.reshape(-1, 3, 3)))


def test_a_sample_of_seven_makes_up_to_three_matrices_of_rank_two() -> None:
    rng, data = np.random.default_rng(0), motion(80) / 600.0
    models, owner = FAMILY.solve(data[np.stack([rng.permutation(80)[:7] for _ in range(60)])])
    counts = np.bincount(owner, minlength=60)
    assert counts.max() <= 3
    assert (counts > 0).mean() > 0.95
    assert determinants(models).max() < 1e-9


def test_fits_and_steps_have_rank_two() -> None:
    data, weights = motion(30, 1.0), np.random.default_rng(0).uniform(0, 1, (4, 30))
    fitted = FAMILY.fit(data, weights)
    for models in (fitted, FAMILY.step(data, weights, fitted)):
        assert determinants(models).max() < 1e-14
        np.testing.assert_allclose(np.linalg.norm(models, axis=1), 1)


def test_steps_end_at_least_sampson_distances() -> None:
    data, weights = motion(60, 2.0), np.random.default_rng(0).uniform(0.1, 1.0, (1, 60))
    model = FAMILY.fit(data, weights)
    for _ in range(8):
        model = FAMILY.step(data, weights, model)
    left, values, right = np.linalg.svd(model[0].reshape(3, 3))

    def distances(change: np.ndarray) -> np.ndarray:
        """Turned singular vectors and another ratio of singular values: all seven degrees of freedom of rank 2."""
        one, two = (cv2.Rodrigues(part)[0] for part in (change[:3], change[3:6]))
        turned = one @ left @ np.diag([1.0, values[1] / values[0] + change[6], 0.0]) @ right @ two
        return np.sqrt(weights[0] * FAMILY.squared_residuals(data, turned.reshape(1, 9))[0])

    least = least_squares(distances, np.zeros(7), x_scale=1e-3, xtol=1e-15, ftol=1e-15)
    assert 0.0 <= (distances(np.zeros(7)) ** 2).sum() / (2.0 * least.cost) - 1.0 < 1e-6
