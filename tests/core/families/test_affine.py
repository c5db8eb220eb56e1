"""A third family of two views, written here alone: `filter_points` takes it as it takes its own."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ruzhash_cv import filter_points
from ruzhash_cv.models import TwoViewFamily

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


class AffineMaps(TwoViewFamily):
    """Affine maps, x2 = A x1 + t, as rows of 9: 3x3 matrices whose last row is (0, 0, 1); the residual is the larger in two images."""

    name = "affine"
    sample_size = 3
    codimension = 2

    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """Return maps (k, 9) of samples (s, 3, 4), and the sample (k,) of each; both triangles must have an area."""
        first, second = (homogeneous(samples[..., image : image + 2]) for image in (0, 2))
        usable = np.flatnonzero(np.minimum(*np.abs([np.linalg.det(first), np.linalg.det(second)])) > 1e-9)
        return as_models(np.linalg.solve(first[usable], second[usable])), usable

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return the larger of the squared distances (m, n) in the two images."""
        first, second = homogeneous(data[:, :2]), homogeneous(data[:, 2:])
        there = models.reshape(-1, 3, 3)
        forward = ((first @ there.transpose(0, 2, 1) - second) ** 2).sum(axis=2)
        backward = ((second @ np.linalg.pinv(there).transpose(0, 2, 1) - first) ** 2).sum(axis=2)
        return np.maximum(forward, backward)

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return least-squares maps (m, 9); NaN for points on a line."""
        first, second = homogeneous(data[:, :2]), homogeneous(data[:, 2:])
        fitted = np.full((len(weights), 3, 3), np.nan)
        for item, root in enumerate(np.sqrt(weights)[:, :, None]):
            solution, _, rank, _ = np.linalg.lstsq(root * first, root * second, rcond=None)
            if rank == 3:
                fitted[item] = solution
        return as_models(fitted)

    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return maps (m, 9) of pixels."""
        return (np.linalg.inv(into2) @ models.reshape(-1, 3, 3) @ into1).reshape(-1, 9)


def homogeneous(points: Array) -> Array:
    return np.concatenate([points, np.ones_like(points[..., :1])], axis=-1)


def as_models(solutions: Array) -> Array:
    """Return maps from solutions (m, 3, 3) of first @ solution = second."""
    return np.ascontiguousarray(solutions.transpose(0, 2, 1)).reshape(-1, 9)


MAPS = np.array([[[0.9, 0.2, 30.0], [-0.1, 1.1, 5.0], [0, 0, 1]], [[1.1, -0.2, -40.0], [0.3, 0.8, 60.0], [0, 0, 1]]])


def two_maps_among_mismatches(seed: int) -> tuple[Array, Rows]:
    """Return matches (200, 4), noisy by half a pixel, and which map each follows: 70, 60, and 70 mismatches (-1)."""
    rng = np.random.default_rng(seed)
    points1, points2 = rng.uniform(0, 600, (2, 200, 2))
    labels = np.repeat([0, 1, -1], [70, 60, 70])
    # Each in its own half of the image.
    points1[labels == 0, 0] /= 2
    points1[labels == 1, 0] = 300 + points1[labels == 1, 0] / 2
    for label, matrix in enumerate(MAPS):
        own = labels == label
        points2[own] = (homogeneous(points1[own]) @ matrix.T)[:, :2] + 0.5 * rng.normal(size=(own.sum(), 2))
    return np.hstack([points1, points2]), labels


@pytest.mark.parametrize("seed", range(3))
def test_two_affine_structures_are_found_among_mismatches(seed: int) -> None:
    pairs, labels = two_maps_among_mismatches(seed)
    result = filter_points(pairs[:, :2], pairs[:, 2:], model=AffineMaps(), rng=seed)
    assert [structure.kind for structure in result.motions] == ["affine", "affine"]
    corners = np.array([[0.0, 0, 1], [300, 0, 1], [0, 600, 1], [300, 600, 1]])
    for label, structure in enumerate(result.motions):
        shift = np.array([[1.0, 0, 300 * label], [0, 1, 0], [0, 0, 1]])
        np.testing.assert_allclose(structure.matrix[2], [0, 0, 1], atol=1e-12)
        assert np.abs(corners @ shift.T @ (structure.matrix - MAPS[label]).T).max() < 1.0
    assert result.inlier_mask[labels >= 0].mean() > 0.95 > 0.1 > result.inlier_mask[labels < 0].mean()
    kept = result.inlier_mask & (labels >= 0)
    np.testing.assert_array_equal(result.motion_labels[kept], labels[kept])
    assert result.anomaly_scores[labels < 0].min() > np.median(result.anomaly_scores[labels >= 0])


@pytest.mark.parametrize("value", [np.inf, 1e300])
def test_nan_residual_counts_as_beyond_all_radii(value: float) -> None:
    class Cut(AffineMaps):
        """Half an image away there is no residual, or one of any size."""

        def __init__(self, beyond: float) -> None:
            self.beyond = beyond

        def squared_residuals(self, data: Array, models: Array) -> Array:
            squared = super().squared_residuals(data, models)
            return np.where(squared > 1.0, self.beyond, squared)

    pairs, _ = two_maps_among_mismatches(0)
    results = [filter_points(pairs[:, :2], pairs[:, 2:], model=Cut(beyond)) for beyond in (np.nan, value)]
    assert results[0].inlier_mask.sum() > 100
    assert results[0] == results[1]


def read_only(values: Array) -> Array:
    values.flags.writeable = False
    return values


@pytest.mark.parametrize("form", [np.asfortranarray, read_only, lambda values: np.repeat(values, 2, axis=-1)[..., ::2]])
def test_a_family_may_return_any_form_of_array(form: Any) -> None:
    class Other(AffineMaps):
        """The same arrays in another layout, and owners of another type."""

        def solve(self, samples: Array) -> tuple[Array, Any]:
            models, owner = super().solve(samples)
            return form(models), owner.astype(np.int32)

        def squared_residuals(self, data: Array, models: Array) -> Array:
            return np.asarray(form(super().squared_residuals(data, models)))

        def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
            return np.asarray(form(super().fit(data, weights, models)))

    pairs, _ = two_maps_among_mismatches(0)
    results = [filter_points(pairs[:, :2], pairs[:, 2:], model=family) for family in (AffineMaps(), Other())]
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("method", "result", "message"),
    [
        ("solve", None, r"must return an array of shape \(any, any\), got None"),
        ("solve", (np.ones((4, 9)), np.arange(3)), r"must return an array of shape \(4,\), got shape \(3,\)"),
        ("squared_residuals", None, r"must return an array of shape \(\d+, \d+\), got None"),
        ("squared_residuals", np.ones((1, 3)), r"must return an array of shape \(\d+, \d+\), got shape \(1, 3\)"),
        ("squared_residuals", "none", r"must return an array of shape \(\d+, \d+\), got 'none'"),
        ("fit", np.ones((7, 9)), r"must return an array of shape \(\d+, any\), got shape \(7, 9\)"),
        ("step", None, r"must return an array of shape \(\d+, 9\), got None"),
        ("to_pixels", None, r"must return an array of shape \(2, 9\), got None"),
        ("to_pixels", np.full((2, 9), np.nan), r"must return finite models, got \[nan"),
        ("to_pixels", np.full((2, 9), np.inf), r"must return finite models, got \[inf"),
    ],
)
def test_an_invalid_return_value_of_a_family_is_named(method: str, result: Any, message: str) -> None:
    family = type("Broken", (AffineMaps,), {method: lambda self, *args: result})()
    pairs, _ = two_maps_among_mismatches(0)
    with pytest.raises(ValueError, match=f"`{method}` of the family 'affine' {message}"):
        filter_points(pairs[:, :2], pairs[:, 2:], model=family)


def test_a_family_that_inherits_and_lacks_a_member_cannot_be_made() -> None:
    members = {name: member for name, member in vars(AffineMaps).items() if name != "solve"}
    with pytest.raises(TypeError, match=r"abstract class WithoutSolver .*'?solve'?"):
        type("WithoutSolver", (TwoViewFamily,), members)()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (AffineMaps, r"`model` must be one of 'auto', .*, a TwoViewFamily, got "),
        (type("Of3", (AffineMaps,), {"codimension": 3})(), r"`model.codimension` must be one of \[1, 2\], got 3"),
    ],
)
def test_invalid_family_is_rejected(model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        filter_points(np.zeros((9, 2)), np.zeros((9, 2)), model=model)
