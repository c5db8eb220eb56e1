"""Minimal solvers: models pass through their samples, degenerate ones are dropped and counted."""

from __future__ import annotations

import numpy as np
import pytest

from ruzhash_cv import draw_samples, sampson_distance, solve_models, transfer_error
from ruzhash_cv.models import Frame, unit_norm

H = np.array([[0.9, 0.1, 20], [-0.05, 1.1, 5], [1e-4, 2e-4, 1]])


def on_a_plane(n: int, offset: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    points1 = np.random.default_rng(n).uniform(0, 600, (n, 2))
    mapped = np.column_stack([points1, np.ones(n)]) @ H.T
    return points1 + offset, mapped[:, :2] / mapped[:, 2:] + offset


def in_space(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two views of random points in space."""
    rng = np.random.default_rng(n)
    points = np.column_stack([rng.uniform(-1, 1, (n, 2)), rng.uniform(3, 6, n)])
    angle = 0.2
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    seen = points @ turn.T + [-0.8, 0.1, 0.2]
    return tuple(900 * view[:, :2] / view[:, 2:] + [400, 300] for view in (points, seen))


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e7])
def test_homographies_pass_through_their_samples(offset: float) -> None:
    points1, points2 = on_a_plane(80, offset)
    samples = draw_samples(points1, points2, sample_size=4, n_samples=60).indices
    models = solve_models(points1, points2, samples, kind="homography")
    np.testing.assert_allclose(np.linalg.norm(models.matrices, axis=(1, 2)), 1)
    if offset < 1e7:  # a 3x3 matrix of pixels that far away has too few digits for residuals of pixels
        for matrix, owner in zip(models.matrices, models.sample_index, strict=True):
            rows = samples[owner]
            assert transfer_error(points1[rows], points2[rows], matrix).max() < 0.01


def test_homographies_of_a_plane_are_the_plane_s() -> None:
    points1, points2 = on_a_plane(80)
    samples = draw_samples(points1, points2, sample_size=4, n_samples=40, min_spread=100, neighbourhoods=None).indices
    models = solve_models(points1, points2, samples, kind="homography")
    assert transfer_error(points1, points2, models.matrices).max() < 0.1


def test_fundamental_matrices_pass_through_their_samples_up_to_three_each() -> None:
    points1, points2 = in_space(80)
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


@pytest.mark.parametrize("kind", ["homography", "fundamental"])
def test_models_that_leave_a_frame_have_the_frame_s_residuals_in_pixels(kind: str) -> None:
    rng = np.random.default_rng(0)
    points1, points2 = rng.uniform(0, 600, (2, 30, 2))
    frame = Frame.around(points1, points2)
    pairs = frame.enter(points1, points2)
    matrices = np.eye(3) + 0.1 * rng.normal(size=(4, 3, 3))
    residuals = transfer_error if kind == "homography" else sampson_distance
    inside = residuals(pairs[:, :2], pairs[:, 2:], matrices) / frame.scale
    np.testing.assert_allclose(residuals(points1, points2, frame.leave(matrices, kind)), inside, rtol=1e-6)


@pytest.mark.parametrize("points", [np.zeros((0, 2)), np.full((5, 2), 7.0), np.full((5, 2), 1e7)])
def test_frames_of_no_extent_have_scale_one(points: np.ndarray) -> None:
    frame = Frame.around(points, points)
    assert frame.scale == 1.0
    assert (frame.enter(points, points) == 0).all()


def test_coordinates_far_out_leave_the_frame_where_it_was() -> None:
    points = np.random.default_rng(0).uniform(0, 600, (101, 2))
    near, far = Frame.around(points, points), Frame.around(np.vstack([points, [[1e11, 1e11]]]), points)
    assert np.abs(far.enter(points, points) - near.enter(points, points)).max() < 0.05


def test_a_frame_of_points_most_of_which_are_one_has_their_mean_distance() -> None:
    points = np.vstack([np.full((7, 2), 5.0), [[5.0, 45.0], [45.0, 5.0], [45.0, 45.0]]])
    np.testing.assert_allclose(Frame.around(points, points).scale, 1 / 8)


def test_a_zero_matrix_has_no_unit_norm() -> None:
    assert np.isnan(unit_norm(np.zeros((1, 3, 3)))).all()
