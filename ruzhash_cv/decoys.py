"""Decoys: correspondences that are known to be mismatches, because they are made of points of different matches."""

from __future__ import annotations

import numpy as np

from ruzhash_cv._arrays import COORDINATES, POINT2, RAYS2, Array
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.parameters import Parameters


def draw_decoys(data: Array, n_decoys: int, distance: float, rng: np.random.Generator) -> Array:
    """Pair the first point of one correspondence with the second point of another, `n_decoys` times.

    A pairing is refused when its two points' own partners are within `distance` of where it would put them: it could be true. Fewer
    come back where most are.
    """
    if len(data) == 0:
        return np.zeros((0, data.shape[1]))
    i, j = rng.integers(len(data), size=(2, 2 * n_decoys))
    x1, y1, x2, y2 = (np.abs(data.take(i, axis=0) - data.take(j, axis=0)) >= distance).T[COORDINATES]
    far = np.flatnonzero((x1 | y1) & (x2 | y2))[:n_decoys]
    decoys: Array = data.take(i[far], axis=0)
    others = data.take(j[far], axis=0)
    for second in (POINT2, RAYS2):
        decoys[:, second] = others[:, second]
    return decoys


def decoys_of_matches(matches: MatchSet, parameters: Parameters, rng: np.random.Generator) -> Array:
    """Return decoys (N, 4) made of all matches: models are weighed against these."""
    return draw_decoys(matches.data, parameters.n_decoys, parameters.widest_scale * matches.unit, rng)


def decoys_of_unexplained(
    matches: MatchSet, unexplained: Array, parameters: Parameters, rng: np.random.Generator
) -> Array:
    """Return decoys (N, 4) made of matches that no structure explains, so that their points are where those of mismatches are.

    Few such matches may be true ones that were missed. So the fewer they are, the more decoys are made of all matches.
    """
    n_decoys, distance = parameters.n_decoys, parameters.widest_scale * matches.unit
    beyond = matches.data[unexplained > 0.0]
    n_beyond = round(n_decoys * len(beyond) / (len(beyond) + parameters.prior_matches))
    first = draw_decoys(beyond, n_beyond, distance, rng)
    return np.vstack([first, draw_decoys(matches.data, n_decoys - len(first), distance, rng)])
