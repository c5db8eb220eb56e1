"""The families of epipolar matrices: fundamental ones, of rigid motions, and essential ones, if both cameras are known."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import Any

import cv2
import numpy as np

from ruzhash_cv.core.families.base import OF_MOTION, residuals_of_kind
from ruzhash_cv.core.families.five_points import through_five
from ruzhash_cv.core.families.linear import carried, directions, has_rays, homogeneous, unit_norm
from ruzhash_cv.core.families.rounds import DISTANCES, EQUATIONS, STEP, TURNS, fits, reweighted_in_rounds
from ruzhash_cv.core.families.weighting import Law
from ruzhash_cv.core.kernels.planes import write_through_two
from ruzhash_cv.foundation.arrays import RAYS1, RAYS2, Array, Mask, Rows

#: Matches off a plane that fix the epipole, and with it the matrix of a motion: these fit it whatever they are.
PARALLAX_SIZE = 2
# A cofactor of a matrix is the product of the first two of these entries less that of the others.
_CROSSED = np.array(
    [[4, 5, 3, 7, 8, 6, 1, 2, 0], [8, 6, 7, 2, 0, 1, 5, 3, 4], [5, 3, 4, 8, 6, 7, 2, 0, 1], [7, 8, 6, 1, 2, 0, 4, 5, 3]]
)
#: What OpenCV's solver finds for a sample that no matrix goes through.
_NO_MATRICES = np.zeros((0, 3))
#: A root whose imaginary part is larger, as a share of its size, is none.
_REAL = 1e-9
#: A homography of rays whose squared singular values differ by a smaller share is a rotation.
_TURN = 1e-3
#: Steps of an essential matrix without a start.
_STEPS = 3


@dataclass(frozen=True)
class FundamentalMatrices:
    """Fundamental matrices of correspondences (x1, y1, x2, y2), rows of 9; the residual is the Sampson distance.

    Rows with rays, see `models.linear`, have matrices of rays.

    Examples
    --------
    >>> sideways = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0]])
    >>> FundamentalMatrices().squared_residuals(np.array([[0.0, 0.0, 5.0, 2.0]]), sideways)
    array([[2.]])
    """

    name: str = "fundamental"
    sample_size: int = 7
    codimension: int = 1
    is_plane: bool = False
    kernel: int = OF_MOTION
    parallax_size: int = PARALLAX_SIZE

    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """Return up to three fundamental matrices (k, 9) of unit norm of each sample (s, 7, d), and the sample (k,) of each."""
        if has_rays(samples):
            return _through_seven(*(directions(samples[..., rays]) for rays in (RAYS1, RAYS2)))
        first, second = (np.ascontiguousarray(samples[..., image : image + 2], np.float32) for image in (0, 2))
        solved: list[Any] = list(map(cv2.findFundamentalMat, first, second, repeat(cv2.FM_7POINT)))
        stacks = [_NO_MATRICES if stack is None else stack for stack, _ in solved]
        models = unit_norm(np.concatenate([_NO_MATRICES, *stacks]).reshape(-1, 9))
        owner = np.repeat(np.arange(len(samples)), [stack.shape[0] // 3 for stack in stacks])
        usable = np.isfinite(models).all(axis=1)
        return models[usable], owner[usable]

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared Sampson distances (m, n) of correspondences (n, d) (Hartley and Zisserman, equation 11.9).

        For rays it is ``(X2' M X1)^2 / (|M X1|^2 + |M' X2|^2)``. The denominator approximates the squared gradient for displacements of
        both rays: the part of M X1 along X2 is as small as the error, and is not subtracted.
        """
        return residuals_of_kind(OF_MOTION, data, models)

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return the normalised 8-point algorithm's matrices, of rank 2 (Hartley and Zisserman, algorithm 11.1).

        With `models`, equations are weighted by the gradients at the points, so that the error is the Sampson distance.
        """
        kind, start = (EQUATIONS, np.ones((len(weights), 9))) if models is None else (DISTANCES, models)
        return fits(kind, data, weights, start)

    def step(self, data: Array, weights: Array, models: Array) -> Array:
        """Return rank 2 matrices after a Gauss-Newton step on the Sampson distances from `models`; for rays, as `fit`."""
        return fits(DISTANCES if has_rays(data) else STEP, data, weights, models)

    def reweighted(
        self, data: Array, weights: Array, models: Array, limits: Array, law: Law, n_rounds: int, excluded: Mask
    ) -> tuple[Array, Array]:
        """See `TwoViewFamily`.

        With Tukey's weights the 8-point algorithm is used: a sample's model may be too far from the minimum for Gauss-Newton steps.
        """
        kind = STEP if law.width and not has_rays(data) else DISTANCES
        return reweighted_in_rounds(kind, data, weights, models, limits, law, n_rounds, excluded)

    def from_plane(self, plane: Array, data: Array, n: int, rng: np.random.Generator) -> Array:
        """Return matrices [e]_x H (n, 9) of a plane's homography H (9,), each from two random off-plane correspondences (k, d).

        The epipole e is where the lines H x1, x2 of the two meet.
        """
        if len(data) < PARALLAX_SIZE:
            return np.zeros((0, 9))
        models = np.empty((n, 9))
        write_through_two(homogeneous(data), plane.copy(), rng.integers(len(data), size=(2, n)), models)
        return models

    def from_planes(self, planes: Array) -> Array:
        """Return [e]_x H (m, 9) of every two of the homographies H (k, 9): the epipole e is an eigenvector of H2 H1^-1."""
        if len(planes) < 2:
            return np.zeros((0, 9))
        first, second = np.where(~np.eye(len(planes), dtype=bool))
        matrices = planes.reshape(-1, 3, 3)[first]
        with np.errstate(all="ignore"):
            # The transposed cofactors are the inverse but for a factor.
            homologies = planes.reshape(-1, 3, 3)[second] @ _cofactors(planes[first]).reshape(-1, 3, 3).swapaxes(1, 2)
            usable = np.isfinite(homologies).all(axis=(1, 2))
            values, vectors = np.linalg.eig(homologies[usable])
        item, vector = np.nonzero(np.abs(values.imag) <= 1e-9 * np.abs(values))
        epipoles, matrices = vectors[item, :, vector].real, matrices[usable][item]
        return unit_norm(np.cross(epipoles[:, None], matrices.swapaxes(1, 2)).swapaxes(1, 2).reshape(-1, 9))

    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return fundamental matrices (m, 9) of undistorted pixels from matrices of the coordinates that `into1`, `into2` map to."""
        return carried(models, into1, into2)


@dataclass(frozen=True)
class EssentialMatrices(FundamentalMatrices):
    """Essential matrices of rows (n, 10) with rays, see `models.linear`; rows of 9, of unit norm. The residual is the same."""

    name: str = "essential"
    sample_size: int = 5

    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """Return up to ten essential matrices (k, 9) of each sample (s, 5, 10), and the sample (k,) of each."""
        return through_five(samples[..., RAYS1.start : RAYS2.stop])

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return essential matrices of least Sampson distances: those of the 8-point algorithm after some steps, `models` after one."""
        n_steps = 1
        if models is None:
            models, n_steps = as_essential(super().fit(data, weights)), _STEPS
        for _ in range(n_steps):
            models = fits(TURNS, data, weights, models)
        return models

    def step(self, data: Array, weights: Array, models: Array) -> Array:
        """Return essential matrices after a Levenberg-Marquardt step on the Sampson distances from `models`."""
        return fits(TURNS, data, weights, models)

    def reweighted(
        self, data: Array, weights: Array, models: Array, limits: Array, law: Law, n_rounds: int, excluded: Mask
    ) -> tuple[Array, Array]:
        """See `TwoViewFamily`."""
        return reweighted_in_rounds(TURNS, data, weights, models, limits, law, n_rounds, excluded)

    def from_plane(self, plane: Array, data: Array, n: int, rng: np.random.Generator) -> Array:
        """Return the two essential matrices of a plane's homography (9,) of rays, none of a rotation."""
        return essentials_of_planes(plane)

    def from_planes(self, planes: Array) -> Array:
        """Return the essential matrices (m, 9) nearest to the fundamental ones of every two homographies (k, 9) of rays."""
        return as_essential(super().from_planes(planes))

    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return the matrices (m, 9), which hold for rays."""
        return as_essential(models)


def _cofactors(models: Array) -> Array:
    """Return the cofactors (m, 9) of matrices (m, 9)."""
    a, b, c, d = (models.take(entries, axis=1) for entries in _CROSSED)
    return np.asarray(a * b - c * d)


def essentials_of_planes(planes: Array) -> Array:
    """Return the essential matrices [t]x H (k, 9) of both baselines t that each homography H of rays has, of rotations none.

    With left singular vectors a, b, c and singular values A, B, C of H: t = sqrt(A^2 - B^2) a +- sqrt(B^2 - C^2) c, because [t]x t n'
    is 0 and R keeps the lengths of vectors across t. See Malis and Vargas, "Deeper understanding of the homography decomposition for
    vision-based control", INRIA 2007.
    """
    homographies = planes.reshape(-1, 3, 3)
    vectors, values, _ = np.linalg.svd(homographies)
    a, b, c = np.square(values).T
    along, across = np.sqrt(a - b)[:, None] * vectors[:, :, 0], np.sqrt(b - c)[:, None] * vectors[:, :, 2]
    baselines, moved = np.stack([along + across, along - across], axis=1), a - c > _TURN * b
    crossed = np.cross(baselines[moved][:, :, None], homographies[moved].swapaxes(1, 2)[:, None])
    return unit_norm(crossed.swapaxes(2, 3).reshape(-1, 9))


def as_essential(models: Array) -> Array:
    """Return the essential matrices (m, 9) nearest to matrices: two singular values are equal and the third is 0."""
    usable = np.isfinite(models).all(axis=1)
    essentials = np.full(models.shape, np.nan)
    left, _, right = np.linalg.svd(models[usable].reshape(-1, 3, 3))
    essentials[usable] = (np.sqrt(0.5) * left[:, :, :2] @ right[:, :2]).reshape(-1, 9)
    return essentials


def _through_seven(first: Array, second: Array) -> tuple[Array, Rows]:
    """Return up to three matrices (k, 9) of rank 2 of each sample of unit rays (s, 7, 3), and the sample (k,) of each.

    F = w A + B of the null space of the seven equations, where det F = 0 (Hartley and Zisserman, 11.1.2). det (w A + B) is a cubic,
    whose coefficients follow from its values at w = 0, 1 and -1 and from det A.
    """
    equations = np.einsum("sri,srj->srij", second, first).reshape(-1, 7, 9)
    null_space = np.linalg.svd(equations)[2][:, 7:]
    a, b = null_space.reshape(-1, 2, 3, 3).transpose(1, 0, 2, 3)
    cubic, constant, at_one, at_minus_one = map(np.linalg.det, (a, b, a + b, b - a))
    usable = np.flatnonzero(np.abs(cubic) > 1e-12)
    square, line = 0.5 * (at_one + at_minus_one) - constant, 0.5 * (at_one - at_minus_one) - cubic
    companions = np.zeros((len(usable), 3, 3))
    companions[:, 0] = -(np.array([square, line, constant])[:, usable] / cubic[usable]).T
    companions[:, [1, 2], [0, 1]] = 1.0
    roots = np.linalg.eigvals(companions)
    sample, which = np.nonzero(np.abs(roots.imag) <= _REAL * (1.0 + np.abs(roots)))
    owner, w = usable[sample], roots[sample, which].real[:, None]
    return unit_norm(w * null_space[owner, 0] + null_space[owner, 1]), owner
