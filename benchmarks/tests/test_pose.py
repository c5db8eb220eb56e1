"""The benchmarks of poses and models: known cameras, known errors."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest
from evaluate_models import Target, judge, ratio
from evaluate_pairs import pair_table
from evaluate_pose import run
from geometry import apply_homography, residuals
from matching import nearest
from pair_sets import look_alike, overlaid, related, still, unrelated
from pose_measures import (
    direction_angle,
    matrix_pose,
    model_errors,
    opencv_pose,
    pose_error,
    pose_score,
    rotation_angle,
)
from pose_scenes import Pair, draw, given
from pose_worlds import MOTIONS, RIGID, WORLDS, turn
from two_views import one_window_off

EXACT = {(scene, motion): draw(scene, motion, 0) for scene in WORLDS for motion in MOTIONS}


def is_homography(pair):
    return pair.scene == "plane" or pair.motion == "rotation"


def noise_free(pair):
    """The pair's exact matches as its matches."""
    return replace(pair, points1=pair.exact1, points2=pair.exact2, labels=np.ones(len(pair.exact1), int))


@pytest.mark.parametrize("pair", EXACT.values(), ids=lambda pair: pair.name)
def test_exact_matches_agree_with_the_exact_model(pair):
    kind = "homography" if is_homography(pair) else "fundamental"
    assert residuals(kind, pair.model, pair.exact1, pair.exact2).max() < 1e-9


@pytest.mark.parametrize("pair", EXACT.values(), ids=lambda pair: pair.name)
def test_true_matches_are_noisy_and_mismatches_are_not_near_a_homography(pair):
    if is_homography(pair):
        error = residuals("homography", pair.model, pair.points1, pair.points2)
        assert error[pair.labels > 0].max() < 8
        assert error[pair.labels == 0].min() > 2


def test_mismatches_lie_ten_pixels_from_the_true_place():
    for seed in range(0, 45, 3):  # those at random all over
        pair = draw("room", "rotation", seed)
        wrong = pair.labels == 0
        error = np.linalg.norm(apply_homography(pair.model, pair.points1) - pair.points2, axis=1)
        assert error[wrong].min() > 5  # the noise takes some


def test_the_camera_goes_where_the_motion_says():
    for seed in range(5):
        centres = {motion: -draw("room", motion, seed).R.T @ draw("room", motion, seed).t for motion in MOTIONS}
        assert centres["forward"][2] > 2 * np.linalg.norm(centres["forward"][:2])
        for motion in ("wide", "narrow"):
            assert abs(centres[motion][0]) > abs(centres[motion][2])
        assert np.linalg.norm(centres["wide"]) > 2 * np.linalg.norm(centres["narrow"])
        assert not centres["rotation"].any()


def test_share_of_mismatches_is_that_of_the_seed():
    for seed, rate in enumerate((0.1, 0.3, 0.5, 0.7, 0.8)):
        pair = draw("room", "wide", seed)
        assert np.mean(pair.labels == 0) == pytest.approx(rate, abs=0.01)
        assert pair.settings["rate"] == rate


def test_halves_share_no_pair():
    names = [{pair.name for pair in given(half, 2, RIGID, ("wide",))} for half in ("tune", "judge")]
    assert len(names[0]) == len(names[1]) == 8
    assert not names[0] & names[1]


def test_angle_of_a_rotation_is_that_of_its_axis():
    base = turn(10, -20, 30)
    for angle in (1e-6, 1.0, 90.0, 180.0):
        assert rotation_angle(turn(angle, 0, 0) @ base, base) == pytest.approx(angle, rel=1e-6)


def test_angle_of_directions_counts_the_sign_and_not_the_length():
    assert direction_angle(np.array([3.0, 0, 0]), np.array([1.0, 0, 0])) == pytest.approx(0)
    assert direction_angle(np.array([0, 2.0, 0]), np.array([1.0, 0, 0])) == pytest.approx(90)
    assert direction_angle(np.array([-1.0, 0, 0]), np.array([1.0, 0, 0])) == pytest.approx(180)


def test_pose_error_is_the_larger_angle_and_180_without_a_pose():
    pair = EXACT["room", "wide"]
    assert pose_error((turn(3, 0, 0) @ pair.R, pair.t), pair) == pytest.approx(3)
    assert pose_error((turn(3, 0, 0) @ pair.R, turn(0, 50, 0) @ -pair.t), pair) > 3
    assert pose_error(None, pair) == 180
    assert pose_error((np.full((3, 3), np.nan), pair.t), pair) == 180


def test_pose_error_of_a_rotation_ignores_the_translation():
    pair = EXACT["room", "rotation"]
    assert pose_error((turn(0, 2, 0) @ pair.R, np.array([1.0, 0, 0])), pair) == pytest.approx(2)


def test_mean_score_is_the_area_under_the_recall():
    errors = np.random.default_rng(0).exponential(6, 500)
    grid = np.linspace(0, 10, 20_001)
    area = np.mean([(errors <= at).mean() for at in grid])
    assert pose_score(errors, 10.0).mean() == pytest.approx(area, abs=1e-3)


@pytest.mark.parametrize("scene", RIGID)
@pytest.mark.parametrize("motion", ["wide", "narrow", "forward"])
def test_the_exact_matrix_gives_the_exact_pose(scene, motion):
    pair = noise_free(EXACT[scene, motion])
    assert pose_error(matrix_pose(-3 * pair.model, pair, pair.labels > 0), pair) < 1e-4


def test_the_pose_of_exact_matches_is_exact():
    pair = noise_free(EXACT["clutter", "wide"])
    assert pose_error(opencv_pose(pair, pair.labels > 0, 0), pair) < 1e-2
    assert opencv_pose(pair, np.arange(len(pair.labels)) < 4, 0) is None


def test_errors_of_a_missing_model_are_infinite():
    pair = EXACT["plane", "wide"]
    shift = np.array([[1.0, 0, 2.0], [0, 1, 0], [0, 0, 1]])
    assert np.isinf(model_errors("homography", None, pair.exact1, pair.exact2)).all()
    assert model_errors("homography", pair.model, pair.exact1, pair.exact2).max() < 1e-9
    shifted = model_errors("homography", shift, pair.exact1, pair.exact1)
    np.testing.assert_allclose(shifted, 2.0)


def test_a_model_is_judged_by_the_structure_it_fits_best():
    points = np.random.default_rng(0).uniform(0, 500, (40, 2))
    exact = {1: (points, points + [0.0, 50.0]), 2: (points, points + [30.0, 0.0])}
    labels = np.repeat([1, 2, 0, 0], 10)
    target = Target(points, points, labels, np.repeat([True, False], [30, 10]), exact)
    shift = np.array([[1.0, 0, 31.0], [0, 1, 0], [0, 0, 1]])
    error, high, f1 = judge("homography", target, shift, labels == 2)
    assert (error, high, f1) == pytest.approx((1.0, 1.0, 1.0))
    error, high, f1 = judge("homography", target, None, np.zeros(40, bool))
    assert np.isinf(error)
    assert f1 == 0


def test_quotient_of_errors_is_their_geometric_mean():
    twice = np.array([[2.0], [4.0], [6.0]])
    assert ratio(twice, twice / 2) == "2.00 ×÷ 1.00"
    assert ratio(np.array([[np.inf], [1e3]]), np.array([[1e3], [1e3]])) == "1.00 ×÷ 1.00"


def test_mutual_neighbours_choose_each_other_and_know_their_ratio():
    first = {"descriptors": np.array([[0, 0], [10, 0], [12, 0]], np.uint8)}
    second = {"descriptors": np.array([[1, 0], [100, 0], [11, 1]], np.uint8)}
    pairs, ratio, mutual = nearest(first, second, "sift")
    # 1 and 2 are equally near to 2, which chooses 1.
    assert pairs[mutual].tolist() == [[0, 0], [1, 2]]
    np.testing.assert_allclose(ratio[mutual], [1 / np.hypot(11, 1), np.sqrt(2) / 9])


def test_overlays_hold_what_they_say():
    for found in [*overlaid("tune", 1), *still("tune", 1)]:
        apart = np.linalg.norm(found.pair.points1 - found.pair.points2, axis=1)
        moving = 0 if found.kind == "still camera" else 200
        assert np.bincount(found.group, minlength=3).tolist() == [85, moving, 260 - moving]
        assert apart[found.group == 2].max() < 2
        np.testing.assert_array_equal(found.pair.labels, found.group == 1)
        if moving:
            error = residuals("fundamental", found.pair.model, found.pair.points1, found.pair.points2)
            assert error[found.group == 1].max() < 3
            assert np.median(error[found.group == 0]) > 10


def largest_shares(make):
    """Share of each of five pairs that agrees with one homography."""
    pairs = list(make("tune", 5))
    assert all(len(points1) == len(points2) >= 30 for points1, points2 in pairs)
    return [cv2.findHomography(*points, cv2.RANSAC, 3.0)[1].mean() for points in pairs]


def test_a_large_plane_is_in_related_pairs_only():
    assert max(largest_shares(unrelated)) < 0.1
    assert max(largest_shares(look_alike)) < 0.15
    assert max(largest_shares(related)) > 0.3


def test_look_alike_windows_agree_one_by_one():
    points1, points2 = next(iter(look_alike("tune", 1)))
    agreeing = 0
    for place in points1:
        near = np.argsort(np.linalg.norm(points1 - place, axis=1))[:6]
        _, mask = cv2.estimateAffine2D(points1[near], points2[near], ransacReprojThreshold=3.0)
        agreeing += mask.sum() >= 5
    assert agreeing > 0.15 * len(points1)


def test_halves_of_pairs_differ():
    for make in (related, unrelated, look_alike):
        one, two = (next(iter(make(half, 1)))[0] for half in ("tune", "judge"))
        assert one.shape != two.shape or not np.array_equal(one, two)


def test_pair_table_tells_sets_apart():
    kind = "kept matches"
    table = pair_table({"related": {kind: np.array([20.0, 30])}, "unrelated": {kind: np.array([10.0, 25])}})
    assert table.splitlines()[-1] == "| kept matches | 0.7500 | 15 | 100.0% | 50.0% | 50.0% |"


def test_the_mask_of_a_variant_stands_beside_the_default_s():
    points1, points2, true = one_window_off()
    K, nowhere = np.array([[900.0, 0, 400], [0, 900, 300], [0, 0, 1]]), np.zeros((0, 2))
    angle, variant = 0.2, "evidence: overlapping planes are kept"
    R = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    pair = Pair(
        "a wall", "wall", "wide", points1, points2, true.astype(int), np.ones(len(true), bool), nowhere, nowhere,
        K, K, R, np.array([-0.8, 0.1, 0.2]), np.eye(3),
    )  # fmt: skip
    f1 = {row["name"]: row["f1"] for row in run(pair, 0, {}, variant)}
    assert f1["findEssentialMat after ruzhash_cv"] > f1[f"findEssentialMat after {variant}"] + 0.1
