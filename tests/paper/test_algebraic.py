"""The coordinates that algebraic residuals are measured in. `models/test_base.py` tests the families."""

from __future__ import annotations

import numpy as np
import pytest

from ruzhash_cv.paper import normalise_pairs


def test_normalised_pairs_are_centred_and_of_unit_size() -> None:
    rng = np.random.default_rng(0)
    pairs = normalise_pairs(rng.uniform(0, 640, (500, 2)), rng.uniform(100, 400, (500, 2)))
    assert np.abs(np.median(pairs, axis=0)).max() < 1e-9
    assert np.abs(pairs[:, :2]).mean() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(
    ("points1", "points2", "message"),
    [
        (np.zeros((1, 2)), np.zeros((2, 2)), "`points1` and `points2` must have the same length"),
        (np.zeros(4), np.zeros(4), r"`points1` must have shape \(n, 2\), got \(4,\)"),
        (np.zeros((3, 2)), np.full((3, 2), np.nan), "`points2` must be finite, got nan"),
    ],
)
def test_pairs_to_normalise_are_checked(points1: np.ndarray, points2: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        normalise_pairs(points1, points2)
