"""Called as RTAB-Map's C++ calls it: by place, with arrays of floats, and read as memory of int32."""

from __future__ import annotations

import numpy as np
import pytest
from two_views import plane

from ruzhash_cv.adapters import rtabmap


def arguments(n_true: int = 60, n_wrong: int = 30) -> list[object]:
    """Return the arguments of `match` in RTAB-Map's order; row i of the first image is matched with row i of the second."""
    rng = np.random.default_rng(0)
    pairs = np.vstack([plane(n_true, 0.3), rng.uniform(0, 600, (n_wrong, 4))]).astype(np.float32)
    descriptors = rng.normal(size=(len(pairs), 64)).astype(np.float32)
    near = descriptors + 0.01 * rng.normal(size=descriptors.shape).astype(np.float32)
    scores = np.ones(len(pairs), np.float32)
    return [pairs[:, :2].copy(), pairs[:, 2:].copy(), scores, scores, descriptors, near, 640, 480]


def test_it_returns_the_true_matches_as_rtab_map_reads_them() -> None:
    rtabmap.init(64, 0.2, 20, 1, "indoor")
    found = rtabmap.match(*arguments())
    assert (found.dtype, found.ndim, found.flags.c_contiguous) == (np.int32, 2, True)
    memory = np.frombuffer(found.tobytes(), np.int32).reshape(-1, 2)
    assert (memory[:, 0] == memory[:, 1]).all()
    assert (memory[:, 0] < 60).sum() > 55
    assert (memory[:, 0] >= 60).sum() < 5


@pytest.mark.parametrize(("given", "taken"), [("indoor", "auto"), ("homography", "homography"), ("auto", "auto")])
def test_the_model_is_one_of_ours_or_auto(given: str, taken: str) -> None:
    rtabmap.init(64, 0.2, 20, 0, given)
    assert rtabmap._model == taken


def test_no_keypoints_make_no_matches() -> None:
    rtabmap.init(64)
    nothing = [
        np.zeros((0, 2)),
        np.zeros((0, 2)),
        np.zeros(0),
        np.zeros(0),
        np.zeros((0, 64)),
        np.zeros((0, 64)),
        640,
        480,
    ]
    assert rtabmap.match(*nothing).shape == (0, 2)
    one = [each[:1] if isinstance(each, np.ndarray) else each for each in arguments()]
    assert rtabmap.match(*one).shape == (0, 2)
