"""Families of rays: models of minimal samples, fits against their truth, and poses of no matrices or rows."""

import cv2
import numpy as np
import pytest
from scipy.optimize import least_squares

from ruzhash_cv.core.families import RAY_FAMILIES
from ruzhash_cv.core.families.epipolar import EssentialMatrices, as_essential
from ruzhash_cv.core.families.planes import squared_noise
from ruzhash_cv.core.families.poses import placed
from ruzhash_cv.core.families.weighting import TUKEY, reweighted, student

Array = np.ndarray
ROTATION = np.asarray(cv2.Rodrigues(np.array([0.1, -0.3, 0.2]))[0])
TRANSLATION = np.array([0.6, 0.0, 0.8])
NORMAL = np.array([0.1, 0.2, 0.97])
ESSENTIAL = np.cross(TRANSLATION, ROTATION.T).T
PLANE = ROTATION + np.outer(TRANSLATION, NORMAL) / 5.0
ESSENTIALS = RAY_FAMILIES["essential"]


def moved(points: Array, noise: float = 0.0, seed: int = 0) -> Array:
    """Rows with rays of points (n, 3) in both views, as long as a radian, which differs by half; coordinates do not matter."""
    rng, seen = np.random.default_rng(seed), (points, points @ ROTATION.T + TRANSLATION)
    lengths = 700.0 * np.random.default_rng(9).uniform(0.75, 1.25, (len(points), 1))
    rays = [each / np.linalg.norm(each, axis=1, keepdims=True) * lengths for each in seen]
    return np.hstack([rng.uniform(0, 1, (len(points), 4)), *(each + rng.normal(0, noise, each.shape) for each in rays)])


def space(n: int, seed: int = 0) -> Array:
    """Points all around the cameras."""
    return np.random.default_rng(seed).normal(0, 4.0, (n, 3)) + 0.5


def on_plane(n: int, seed: int = 0) -> Array:
    """Points with N'X = 5, up to 70 degrees off the axis."""
    rays = np.column_stack([np.random.default_rng(seed).uniform(-1.5, 1.5, (n, 2)), np.ones(n)])
    return rays * (5.0 / (rays @ NORMAL))[:, None]


def apart(models: Array, truth: Array) -> Array:
    """Distances of models (m, 9) of unit norm, of either sign, from a matrix."""
    unit = truth.ravel() / np.linalg.norm(truth)
    return np.minimum(np.linalg.norm(models - unit, axis=1), np.linalg.norm(models + unit, axis=1))


@pytest.mark.parametrize(
    ("name", "truth", "size"), [("essential", ESSENTIAL, 5), ("fundamental", ESSENTIAL, 7), ("homography", PLANE, 4)]
)
def test_minimal_samples_make_the_true_matrix(name: str, truth: Array, size: int) -> None:
    family, rng = RAY_FAMILIES[name], np.random.default_rng(0)
    data = moved((on_plane if name == "homography" else space)(100))
    samples = data[np.stack([rng.permutation(100)[:size] for _ in range(60)])]
    models, owner = family.solve(samples)
    assert family.sample_size == size
    least = [apart(models[owner == sample], truth).min(initial=9.0) for sample in range(60)]
    assert np.quantile(least, 0.9) < 1e-6
    own = [family.squared_residuals(samples[sample], models[[item]]).max() for item, sample in enumerate(owner)]
    assert np.quantile(own, 0.95) < 1e-12


def test_squared_noise_of_rays_is_that_across_both() -> None:
    """Two equations of noise s in all: a mean of 2 s^2, whatever the plane stretches; a ray that points away is infinitely far."""
    data = moved(on_plane(4000), noise=0.5)
    squared = squared_noise(data, -PLANE.ravel())
    assert 0.45 < squared.mean() < 0.55
    away = np.hstack([data[:, :7], -data[:, 7:]])
    assert np.isinf(squared_noise(away, PLANE.ravel())).all()


def test_samples_without_a_solution_are_left_out() -> None:
    for family in RAY_FAMILIES.values():
        models, owner = family.solve(np.ones((3, family.sample_size, 10)))
        assert np.isfinite(models).all()
        assert len(models) == len(owner)


@pytest.mark.parametrize("spread", [1.5, 0.02], ids=["wide", "tele"])
@pytest.mark.parametrize("name", ["essential", "fundamental", "homography"])
def test_fits_to_exact_rays_are_the_truth(name: str, spread: float) -> None:
    """Also to those of a narrow field of view, which are nearly one direction."""
    rng, family = np.random.default_rng(0), RAY_FAMILIES[name]
    rays = np.column_stack([rng.uniform(-spread, spread, (60, 2)), np.ones(60)])
    depths = (5.0 / (rays @ NORMAL))[:, None] if name == "homography" else rng.uniform(3.0, 9.0, (60, 1))
    data, weights = moved(rays * depths), rng.uniform(0.1, 1.0, (1, 60))
    truth = PLANE if name == "homography" else ESSENTIAL
    model = family.fit(data, weights)
    assert apart(model, truth) < 1e-5
    assert family.squared_residuals(data, model).max() < 1e-9
    assert apart(family.step(data, weights, model), truth) < 1e-5


@pytest.mark.parametrize("law", ["tukey", "student", "floored"])
@pytest.mark.parametrize("name", ["essential", "fundamental", "homography"])
def test_rounds_of_fits_are_those_of_single_fits(name: str, law: str) -> None:
    """A third of the rows are wrong, and others are excluded; one of the models is not finite, and one holds too little."""
    family, rng = RAY_FAMILIES[name], np.random.default_rng(2)
    truth = PLANE if name == "homography" else ESSENTIAL
    data = moved((on_plane if name == "homography" else space)(90), 2.0)
    data[::3, 7:] = data[np.roll(np.arange(0, 90, 3), 7), 7:]
    models = truth.ravel() / np.linalg.norm(truth) + 0.01 * rng.normal(size=(6, 9))
    models = as_essential(models) if name == "essential" else models
    models[4] = np.nan
    limits, excluded = rng.uniform(10.0, 60.0, 6), rng.random((6, 90)) < 0.1
    limits[5] = 1e-9
    given = data, rng.random(90), models, limits
    of_law = student(family.codimension, 4.0)._replace(floor=3.0 if law == "floored" else 0.0)
    rest = (TUKEY, 1, excluded) if law == "tukey" else (of_law, 3, excluded)
    fitted, noise = family.reweighted(*given, *rest)
    single, single_noise = reweighted(family, *given, *rest)
    np.testing.assert_allclose(noise, single_noise, rtol=1e-6)
    np.testing.assert_array_equal(fitted[4:], models[4:])
    assert (apart(fitted[:4], truth) < apart(models[:4], truth)).any()
    assert all(apart(fitted[[item]], single[item]) < 1e-7 for item in range(4))


@pytest.mark.parametrize("field", ["all around", "tele"])
def test_steps_end_at_least_sampson_distances(field: str) -> None:
    """A tele lens leaves two combinations of rotation and translation nearly free: a damped step hardly moves along them."""
    rng = np.random.default_rng(0)
    points, noise = space(60), 2.0
    if field == "tele":
        points = np.column_stack([rng.uniform(-0.1, 0.1, (60, 2)), np.ones(60)]) * rng.uniform(30.0, 33.0, (60, 1))
        noise = 0.05
    data, weights = moved(points, noise), rng.uniform(0.1, 1.0, (1, 60))
    model = ESSENTIALS.fit(data, weights)
    for _ in range(8):
        model = ESSENTIALS.step(data, weights, model)
    left, _, right = np.linalg.svd(model[0].reshape(3, 3))

    def distances(change: Array) -> Array:
        one, two = (cv2.Rodrigues(part)[0] for part in (change[:3], change[3:]))
        turned = one @ left @ np.diag([1.0, 1.0, 0.0]) @ right @ two
        return np.sqrt(weights[0] * ESSENTIALS.squared_residuals(data, turned.reshape(1, 9))[0])

    least = least_squares(distances, np.zeros(6), x_scale=1e-3, xtol=1e-15, ftol=1e-15)
    assert 0.0 <= (distances(np.zeros(6)) ** 2).sum() / (2.0 * least.cost) - 1.0 < 1e-6


def test_steps_keep_what_makes_a_matrix_essential() -> None:
    data, weights = moved(space(60), 2.0), np.ones((12, 60))
    start = as_essential(ESSENTIAL.reshape(1, 9) + np.random.default_rng(0).normal(0, 0.1, (12, 9)))
    stepped = ESSENTIALS.step(data, weights, start)
    sizes = np.linalg.svd(stepped.reshape(-1, 3, 3))[1]
    np.testing.assert_allclose(sizes, np.sqrt(0.5) * np.tile([1.0, 1.0, 0.0], (12, 1)), atol=1e-12)
    before, after = (ESSENTIALS.squared_residuals(data, each).sum(axis=1) for each in (start, stepped))
    assert (after < before).all()


def test_a_step_without_weights_or_from_nothing_changes_nothing() -> None:
    data, model = moved(space(20)), as_essential(ESSENTIAL.reshape(1, 9))
    np.testing.assert_array_equal(ESSENTIALS.step(data, np.zeros((1, 20)), model), model)
    assert np.isnan(ESSENTIALS.step(data, np.ones((1, 20)), np.full((1, 9), np.nan))).all()


def test_a_plane_has_two_essential_matrices_of_which_one_is_the_motion_s() -> None:
    found = EssentialMatrices().from_plane(-2.0 * PLANE.ravel(), np.zeros((0, 10)), 0, np.random.default_rng(0))
    assert len(found) == 2
    np.testing.assert_allclose(np.sort(apart(found, ESSENTIAL))[0], 0.0, atol=1e-9)
    assert ESSENTIALS.squared_residuals(moved(on_plane(30)), found).max() < 1e-9
    of_turn = EssentialMatrices().from_plane(ROTATION.ravel(), np.zeros((0, 10)), 0, np.random.default_rng(0))
    assert np.isfinite(of_turn).all()


def test_without_matrices_or_rows_there_are_poses_of_none() -> None:
    """test_kernels compares others with their twins."""
    rng = np.random.default_rng(0)
    data, weights, squared, essentials = rng.normal(size=(5, 10)), np.ones(5), np.ones((8, 5)), rng.normal(size=(8, 9))
    assert len(placed(essentials[:0], data, weights, squared[:0], 1.0)[0]) == 0
    rotations, _, seen = placed(as_essential(essentials), data[:0], weights[:0], squared[:, :0], 1.0)
    np.testing.assert_allclose(np.linalg.det(rotations), 1.0)
    assert seen.shape == (8, 0)
