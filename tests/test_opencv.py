"""One model in OpenCV's form: its contract, on every form of input OpenCV takes, and its accuracy against the truth."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from drawn_scenes import facade_scene, plane_scene, rigid_scene
from hostile import check_matrix
from naive import apply
from posed_views import FLOOR, WALL, on_plane, views
from rendering import Correspondences, draw_correspondences
from two_views import motion, plane

from ruzhash_cv import filter_points, find_essential_matrix, find_fundamental_matrix, find_homography
from ruzhash_cv.filtering import MOST_SAMPLES
from ruzhash_cv.models import sampson_distance, transfer_error
from ruzhash_cv.opencv import ROBUST_METHODS

FINDERS = (find_homography, find_fundamental_matrix)


def error_in_second_image(points1: np.ndarray, points2: np.ndarray, model: np.ndarray) -> np.ndarray:
    """Distances (n,) that OpenCV's threshold of a homography bounds."""
    return np.asarray(np.linalg.norm(apply(model, points1) - points2, axis=1))


DISTANCES = {find_homography: error_in_second_image, find_fundamental_matrix: sampson_distance}
THEIRS: Any = {find_homography: cv2.findHomography, find_fundamental_matrix: cv2.findFundamentalMat}
NAMES = ["homography", "fundamental"]

Finder = Callable[..., tuple[Any, np.ndarray]]
each_finder = pytest.mark.parametrize("find", FINDERS, ids=NAMES)


def drawn(find: Finder, **options: Any) -> Correspondences:
    """Matches of one plane, or of one rigid scene, a third of them mismatches."""
    scene = plane_scene(rng=3) if find is find_homography else rigid_scene(rng=3)
    return draw_correspondences(scene, 300, **{"mismatch_rate": 0.3, "noise": 0.7, "rng": 4} | options)


# What comes out


@each_finder
@pytest.mark.parametrize("threshold", [2.5, 3.0])
def test_model_has_opencv_s_form_and_the_mask_its_matches_within_the_threshold(find: Finder, threshold: float) -> None:
    pair = drawn(find)
    model, mask = find(pair.points1, pair.points2, threshold=threshold)
    check_matrix(model, mask, 300)
    assert model[2, 2] == 1.0
    assert find is find_homography or np.linalg.svd(model)[1][2] < 1e-12 * np.linalg.norm(model)
    opencv, its_mask = THEIRS[find](pair.points1, pair.points2, cv2.RANSAC, 3.0)
    assert (model.shape, model.dtype) == (opencv.shape, opencv.dtype)
    assert (mask.shape, mask.dtype) == (its_mask.shape, its_mask.dtype)
    kept, true = mask.ravel() > 0, pair.labels > 0
    np.testing.assert_array_equal(kept, DISTANCES[find](pair.points1, pair.points2, model) <= threshold)
    assert 2 * (kept & true).sum() / (kept.sum() + true.sum()) > 0.93


@each_finder
def test_pixel_is_the_unit_of_the_default_threshold(find: Finder) -> None:
    """Coordinates, `pixel` and threshold all scaled by a power of two give the same mask."""
    pair, pixel = drawn(find), 2.0**-10
    points = pixel * pair.points1, pixel * pair.points2
    expected = find(pair.points1, pair.points2)[1]
    np.testing.assert_array_equal(find(*points, pixel=pixel)[1], expected)
    np.testing.assert_array_equal(find(*points, threshold=3.0 * pixel, pixel=pixel)[1], expected)


@each_finder
def test_about_as_many_matches_lie_within_the_threshold_as_of_opencv_s_best_flag(find: Finder) -> None:
    for seed in range(4):
        scene = facade_scene(3, rng=seed) if find is find_homography else rigid_scene(rng=seed)
        pair = draw_correspondences(scene, 400, mismatch_rate=0.3, noise=0.7, rng=seed)
        points = pair.points1, pair.points2
        options = {"maxIters": 10_000, "confidence": 0.999}
        models = [THEIRS[find](*points, flag, 3.0, **options)[0] for flag in (cv2.RANSAC, cv2.USAC_MAGSAC)]
        most = max(int((DISTANCES[find](*points, model) <= 3.0).sum()) for model in models if np.shape(model) == (3, 3))
        assert find(*points)[1].sum() >= 0.97 * most


@each_finder
def test_another_seed_finds_about_as_many_matches(find: Finder) -> None:
    pair = drawn(find)
    n_found = [int(find(pair.points1, pair.points2, rng=seed)[1].sum()) for seed in range(5)]
    assert min(n_found) >= 0.97 * max(n_found)
    for first, again in zip(*(find(pair.points1, pair.points2, rng=7) for _ in range(2)), strict=True):
        np.testing.assert_array_equal(first, again)


def test_static_matches_that_other_ones_scatter_around_are_one_plane_with_them() -> None:
    """Land stands still, and more of the water beside it moves by some pixels any way: the land is no overlay."""
    corners = np.array([[[0.0, 0.0], [2000.0, 0.0], [2000.0, 1200.0], [0.0, 1200.0]]])
    for seed in range(4):
        rng = np.random.default_rng(seed)
        first = np.vstack([rng.uniform([0, 700], [2000, 1200], (200, 2)), rng.uniform([0, 200], [2000, 700], (300, 2))])
        second = first + 0.05 + rng.normal(0, np.repeat([0.15, 4.0], [200, 300])[:, None], first.shape)
        H, _ = find_homography(first, second, cv2.RANSAC, 1.0)
        assert np.abs(cv2.perspectiveTransform(corners, H) - corners).max() < 3.0


@each_finder
def test_static_matches_are_not_the_model_if_more_matches_moved(find: Finder) -> None:
    pair = drawn(find)
    still = np.random.default_rng(0).uniform([20, 20], [160, 60], (60, 2))
    points = np.vstack([pair.points1, still]), np.vstack([pair.points2, still])
    model, mask = find(*points)
    assert mask[:300].sum() >= 0.94 * find(pair.points1, pair.points2)[1].sum()
    assert np.abs(model / np.linalg.norm(model) - np.eye(3) / 3**0.5).max() > 0.01
    assert find(still, still)[1].all()


def test_an_overlay_of_more_matches_than_each_plane_is_not_the_homography_while_all_planes_have_more() -> None:
    rng = np.random.default_rng(3)
    points1 = np.vstack([rng.uniform(low, high, (60, 2)) for low, high in ((0, [300, 500]), ([350, 0], [700, 500]))])
    points2 = np.where(np.arange(120)[:, None] < 60, 1.1 * points1 + [30, 8], 0.8 * points1 + [90, 30])
    still = rng.uniform([0, 520], [700, 600], (90, 2))
    _, mask = find_homography(np.vstack([points1, still]), np.vstack([points2, still]))
    assert sorted([mask[:60].sum(), mask[60:120].sum()]) == [0, 60]
    assert not mask[120:].any()


@pytest.mark.parametrize(("n", "rate"), [(40, 0.7), (100, 0.0)])
def test_a_plane_has_one_of_the_fundamental_matrices_that_fit_it(n: int, rate: float) -> None:
    pair = draw_correspondences(plane_scene(rng=3), n, mismatch_rate=rate, noise=0.5, rng=4)
    true = pair.labels > 0
    model, mask = find_fundamental_matrix(pair.points1, pair.points2)
    assert np.quantile(sampson_distance(pair.points1, pair.points2, model)[true], 0.97) < 3.0
    assert mask.ravel()[true].mean() > 0.97


def test_the_fundamental_matrix_is_that_of_the_first_motion() -> None:
    rng = np.random.default_rng(0)
    points1, points2 = views(
        np.vstack([on_plane(WALL, 100, rng), on_plane(FLOOR, 100, rng), on_plane(WALL, 50, rng, 0.4, 0.9)])
    )
    points2[:60] = rng.uniform(0, 600, (60, 2))
    first = filter_points(points1, points2).motions[0]
    assert first.kind == "fundamental"
    for threshold in (1.0, 3.0):
        model, _ = find_fundamental_matrix(points1, points2, threshold=threshold)
        np.testing.assert_allclose(model, first.matrix / first.matrix[2, 2], rtol=1e-9)


def test_the_few_matches_before_a_wall_decide_between_its_fundamental_matrices() -> None:
    """20 on the wall, which is a lone plane, 8 before it and 8 wrong: USAC_MAGSAC has .9 within 2 px."""
    errors = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        space = np.vstack(
            [
                rng.uniform([-1.6, -1.2, 3.98], [1.6, 1.2, 4.02], (20, 3)),
                rng.uniform([-1, -0.6, 2.6], [1, 1, 3.8], (8, 3)),
            ]
        )
        exact = rng.uniform([-1.5, -1.1, 2.5], [1.5, 1.1, 4.5], (200, 3))
        first, second, *true = (
            900.0 * (X - [at, 0, 0])[:, :2] / X[:, 2:] for X in (space, exact) for at in (0.0, 0.35)
        )
        wrong = rng.uniform(-400, 400, (2, 8, 2))
        pair = (np.vstack([points, other]) for points, other in zip((first, second), wrong, strict=True))
        model, _ = find_fundamental_matrix(*(points + rng.normal(0.0, 0.8, points.shape) for points in pair))
        errors.append(np.median(sampson_distance(*true, model)))
    assert (np.array(errors) < 1.5).mean() > 0.7


def test_the_model_is_one_plane_alone() -> None:
    pair = draw_correspondences(facade_scene(3, rng=5), 600, mismatch_rate=0.3, noise=0.5, weights="uneven", rng=6)
    model, mask = find_homography(pair.points1, pair.points2)
    held = [mask.ravel()[pair.labels == label].mean() for label in range(4)]
    own = int(np.argmax(held))
    assert own > 0
    assert held[own] > 0.9
    assert mask.ravel()[pair.labels != own].mean() < 0.3
    assert np.median(transfer_error(pair.points1, pair.points2, model)[pair.labels == own]) < 2.0


def test_a_homography_that_sends_the_origin_to_infinity_keeps_unit_norm() -> None:
    points1 = np.random.default_rng(0).uniform(100, 500, (100, 2))
    points2 = 3e4 / points1[:, :1] * np.column_stack([np.ones(100), points1[:, 1] / 100])
    with pytest.warns(UserWarning, match="the second image mirrors the first"):
        model, mask = find_homography(points1, points2)
    assert mask.all()
    assert np.linalg.norm(model) == pytest.approx(1.0)
    assert transfer_error(points1, points2, model).max() < 1e-3


@pytest.mark.parametrize(("find", "n"), [*((find_homography, n) for n in (4, 5, 6, 7)), (find_fundamental_matrix, 7)])
def test_a_few_exact_points_give_the_matrix_as_opencv_does(find: Finder, n: int) -> None:
    for seed in range(20):
        points1, points2 = np.hsplit((plane if find is find_homography else motion)(n, seed=seed), 2)
        model, mask = find(points1, points2)
        assert mask.all()
        assert DISTANCES[find](points1, points2, model).max() < 0.01
    points2[0] += 100.0
    if n > 5:
        assert find_homography(points1, points2)[1].sum() >= 4


@pytest.mark.parametrize("n", [4, 9, 50])
def test_points_on_a_line_have_no_matrix(n: int) -> None:
    points = np.linspace(0.0, 300.0, n)[:, None] * [0.8, 0.6] + 20.0
    for find in (find_homography, find_fundamental_matrix):
        for moved in (points, points + 5.0, 1.1 * points):
            model, mask = find(points, moved)
            assert model is None, find
            assert not mask.any(), find


def all_pairs(points1: np.ndarray, points2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(points1, len(points2), axis=0), np.tile(points2, (len(points1), 1))


def test_all_pairs_of_eight_points_give_their_homography() -> None:
    right = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        points1 = rng.uniform(20, 460, (8, 2))
        bend = np.eye(3) + np.append(rng.normal(0, 0.1, 6), [1e-4, 1e-4, 0]).reshape(3, 3)
        points2 = apply(bend, points1) + rng.normal(0, 0.5, (8, 2))
        H, _ = find_homography(*all_pairs(points1, points2), rng=seed)
        right += H is not None and np.abs(apply(H, points1) - points2).max() < 6.0
    assert right >= 8


def test_half_of_few_exact_matches_give_a_rectified_pair_its_rows() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        points1 = np.vstack([rng.uniform([200, 0], [1280, 960], (40, 2)), rng.uniform(0, 960, (40, 2))])
        points2 = points1 - np.column_stack([rng.uniform(50, 150, 80), np.zeros(80)])
        points2[40:] = rng.uniform(0, 960, (40, 2))
        F, _ = find_fundamental_matrix(points1, points2)
        rows = rng.uniform(100, 900, (50, 2))
        assert sampson_distance(rows, rows - [60.0, 0.0], F).max() < 0.1


@pytest.mark.parametrize("scale", [0.3, 0.15, 0.08])
def test_a_photograph_of_a_finer_scan_has_its_plane(scale: float) -> None:
    """Noise of half a pixel of the photograph is several of the scan."""
    corners = np.float32([[0, 0], [3000, 0], [3000, 4000], [0, 4000]])
    for seed in range(4):
        rng = np.random.default_rng(seed)
        seen = np.array([[0.2, 0.12], [0.8, 0.1], [0.83, 0.88], [0.17, 0.9]]) + rng.uniform(-0.04, 0.04, (4, 2))
        size = scale * np.array([4800.0, 5200.0])
        truth = cv2.getPerspectiveTransform(corners, np.float32(seen * size))
        scan, photo = rng.uniform([0, 0], [3000, 4000], (120, 2)), rng.uniform([0, 0], size, (120, 2))
        photo[:60] = apply(truth, scan[:60]) + rng.normal(0, 0.5, (60, 2))
        assert find_homography(scan, photo)[1][:60].mean() > 0.95
        for pair in ((scan, photo), (photo, scan)):
            result = filter_points(*pair, threshold=3.0)
            assert result.motions[0].kind == "homography"
            assert result.inlier_mask[:60].mean() > 0.95 > 0.2 > result.inlier_mask[60:].mean()


@pytest.mark.parametrize("degrees", [1e-5, 1e-3, 0.2])
def test_each_image_may_have_a_pixel_of_its_unit(degrees: float) -> None:
    rng = np.random.default_rng(0)
    points1, points2 = rng.uniform([0, 0], [1900, 1000], (2, 90, 2))
    points2[:60] = points1[:60] @ [[1.0, 0.08], [0.1, 1.0]] + rng.normal(0, 0.3, (60, 2))
    where, true = degrees * points2 + [28.6, -81.19], np.arange(90) < 60
    pixel = (1.0, degrees)
    for threshold in (None, 3.0 * degrees):
        _, mask = find_homography(points1, where, threshold=threshold, pixel=pixel)
        assert (mask.ravel()[true] > 0).all()
        assert mask.ravel()[~true].mean() < 0.1
    result = filter_points(points1, where, pixel=pixel)
    assert (result.inlier_mask == true).mean() > 0.97
    assert result.motions[0].noise_scale == pytest.approx(0.3 * degrees, rel=0.3)
    assert find_fundamental_matrix(points1, where, pixel=pixel)[1][:60].mean() > 0.95
    if degrees < 1e-3:
        assert "all points of the second image lie within 0.0" in str(filter_points(points1, where).reason)


# What goes in


@each_finder
def test_the_arguments_of_an_opencv_call_need_no_change(find: Finder) -> None:
    """The default threshold is OpenCV's 3 pixels; points may have its names, and be a UMat."""
    pair = drawn(find)
    points, mask = [each.astype(np.float32) for each in (pair.points1, pair.points2)], np.zeros((300, 1), np.uint8)
    expected = find(*points)
    methods = cv2.RANSAC, cv2.LMEDS, cv2.RHO, cv2.FM_RANSAC, cv2.FM_LMEDS, cv2.USAC_MAGSAC
    further = (mask, 2000, 0.99) if find is find_homography else (0.99, 2000, mask)
    named = {"maxIters": 2000, "confidence": 0.99, "mask": mask}
    names = [("srcPoints", "dstPoints"), ("points1", "dstPoints"), ("srcPoints", "points2")]
    for model, inliers in (
        *(find(*points, method, 3.0) for method in methods),
        find(*points, cv2.RANSAC, 3.0, *further),
        find(*points, method=cv2.RANSAC, ransacReprojThreshold=3.0, **named),
        find(*points, threshold=3.0),
        find(*points, ransacReprojThreshold=3.0),
        find(*map(cv2.UMat, points)),
        *(find(**dict(zip(of, points, strict=True))) for of in names if find is find_homography),
    ):
        np.testing.assert_array_equal(model, expected[0])
        np.testing.assert_array_equal(inliers, expected[1])


USAC = cv2.UsacParams()
USAC.threshold, USAC.confidence, USAC.maxIterations = 2.5, 0.9, 700
CAMERA = np.array([[700.0, 0.0, 320.0], [0.0, 700.0, 240.0], [0.0, 0.0, 1.0]])
SOME = np.random.default_rng(0).uniform(0, 500, (20, 2))


@pytest.mark.parametrize(
    ("find", "arguments", "named", "expected"),
    [
        (find_homography, (cv2.RANSAC, 3.0, None, 2000, 0.995), {}, (3.0, 0.995, 2000)),
        (find_homography, (), {"confidence": 0.9}, (3.0, 0.9, MOST_SAMPLES)),
        (find_homography, (USAC,), {}, (2.5, 0.9, 700)),
        (find_fundamental_matrix, (cv2.FM_RANSAC, 2.0, 0.99, 500), {}, (2.0, 0.99, 500)),
        (find_fundamental_matrix, (), {"maxIters": 500}, (3.0, None, 500)),
        (find_fundamental_matrix, (USAC,), {}, (2.5, 0.9, 700)),
        (find_essential_matrix, (CAMERA, cv2.RANSAC, 0.99, 2.0, 500), {}, (2.0, 0.99, 500)),
        (find_essential_matrix, (CAMERA, None, CAMERA, None, cv2.RANSAC, 0.99, 2.0), {}, (2.0, 0.99, MOST_SAMPLES)),
        (find_essential_matrix, (700.0, (320, 240)), {"prob": 0.9, "maxIters": 9}, (1.0, 0.9, 9)),
        (find_essential_matrix, (CAMERA, CAMERA, None, None, USAC), {}, (2.5, 0.9, 700)),
        (find_essential_matrix, (CAMERA, CAMERA, None, None), {"params": USAC}, (2.5, 0.9, 700)),
        (find_essential_matrix, (CAMERA,), {}, (1.0, None, None)),
    ],
)
def test_threshold_confidence_and_iterations_are_read(
    find: Finder, arguments: Any, named: dict[str, Any], expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    monkeypatch.setattr("ruzhash_cv.opencv.find_matrix", lambda kind, matches, *given: read.append(given[:2]))
    assert find(SOME, SOME, *arguments, **named)[0] is None
    ((threshold, parameters),) = read
    assert (threshold, parameters.confidence, parameters.max_samples) == expected


def test_the_robust_methods_are_opencv_s() -> None:
    named = {value for name, value in vars(cv2).items() if name.startswith(("RANSAC", "LMEDS", "RHO", "FM_", "USAC_"))}
    assert set(ROBUST_METHODS) == {cv2.LMEDS, cv2.RANSAC, cv2.RHO, *range(cv2.USAC_DEFAULT, cv2.USAC_MAGSAC + 1)}
    assert set(ROBUST_METHODS) <= named


@each_finder
def test_points_without_their_unit_are_warned_of(find: Finder) -> None:
    pair, pixel = drawn(find), 1.0 / 700.0
    points = pixel * pair.points1, pixel * pair.points2
    message = r"all points of the \w+ image lie within \d\.\d+ units; if the unit is not the pixel, give `pixel`"
    with pytest.warns(UserWarning, match=message) as warned:
        assert find(*points)[0] is None
    assert [Path(each.filename) for each in warned] == [Path(__file__)]


@each_finder
def test_an_image_of_rows_and_columns_is_warned_of(find: Finder) -> None:
    pair = drawn(find)
    with pytest.warns(UserWarning, match=r"mirrors the first: are the points of one image \(row, column\)"):
        _, mask = find(pair.points1, pair.points2[:, ::-1])
    assert mask.mean() > 0.5


# Where there is no answer


@pytest.mark.parametrize(
    ("find", "points1", "points2"),
    [
        *((find_homography, SOME[:n], SOME[:n] + 5.0) for n in (0, 3)),
        *((find_fundamental_matrix, SOME[:n], SOME[:n] + 5.0) for n in (1, 6)),
        *((find, *np.random.default_rng(1).uniform(0, 500, (2, 100, 2))) for find in FINDERS),
        *((find_homography, *all_pairs(*np.random.default_rng(seed).uniform(0, 500, (2, 3, 2)))) for seed in range(10)),
        (partial(find_essential_matrix, cameraMatrix=CAMERA), np.zeros((5, 2)), np.zeros((5, 2))),
    ],
)
def test_points_that_determine_no_model_give_none_and_an_empty_mask(find: Finder, points1: Any, points2: Any) -> None:
    model, mask = find(points1, points2)
    assert model is None
    check_matrix(model, mask, len(points1))


@pytest.mark.parametrize(("n", "n_wrong"), [(8, 1), (9, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_eight_or_nine_control_points_have_the_homography_of_the_true_ones(n: int, n_wrong: int, seed: int) -> None:
    rng, data = np.random.default_rng(seed), plane(n, 0.3, seed)
    data[:n_wrong, 2:] += rng.uniform(200.0, 300.0, (n_wrong, 2))
    model, mask = find_homography(data[:, :2], data[:, 2:])
    assert mask.ravel().tolist() == [0] * n_wrong + [1] * (n - n_wrong)
    assert error_in_second_image(*np.hsplit(data[n_wrong:], 2), model).max() < 3.0
    assert filter_points(data[:, :2], data[:, 2:]).inlier_mask.tolist() == (np.arange(n) >= n_wrong).tolist()


@pytest.mark.parametrize("n", [8, 9])
@pytest.mark.parametrize("seed", range(3))
def test_eight_or_nine_control_points_in_space_have_a_fundamental_matrix(n: int, seed: int) -> None:
    """Of nine, one of them wrong, the eight true ones are one of nine sets that a matrix fits nearly as well."""
    data = motion(n, 0.2, seed)
    data[: n - 8, 2:] += [60.0, 150.0]
    model, mask = find_fundamental_matrix(data[:, :2], data[:, 2:])
    assert sampson_distance(data[:, :2], data[:, 2:], model)[mask.ravel() > 0].max() < 3.0
    assert mask.sum() >= 8


#: A homography with the horizon x = 300.
HORIZON = np.array([[1.0, 0.1, 20.0], [0.05, 1.1, 5.0], [0.004, 0.0, -1.2]])


@pytest.mark.parametrize("n", [5, 6, 7, 9, 40])
def test_a_homography_with_inliers_on_both_sides_of_its_horizon_is_not_returned(n: int) -> None:
    sides = []
    for seed in range(6):
        points1 = np.random.default_rng(seed).uniform(0, 600, (n, 2))
        model, mask = find_homography(points1, apply(HORIZON, points1))
        depths = np.column_stack([points1, np.ones(n)])[mask.ravel() > 0] @ (np.zeros(3) if model is None else model[2])
        sides.append(len(set(np.sign(depths).tolist())))
    assert max(sides) <= 1


@pytest.mark.slow
def test_few_sets_of_random_matches_get_a_fundamental_matrix() -> None:
    """As documented: about one in twenty. Of 40 sets 8 or more have one with a probability of 0.1 percent."""
    crowds = (np.random.default_rng([80, seed]).uniform(0, 500, (2, 80, 2)) for seed in range(40))
    assert sum(find_fundamental_matrix(*crowd)[0] is not None for crowd in crowds) < 8


@each_finder
def test_rows_that_are_not_finite_are_no_inliers_and_change_nothing(find: Finder) -> None:
    pair = drawn(find)
    expected, expected_mask = find(pair.points1, pair.points2)
    bad = np.array([[np.nan, 1.0], [1.0, np.inf]])
    model, mask = find(np.vstack([pair.points1, bad]), np.vstack([pair.points2, bad]))
    assert not mask[300:].any()
    np.testing.assert_array_equal(mask[:300], expected_mask)
    np.testing.assert_allclose(model, expected, rtol=1e-6, atol=1e-9)
