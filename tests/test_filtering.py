"""The filter on scenes whose answer is known, and on input that is repeated, scarce or absurd."""

import copy
import itertools
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import cv2
import numpy as np
import pytest
from drawn_scenes import desk_scene, facade_scene, plane_scene, rigid_scene
from naive import apply
from rendering import Correspondences, draw_correspondences
from result_rows import kinds
from sklearn.metrics import roc_auc_score
from stage_cases import mismatches
from two_views import plane

from ruzhash_cv import FilterResult, as_correspondences, filter_matches, filter_points, find_homography, select_matches
from ruzhash_cv.core.forests.ruzhash import RuzHashForest
from ruzhash_cv.models import sampson_distance, transfer_error


def f1(mask: np.ndarray, labels: np.ndarray) -> float:
    true = labels > 0
    return float(2 * (mask & true).sum() / (mask.sum() + true.sum()))


def residuals_to_models(result: FilterResult, points1: np.ndarray, points2: np.ndarray) -> np.ndarray:
    distance = {"homography": transfer_error, "fundamental": sampson_distance}
    return np.array([distance[motion.kind](points1, points2, motion.matrix) for motion in result.motions])


@pytest.fixture(scope="module")
def scenes() -> dict[str, Correspondences]:
    """Correspondences of four kinds of rendered scenes, half of them mismatches."""
    built = {"plane": plane_scene(rng=50), "facade": facade_scene(4, rng=50)}
    built |= {"rigid": rigid_scene(rng=3), "desk": desk_scene(3, rng=50)}
    return {name: draw_correspondences(of, 400, mismatch_rate=0.5, noise=0.7, rng=7) for name, of in built.items()}


# Several structures


@pytest.mark.parametrize("name", ["plane", "facade", "rigid", "desk"])
def test_half_mismatches_are_told_apart_on_every_kind_of_scene(scenes: dict[str, Correspondences], name: str) -> None:
    drawn = scenes[name]
    result = filter_points(drawn.points1, drawn.points2)
    assert f1(result.inlier_mask, drawn.labels) > 0.95
    assert roc_auc_score(drawn.labels == 0, result.anomaly_scores) > 0.95
    assert ((result.motion_labels >= 0) == result.inlier_mask).all()
    supports = [motion.mask.sum() for motion in result.motions]
    assert supports == sorted(supports, reverse=True)


@pytest.mark.parametrize("scene", [facade_scene, desk_scene])
@pytest.mark.parametrize(("n", "rate"), [(2, 0.6), (4, 0.4)])
def test_every_plane_and_every_moving_object_is_kept(scene: Callable, n: int, rate: float) -> None:
    drawn = draw_correspondences(scene(n, rng=3), 500, mismatch_rate=rate, noise=0.7, weights="even", rng=4)
    result = filter_points(drawn.points1, drawn.points2)
    assert f1(result.inlier_mask, drawn.labels) > 0.9
    for number in range(1, drawn.labels.max() + 1):
        assert result.inlier_mask[drawn.labels == number].mean() > 0.8


@pytest.mark.parametrize("model", ["homography", "fundamental", "auto"])
def test_kept_matches_lie_within_threshold_or_tolerance_of_their_model(model: str) -> None:
    drawn = draw_correspondences(facade_scene(3, rng=5), 400, mismatch_rate=0.4, noise=0.7, rng=6)
    for threshold in (None, 5.0):
        result = filter_points(drawn.points1, drawn.points2, model=model, threshold=threshold)
        kept = np.flatnonzero(result.inlier_mask)
        assert len(kept) > 50
        residuals = residuals_to_models(result, drawn.points1, drawn.points2)
        tolerances = np.array([found.tolerance for found in result.motions])
        own = result.motion_labels[kept]
        assert (own >= 0).all()
        # Without a threshold a match may lie further off where that is more probable than not.
        assert (residuals[own, kept] <= (3 if threshold is None else 1) * tolerances[own] * (1 + 1e-6)).all()
        assert threshold is None or (residuals.min(axis=0) <= threshold).sum() == len(kept)
        assert model == "auto" or set(kinds(result)) == {model}


def test_the_order_of_models_is_by_distinct_matches() -> None:
    """The plane that is given three times has more rows, and stays the second."""
    first, second = np.random.default_rng(0).uniform(0, 800, (2, 60, 2))
    points1 = np.vstack([first, second[:40]])
    points2 = np.vstack([0.9 * first + 30.0, second[:40] @ [[0.0, 1.1], [-1.1, 0.0]] + [800.0, -20.0]])
    once = filter_points(points1, points2, model="homography")
    rows = np.append(np.arange(100), np.tile(np.arange(60, 100), 2))
    often = filter_points(points1[rows], points2[rows], model="homography")
    assert np.bincount(once.motion_labels).tolist() == [60, 40]
    assert often.motion_labels.tolist() == once.motion_labels[rows].tolist()
    assert [motion.mask.sum() for motion in often.motions] == [60, 120]


def test_mismatches_within_the_tolerance_of_a_motion_are_removed_and_hardly_a_true_match() -> None:
    """Mismatches fall on their epipolar lines by chance, more of them in the outer part of the tolerance than true matches."""
    fallen, kept_fallen, true, kept_true = 0, 0, 0, 0
    for seed in range(4):
        drawn = draw_correspondences(rigid_scene(rng=seed), 500, mismatch_rate=0.7, noise=1.0, rng=seed)
        result = filter_points(drawn.points1, drawn.points2)
        assert {motion.kind for motion in result.motions} == {"fundamental"}
        tolerances = np.array([[found.tolerance] for found in result.motions])
        within = (residuals_to_models(result, drawn.points1, drawn.points2) <= tolerances).any(axis=0)
        wrong = drawn.labels == 0
        fallen, kept_fallen = fallen + (within & wrong).sum(), kept_fallen + (within & wrong & result.inlier_mask).sum()
        true, kept_true = true + (within & ~wrong).sum(), kept_true + (within & ~wrong & result.inlier_mask).sum()
    assert fallen > 20
    assert 1.0 - kept_fallen / fallen > 2.0 * (1.0 - kept_true / true)
    assert kept_true > 0.95 * true


@pytest.mark.parametrize("seed", range(4))
def test_a_higher_rate_keeps_more(seed: int) -> None:
    scene = plane_scene(rng=seed)
    drawn = draw_correspondences(scene, 600, mismatch_rate=0.6, noise=0.7, mismatches="nearby", rng=seed)
    results = (filter_points(drawn.points1, drawn.points2, false_discovery_rate=rate) for rate in (0.01, 0.05, 0.1))
    for low, high in itertools.pairwise(result.inlier_mask for result in results):
        assert high[low].all()
        assert high.sum() > low.sum()


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [20.0, 40.0, 100.0])
def test_a_wide_threshold_finds_a_plane_and_none_in_mismatches(threshold: float) -> None:
    """The chance of lying within it is told from decoys that lie within the image."""
    for seed in range(2):
        points1, points2 = np.random.default_rng(seed).uniform(0, (640, 480), (2, 1500, 2))
        assert not filter_points(points1, points2, threshold=threshold).inlier_mask.any()
    found = []
    for seed in range(4):
        drawn = draw_correspondences(plane_scene(rng=seed), 400, mismatch_rate=0.4, noise=1.0, rng=seed)
        mask = filter_points(drawn.points1, drawn.points2, threshold=threshold).inlier_mask
        found.append(mask[drawn.labels == 1].mean())
    assert np.mean(found) > 0.95


@pytest.mark.parametrize("scale", [0.1, 0.3, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("n_true", [20, 60])
def test_auto_finds_the_plane_that_homographies_alone_find(scale: float, n_true: int) -> None:
    for seed in range(2):
        rng = np.random.default_rng(seed)
        first = rng.uniform(100, 400, (n_true, 2))
        matrix = np.array([[scale, 0.03, 60.0], [-0.02, scale, 40.0], [1e-5, 0.0, 1.0]])
        second = apply(matrix, first) + rng.normal(0, 0.4 * max(scale, 0.3), first.shape)
        others = 300 - n_true
        points1 = np.vstack([first + rng.normal(0, 0.4, first.shape), rng.uniform(0, [640, 480], (others, 2))])
        points2 = np.vstack([second, rng.uniform(0, np.array([640, 480]) * max(scale, 1.0), (others, 2))])
        results = [filter_points(points1, points2, model=model) for model in ("homography", "auto")]
        recall = [result.inlier_mask[:n_true].mean() for result in results]
        assert recall[1] >= recall[0] - 0.02


@pytest.mark.parametrize(
    ("name", "least", "least_auc"),
    [
        ("barrsmith", 0.9, 0.96), ("neem", 0.95, 0.96), ("johnsona", 0.93, 0.97), ("biscuitbookbox", 0.95, 0.96),
        ("cubechips", 0.92, 0.96),
    ],
)  # fmt: skip
def test_labelled_matches_of_real_scenes_are_told_apart(scene: Any, name: str, least: float, least_auc: float) -> None:
    pair = scene(name)
    result = filter_points(pair.points1, pair.points2)
    assert f1(result.inlier_mask, pair.labels + 1) > least
    assert roc_auc_score(pair.labels < 0, result.anomaly_scores) > least_auc


# Repeated, scarce, absurd


def test_a_crowd_of_nearly_equal_mismatches_weighs_as_one() -> None:
    """A keypoint repeated a hundred times within a pixel is no plane."""
    drawn = draw_correspondences(facade_scene(2, rng=1), 300, mismatch_rate=0.3, noise=0.5, rng=2)
    wrong = np.flatnonzero(drawn.labels == 0)[0]
    jitter = np.random.default_rng(0).uniform(-0.5, 0.5, (2, 100, 2))
    points1 = np.vstack([drawn.points1, drawn.points1[wrong] + jitter[0]])
    points2 = np.vstack([drawn.points2, drawn.points2[wrong] + jitter[1]])
    result = filter_points(points1, points2)
    assert result.inlier_mask[300:].mean() < 0.1
    assert f1(result.inlier_mask[:300], drawn.labels) > 0.9


def test_scores_rank_matches_also_where_nothing_is_found() -> None:
    """Six matches of a plane in one place are no structure among 300, and look better than the others all the same."""
    n_undecided, mean_rank = 0, []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        points1, points2 = rng.uniform(0, 1000, (2, 300, 2))
        points1[:6] = rng.uniform(300, 450, (6, 2))
        points2[:6] = 0.9 * points1[:6] + [30, 5] + rng.normal(0, 1, (6, 2))
        points1[-1] = np.nan
        result = filter_points(points1, points2)
        if not result.motions:
            n_undecided += 1
            assert not result.inlier_mask.any()
            assert (result.inlier_probabilities == 0.0).all()
            assert result.anomaly_scores[-1] == 1.0
            mean_rank.append(np.mean(result.anomaly_scores[:6, None] < result.anomaly_scores[None, 6:]))
    assert n_undecided > 4
    assert np.mean(mean_rank) > 0.8


def test_a_result_without_structures_says_why() -> None:
    points, others = np.random.default_rng(0).uniform(0, 500, (2, 60, 2))
    line = np.column_stack([np.linspace(0, 600, 60)] * 2)
    small = np.ptp(points / 500, axis=0).max()
    for reason, first, second in (
        ("at least 8 are needed: all points are the same", np.full((60, 2), 5.0), np.full((60, 2), 7.0)),
        (f"lie within {small:.3g} units; if the unit is not the pixel, give `pixel`", points / 500, points / 500),
        ("the points of the first image lie on a line", line, others),
        ("the points of the first image lie on a line", line, line),
        ("the points of the second image lie on a line", others, line),
        ("the points of the first image are all the same", np.full((60, 2), 5.0), others),
        ("the points of the second image are all the same", others, np.full((60, 2), 5.0)),
        ("no structure among the {search.models} models tried", points, others),
        ("all minimal samples are degenerate", points[np.arange(60) % 3], others),
        ("7 distinct matches, at least 8 are needed", points[:7], points[:7]),
        ("no row has a match of finite coordinates below 1e+09", points + 1e10, points),
    ):
        result = filter_points(first, second)
        assert reason.format(search=result.search) in str(result.reason)
        with pytest.raises(IndexError, match=re.escape(f"there are no motions: {result.reason}")):
            result.motions[0]
        assert not result  # a result is true if any match is kept
        assert not result.inlier_mask.any()


def test_a_reason_says_why_no_row_is_a_match() -> None:
    points = np.random.default_rng(0).uniform(0, 500, (60, 2))
    worst_first = [(cv2.DMatch(row, row, 2.0), cv2.DMatch(row, 0, 1.0)) for row in range(60)]
    matrix = np.array([[700.0, 0.0, 250.0], [0.0, 700.0, 250.0], [0.0, 0.0, 1.0]])
    blind = "at every match, `cameras` have no ray, or at least 1e+09 pixels per radian"
    for reason, matches, options in (
        ("all 60 rows fail `ratio` 0.8", worst_first, {"ratio": 0.8}),
        ("no row has a match", [()] * 60, {}),
        (blind, None, {"cameras": ((matrix, [1e9] * 4),) * 2}),
        (blind, None, {"cameras": ((matrix, [0.0] * 12 + [np.pi / 2, 0.0]),) * 2}),
    ):
        result = filter_points(points, points + 5.0, matches, **options)
        assert result.reason == f"0 distinct matches, at least 8 are needed: {reason}"


@pytest.mark.parametrize("pixel", [1e-3, 1e7])
def test_the_largest_coordinate_is_in_pixels(pixel: float) -> None:
    first = np.random.default_rng(0).uniform(0, 500, (60, 2))
    second = 0.5 * first + 3.0
    second[0, 0] = 2e9
    camera = np.array([[700.0, 0.0, 250.0], [0.0, 700.0, 250.0], [0.0, 0.0, 1.0]])
    scaled = np.diag([pixel, pixel, 1.0]) @ camera
    for cameras, own in ((None, None), ((None, camera), (None, scaled))):
        pixels = filter_points(first, second, cameras=cameras)
        others = filter_points(pixel * first, pixel * second, pixel=pixel, cameras=own)
        assert pixels.has_match.tolist() == others.has_match.tolist() == [False] + 59 * [True]
        assert pixels.inlier_mask.sum() == others.inlier_mask.sum() == 59
    _, mask = find_homography(pixel * first, pixel * second, threshold=3.0 * pixel, pixel=pixel)
    assert mask.sum() == 59
    nothing = filter_points(pixel * first + 1e10 * pixel, pixel * second, pixel=pixel)
    limit = f"no row has a match of finite coordinates below {1e9 * pixel:.3g} with `pixel` {pixel:.3g}"
    assert limit in str(nothing.reason)


def test_with_a_pixel_of_any_size_squares_do_not_overflow() -> None:
    points = np.random.default_rng(0).uniform(0, 500, (60, 2))
    for pixel in (1e-300, 1e50, 1e100, 1e300):
        result = filter_points(1e50 * points, 1e50 * points + 3e50, pixel=pixel)
        assert (result.reason is None) == bool(result.motions) == (pixel == 1e50)
        assert not filter_points(1e200 * points, 1e200 * points, pixel=pixel).has_match.any()


def test_no_motions_are_an_empty_tuple_with_a_reason() -> None:
    nothing = filter_points(np.zeros((5, 2)), np.zeros((5, 2)))
    for motions in (nothing.motions, pickle.loads(pickle.dumps(nothing)).motions, copy.deepcopy(nothing).motions):
        assert motions == motions[:1] == ()
        assert list(motions) == []
        with pytest.raises(IndexError, match="there are no motions: 1 distinct match, at least 8 are needed"):
            motions[-1]
    assert pickle.loads(pickle.dumps(nothing)) == copy.deepcopy(nothing) == nothing


def test_scores_are_computed_when_they_are_read_and_a_pickle_has_them(scenes: dict[str, Correspondences]) -> None:
    drawn = scenes["rigid"]
    with mock.patch.object(
        RuzHashForest, "fit_anomaly_scores", autospec=True, side_effect=RuzHashForest.fit_anomaly_scores
    ) as grown:
        result, again = (filter_points(drawn.points1, drawn.points2) for _ in range(2))
        n_searched = grown.call_count
        scores = result.anomaly_scores
        assert grown.call_count == n_searched + 1
        assert result.anomaly_scores is scores
        read = pickle.loads(pickle.dumps(again))
        assert grown.call_count == n_searched + 2
        np.testing.assert_array_equal(read.anomaly_scores, scores)
        assert grown.call_count == n_searched + 2
    assert read == again == result != replace(result, anomaly_scores=scores[::-1])


def test_structures_that_hold_no_match_are_left_out() -> None:
    """Structures may be as wide as the smallest radius, and their noise is larger than this threshold."""
    pair = draw_correspondences(facade_scene(4, rng=50), 400, mismatch_rate=0.5, noise=0.1, rng=7)
    result = filter_points(pair.points1, pair.points2, threshold=1e-9)
    assert (result.motions, result.reason) == ((), "no match belongs to any of the structures found")
    assert not result.inlier_mask.any()


# What goes in


@pytest.mark.parametrize("kind", ["lines", "grid"])
@pytest.mark.parametrize("seed", range(3))
def test_mismatches_of_keypoints_on_lines_or_on_a_grid_make_no_structure(kind: str, seed: int) -> None:
    """Such keypoints agree exactly with some models, and so do decoys made of them."""
    rng = np.random.default_rng(seed)
    points1, points2 = rng.uniform(0, 1000, (2, 500, 2))
    for points in (points1, points2):
        for column in (0, 1) if kind == "grid" else (1,):
            points[:, column] = np.round(points[:, column] / 40) * 40 + rng.normal(0, 0.3, len(points))
    result = filter_points(points1, points2)
    assert result.evidence < 20
    assert result.inlier_mask.mean() < 0.1


def test_a_board_is_found_although_its_corners_lie_on_a_grid() -> None:
    rng = np.random.default_rng(0)
    corners = np.stack(np.meshgrid(np.arange(25), np.arange(16)), axis=-1).reshape(-1, 2) * 40.0
    seen = corners @ [[0.9, -0.08], [0.1, 0.95]] + [50, 30] + rng.normal(0, 0.3, corners.shape)
    partner, wrong = np.arange(400), rng.permutation(400)[:240]
    partner[wrong] = rng.permutation(wrong)
    assert (filter_points(corners, seen[partner]).inlier_mask == (partner == np.arange(400))).mean() > 0.99


def test_the_result_of_keypoints_is_that_of_their_points_and_knows_which_rows_had_a_match(scenes: Any) -> None:
    # The first row has no neighbour, the second has one alone, and the third fails the ratio test.
    drawn, knn = scenes["facade"], [(cv2.DMatch(i, i, 0.5), cv2.DMatch(i, (i + 1) % 400, 0.9)) for i in range(400)]
    knn[:3] = (), knn[1][:1], (knn[2][0], cv2.DMatch(2, 3, 0.51))  # type: ignore[assignment]
    keypoints = [[cv2.KeyPoint(x, y, 1) for x, y in points.tolist()] for points in (drawn.points1, drawn.points2)]
    pairs = as_correspondences(*keypoints, knn, ratio=0.8)
    result = filter_points(*keypoints, knn, ratio=0.8)
    assert result == filter_points(pairs.points1, pairs.points2)
    assert result.inlier_mask.tolist() == filter_matches(*keypoints, knn, ratio=0.8).tolist()
    assert select_matches(knn, result) == select_matches(knn, result.inlier_mask)
    assert np.flatnonzero(~result.has_match).tolist() == [0, 1, 2]
    for n in (3, 400):
        assert filter_points(drawn.points1[:n], drawn.points2[:n]).has_match.all()
    assert result
    assert list(result.seconds) == ["total"]


@pytest.mark.parametrize("model", ["auto", "homography", "fundamental"])
def test_the_caller_s_settings_of_floating_point_errors_change_nothing(model: str) -> None:
    points = np.random.default_rng(0).uniform(0, 600, (150, 2))
    moved = points + np.random.default_rng(1).uniform(5, 60, (150, 1)) * [1.0, 0.0]
    moved[:40] = np.random.default_rng(2).uniform(0, 600, (40, 2))
    before = filter_points(points, moved, model=model)
    with np.errstate(all="raise"):
        assert filter_points(points, moved, model=model) == before


def test_a_rate_that_keeps_nothing_leaves_structures_and_evidence() -> None:
    pairs = np.hsplit(np.vstack([plane(200, 0.5), mismatches(60)]), 2)
    every, none = filter_points(*pairs), filter_points(*pairs, false_discovery_rate=1e-9)
    assert not (none.inlier_mask | (none.motion_labels >= 0)).any()
    assert none.evidence == every.evidence > 100.0
    assert [motion.mask.any() for motion in none.motions] == [False]
    assert "`false_discovery_rate` 1e-09" in str(none.reason)
    assert every.reason is None
