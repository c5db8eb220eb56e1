"""The family of homographies of rays: planes that known cameras see, and what one sees that only turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ruzhash_cv._arrays import RAYS1, RAYS2, Array, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.models.normal_equations import least_vectors, unit_norm
from ruzhash_cv.models.rays import across_second, both_rays, ray_products, unwhitened, whitened

#: A homography of unit norm with a smaller determinant has no inverse worth the name.
_SINGULAR = 1e-9


@dataclass(frozen=True)
class RayHomographies:
    """Homographies of rows with rays, see `models.rays`; rows of 9. The residual is the symmetric transfer error."""

    name: str = "homography"
    sample_size: int = 4
    codimension: int = 2
    is_plane: bool = True

    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """Return homographies (k, 9) of unit norm of samples (s, 4, 10), and the sample (k,) of each; see `Homographies.solve`."""
        first, second = (samples[..., rays].transpose(1, 0, 2) for rays in (RAYS1, RAYS2))
        with np.errstate(all="ignore"):
            (lines, own), (_, other) = _opposite_planes(first), _opposite_planes(second)
            weights = other * own[[1, 2, 0]] * own[[2, 0, 1]]
            models = unit_norm(np.einsum("is,isu,isv->suv", weights, second[:3], lines).reshape(-1, 9))
            determinants = np.linalg.det(models.reshape(-1, 3, 3))
        usable = np.flatnonzero(np.abs(determinants) > _SINGULAR)
        return models[usable], usable

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared symmetric transfer errors (m, n) of correspondences (n, 10); infinite where rays point apart."""
        squared = np.empty((len(models), len(data)))
        _squared_turns(both_rays(data), np.ascontiguousarray(models), squared)
        return squared

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return homographies (m, 9) of least weighted |X2 x H X1|^2.

        Reweighted by the lengths of H X1 that `models` give, its error is the transfer error in the second image.
        """
        rays, scaled = both_rays(data), np.empty(weights.shape)
        if models is None:
            models = np.tile(np.identity(3).ravel(), (len(weights), 1))
        _divide_by_lengths(rays, np.ascontiguousarray(models), np.ascontiguousarray(weights), scaled)
        grams, into2, into1 = whitened(across_second(ray_products(rays, scaled)))
        return unwhitened(least_vectors(grams), into2, into1)

    def step(self, data: Array, weights: Array, models: Array) -> Array:
        """Return the fit reweighted by the lengths that `models` give."""
        return self.fit(data, weights, models)

    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return homographies (m, 9) of pixels without distortion; `into1`, `into2` bring these to rays."""
        return unit_norm((np.linalg.inv(into2) @ models.reshape(-1, 3, 3) @ into1).reshape(-1, 9))


def _opposite_planes(rays: Array) -> tuple[Array, Array]:
    """Return the normals (3, s, 3) opposite to each of the first three of rays (4, s, 3), and their products (3, s) with the fourth."""
    normals = np.cross(rays[[1, 2, 0]], rays[[2, 0, 1]])
    return normals, np.einsum("isk,sk->is", normals, rays[3])


@jit
def _divide_by_lengths(rays: Any, models: Any, weights: Any, scaled: Any) -> None:
    """Write weights divided by |H X1|^2; what is no number then has no weight."""
    for item in range(len(models)):
        a, b, c, d, e, f, g, h, i = models[item]
        for row in range(rays.shape[1]):
            x, y, z = rays[0, row], rays[1, row], rays[2, row]
            p, q, r = a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z
            weight = weights[item, row] / (p * p + q * q + r * r)
            scaled[item, row] = weight if abs(weight) < np.inf else 0.0


@jit
def _squared_turns(rays: Any, models: Any, squared: Any) -> None:
    """Loops without branches over rows of coordinates compile to vector instructions."""
    for item in range(len(models)):
        a, b, c, d, e, f, g, h, i = models[item]
        first = e * i - f * h, c * h - b * i, b * f - c * e
        second = f * g - d * i, a * i - c * g, c * d - a * f
        third = d * h - e * g, b * g - a * h, a * e - b * d
        # Of either sign; the one that keeps what is before the camera there has a positive determinant.
        sign = 1.0 if a * first[0] + b * second[0] + c * third[0] > 0.0 else -1.0
        _add_turn(
            rays,
            (sign * a, sign * b, sign * c, sign * d, sign * e, sign * f, sign * g, sign * h, sign * i),
            0,
            squared[item],
        )
        _add_turn(rays, (*first, *second, *third), 3, squared[item])


@jit
def _add_turn(rays: Any, model: Any, source: int, squared: Any) -> None:
    """Write the squared errors of rays of one image mapped to the other: the first image's, then the larger of the two."""
    a, b, c, d, e, f, g, h, i = model
    other = 3 - source
    for row in range(rays.shape[1]):
        x, y, z = rays[source, row], rays[source + 1, row], rays[source + 2, row]
        u, v, w = rays[other, row], rays[other + 1, row], rays[other + 2, row]
        p, q, r = a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z
        s, t, o = v * r - w * q, w * p - u * r, u * q - v * p
        error = (s * s + t * t + o * o) / (p * p + q * q + r * r)
        # A comparison with NaN is false: what has no image is infinitely far, as is what points away.
        error = error if (error < np.inf) & (p * u + q * v + r * w > 0.0) else np.inf
        squared[row] = error if (source == 0) | (error > squared[row]) else squared[row]
