"""What the mask is made of: the structure a match belongs to, crowds, rivals for a keypoint."""

from __future__ import annotations

import numpy as np
import pytest
from rendering import draw_correspondences, plane_scene
from scipy.stats import norm

from ruzhash_cv import filter_points
from ruzhash_cv.mask import (
    FAR_LEVEL,
    PLANAR_LEVEL,
    SIGMAS_PER_TOLERANCE,
    SLIDING_LEVEL,
    beyond_a_crowd,
    levels_within,
    lost_to_rivals,
    nearest_structures,
)
from ruzhash_cv.models import FUNDAMENTAL, HOMOGRAPHY


def test_crowds_are_told_by_the_procedure_of_benjamini_and_hochberg() -> None:
    displaced = np.linspace(0.5, 1.0, 99)
    # p = (1 + #) / 100: 0.01, 0.01, 0.02 of four beyond a tolerance pass 0.7 k / 4; the last, 1.0, does not.
    scores, shell = np.array([0.1, 0.2, 0.5, 1.0, 0.1, 0.1]), np.array([True, True, True, True, False, False])
    for shuffled in (displaced, displaced[::-1]):
        np.testing.assert_array_equal(beyond_a_crowd(scores, shell, shuffled), [True, True, True, False, False, False])
    assert not beyond_a_crowd(scores, shell, displaced[:0]).any()
    assert not beyond_a_crowd(scores, np.zeros(6, bool), displaced).any()


@pytest.mark.parametrize("planes", [0, 2, 4])
def test_a_match_belongs_to_the_likeliest_of_the_structures_that_hold_it(planes: int) -> None:
    rng = np.random.default_rng(planes)
    kinds = np.array([HOMOGRAPHY] * planes + [FUNDAMENTAL] * (4 - planes), np.uint8)
    tolerances, residuals = rng.uniform(1, 30, 4), rng.exponential(15, (300, 4))
    nearest, distance = nearest_structures(residuals, tolerances, kinds)
    for row in range(300):
        ratios = residuals[row] / tolerances
        holding = np.flatnonzero(ratios <= 1)
        # Planes come before lines.
        holding = holding[kinds[holding] == HOMOGRAPHY] if (kinds[holding] == HOMOGRAPHY).any() else holding
        sigmas = tolerances / SIGMAS_PER_TOLERANCE
        log_densities = [
            (2 if kinds[item] == HOMOGRAPHY else 1) * norm.logpdf(0, scale=sigmas[item])
            - 0.5 * (residuals[row, item] / sigmas[item]) ** 2
            for item in holding
        ]
        expected = holding[np.argmax(log_densities)] if len(holding) else np.argmin(ratios)
        assert nearest[row] == expected
        assert distance[row] == ratios[nearest[row]]


@pytest.mark.parametrize(("n_far", "level"), [(7, FAR_LEVEL), (8, 1.0)])
@pytest.mark.parametrize("unit", [1.0, 0.01])
def test_few_matches_far_from_a_plane_must_look_good(n_far: int, level: float, unit: float) -> None:
    """Further than 20 px, and less than 7 % of the plane's: of 107 matches 7 are, of 108 matches 8 are not."""
    pixels = np.concatenate([np.full(100, 19.0), np.full(n_far, 21.0), [31.0]])
    tolerances, kinds = np.array([30.0]) * unit, np.array([HOMOGRAPHY], np.uint8)
    nearest = np.zeros(len(pixels), np.int64)
    levels = levels_within(nearest, pixels * unit / tolerances[0], tolerances, unit, kinds, np.zeros(1))
    assert levels.tolist() == [1.0] * 100 + [level] * n_far + [1.0]


def test_how_many_lie_far_is_counted_plane_by_plane_and_not_of_lines() -> None:
    """A rough plane, of whose matches half lie far off, a precise one with one of 51 far off, and an epipolar line as precise."""
    kinds = np.array([HOMOGRAPHY, HOMOGRAPHY, FUNDAMENTAL], np.uint8)
    nearest = np.repeat([0, 1, 2], [40, 51, 51])
    pixels = np.concatenate([np.repeat([5.0, 25.0], 20), np.full(50, 5.0), [25.0], np.full(50, 5.0), [25.0]])
    levels = levels_within(nearest, pixels / 30.0, np.full(3, 30.0), 1.0, kinds, np.zeros(3))
    assert levels.tolist() == [1.0] * 90 + [FAR_LEVEL] + [SLIDING_LEVEL] * 51


def test_what_lies_on_a_line_must_look_good_and_better_where_one_plane_holds_most() -> None:
    tolerances, kinds = np.full(2, 30.0), np.full(2, FUNDAMENTAL, np.uint8)
    levels = levels_within(np.array([0, 1, 1]), np.array([0.1, 0.1, 0.9]), tolerances, 1.0, kinds, np.array([0.3, 0.9]))
    assert levels.tolist() == [SLIDING_LEVEL, PLANAR_LEVEL, PLANAR_LEVEL]


def test_a_crowd_taken_for_a_structure_leaves_the_plane_its_matches() -> None:
    """Mismatches 12 to 25 px off make a wide copy of the plane, which holds all that the plane holds."""
    drawn = draw_correspondences(plane_scene(rng=1), 600, mismatch_rate=0.4, noise=0.7, rng=1)
    rng, points2, near = np.random.default_rng(1), drawn.points2.copy(), np.flatnonzero(drawn.labels == 0)[::4]
    angle, length = rng.uniform(0, 2 * np.pi, len(near)), rng.uniform(12, 25, len(near))
    true = np.column_stack([drawn.points1[near], np.ones(len(near))]) @ drawn.homographies[0].T
    points2[near] = true[:, :2] / true[:, 2:] + length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    result = filter_points(drawn.points1, points2)
    assert (result.labels[drawn.labels == 1] == 0).mean() > 0.98


def test_of_matches_that_lead_elsewhere_a_keypoint_keeps_the_best() -> None:
    pairs = np.array([[0.0, 0, 0, 0], [0, 0, 50, 0], [0, 0, 1, 0], [9, 9, 50, 9]])
    keypoints = (np.array([0, 0, 0, 1]), np.arange(4))
    scores, labels = np.array([0.2, 0.5, 0.4, 0.9]), np.array([0, 1, 0, 1])
    keep, planar = np.ones(4, bool), np.zeros(4, bool)
    assert lost_to_rivals(pairs, keypoints, 5.0, keep, scores, labels, planar).tolist() == [1]
    # Within the same plane there is room for several.
    same = np.zeros(4, np.int64)
    assert lost_to_rivals(pairs, keypoints, 5.0, keep, scores, same, ~planar).tolist() == []
    # Rejected ones are no rivals.
    keep[0] = keep[2] = False
    assert lost_to_rivals(pairs, keypoints, 5.0, keep, scores, labels, planar).tolist() == []
