"""Least-squares fits against singular value decompositions; refits close in on what is exact."""

from __future__ import annotations

import numpy as np
import pytest

from ruzhash_cv import refinement, sampson_distance, transfer_error
from ruzhash_cv.models import FUNDAMENTAL, HOMOGRAPHY, unit_norm
from ruzhash_cv.refinement import normaliser, pack_one, refine_kernel, reweigh, smallest_eigenvector
from ruzhash_cv.residuals import pack_models

H = np.array([[0.9, 0.1, 20], [-0.05, 1.1, 5], [1e-4, 2e-4, 1]])


def homogeneous(points: np.ndarray) -> np.ndarray:
    return np.column_stack([points, np.ones(len(points))])


def coordinates(pairs: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(pairs.T, dtype=np.float64)


def fit(kind: int, pairs: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Fit with a kernel, and bring the model to unit norm."""
    kernel = refinement.fit_homography if kind == HOMOGRAPHY else refinement.fit_fundamental
    near = np.flatnonzero(weights > 0)
    model = kernel(coordinates(pairs), near, weights[near], len(near)).reshape(3, 3)
    return model / np.linalg.norm(model)


def eigenvector(matrix: np.ndarray) -> np.ndarray:
    vector = np.empty(len(matrix))
    smallest_eigenvector(matrix.copy(), vector)
    return vector


def plane(n: int, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 600, (n, 2))
    mapped = homogeneous(points) @ H.T
    return np.hstack([points, mapped[:, :2] / mapped[:, 2:]]) + noise * rng.normal(size=(n, 4))


def motion(n: int, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = np.column_stack([rng.uniform(-1, 1, (n, 2)), rng.uniform(3, 6, n)])
    turn = np.array([[np.cos(0.2), 0, np.sin(0.2)], [0, 1, 0], [-np.sin(0.2), 0, np.cos(0.2)]])
    views = [900 * view[:, :2] / view[:, 2:] + [400, 300] for view in (points, points @ turn.T + [-0.8, 0.1, 0.2])]
    return np.hstack(views) + noise * rng.normal(size=(n, 4))


def similarity(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    centre = (weights[:, None] * points).sum(0) / weights.sum()
    s = np.sqrt(2) / np.sqrt((weights * ((points - centre) ** 2).sum(1)).sum() / weights.sum())
    return np.array([[s, 0, -s * centre[0]], [0, s, -s * centre[1]], [0, 0, 1]])


def fit_twin(pairs: np.ndarray, weights: np.ndarray, kind: int) -> np.ndarray:
    """Normalised direct linear transform, normalised 8-point algorithm (Hartley and Zisserman, 4.2 and 11.1)."""
    T1, T2 = similarity(pairs[:, :2], weights), similarity(pairs[:, 2:], weights)
    x1, x2 = homogeneous(pairs[:, :2]) @ T1.T, homogeneous(pairs[:, 2:]) @ T2.T
    root = np.sqrt(weights)[:, None]
    if kind == FUNDAMENTAL:
        design = root * (x2[:, :, None] * x1[:, None, :]).reshape(-1, 9)
    else:
        zero = np.zeros_like(x1)
        rows = [np.hstack([x1, zero, -x2[:, :1] * x1]), np.hstack([zero, x1, -x2[:, 1:2] * x1])]
        design = np.vstack([root * row for row in rows])
    model = np.linalg.svd(design)[2][-1].reshape(3, 3)
    if kind == FUNDAMENTAL:
        u, s, v = np.linalg.svd(model)
        model = T2.T @ (u * [s[0], s[1], 0]) @ v @ T1
    else:
        model = np.linalg.inv(T2) @ model @ T1
    return model / np.linalg.norm(model)


def assert_same_model(first: np.ndarray, second: np.ndarray, tolerance: float) -> None:
    first, second = first.ravel(), second.ravel()
    assert min(np.abs(first - second).max(), np.abs(first + second).max()) < tolerance


@pytest.mark.parametrize("n", [2, 3, 9])
def test_smallest_eigenvector_equals_eigh(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        factor = rng.normal(size=(n + 5, n))
        gram = factor.T @ factor
        found, (values, vectors) = eigenvector(np.tril(gram)), np.linalg.eigh(gram)
        # Inverse iteration may stop short where two eigenvalues are close: what counts is the quadratic form.
        assert found @ gram @ found <= values[0] * (1 + 1e-3) + 1e-12
        if values[1] > 3 * values[0]:
            assert abs(found @ vectors[:, 0]) > 1 - 1e-5


def test_smallest_eigenvector_of_degenerate_matrices_is_a_unit_vector() -> None:
    for matrix in (np.eye(9), np.diag([1.0, 0, 0]), np.full((4, 4), 1.0)):
        vector = eigenvector(matrix)
        assert np.linalg.norm(vector) == pytest.approx(1)
        assert vector @ matrix @ vector <= np.linalg.eigvalsh(matrix)[0] + 1e-9


@pytest.mark.parametrize(("kind", "make"), [(HOMOGRAPHY, plane), (FUNDAMENTAL, motion)])
@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_equal_their_twins(kind: int, make: object, noise: float, weighted: bool) -> None:
    for seed in range(5):
        pairs = make(40, noise, seed)
        weights = np.random.default_rng(seed).uniform(0.1, 1, 40) if weighted else np.ones(40)
        model = fit(kind, pairs, weights)
        assert_same_model(model, fit_twin(pairs, weights, kind), 1e-6)
        # A correspondence of weight 0 has no say, wherever it is.
        outside = np.vstack([pairs, np.full((1, 4), 1e6)])
        assert_same_model(fit(kind, outside, np.append(weights, 0.0)), model, 1e-9)


def test_exact_correspondences_give_exact_models() -> None:
    pairs = plane(30)
    assert transfer_error(pairs[:, :2], pairs[:, 2:], fit(HOMOGRAPHY, pairs, np.ones(30))).max() < 1e-4
    pairs = motion(30)
    F = fit(FUNDAMENTAL, pairs, np.ones(30))
    assert sampson_distance(pairs[:, :2], pairs[:, 2:], F).max() < 1e-3
    assert abs(np.linalg.det(F)) < 1e-12


def test_normaliser_brings_points_to_root_mean_square_distance_root_two() -> None:
    pairs, weights = plane(25), np.random.default_rng(0).uniform(0, 1, 25)
    frame = normaliser(coordinates(pairs), np.arange(25), weights, 25)
    for image in (0, 1):
        T = similarity(pairs[:, 2 * image : 2 * image + 2], weights)
        np.testing.assert_allclose(frame[4 + image], T[0, 0])
        np.testing.assert_allclose(-frame[4 + image] * frame[2 * image : 2 * image + 2], T[:2, 2])


@pytest.mark.parametrize("kind", [HOMOGRAPHY, FUNDAMENTAL])
@pytest.mark.parametrize("pairs", [np.zeros((20, 4)), np.full((20, 4), 7.0), np.outer(np.arange(20.0), np.ones(4))])
def test_degenerate_correspondences_leave_a_finite_model_behind(kind: int, pairs: np.ndarray) -> None:
    packed = pack_models(np.diag([1.0, 1.0, 1.0])[None], kind)
    fits = refine_kernel(coordinates(pairs), np.ones(20), packed, np.array([kind], np.uint8), np.array([[2.0], [1.0]]))
    assert np.isfinite(fits).all()


def test_packing_one_model_equals_packing_all() -> None:
    matrices = np.random.default_rng(0).normal(size=(2, 3, 3))
    for kind in (HOMOGRAPHY, FUNDAMENTAL):
        packed = np.zeros((2, 18))
        for column in range(2):
            assert pack_one(matrices[column].ravel(), packed, np.full(2, kind, np.uint8), column)
        np.testing.assert_allclose(packed, pack_models(unit_norm(matrices), kind), atol=1e-14)
        for bad in (np.zeros(9), np.full(9, np.nan), np.full(9, np.inf)):
            assert not pack_one(bad, packed, np.full(2, kind, np.uint8), 0)
        np.testing.assert_allclose(packed, pack_models(unit_norm(matrices), kind), atol=1e-14)


def algebraic_factor(pairs: np.ndarray, matrix: np.ndarray, kind: int) -> np.ndarray:
    x1, x2 = homogeneous(pairs[:, :2]), homogeneous(pairs[:, 2:])
    if kind == HOMOGRAPHY:
        return (x1 @ matrix[2]) ** 2
    return ((x1 @ matrix.T)[:, :2] ** 2).sum(1) + ((x2 @ matrix)[:, :2] ** 2).sum(1)


@pytest.mark.parametrize("kind", [HOMOGRAPHY, FUNDAMENTAL])
def test_weights_are_tukey_biweights_within_the_radius(kind: int) -> None:
    pairs = (plane if kind == HOMOGRAPHY else motion)(60, 2.0)
    exact = plane(60) if kind == HOMOGRAPHY else motion(60)
    distance = transfer_error if kind == HOMOGRAPHY else sampson_distance
    matrix = fit(kind, exact, np.ones(60))
    residuals = distance(pairs[:, :2], pairs[:, 2:], matrix)
    radius, votes, near, weights = float(np.median(residuals)), np.full(60, 0.5), np.empty(60, int), np.empty(60)
    votes[:5] = 0.0
    packed, kinds = pack_models(matrix[None], kind), np.array([kind], np.uint8)
    count, support = reweigh(coordinates(pairs), votes, packed, kinds, 0, radius, near, weights)
    inside = (residuals <= radius) & (votes > 0)
    biweights = np.where(inside, votes * (1 - (residuals / radius) ** 2) ** 2, 0)
    assert support == pytest.approx(biweights.sum(), rel=1e-6)
    np.testing.assert_array_equal(near[:count], np.flatnonzero(biweights))
    expected = biweights[near[:count]] / algebraic_factor(pairs[near[:count]], matrix, kind)
    np.testing.assert_allclose(weights[:count], expected, rtol=1e-6)


@pytest.mark.parametrize("kind", [HOMOGRAPHY, FUNDAMENTAL])
def test_refits_with_closing_radii_find_the_model_among_mismatches(kind: int) -> None:
    make, distance = (plane, transfer_error) if kind == HOMOGRAPHY else (motion, sampson_distance)
    exact, noisy = make(80), make(80, 0.5)
    rng = np.random.default_rng(1)
    pairs = np.vstack([noisy, rng.uniform(0, 600, (60, 4))])
    start = pack_models(fit(kind, make(80, 1.5, 0), np.ones(80))[None], kind)
    radii = np.array([[12.0], [6.0], [3.0]])
    fits = refine_kernel(coordinates(pairs), np.ones(140), start, np.array([kind], np.uint8), radii)
    assert fits.shape == (3, 1, 18)
    assert np.median(distance(exact[:, :2], exact[:, 2:], fits[-1, 0, :9].reshape(3, 3))) < 0.3


def test_a_model_that_too_few_agree_with_stays_as_it_was() -> None:
    pairs = np.random.default_rng(0).uniform(0, 600, (30, 4))
    packed = pack_models(H[None], HOMOGRAPHY)
    fits = refine_kernel(coordinates(pairs), np.ones(30), packed, np.zeros(1, np.uint8), np.array([[2.0], [1.0]]))
    np.testing.assert_array_equal(fits, np.stack([packed] * 2))
