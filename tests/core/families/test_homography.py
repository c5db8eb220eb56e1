"""Homographies of four matches against OpenCV's, and what has no image."""

import cv2
import naive
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import least_squares

from ruzhash_cv.core.families.planes import squared_noise
from ruzhash_cv.models import Homographies


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_homographies_of_four_matches_are_opencv_s(seed: int) -> None:
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    noise = np.random.default_rng(seed).uniform(-0.4, 0.4, (9, 4, 4))
    samples = (np.hstack([corners, corners]) + noise).astype(np.float32)
    models, owner = Homographies().solve(samples.astype(np.float64))
    assert owner.tolist() == list(range(9))
    for sample, model in zip(samples, models, strict=True):
        theirs = naive.of_unit_norm(cv2.getPerspectiveTransform(sample[:, :2].copy(), sample[:, 2:].copy())).ravel()
        np.testing.assert_allclose(model, theirs, atol=1e-15)


def test_a_sample_with_three_points_on_a_line_has_no_homography() -> None:
    line = np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0], [1.0, 0.0]])
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    models, owner = Homographies().solve(np.stack([np.hstack([line, square]), np.hstack([square, line])]))
    assert (models.shape, owner.tolist()) == ((0, 9), [])


def test_squared_noise_is_the_least_correction_of_both_points() -> None:
    """Of a map that stretches: the distance, in both images together, to the nearest pair of points that it maps to each other."""
    H = np.diag([1.0, 0.25, 1.0]) @ np.array([[1.02, 0.05, 20.0], [-0.04, 0.98, 10.0], [1e-5, -2e-5, 1.0]])
    rng = np.random.default_rng(0)
    first = rng.uniform(0, 1000, (50, 2))
    data = np.hstack([first, naive.apply(H, first)]) + rng.normal(0, 0.4, (50, 4))
    expected = [
        2.0 * least_squares(lambda x, row=row: np.r_[x - row[:2], naive.apply(H, x[None])[0] - row[2:]], row[:2]).cost
        for row in data
    ]
    np.testing.assert_allclose(squared_noise(data, H.ravel()), expected, rtol=1e-2)


def test_squared_noise_of_a_point_without_an_image_is_infinite() -> None:
    H = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0])
    assert np.isinf(squared_noise(np.array([[0.0, 5.0, 1.0, 1.0]]), H)).all()
