"""The family of epipolar matrices of rays: rigid motions where a camera is not known, or not as it was said to be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ruzhash_cv._arrays import RAYS1, RAYS2, Array, Rows
from ruzhash_cv.models.normal_equations import PARALLAX_SIZE, least_vectors, of_rank_two, parallax, unit_norm
from ruzhash_cv.models.rays import (
    both_rays,
    directions,
    divided_by_gradients,
    ray_products,
    squared_epipolar_distances,
    unwhitened,
    whitened,
)

#: A root whose imaginary part is larger, as a share of its size, is none.
_REAL = 1e-9


@dataclass(frozen=True)
class RayFundamentalMatrices:
    """Matrices of rank 2, x2' F x1 = 0, of rows with rays, see `models.rays`; rows of 9. The residual is the Sampson distance."""

    name: str = "fundamental"
    sample_size: int = 7
    codimension: int = 1
    is_plane: bool = False
    parallax_size: int = PARALLAX_SIZE

    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """Return up to three matrices (k, 9) of each sample (s, 7, 10), and the sample (k,) of each.

        F = w A + B of the null space of the seven equations, where det F = 0 (Hartley and Zisserman, 11.1.2). det (w A + B) is a
        cubic, whose coefficients its values at w = 0, 1 and -1 and det A tell.
        """
        first, second = (directions(samples[..., rays]) for rays in (RAYS1, RAYS2))
        equations = np.einsum("sri,srj->srij", second, first).reshape(-1, self.sample_size, 9)
        null_space = np.linalg.svd(equations)[2][:, self.sample_size :]
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

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared Sampson distances (m, n) of correspondences (n, 10)."""
        return squared_epipolar_distances(data, models)

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return the 8-point algorithm's matrices, of rank 2.

        Reweighted by the gradients of `models` its error is the Sampson distance.
        """
        rays = both_rays(data)
        if models is not None:
            weights = divided_by_gradients(rays, models, weights)
        grams, into2, into1 = whitened(ray_products(rays, weights))
        with np.errstate(all="ignore"):
            return unwhitened(of_rank_two(least_vectors(grams), grams), into2, into1)

    def step(self, data: Array, weights: Array, models: Array) -> Array:
        """Return the fit reweighted by the gradients of `models`."""
        return self.fit(data, weights, models)

    def from_plane(self, plane: Array, data: Array, n: int, rng: np.random.Generator) -> Array:
        """Return matrices (n, 9) of a plane's homography (9,) of rays and two correspondences off it each, drawn at random."""
        return parallax(plane, data[:, RAYS1], data[:, RAYS2], n, rng)

    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return fundamental matrices (m, 9) of pixels without distortion; `into1`, `into2` bring these to rays."""
        return unit_norm((into2.swapaxes(-1, -2) @ models.reshape(-1, 3, 3) @ into1).reshape(-1, 9))
