"""Essential matrices through five pairs of rays, beside OpenCV's, and where there are none or too many."""

import cv2
import numpy as np
import pytest

from ruzhash_cv.core.families.five_points import through_five

Array = np.ndarray


def drawn(n: int, seed: int, width: float = 1.0) -> tuple[Array, Array, Array]:
    """Unit rays (n, 5, 3) of n pairs of views, and their essential matrices (n, 9) of unit norm."""
    rng, first, second, truth = np.random.default_rng(seed), [], [], []
    for _ in range(n):
        X = rng.uniform([-width, -width, 2], [width, width, 6], (5, 3))
        R, t = cv2.Rodrigues(rng.normal(0, 0.2, 3))[0], rng.normal(0, 0.5, 3)
        first.append(X)
        second.append(X @ R.T + t)
        truth.append(np.cross(t, R.T).T.ravel() / np.linalg.norm(np.cross(t, R.T)))
    sides = [np.array(each) / np.linalg.norm(each, axis=2, keepdims=True) for each in (first, second)]
    return sides[0], sides[1], np.array(truth)


def apart(models: Array, others: Array) -> Array:
    """Distances (m, n) between matrices of unit norm, of either sign."""
    return np.minimum(*(np.linalg.norm(models[:, None] - sign * others[None], axis=2) for sign in (1.0, -1.0)))


@pytest.mark.parametrize("width", [0.05, 0.5, 2.0])
def test_solutions_are_essential_and_those_of_opencv_and_the_truth_is_among_them(width: float) -> None:
    first, second, truth = drawn(100, 0, width)
    models, owner = through_five(np.concatenate([first, second], axis=2))
    sizes = np.linalg.svd(models.reshape(-1, 3, 3))[1]
    assert np.quantile(np.abs(sizes - np.sqrt(0.5) * np.array([1.0, 1.0, 0.0])).max(axis=1), 0.98) < 1e-8
    assert np.abs(np.einsum("kri,kij,krj->kr", second[owner], models.reshape(-1, 3, 3), first[owner])).max() < 1e-12
    n_missed, errors, pixels = 0, [], [side[:, :, :2] / side[:, :, 2:] for side in (first, second)]
    for sample in range(100):
        own = models[owner == sample]
        errors.append(apart(own, truth[[sample]]).min())
        expected, _ = cv2.findEssentialMat(pixels[0][sample], pixels[1][sample], np.eye(3))
        theirs = expected.reshape(-1, 9) / np.linalg.norm(expected.reshape(-1, 9), axis=1, keepdims=True)
        n_missed += int((apart(theirs, own).min(axis=1) > 1e-5).sum())
        assert len(own) <= 10
    assert np.median(errors) < 1e-11
    assert np.quantile(errors, 0.98) < 1e-6
    # Two that nearly coincide may be none for one of the two methods.
    assert n_missed <= 2


@pytest.mark.parametrize("kind", ["one ray", "a turn", "nothing moved", "zeros", "not finite", "none"])
def test_of_degenerate_samples_there_are_no_wrong_solutions(kind: str) -> None:
    first, second, _ = drawn(20, 3)
    if kind == "one ray":
        first[:], second[:] = first[:1, :1], second[:1, :1]
    if kind in ("a turn", "nothing moved"):
        second = first @ (cv2.Rodrigues(np.array([0.1, 0.2, 0.3]))[0] if kind == "a turn" else np.eye(3))
    if kind == "zeros":
        first[:, 2:] = 0.0
    if kind == "not finite":
        second[:, 3] = np.nan
    if kind == "none":
        first, second = first[:0], second[:0]
    models, owner = through_five(np.concatenate([first, second], axis=2))
    assert models.shape == (len(owner), 9)
    assert np.isfinite(models).all()
    residuals = np.einsum("kri,kij,krj->kr", second[owner], models.reshape(-1, 3, 3), first[owner])
    assert np.abs(residuals).max(initial=0.0) < 1e-9
