"""Kernels against their NumPy twins on random, degenerate and tiny arguments, and the random numbers they draw.

To add a kernel: write its twin in `naive.py`, what it has to return in a few lines, and a `Row` in `TABLE`. `draw(rng, n)` makes the
arguments of both, for any n from 1 up; let it make zeros, duplicates, NaN and infinity where the kernel may meet them. `call` is the
shortest way to the kernel, itself or the function around it, and returns an array or a tuple of arrays, as the twin does. `kernels`
names the kernels that it runs, module and function.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import naive
import numpy as np
import pytest
import uncompiled
from hypothesis import given, settings
from hypothesis import strategies as st
from public_calls import calls
from scipy.stats import chi2
from stage_cases import branches_of
from two_views import MAKE

from ruzhash_cv import Camera, paper
from ruzhash_cv.core.families import FAMILIES as PIXELS
from ruzhash_cv.core.families.epipolar import EssentialMatrices, as_essential
from ruzhash_cv.core.families.poses import placed
from ruzhash_cv.core.families.weighting import noise_scales
from ruzhash_cv.core.kernels import draw, rays
from ruzhash_cv.core.method import fits, opacity

Rng = np.random.Generator
#: Of each row; many for a build that checks its indices, see .ci/run.
CALLS = int(os.environ.get("KERNEL_CALLS", 5))
RAYS = EssentialMatrices()
#: Of a step of an essential matrix, as a share of the mean eigenvalue.
DAMPING = 1e-9


class Row(NamedTuple):
    """A kernel and its twin; results are the same to a relative and an absolute error."""

    kernels: str
    draw: Callable[[Rng, int], tuple[Any, ...]]
    call: Callable[..., Any]
    twin: Callable[..., Any]
    rtol: float = 0.0
    atol: float = 0.0


def words(rng: Rng, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of 64-bit numbers, some of them the smallest and the largest."""
    drawn = rng.integers(0, naive.WORD, (2, n), dtype=np.uint64)
    drawn[rng.random((2, n)) < 0.2] = rng.choice(np.array([0, naive.WORD - 1], np.uint64))
    return drawn[0], drawn[1]


def each(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls a kernel of numbers for each number of arrays."""
    return lambda *arrays: np.array([kernel(*numbers) for numbers in zip(*arrays, strict=True)])


def geometric(name: str) -> Callable[..., Any]:
    """Return the fits (m, 9, 9) of unit norm, of any sign, whose errors are geometric to first order."""

    def fits(data: np.ndarray, weights: np.ndarray, models: np.ndarray) -> np.ndarray:
        factors = [naive.factor_of_equations(name, data, model.reshape(3, 3)) for model in models]
        fitted = [naive.FITS[name](data, row / by).ravel() for row, by in zip(weights, factors, strict=True)]
        return squares_of(np.array(fitted))

    return fits


def paired_up(data: np.ndarray, pairs: np.ndarray, distance: float, most: int) -> np.ndarray:
    """Return what the kernel writes."""
    decoys = np.empty((most, data.shape[1]))
    return decoys[: draw.pair_up(data, pairs, distance, decoys)]


def squares_of(models: np.ndarray) -> np.ndarray:
    """Return products (m, 9, 9) of the entries of models (m, 9), which have no sign."""
    return np.asarray(np.einsum("mi,mj->mij", models, models))


def matches_of(name: str, noise: float = 1.0) -> Callable[[Rng, int], tuple[Any, ...]]:
    """Return what draws noisy matches (n + 20, 4) of one model, weights (2, n + 20), some of them 0, and two models near it."""

    def draw(rng: Rng, n: int) -> tuple[Any, ...]:
        data = MAKE[name](n + 20, noise, int(rng.integers(1 << 30)))
        weights = rng.uniform(0.1, 1.0, (2, n + 20)) * (np.arange(n + 20) >= n // 2)
        return data, weights, PIXELS[name].fit(data, rng.uniform(0.5, 1.0, (2, n + 20)))

    return draw


def moved_rays(rng: Rng, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows with rays (n + 20, 10) of a motion, noisy, weights (1, n + 20), and an essential matrix (1, 9) near its."""
    points, rotation = rng.normal(0.0, 4.0, (n + 20, 3)) + 0.5, np.linalg.qr(rng.normal(size=(3, 3)))[0]
    rotation *= np.sign(np.linalg.det(rotation))
    baseline = rng.normal(size=3)
    seen = points, points @ rotation.T + baseline
    rays = [700.0 * each / np.linalg.norm(each, axis=1, keepdims=True) for each in seen]
    data = np.hstack([rng.uniform(size=(n + 20, 4)), *(each + rng.normal(size=each.shape) for each in rays)])
    start = naive.of_unit_norm(naive.crossed(baseline) @ rotation).reshape(1, 9)
    return data, rng.uniform(0.1, 1.0, (1, n + 20)), as_essential(start + 0.003 * rng.normal(size=(1, 9)))


def with_infinity(rng: Rng, n: int) -> tuple[np.ndarray]:
    return (rng.exponential(4.0, (3, n)) * rng.choice([0.0, 1.0, np.inf, np.nan], (3, n), p=[0.1, 0.7, 0.1, 0.1]),)


def residuals(twin: Callable[..., Any]) -> Callable[..., Any]:
    return lambda data, models: np.array([twin(data, model.reshape(3, 3)) ** 2 for model in models])


def homographies_of(samples: np.ndarray) -> np.ndarray:
    """Return products (s, 9, 9) of the entries of homographies, singular ones too, of samples (s, 4, 6)."""
    models = np.empty((len(samples), 9))
    rays.solve_four(samples, models)
    return squares_of(models)


def placed_matrices(rng: Rng, n: int) -> tuple[Any, ...]:
    """Return rows with rays of a motion, weights, squared residuals, some infinite, three matrices near its, and what is far."""
    data, weights, model = moved_rays(rng, n)
    squared = rng.exponential(4.0, (3, n + 20)) * rng.choice([0.0, 1.0, np.inf], (3, n + 20), p=[0.1, 0.8, 0.1])
    far = rng.choice([0.0, 100.0])
    return data, weights[0], np.fmin(squared, np.inf), as_essential(model + 0.1 * rng.normal(size=(3, 9))), far


def around_epipoles(rng: Rng, n: int) -> tuple[Any, ...]:
    """Return points (6, n) and others, weights, squared residuals, three matrices with epipoles in the image and not, and the image.

    The first point lies on its line, so that one side has votes.
    """
    epipoles = np.column_stack([rng.uniform(-1.5, 1.5, (3, 2)), np.ones(3)])
    models = np.array([naive.crossed(each) @ rng.normal(size=(3, 3)) for each in epipoles])
    points, others = rng.uniform(-1.0, 1.0, (2, 6, n + 1))
    points[[2, 5]] = others[[2, 5]] = 1.0
    voting, squared = rng.exponential(4.0, (2, 3, n + 1))
    line = models[0] @ points[:3, 0]
    points[3:, 0], voting[:, 0], voting[1:] = epipoles[0] + [line[1], -line[0], 0.0], 0.0, voting[:1]
    models[1:], squared[0, -1] = models[0] * [[[1.0]], [[-2.0]]], np.inf
    return (
        points,
        rng.uniform(0.1, 1.0, n + 1),
        voting,
        models.reshape(3, 9),
        np.array([[-1.0, -1.0], [1.0, 1.0]]),
        others,
        squared,
    )


def on_one_side(
    points: Any, weights: Any, voting: Any, models: Any, image: Any, others: Any, squared: Any
) -> np.ndarray:
    """Return what the kernel overwrites."""
    seen = squared.copy()
    rays.remove_beyond(points, weights, voting, 9.0, models, image, others, seen)
    return seen


def naive_sides(
    points: Any, weights: Any, voting: Any, models: Any, image: Any, others: Any, squared: Any
) -> np.ndarray:
    given = zip(voting, models.reshape(-1, 3, 3), squared, strict=True)
    return np.array(
        [naive.without_beyond(points, weights, votes, 3.0, model, image, others, row) for votes, model, row in given]
    )


def naive_placed(data: Any, weights: Any, squared: Any, models: Any, far: Any) -> tuple[np.ndarray, ...]:
    poses = [naive.best_pose(model, data, weights, row, 3.0, far) for model, row in zip(models, squared, strict=True)]
    return tuple(map(np.array, zip(*poses, strict=True)))


def seen_through_a_lens(rng: Rng, n: int) -> tuple[np.ndarray, Camera]:
    """Return points (n, 2) and a camera of one of OpenCV's models."""
    size, scale = rng.choice([4, 5, 8, 12, 14]), np.array([0.02] * 12 + [0.002] * 2)
    return rng.uniform(-0.6, 0.6, (n, 2)), Camera(np.eye(3), (scale * rng.normal(size=14))[:size])


def distorted_by_opencv(points: np.ndarray, camera: Camera) -> tuple[np.ndarray, np.ndarray]:
    """Return distorted points (n, 2) and their derivatives (n, 2, 2)."""
    still, rays = np.zeros(3), np.column_stack([points, np.ones(len(points))])
    projected = cv2.projectPoints(rays[:, None], still, still, np.eye(3), camera.distortion)
    return projected[0].reshape(-1, 2), np.asarray(projected[1], np.float64)[:, 3:5].reshape(-1, 2, 2)


def some_preferences(rng: Rng, n: int) -> np.ndarray:
    """Return rows (20, n) of preferences, most of them 0."""
    return (rng.random((20, n)) * (rng.random((20, n)) < 0.4)).astype(np.float32)


def ray_models(rng: Rng, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.normal(size=(n, 10)), rng.normal(size=(3, 9))


def fits_of(family: Any) -> Callable[..., Any]:
    return lambda data, weights, models: squares_of(family.fit(data, weights, models))


def ray_fits(name: str) -> Callable[..., Any]:
    return lambda data, by, models: squares_of(naive.fit_rays(name, data, by[0], models.reshape(3, 3)).reshape(1, 9))


def naive_steps(data: np.ndarray, weights: np.ndarray, models: np.ndarray) -> np.ndarray:
    pairs = zip(weights, models.reshape(-1, 3, 3), strict=True)
    return squares_of(np.array([naive.step_fundamental_matrix(data, *each).ravel() for each in pairs]))


def naive_likelihoods(squared: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.array([naive.log_likelihood(row, weights, 3.0, 2, fits._N_STEPS, fits._PRIOR) for row in squared])


H, F = PIXELS.values()
TABLE = (
    Row("draw.pair_up", lambda rng, n: (rng.uniform(0, 9, (n, rng.choice([4, 10]))), rng.integers(n, size=(2, 20)), 4.0, 6),
        paired_up, naive.paired_up),
    Row("residuals.squared_residuals", ray_models, H.squared_residuals, residuals(naive.ray_transfer_error), 1e-6),
    Row("residuals.squared_residuals", ray_models, RAYS.squared_residuals, residuals(naive.ray_sampson_distance), 1e-6, 1e-15),
    *(Row("rays.fit_in_rounds", matches_of(of.name), fits_of(of), geometric(of.name), 0.0, 1e-6) for of in (H, F)),
    Row("rays.fit_in_rounds", matches_of("fundamental"), lambda *given: squares_of(F.step(*given)), naive_steps, 0.0, 1e-5),
    Row("rays.fit_in_rounds", moved_rays, RAYS.step, lambda data, weights, models: naive.step_essential_matrix(
        data, weights[0], models.reshape(3, 3), DAMPING).reshape(1, 9), 0.0, 5e-6),
    # No homography fits points in space: its two smallest eigenvalues may be near each other.
    Row("rays.fit_in_rounds", moved_rays, fits_of(H), ray_fits("homography"), 0.0, 1e-3),
    Row("rays.fit_in_rounds", moved_rays, fits_of(F), ray_fits("fundamental"), 0.0, 1e-5),
    Row("rays.solve_four", lambda rng, n: (rng.normal(size=(n, 4, 6)),), homographies_of,
        lambda samples: squares_of(np.array([naive.plane_through(each[:, :3], each[:, 3:]) for each in samples])), 0.0, 1e-7),
    Row("rays.place", placed_matrices,
        lambda data, weights, squared, models, far: placed(models, data, weights, squared, 3.0, far),
        naive_placed, 0.0, 1e-9),
    Row("rays.remove_beyond", around_epipoles, on_one_side, naive_sides),
    Row("lenses.distort", seen_through_a_lens, lambda points, camera: camera._jacobian(points), distorted_by_opencv, 0.0, 1e-12),
    Row("lenses.undistort", seen_through_a_lens, lambda points, camera: camera._undistorted(distorted_by_opencv(points, camera)[0]),
        lambda points, camera: points, 0.0, 1e-9),
    Row("residuals.write_medians", with_infinity, lambda squared: noise_scales(squared, 2) ** 2,
        lambda squared: np.array([naive.upper_median(row) for row in squared]) / chi2.ppf(0.5, 2), 1e-12),
    Row("weigh.write_likelihoods", lambda rng, n: (rng.exponential(4.0, (3, n)) ** 2, rng.random(n) * (rng.random(n) < 0.9)),
        lambda squared, weights: fits.log_likelihoods(squared, weights, 9.0, 2), naive_likelihoods, 1e-7),
    Row("draw.mix", words, each(lambda *given: draw.mix(*given)), each(lambda key, at: np.uint64(naive.mix(key, at)))),
    Row("draw.uniform", words, each(lambda *given: draw.uniform(*given)), each(lambda key, at: (naive.mix(key, at) >> 11) / 2**53)),
    Row("draw.draw_rows", lambda rng, n: (*words(rng, 1)[0], np.empty(n, np.int64), int(rng.integers(0, n + 1))),
        lambda key, rows, psi: draw.draw_rows(key, rows, psi) or (rows[:psi], np.sort(rows)),
        lambda key, rows, psi: (naive.draw_rows(key, len(rows), psi), np.arange(len(rows)))),
    Row("draw.write_branches",
        lambda rng, n: (some_preferences(rng, n), words(rng, 1)[0][0], int(rng.choice([2, 3, 16, 256, 2**20]))), branches_of,
        lambda rows, key, n_branches: np.array([naive.branch_of(row, key, n_branches) % (n_branches + 1) for row in rows])),
)  # fmt: skip
#: Kernels that no row names, by the tests of stages that compare them with their twins.
TWINS_ELSEWHERE = {
    "families/test_base.py": "residuals.costs_at_reaches planes.write_through_two fit.write_unit_norm",
    "families/test_five_points.py": "five_points.solve_five",
    "forests/test_ruzhash.py": "draw.hash_rows draw.grow_or_route",
    "method/test_opacity.py": "neighbours.count_own_neighbours neighbours.mark_contradicting",
    "method/test_evidence.py": "residuals.write_candidates weigh.write_evidence weigh.write_counts weigh.extract weigh.joint_evidence",
    "method/test_law.py": "weigh.estimate_shares weigh.write_probabilities",
    "method/test_matches.py": "weigh.follow_leaders",
    "method/test_preferences.py": "residuals.write_preferences residuals.write_rows residuals.choose_models residuals.count_within",
    "method/test_sampling.py": "draw.draw draw.nearest_of_rows",
    "method/test_surfaces.py": "planes.choose_planes planes.fit_planes planes.write_plane_equations planes.write_planes_through",
    "../paper/test_voronoi.py": "draw.grow_cells draw.route_cells",
}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.kernels.partition(" ")[0])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 40))
def test_kernel_equals_its_twin(row: Row, seed: int, n: int) -> None:
    arguments = row.draw(np.random.default_rng(seed), n)
    actual, expected = row.call(*arguments), row.twin(*arguments)
    if not isinstance(expected, tuple):
        actual, expected = (actual,), (expected,)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=row.rtol, atol=row.atol, err_msg=row.kernels)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.kernels.partition(" ")[0])
def test_calls_end_well(row: Row) -> None:
    """In a build that checks them, no index is out of bounds."""
    for seed in range(CALLS):
        row.call(*row.draw(np.random.default_rng(seed), 1 + seed % 40))


def test_every_kernel_has_a_twin() -> None:
    named = [*(row.kernels for row in TABLE), *TWINS_ELSEWHERE.values()]
    assert set(" ".join(named).split()) == uncompiled.kernels().keys()
    for file in TWINS_ELSEWHERE:
        assert (Path(__file__).parent / file).is_file(), file


def test_numbers_of_a_stream_are_even() -> None:
    """Chi-squared of 32 cells has mean 31 and standard deviation sqrt(62): five of these."""
    n = 40000
    drawn = np.array([int(32 * draw.uniform(np.uint64(9), np.uint64(counter))) for counter in range(n)])
    squares = ((np.bincount(drawn, minlength=32) - n / 32) ** 2 / (n / 32)).sum()
    assert abs(squares - 31) < 5 * np.sqrt(62)


# Compiled and uncompiled


@pytest.fixture(scope="module")
def recorded() -> uncompiled.Calls:
    """Calls of every kernel, by public functions and by the table."""
    with uncompiled.recorded(n_calls=2, most=3000) as kernel_calls:
        for call in calls().values():
            call()
        for n in (30, 40):
            rows = np.random.default_rng(n).random((n, 15))
            for forest in (paper.VoronoiForest(n_trees=3), paper.RuzHashForest(n_trees=3)):
                forest.fit(rows).anomaly_scores(rows)
        # What few scenes need.
        rng = np.random.default_rng(0)
        data, mine = rng.uniform(0.0, 100.0, (40, 4)), rng.random(40) < 0.5
        opacity.own_share(data[:, :2], mine, np.ones(40, bool), 1.0)
        PIXELS["fundamental"].from_plane(np.eye(3).ravel(), data, 5, rng)
        for row in TABLE:
            row.call(*row.draw(np.random.default_rng(0), 12))
    return kernel_calls


@pytest.mark.parametrize("name", uncompiled.kernels())
def test_kernel_gives_the_bits_of_its_source(name: str, recorded: uncompiled.Calls) -> None:
    assert recorded[name]
    for arguments in recorded[name]:
        for one, other in zip(*(uncompiled.run(name, arguments, each) for each in (True, False)), strict=True):
            np.testing.assert_array_equal(one, other)
