"""filter_matches and filter_points as their users meet them."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
import pytest
from rendering import desk_scene, draw_correspondences, facade_scene, plane_scene, rigid_scene

from ruzhash_cv import RuzHashForest, filter_matches, filter_points, sampson_distance, select_matches, transfer_error

BUILDERS = {
    "plane": lambda: plane_scene(rng=50),
    "facade": lambda: facade_scene(4, rng=50),
    "rigid": lambda: rigid_scene(rng=50),
    "desk": lambda: desk_scene(3, rng=50),
}


@pytest.fixture(scope="module")
def drawn():
    """Correspondences of rendered scenes, half of them mismatches, drawn once."""
    return {
        name: draw_correspondences(build(), 400, mismatch_rate=0.5, noise=0.7, rng=7)
        for name, build in BUILDERS.items()
    }


def f1(mask, labels):
    true = labels > 0
    return 2 * (mask & true).sum() / (mask.sum() + true.sum())


@pytest.mark.parametrize("name", BUILDERS)
def test_half_mismatches_are_told_apart_on_every_kind_of_scene(drawn, name):
    problem = drawn[name]
    result = filter_points(problem.points1, problem.points2)
    assert f1(result.inlier_mask, problem.labels) > 0.95
    assert result.reason is None
    assert ((result.anomaly_scores > 0) & (result.anomaly_scores <= 1)).all()
    assert ((result.labels >= 0) == result.inlier_mask).all()
    assert result.labels.max() < len(result.models)
    assert [model.evidence for model in result.models] == sorted((m.evidence for m in result.models), reverse=True)


@pytest.mark.parametrize("model", ["fundamental", "auto"])
def test_a_rigid_scene_without_dominant_plane_is_kept_whole(drawn, model):
    problem = drawn["rigid"]
    assert f1(filter_points(problem.points1, problem.points2, model=model).inlier_mask, problem.labels) > 0.9


def test_mismatches_get_higher_scores_and_p_values_than_inliers(drawn):
    problem = drawn["facade"]
    result = filter_points(problem.points1, problem.points2)
    wrong = problem.labels == 0
    assert np.median(result.anomaly_scores[wrong]) > np.quantile(result.anomaly_scores[~wrong], 0.95)
    # p-values of uniform mismatches are uniform: 200 of them leave a standard error of .015 at a rate of .05.
    assert abs((result.p_values[wrong] <= 0.05).mean() - 0.05) < 0.06


@pytest.mark.parametrize("threshold", [1.0, 3.0, 8.0])
def test_every_kept_match_lies_within_the_threshold_of_a_model(drawn, threshold):
    problem = drawn["desk"]
    result = filter_points(problem.points1, problem.points2, threshold=threshold)
    distances = [
        (transfer_error if model.kind == "homography" else sampson_distance)(
            problem.points1, problem.points2, model.matrix
        )
        for model in result.models
    ]
    assert result.inlier_mask.any()
    assert np.min(distances, axis=0)[result.inlier_mask].max() <= threshold * (1 + 1e-6)


def test_scaling_points_pixel_and_threshold_together_changes_nothing(drawn):
    problem = drawn["facade"]
    once = filter_points(problem.points1, problem.points2, threshold=3.0)
    large = filter_points(4 * problem.points1, 4 * problem.points2, threshold=12.0, pixel=4.0)
    assert (once.inlier_mask == large.inlier_mask).all()


def test_the_homography_of_one_plane_is_recovered(drawn):
    problem = drawn["plane"]
    model = filter_points(problem.points1, problem.points2, model="homography").models[0]
    genuine = problem.points1[problem.labels > 0]
    truth = cv2.perspectiveTransform(genuine[:, None], problem.homographies[0])[:, 0]
    assert np.median(transfer_error(genuine, truth, model.matrix)) < 1.0


def test_false_acceptance_rate_makes_the_mask_from_p_values(drawn):
    problem = drawn["facade"]
    result = filter_points(problem.points1, problem.points2, false_acceptance_rate=0.05)
    assert (result.inlier_mask == (result.p_values <= 0.05)).all()


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_the_same_seed_gives_the_same_bits_for_any_number_of_threads(drawn, n_jobs):
    problem = drawn["desk"]
    one, many = (filter_points(problem.points1, problem.points2, rng=3, n_jobs=jobs) for jobs in (1, n_jobs))
    assert one.anomaly_scores.tobytes() == many.anomaly_scores.tobytes()
    assert (one.inlier_mask == many.inlier_mask).all()


def test_eight_threads_at_once_get_the_same_bits(drawn):
    problem = drawn["desk"]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: filter_points(problem.points1, problem.points2, rng=3), range(8)))
    assert len({result.anomaly_scores.tobytes() for result in results}) == 1


def test_another_process_gets_the_same_bits():
    code = (
        "import numpy as np, hashlib; from ruzhash_cv import filter_points;"
        "p = np.random.default_rng(0).uniform(0, 500, (120, 2)); q = p + 9.0; q[:50] = p[49::-1];"
        "print(hashlib.sha256(filter_points(p, q).anomaly_scores.tobytes()).hexdigest())"
    )
    outputs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in "ab"]
    assert outputs[0].stdout == outputs[1].stdout != ""


def test_forest_scores_do_not_depend_on_threads():
    rows = np.random.default_rng(0).random((3000, 30)) * (np.random.default_rng(1).random((3000, 30)) < 0.2)
    scores = [RuzHashForest(n_jobs=jobs, rng=5).fit_anomaly_scores(rows) for jobs in (1, 2, 4)]
    assert scores[0].tobytes() == scores[1].tobytes() == scores[2].tobytes()


# Few, degenerate and hostile input.


@pytest.mark.parametrize("n", range(8))
def test_fewer_than_eight_matches_are_all_flagged_with_a_reason(n):
    points = np.random.default_rng(n).uniform(0, 100, (n, 2))
    result = filter_points(points, points + 1.0)
    assert result.inlier_mask.shape == result.anomaly_scores.shape == result.labels.shape == (n,)
    assert not result.inlier_mask.any()
    assert "at least 8 are needed" in result.reason


@pytest.mark.parametrize(
    "points",
    [np.full((60, 2), 5.0), np.stack([np.linspace(0, 600, 60)] * 2, axis=1), np.full((60, 2), 1e7)],
    ids=["identical", "collinear", "identical and far away"],
)
def test_degenerate_points_give_a_well_formed_result(points):
    result = filter_points(points, points + 3.0)
    assert result.inlier_mask.shape == (60,)
    assert result.reason or result.models


def test_unrelated_points_are_flagged():
    rng = np.random.default_rng(3)
    result = filter_points(rng.uniform(0, 800, (300, 2)), rng.uniform(0, 800, (300, 2)))
    assert result.inlier_mask.mean() < 0.05
    assert result.reason is not None or result.models


def test_rows_with_nan_or_infinity_are_flagged_and_the_rest_unaffected(drawn):
    problem = drawn["plane"]
    clean = filter_points(problem.points1, problem.points2)
    bad = np.array([[np.nan, 1.0], [np.inf, 2.0], [1.0, -np.inf], [1e300, 0.0]])
    result = filter_points(np.vstack([bad, problem.points1]), np.vstack([np.ones((4, 2)), problem.points2]))
    assert not result.inlier_mask[:4].any()
    assert (result.inlier_mask[4:] == clean.inlier_mask).all()
    assert result.anomaly_scores[4:].tobytes() == clean.anomaly_scores.tobytes()


def test_duplicates_share_their_verdict_and_have_one_vote(drawn):
    problem = drawn["plane"]
    wrong = np.flatnonzero(problem.labels == 0)[0]
    rows = np.concatenate([np.arange(400), np.full(300, wrong)])
    result = filter_points(problem.points1[rows], problem.points2[rows])
    assert len(np.unique(result.anomaly_scores[rows == wrong])) == 1
    assert f1(result.inlier_mask[:400], problem.labels) > 0.95
    assert not result.inlier_mask[400:].any()


def test_far_away_coordinates_are_as_good_as_near_ones(drawn):
    problem = drawn["plane"]
    far = filter_points(problem.points1 + 1e7, problem.points2 - 1e7)
    assert f1(far.inlier_mask, problem.labels) > 0.95


def test_any_real_array_is_taken_and_none_is_changed(drawn):
    problem = drawn["plane"]
    first, second = np.round(problem.points1), np.round(problem.points2)
    expected = filter_points(first, second).inlier_mask
    wide = np.zeros((400, 4))
    wide[:, ::2] = first
    frozen = first.copy()
    frozen.setflags(write=False)
    for variant in (
        first.astype(np.int32),
        first.astype(np.float32),
        wide[:, ::2],
        frozen,
        first.tolist(),
        first[:, None],
    ):
        before = np.array(variant)
        assert (filter_points(variant, second).inlier_mask == expected).all()
        assert (np.array(variant) == before).all()


def test_swapping_the_images_changes_little(drawn):
    problem = drawn["facade"]
    there, back = filter_points(problem.points1, problem.points2), filter_points(problem.points2, problem.points1)
    assert (there.inlier_mask == back.inlier_mask).mean() > 0.97


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((np.zeros((4, 3)), np.zeros((4, 2))), {}, ValueError, r"`points1` must have shape \(n, 2\), got \(4, 3\)"),
        (
            (np.zeros((4, 2)), np.zeros((5, 2))),
            {},
            ValueError,
            "`points1` and `points2` must have the same length, got 4 and 5",
        ),
        (
            (np.zeros((4, 2)), np.zeros((4, 2))),
            {"model": "affine"},
            ValueError,
            "`model` must be one of 'auto', 'homography', 'fundamental'.*got 'affine'",
        ),
        ((np.zeros((4, 2)), np.zeros((4, 2))), {"model": None}, ValueError, "`model` must be .*got None"),
        ((np.zeros((4, 2)), np.zeros((4, 2))), {"model": 3}, ValueError, "`model` must be .*got 3"),
        ((np.zeros((4, 2)), np.zeros((4, 2))), {"pixel": 0}, ValueError, "`pixel` must be .*above 0, got 0"),
        ((np.zeros((4, 2)), np.zeros((4, 2))), {"pixel": np.inf}, ValueError, "`pixel` must be .*above 0, got inf"),
        ((np.zeros((4, 2)), np.zeros((4, 2))), {"pixel": "1"}, TypeError, "`pixel` must be a number, got '1'"),
        ((np.zeros((4, 2)), np.zeros((4, 2))), {"pixel": None}, TypeError, "`pixel` must be a number, got None"),
        ((np.zeros((4, 2)), np.zeros((4, 2))), {"threshold": 0}, ValueError, "`threshold` must be .*above 0, got 0"),
        ((np.zeros((4, 2)), np.zeros((4, 2))), {"threshold": "3"}, TypeError, "`threshold` must be a number, got '3'"),
        ((np.zeros((4, 2)), np.zeros((4, 2))), {"treshold": 3}, TypeError, "treshold"),
        ((np.zeros((4, 2)), np.zeros((4, 2))), {"rng": -1}, TypeError, "`rng` must be"),
        ((np.zeros((4, 2)), np.zeros((4, 2))), {"n_jobs": 0}, ValueError, "`n_jobs` must be at least 1, got 0"),
        ((np.zeros((4, 2)), np.zeros((4, 2))), {"false_acceptance_rate": 1.5}, ValueError, "between 0 and 1, got 1.5"),
        ((np.array([["a", "b"]]), np.zeros((1, 2))), {}, TypeError, "`points1` must be an array of real numbers"),
    ],
)
def test_bad_arguments_are_named(arguments, options, error, message):
    with pytest.raises(error, match=message):
        filter_points(*arguments, **options)


# OpenCV's own objects.


@pytest.fixture
def keypoints(drawn):
    problem = drawn["facade"]
    kp1, kp2 = (
        [cv2.KeyPoint(float(x), float(y), 5.0) for x, y in points] for points in (problem.points1, problem.points2)
    )
    return problem, kp1, kp2


def test_every_form_of_matches_gives_the_same_mask(keypoints):
    _, kp1, kp2 = keypoints
    flat = [cv2.DMatch(i, i, 0.5) for i in range(400)]
    knn = [(cv2.DMatch(i, i, 0.5), cv2.DMatch(i, (i + 1) % 400, 0.9)) for i in range(400)]
    pairs = np.stack([np.arange(400)] * 2, axis=1)
    masks = [
        filter_matches(kp1, kp2, flat),
        filter_matches(kp1, kp2, knn),
        filter_matches(tuple(kp1), tuple(kp2), tuple(knn), ratio=0.8),
        filter_matches(cv2.KeyPoint_convert(kp1), cv2.KeyPoint_convert(kp2), pairs),
    ]
    assert all((mask == masks[0]).all() for mask in masks)
    assert masks[0].dtype == bool
    assert len(select_matches(knn, masks[0])) == masks[0].sum()


def test_knn_rows_that_fail_the_ratio_test_are_flagged(keypoints):
    _, kp1, kp2 = keypoints
    knn = [(cv2.DMatch(i, i, 0.5), cv2.DMatch(i, (i + 1) % 400, 0.9)) for i in range(400)]
    knn[0], knn[1], knn[2] = (), (knn[1][0],), (knn[2][0], cv2.DMatch(2, 3, 0.51))
    mask = filter_matches(kp1, kp2, knn, ratio=0.8)
    assert mask.shape == (400,)
    assert not mask[:3].any()
    assert mask.any()


@pytest.mark.parametrize(
    ("matches", "error", "message"),
    [
        ([cv2.DMatch(0, 400, 0.1)], IndexError, r"`matches\[0\]` has trainIdx 400, but `kp2` has 400 keypoints"),
        ([cv2.DMatch(0, 0, 0.1), cv2.DMatch(-1, 0, 0.1)], IndexError, r"`matches\[1\]` has queryIdx"),
        (np.array([[0, 1, 2]]), ValueError, r"index pairs of shape \(n, 2\)"),
        (np.array([[0.5, 1.0]]), TypeError, "integer index pairs"),
        (5, TypeError, "`matches` must be a sequence"),
    ],
)
def test_bad_matches_are_named(keypoints, matches, error, message):
    _, kp1, kp2 = keypoints
    with pytest.raises(error, match=message):
        filter_matches(kp1, kp2, matches)


def test_no_matches_give_an_empty_mask(keypoints):
    _, kp1, kp2 = keypoints
    assert filter_matches(kp1, kp2, []).shape == (0,)
    assert filter_matches([], [], ()).shape == (0,)


@pytest.mark.parametrize("name", ["neem", "biscuitbookbox"])
def test_labelled_scenes_of_adelaidermf(scene, name):
    labelled = scene(name)
    result = filter_points(labelled.points1, labelled.points2)
    assert f1(result.inlier_mask, labelled.labels) > 0.95


@pytest.mark.parametrize("name", ["plane", "facade"])
def test_a_threshold_as_tight_as_ransacs_keeps_planes_that_are_noisier(drawn, name):
    # Noise of 0.7 px in both images leaves residuals up to about 3 px.
    problem = drawn[name]
    result = filter_points(problem.points1, problem.points2, model="homography", threshold=3.0)
    assert f1(result.inlier_mask, problem.labels) > 0.9
