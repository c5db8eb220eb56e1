"""Whatever arrives: a well-formed answer, or an error that names the argument.

`HOSTILE_EXAMPLES=5000 pytest tests/test_hostile.py` tries more examples of each test; the default is a few.
"""

import functools
import os
import re
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
from hostile import HUGE, Draw, both_points, camera_of, check_matrix, correspondences, draws, matched, points_of
from hypothesis import HealthCheck, given, settings

import ruzhash_cv as rc
from ruzhash_cv.results.printing import table

EXAMPLES = int(os.environ.get("HOSTILE_EXAMPLES", 8))
few = {"max_examples": EXAMPLES, "deadline": None, "derandomize": EXAMPLES < 100}
MODELS = "auto", "homography", "fundamental"
WARNED_OF = "ignore:.*(if the unit is not the pixel|is its focal length|mirrors the first):UserWarning"
pytestmark = [pytest.mark.timeout(0 if EXAMPLES > 100 else 300), pytest.mark.filterwarnings(WARNED_OF)]


def length(points: Any) -> int:
    """Return how many points there are, also in a batch of one pair, (1, n, 2)."""
    shape = np.shape(points)
    return shape[1] if len(shape) == 3 and shape[0] == 1 else shape[0]


def filter_options(draw: Draw) -> dict[str, Any]:
    return draw.some(
        model=draw.option(MODELS, ("affine", "", None, b"auto", np.array(["auto"]))),
        threshold=draw.threshold(),
        pixel=draw.option((1, 0.001, np.float32(2), 1e-300, 1e300, 1000.0), (0, -1.0, np.nan, np.inf, True, None)),
        false_discovery_rate=draw.option((None, 1e-300, 0.01, np.float32(0.5)), (0, 1, -0.1, np.nan, np.inf, True)),
        rng=draw.seed(),
    )


def check_result(result: rc.FilterResult, n: int) -> None:
    """Assert that a result is what its documentation says."""
    mask, labels = result.inlier_mask, result.motion_labels
    scores, p = result.anomaly_scores, result.inlier_probabilities
    for array, dtype in ((mask, bool), (scores, float), (p, float), (labels, np.int64)):
        assert type(array) is np.ndarray
        assert (array.shape, array.dtype) == ((n,), dtype)
    assert ((scores > 0) & (scores <= 1)).all()
    assert ((p >= 0) & (p <= 1)).all()
    assert ((labels >= -1) & (labels < len(result.motions))).all()
    assert mask[labels >= 0].all()
    assert (result.reason is None) == bool(mask.any())
    for row in table(result):
        model = row.structure
        scale = model.matrix[2, 2] if row.kind == "homography" else np.linalg.norm(model.matrix)
        assert abs(scale - 1) < 1e-6 or abs(np.linalg.norm(model.matrix) - 1) < 1e-6
        assert (model.mask.shape, model.mask.dtype) == ((n,), bool)
        assert np.isfinite([model.tolerance, model.noise_scale]).all()
        assert model.tolerance > 0
        assert model.noise_scale >= 0
    for item, motion in enumerate(result.motions):
        assert (motion.mask == (labels == item)).all()
        assert all((plane.mask <= motion.mask).all() for plane in motion.planes)
        assert np.isfinite(motion.evidence)


# The functions


def filter_points(draw: Draw) -> None:
    points1, points2 = both_points(draw)
    options = filter_options(draw)
    before = [np.array(points, copy=True) for points in (points1, points2)] if draw.legal else []
    result = rc.filter_points(points1, points2, **options)
    check_result(result, length(points1))
    for was, points in zip(before, (points1, points2) if before else (), strict=True):
        assert np.array_equal(was, np.asarray(points), equal_nan=was.dtype.kind == "f"), "the input was changed"
        assert not result.inlier_mask[~np.isfinite(was).reshape(-1, 2).all(axis=1)].any()


def filter_points_with_cameras(draw: Draw) -> None:
    """What folds may be refused."""
    points1, points2 = both_points(draw)
    given = [None if draw.chance(5) else camera_of(draw) for _ in range(2)]
    draw.legal = False
    result = rc.filter_points(points1, points2, **filter_options(draw) | {"cameras": tuple(given)})
    check_result(result, length(points1))
    for motion in range(len(result.motions) if all(one is not None for one in given) else 0):
        check_pose(result.camera_pose(motion=motion))


def camera_pose(draw: Draw) -> None:
    pairs = correspondences(draw)
    result = rc.filter_points(pairs[:, :2], pairs[:, 2:])
    cameras = [camera_of(draw) for _ in range(2)]
    draw.legal = False  # a camera with much distortion may have no ray for a pixel
    for motion in range(len(result.motions)):
        check_pose(result.camera_pose(*cameras, motion))


def check_pose(pose: Any) -> None:
    assert (np.abs(pose.rotation @ pose.rotation.T - np.eye(3)) < 1e-6).all()
    assert abs(np.linalg.norm(pose.translation) - 1.0) < 1e-6


def camera(draw: Draw) -> None:
    made = rc.Camera.of(camera_of(draw))
    rays = made.rays(points_of(draw, correspondences(draw)[:, :2]))
    usable = np.isfinite(rays).all(axis=1)
    assert rays.shape[1:] == (3,)
    assert (np.abs(np.linalg.norm(rays[usable], axis=1) - 1.0) < 1e-9).all()
    assert np.isfinite(made.pixels(rays)[usable]).all(), "a ray that came of a pixel leads to none"


def filter_matches(draw: Draw) -> None:
    kp1, kp2, matches, ratio = matched(draw)
    options = filter_options(draw)
    options.pop("pixel", None)
    mask = rc.filter_matches(kp1, kp2, matches, ratio=ratio, **options)
    assert (mask.dtype, mask.shape) == (bool, (len(matches),))
    if not isinstance(options.get("rng", 0), np.random.Generator | None):
        result = rc.filter_points(kp1, kp2, matches, ratio=ratio, **options)
        assert result.inlier_mask.tobytes() == mask.tobytes()
        assert result.has_match[mask].all(), "a row without a match was kept"
    if len(matches) and isinstance(matches[0], (cv2.DMatch, tuple)):
        assert len(rc.select_matches(matches, mask)) == mask.sum()


def find_matrix(function: Callable[..., Any], draw: Draw) -> None:
    points1, points2 = both_points(draw)
    options = draw.some(threshold=draw.threshold(), rng=draw.seed())
    options |= draw.some(method=draw.option((None, cv2.RANSAC, 38), (0, cv2.FM_8POINT, HUGE, -1, 3.0, True)))
    check_matrix(*function(points1, points2, **options), length(points1))


def find_essential_matrix(draw: Draw) -> None:
    points1, points2 = both_points(draw)
    one, other, draw.legal = camera_of(draw), camera_of(draw), False
    forms = (one,), (one, cv2.RANSAC, 0.9), (one, None, other, None), (one, None, other, None, 38, 0.9, 3.0)
    matrix, mask = rc.find_essential_matrix(points1, points2, *draw.pick(forms), rng=draw.seed())
    check_matrix(matrix, mask, length(points1))


FUNCTIONS: dict[str, Callable[[Draw], None]] = {
    "filter_points": filter_points,
    "filter_points, cameras": filter_points_with_cameras,
    "filter_matches": filter_matches,
    "find_homography": functools.partial(find_matrix, rc.find_homography),
    "find_fundamental_matrix": functools.partial(find_matrix, rc.find_fundamental_matrix),
    "find_essential_matrix": find_essential_matrix,
    "Camera": camera,
    "camera_pose": camera_pose,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(**few, suppress_health_check=list(HealthCheck))
@given(draw=draws())
def test_hostile_arguments_get_an_answer_or_an_error_that_names_one(name: str, draw: Draw) -> None:
    try:
        FUNCTIONS[name](draw)
    except (TypeError, ValueError, IndexError) as error:
        if draw.legal or type(error) not in (TypeError, ValueError, IndexError) or not re.search(r"`\w+", str(error)):
            raise
