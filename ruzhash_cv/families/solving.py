"""Models of samples and distances from them, in pixels: the parts of the method for use on their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ruzhash_cv._arrays import Array, Record, Rows
from ruzhash_cv._kernels import uninterrupted
from ruzhash_cv._validation import as_pairs, as_reals, as_row_numbers, check_choice
from ruzhash_cv.families.protocol import TwoViewFamily
from ruzhash_cv.families.two_view import FundamentalMatrices, Homographies
from ruzhash_cv.matchset import Frame

#: The families of two views by name.
FAMILIES: dict[str, TwoViewFamily] = {"homography": Homographies(), "fundamental": FundamentalMatrices()}


@dataclass(frozen=True, eq=False)
class Models(Record):
    """Models of one family, and the samples they came from.

    Attributes
    ----------
    matrices : ndarray of float64, shape (m, 3, 3)
        Homographies (x2 ~ H x1) or fundamental matrices (x2^T F x1 = 0), of unit Frobenius norm.
    sample_index : ndarray of int64, shape (m,)
        The sample each model was solved from; a fundamental matrix's sample gives up to three.
    kind : str
        ``"homography"`` or ``"fundamental"``.
    n_degenerate : int
        Samples for which the solver gave no finite, invertible model.
    """

    matrices: Array
    sample_index: Rows
    kind: str
    n_degenerate: int = 0

    def __len__(self) -> int:
        return len(self.matrices)


@uninterrupted
def solve_models(points1: ArrayLike, points2: ArrayLike, samples: ArrayLike, *, kind: str) -> Models:
    """Solve one model (three at most for ``"fundamental"``) per minimal sample set.

    Parameters
    ----------
    points1, points2 : array_like, shape (n, 2)
        Corresponding points, pixels; finite.
    samples : array_like of int, shape (m, 4) or (m, 7)
        Row numbers, as from `draw_samples`.
    kind : {"homography", "fundamental"}
        The homography that maps 4 points to 4, or `cv2.findFundamentalMat` (FM_7POINT) on 7, as float32. Points are shifted and scaled
        first.

    Returns
    -------
    Models

    Examples
    --------
    >>> square = np.array([[0.0, 0.0], [9.0, 0.0], [9.0, 9.0], [0.0, 9.0]])
    >>> models = solve_models(square, 2 * square, [[0, 1, 2, 3]], kind="homography")
    >>> H = models.matrices[0]
    >>> np.allclose(H / H[2, 2], np.diag([2.0, 2.0, 1.0]))
    True
    """
    family = FAMILIES[check_choice(kind, "kind", tuple(FAMILIES))]
    first, second = as_pairs(points1, points2, finite=True)
    rows = as_row_numbers(samples, "samples", ("m", family.sample_size), len(first))
    # Points too far apart for squares leave no finite model, which is a degenerate sample as any other.
    with np.errstate(all="ignore"):
        frame = Frame.around(first, second)
        models, owner = family.solve(frame.enter(first, second)[rows])
        models = family.to_pixels(models, *frame.transforms())
    usable = np.asarray(np.isfinite(models).all(axis=1))
    owner = owner[usable]
    return Models(models[usable].reshape(-1, 3, 3), owner, kind, len(rows) - len(np.unique(owner)))


@uninterrupted
def transfer_error(points1: ArrayLike, points2: ArrayLike, homographies: ArrayLike) -> Array:
    """Return symmetric transfer errors: the larger of ``|x2 - H x1|`` and ``|x1 - H^-1 x2|`` (Hartley and Zisserman, 4.2.2).

    The larger, not the sum of squares: a threshold on it holds in both images.

    Parameters
    ----------
    points1, points2 : array_like, shape (n, 2)
        Corresponding points, pixels.
    homographies : array_like, shape (3, 3) or (m, 3, 3)

    Returns
    -------
    ndarray of float64, shape (n,) or (n, m)
        Pixels. Infinite where a point maps to infinity or the homography has no inverse.

    Examples
    --------
    >>> transfer_error([[0.0, 0.0]], [[3.0, 4.0]], np.eye(3))
    array([5.])
    """
    return _distances(points1, points2, homographies, "homographies", FAMILIES["homography"])


@uninterrupted
def sampson_distance(points1: ArrayLike, points2: ArrayLike, fundamental_matrices: ArrayLike) -> Array:
    """Return Sampson distances ``|x2' F x1| / sqrt((F x1)_1^2 + (F x1)_2^2 + (F' x2)_1^2 + (F' x2)_2^2)``, in pixels.

    The first-order approximation of how far both points must move, together, to satisfy the epipolar constraint
    (Hartley and Zisserman, equation 11.9, unsquared). Shapes: see `transfer_error`.

    Examples
    --------
    >>> sideways = [[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
    >>> sampson_distance([[0.0, 0.0]], [[5.0, 0.0]], sideways)
    array([0.])
    """
    return _distances(points1, points2, fundamental_matrices, "fundamental_matrices", FAMILIES["fundamental"])


def _distances(points1: ArrayLike, points2: ArrayLike, matrices: ArrayLike, name: str, family: TwoViewFamily) -> Array:
    first, second = as_pairs(points1, points2)
    stack = as_reals(matrices, name, "(3, 3) or (m, 3, 3)")
    if stack.shape[-2:] != (3, 3) or stack.ndim > 3:
        raise ValueError(f"`{name}` must have shape (3, 3) or (m, 3, 3), got {stack.shape}")
    with np.errstate(all="ignore"):  # what overflows has no inverse
        squared = family.squared_residuals(np.hstack([first, second]), np.array(stack.reshape(-1, 9), order="C"))
    residuals: Array = np.sqrt(squared).T
    return residuals[:, 0] if stack.ndim == 2 else residuals
