"""What the fits of all families of two views share: sums over matches, normalisation, the least vector of a quadratic form.

A point is three homogeneous coordinates: (x, y, 1) of a pixel, a ray if the cameras are known. Rows of such correspondences have ten
columns: the four coordinates, the ray of the first image and the ray of the second. A ray is as long as an angle of one radian is there
in the unit of the coordinates, so that residuals are lengths in the images in every direction, also behind a fisheye.
"""

from __future__ import annotations

import numpy as np

from ruzhash_cv._arrays import COORDINATES, RAYS1, RAYS2, Array
from ruzhash_cv.kernels.fit import write_least_vectors

_N_COORDINATES: int = COORDINATES.stop
#: Where products of two of (x, y, z) stand among (x x, x y, y y, x z, y z, z z).
_PRODUCT = np.array([[0, 1, 3], [1, 2, 4], [3, 4, 5]])
_OUTER, _INNER = np.kron(_PRODUCT, np.ones((3, 3), np.int64)), np.tile(_PRODUCT, (3, 3))
_SQUARES = _PRODUCT.diagonal()


def has_rays(data: Array) -> bool:
    """Return whether rows (..., 10) hold rays, beside the four coordinates."""
    n_columns: int = data.shape[-1]
    return n_columns > _N_COORDINATES


def homogeneous(data: Array) -> Array:
    """Return both points of correspondences (n, 4) or (n, 10) as rows (6, n) of coordinates, of samples (s, k, d) as (6, k, s)."""
    if has_rays(data):
        return np.ascontiguousarray(data.T[RAYS1.start : RAYS2.stop])
    points = np.ones((6, *data.T.shape[1:]))
    points[[0, 1, 3, 4]] = data.T
    return points


def directions(rays: Array) -> Array:
    """Return rays of length 1."""
    return np.asarray(rays / np.linalg.norm(rays, axis=-1, keepdims=True))


def unit_norm(models: Array) -> Array:
    """Return models (m, 9) divided by their Euclidean norms; a zero model becomes NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled: Array = models / np.sqrt(np.einsum("mi,mi->m", models, models))[:, None]
    return scaled


def carried(models: Array, into1: Array, into2: Array) -> Array:
    """Return A2' M A1 (m, 9) of unit norm: a bilinear form of points, for the points that A1, A2 (3, 3) brought to the models'."""
    return unit_norm((into2.swapaxes(-1, -2) @ models.reshape(-1, 3, 3) @ into1).reshape(-1, 9))


def divided_by_gradients(rays: Array, models: Array, weights: Array, of_both: bool) -> Array:
    """Return weights (m, n) divided by the squares of M X1, and of M' X2 `of_both`; if one is not finite, the weight is 0."""
    matrices = models.reshape(-1, 3, 3)
    squares = np.square(matrices @ rays[:3]).sum(axis=1)
    if of_both:
        squares += np.square(matrices.swapaxes(1, 2) @ rays[3:]).sum(axis=1)
    with np.errstate(all="ignore"):
        divided: Array = weights / squares
    return np.where(np.isfinite(divided), divided, 0.0)


def quadratic_forms(rays: Array, weights: Array, part: Array) -> tuple[Array, Array, Array]:
    """Return quadratic forms (m, 9, 9) of matrices M' of whitened rays, M = A2' M' A1, and A1, A2 (m, 3, 3) that whiten.

    The forms are sums of weights (m, n) times products of the first rays (6, n) times `part` (6, 6) of products of the second rays.
    Both parts of the forms have equal moments in every direction.
    """
    first, second = (each[[0, 0, 1, 0, 1, 2]] * each[[0, 1, 1, 2, 2, 2]] for each in (rays[:3], rays[3:]))
    sums = part @ ((weights[:, None] * second) @ first.T)
    into1, into2 = _whiteners(sums[:, _SQUARES].sum(axis=1)), _whiteners(sums[:, :, _SQUARES].sum(axis=2))
    both = (into2[:, :, None, :, None] * into1[:, None, :, None, :]).reshape(-1, 9, 9)
    return both @ sums[:, _OUTER, _INNER] @ both.swapaxes(1, 2), into1, into2


def _whiteners(moments: Array) -> Array:
    """Return the inverses (m, 3, 3) of the Cholesky factors of moments (m, 6), lower triangles."""
    xx, xy, yy, xz, yz, zz = moments.T
    shift, into = 1e-13 * (xx + yy + zz) + 1e-100, np.zeros((len(moments), 3, 3))
    a = np.sqrt(np.maximum(xx + shift, shift))
    b, c = xy / a, xz / a
    d = np.sqrt(np.maximum(yy + shift - b * b, shift))
    e = (yz - b * c) / d
    f = np.sqrt(np.maximum(zz + shift - c * c - e * e, shift))
    into[:, 0, 0], into[:, 1, 1], into[:, 2, 2] = 1.0 / a, 1.0 / d, 1.0 / f
    into[:, 1, 0], into[:, 2, 1], into[:, 2, 0] = -b / (a * d), -e / (d * f), (b * e - c * d) / (a * d * f)
    return into


def least_vectors(grams: Array) -> Array:
    """Return a unit eigenvector (m, k) of the smallest eigenvalue of each positive semi-definite matrix (m, k, k)."""
    grams = np.ascontiguousarray(grams, np.float64)
    m, k, _ = grams.shape
    vectors = np.ones((m, k))
    write_least_vectors(grams, np.empty((k + 1, k)), vectors)
    return vectors
