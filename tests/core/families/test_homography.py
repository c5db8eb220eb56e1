"""Homographies of four matches against OpenCV's, and what has no image."""

import cv2
import naive
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

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
