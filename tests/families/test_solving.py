"""Models of minimal samples and distances from them, in pixels: against twins and against what they mean in the images."""

from __future__ import annotations

import cv2
import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from two_views import motion, plane, random_fundamental_matrices, random_homographies

from ruzhash_cv import draw_samples, sampson_distance, solve_models, transfer_error
from ruzhash_cv.families.solving import FAMILIES


def halves(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return pairs[:, :2], pairs[:, 2:]


# Models


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e7])
def test_homographies_pass_through_their_samples(offset: float) -> None:
    points1, points2 = halves(plane(80) + offset)
    samples = draw_samples(points1, points2, sample_size=4, n_samples=60).indices
    models = solve_models(points1, points2, samples, kind="homography")
    np.testing.assert_allclose(np.linalg.norm(models.matrices, axis=(1, 2)), 1)
    if offset < 1e7:  # a 3x3 matrix of pixels that far away has too few digits for residuals of pixels
        for matrix, owner in zip(models.matrices, models.sample_index, strict=True):
            rows = samples[owner]
            assert transfer_error(points1[rows], points2[rows], matrix).max() < 0.01


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_homographies_equal_their_twin_and_opencv_s(seed: int) -> None:
    corners = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
    noise = np.random.default_rng(seed).uniform(-0.4, 0.4, (9, 4, 4))
    samples = (np.hstack([corners, corners]) + noise).astype(np.float32)
    models, owner = FAMILIES["homography"].solve(samples.astype(np.float64))
    assert owner.tolist() == list(range(9))
    for sample, model in zip(samples, models, strict=True):
        twin = naive.of_unit_norm(naive.homography_through(sample.astype(np.float64))).ravel()
        theirs = naive.of_unit_norm(cv2.getPerspectiveTransform(sample[:, :2].copy(), sample[:, 2:].copy())).ravel()
        np.testing.assert_allclose(model, twin * np.sign(twin @ model), atol=1e-12)
        np.testing.assert_allclose(model, theirs * np.sign(theirs @ model), atol=1e-6)  # products of float32


def test_homographies_of_a_plane_are_the_plane_s() -> None:
    points1, points2 = halves(plane(80))
    samples = draw_samples(points1, points2, sample_size=4, n_samples=40, min_spread=100, neighbourhoods=None).indices
    models = solve_models(points1, points2, samples, kind="homography")
    assert transfer_error(points1, points2, models.matrices).max() < 0.1


def test_fundamental_matrices_pass_through_their_samples_up_to_three_each() -> None:
    points1, points2 = halves(motion(80))
    samples = draw_samples(points1, points2, sample_size=7, n_samples=60).indices
    models = solve_models(points1, points2, samples, kind="fundamental")
    counts = np.bincount(models.sample_index, minlength=60)
    assert counts.max() <= 3
    assert (counts > 0).mean() > 0.95
    residuals = np.array(
        [
            sampson_distance(points1[samples[owner]], points2[samples[owner]], matrix).max()
            for matrix, owner in zip(models.matrices, models.sample_index, strict=True)
        ]
    )
    assert np.median(residuals) < 0.01
    best = sampson_distance(points1, points2, models.matrices).max(axis=0)
    assert np.median([best[models.sample_index == owner].min() for owner in range(60) if counts[owner]]) < 1.0
    np.testing.assert_allclose(np.linalg.det(models.matrices), 0, atol=1e-9)


def test_degenerate_samples_give_no_model_and_are_counted() -> None:
    points = np.array([[0.0, 0], [1, 1], [2, 2], [3, 3], [9, 0], [0, 9]])
    models = solve_models(points, points, [[0, 1, 2, 3], [0, 3, 4, 5], [0, 0, 0, 0]], kind="homography")
    assert set(models.sample_index) <= {1}
    assert models.n_degenerate >= 2
    assert np.isfinite(models.matrices).all()
    models = solve_models(np.zeros((7, 2)), np.zeros((7, 2)), [range(7)], kind="fundamental")
    assert len(models) + models.n_degenerate >= 1
    assert np.isfinite(models.matrices).all()


@pytest.mark.parametrize(("kind", "size"), [("homography", 4), ("fundamental", 7)])
def test_no_samples_give_no_models(kind: str, size: int) -> None:
    models = solve_models(np.zeros((9, 2)), np.zeros((9, 2)), np.zeros((0, size), int), kind=kind)
    assert (models.matrices.shape, len(models), models.kind, models.n_degenerate) == ((0, 3, 3), 0, kind, 0)


def test_wrong_samples_are_named() -> None:
    points = np.random.default_rng(0).uniform(0, 9, (9, 2))
    with pytest.raises(ValueError, match=r"`samples` must have shape \(m, 4\), got \(4, 7\)"):
        solve_models(points, points, np.zeros((4, 7), int), kind="homography")
    with pytest.raises(TypeError, match="`samples` must hold integers, got dtype float64"):
        solve_models(points, points, np.zeros((1, 4)), kind="homography")
    with pytest.raises(IndexError, match="`samples` must hold row numbers below 9, got 9"):
        solve_models(points, points, [[0, 1, 2, 9]], kind="homography")
    with pytest.raises(ValueError, match="`kind` must be one of 'homography', 'fundamental', got 'affine'"):
        solve_models(points, points, [[0, 1, 2, 3]], kind="affine")
    with pytest.raises(ValueError, match="must have the same length, got 9 and 8"):
        solve_models(points, points[:8], [[0, 1, 2, 3]], kind="homography")


# Distances


@pytest.mark.parametrize("n", [1, 2, 37])
@pytest.mark.parametrize("m", [1, 5])
def test_residuals_equal_their_numpy_twins(n: int, m: int) -> None:
    rng = np.random.default_rng(10 * n + m)
    points1, points2 = rng.uniform(0, 600, (2, n, 2))
    H, F = random_homographies(rng, m), random_fundamental_matrices(rng, m)
    pairs = np.hstack([points1, points2])
    for function, twin, models in (
        (transfer_error, naive.transfer_error, H),
        (sampson_distance, naive.sampson_distance, F),
    ):
        expected = np.column_stack([twin(pairs, model) for model in models])
        np.testing.assert_allclose(function(points1, points2, models), expected, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(function(points1, points2, models[0]), expected[:, 0], rtol=1e-6, atol=1e-7)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), scale=st.sampled_from([1e-6, 1.0, -3.0, 1e6]))
def test_residuals_do_not_depend_on_the_models_scale(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    points1, points2 = rng.uniform(0, 600, (2, 6, 2))
    H, F = random_homographies(rng, 2), random_fundamental_matrices(rng, 2)
    for function, models in ((transfer_error, H), (sampson_distance, F)):
        once = function(points1, points2, models)
        np.testing.assert_allclose(function(points1, points2, scale * models), once, rtol=1e-6)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_swapping_the_images_gives_the_same_residuals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points1, points2 = rng.uniform(0, 600, (2, 6, 2))
    H, F = random_homographies(rng, 1)[0], random_fundamental_matrices(rng, 1)[0]
    # 1e-5: what is left of inv(inv(H)) and of cancellation near the horizon.
    np.testing.assert_allclose(
        transfer_error(points2, points1, np.linalg.inv(H)), transfer_error(points1, points2, H), rtol=1e-5
    )
    np.testing.assert_allclose(
        sampson_distance(points2, points1, F.T), sampson_distance(points1, points2, F), rtol=1e-8, atol=1e-9
    )


def test_transfer_error_is_zero_on_the_homography_and_the_shift_off_it() -> None:
    points = np.random.default_rng(0).uniform(0, 500, (20, 2))
    shift = np.array([[1.0, 0.0, 30.0], [0.0, 1.0, -7.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(transfer_error(points, points + np.array([30, -7]), shift), 0, atol=1e-10)
    np.testing.assert_allclose(transfer_error(points, points + np.array([33, -3]), shift), 5)


def test_transfer_error_is_the_larger_of_the_two_images() -> None:
    assert transfer_error([[0.0, 0.0]], [[8.0, 0.0]], np.diag([4.0, 4.0, 1.0]))[0] == pytest.approx(8.0)
    assert transfer_error([[8.0, 0.0]], [[0.0, 0.0]], np.diag([0.25, 0.25, 1.0]))[0] == pytest.approx(8.0)


def test_sampson_distance_is_zero_on_epipolar_lines() -> None:
    rng = np.random.default_rng(0)
    F = random_fundamental_matrices(rng, 1)[0]
    points1 = rng.uniform(0, 500, (30, 2))
    a, b, c = F @ np.column_stack([points1, np.ones(30)]).T
    x = rng.uniform(0, 500, 30)
    assert sampson_distance(points1, np.column_stack([x, -(a * x + c) / b]), F).max() < 1e-8


def test_sampson_distance_shares_the_offset_between_two_sideways_images() -> None:
    """A vertical offset d between rectified images is undone by moving both points by d / 2: d / sqrt(2) together."""
    sideways = [[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
    assert sampson_distance([[10.0, 20.0]], [[90.0, 26.0]], sideways)[0] == pytest.approx(6 / np.sqrt(2))


def test_points_at_infinity_and_singular_homographies_are_infinitely_far() -> None:
    horizon = np.array([[1.0, 0, 0], [0, 1.0, 0], [-0.01, 0, 1.0]])  # x = 100 goes to infinity
    assert transfer_error([[100.0, 5.0]], [[3.0, 4.0]], horizon)[0] == np.inf
    assert transfer_error([[1.0, 5.0]], [[3.0, 4.0]], np.zeros((3, 3)))[0] == np.inf
    flat = np.array([[1.0, 0, 0], [0, 0, 0], [0, 0, 1.0]])
    assert transfer_error([[3.0, 0.0]], [[3.0, 0.0]], flat)[0] == np.inf


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_points_and_models_that_are_not_finite_are_infinitely_far(bad: float) -> None:
    for function in (transfer_error, sampson_distance):
        assert function([[bad, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, bad]], np.eye(3)).tolist() == [np.inf] * 2
        assert function([[1.0, 1.0]], [[1.0, 1.0]], np.full((3, 3), np.nan))[0] == np.inf


def test_no_points_and_no_models_give_empty_residuals() -> None:
    assert transfer_error(np.zeros((0, 2)), np.zeros((0, 2)), np.eye(3)).shape == (0,)
    assert sampson_distance(np.zeros((3, 2)), np.zeros((3, 2)), np.zeros((0, 3, 3))).shape == (3, 0)


@pytest.mark.parametrize(
    ("points1", "points2", "model", "message"),
    [
        (
            np.zeros((3, 2)),
            np.zeros((4, 2)),
            np.eye(3),
            "`points1` and `points2` must have the same length, got 3 and 4",
        ),
        (np.zeros((3, 3)), np.zeros((3, 2)), np.eye(3), r"`points1` must have shape \(n, 2\), got \(3, 3\)"),
        (np.zeros((3, 2)), np.zeros((3, 2)), np.eye(2), r"must have shape \(3, 3\) or \(m, 3, 3\), got \(2, 2\)"),
    ],
)
def test_wrong_shapes_are_named(points1: np.ndarray, points2: np.ndarray, model: np.ndarray, message: str) -> None:
    for function in (transfer_error, sampson_distance):
        with pytest.raises(ValueError, match=message):
            function(points1, points2, model)
