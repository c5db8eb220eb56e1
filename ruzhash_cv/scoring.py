"""Scores of matches and of decoys, through the same columns and the same forest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ruzhash_cv.bank import Bank, Found, coordinate_rows
from ruzhash_cv.decoys import draw_decoys
from ruzhash_cv.forest import RuzHashForest
from ruzhash_cv.preferences import agree
from ruzhash_cv.search import DECOY_REACH, NOWHERE, REACH, SIGMA, Search

#: Trees, columns from samples, and decoys of the null distribution.
N_TREES, N_COLUMNS, N_DECOYS = 10, 40, 1000
#: By family: columns of the structures, as a share of those from samples and spread evenly over the structures, and their weight.
STRUCTURE_SHARES, STRUCTURE_WEIGHTS = np.array([0.4, 0.1]), np.array([1.0, 0.5])
#: Matches displaced, to compare with those that lie beyond the tolerance of a structure.
N_DISPLACED = 200
#: Decoys are made of what lies further than so many tolerances from all structures, and of any matches as if these were so many more.
BEYOND, PRIOR_MATCHES = 2.0, 40
#: What the largest sum of preferences counts for beside a path length, which is about 1.7 for what is least anomalous.
AGREEMENT_SHARE = 2.5
#: By family: what lying on a structure counts for beside the largest sum of preferences, and half of it `SIGMA` pixels off.
NEARNESS_SHARES = np.array([0.2, 0.05])

Array = NDArray[np.float64]


def draw_null(search: Search, found: Found, pairs: Array, residuals: Array) -> Array:
    """Return decoys made of what looks like mismatches: these stand where mismatches stand.

    Few such matches could be made of little else than true ones: the fewer, the more decoys are made of any matches.
    """
    beyond = pairs[(residuals > BEYOND * search.scale * found.tolerances).all(axis=1)]
    n_beyond = round(N_DECOYS * len(beyond) / (len(beyond) + PRIOR_MATCHES))
    reach = DECOY_REACH * search.scale
    first = draw_decoys(beyond, n_beyond, reach, search.rng)
    return np.vstack([first, draw_decoys(pairs, N_DECOYS - len(first), reach, search.rng)])


def displace(search: Search, found: Found, pairs: Array, residuals: Array, reach: float) -> Array:
    """Return matches of the structures displaced: beyond one tolerance of all structures, within `reach` of one.

    Their second points are displaced, and by the measure of the residuals, which may be another image's.
    """
    tolerances = search.scale * found.tolerances
    distances = residuals / tolerances
    own = np.flatnonzero(distances.min(axis=1) <= 1.0)
    if len(own) == 0:
        return np.zeros((0, 4))
    rows = own[search.rng.integers(len(own), size=N_DISPLACED)]
    # Uniform on a disc.
    length = reach * tolerances[np.argmin(distances[rows], axis=1)] * np.sqrt(search.rng.random(N_DISPLACED))
    angle = 2.0 * np.pi * search.rng.random(N_DISPLACED)
    offsets = length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    # Where the second image is the smaller one, a pixel of it is several of the first: the offsets that lead too far shrink.
    displaced = pairs[rows]
    for _ in range(4):
        displaced[:, 2:] = pairs[rows, 2:] + offsets
        distances = found.residuals(coordinate_rows(displaced)) / tolerances
        far = distances.min(axis=1)
        offsets[far > reach] *= 0.5
    return np.asarray(displaced[(far > 1.0) & (far <= reach)])


class Scorer:
    """Anomaly scores of matches, and of decoys through the same columns and the same forest."""

    def __init__(self, search: Search, found: Found) -> None:
        self._search, self._found = search, found
        columns, weights = found.columns, found.significances
        if len(columns) > N_COLUMNS:
            chosen = np.sort(search.rng.choice(len(columns), N_COLUMNS, replace=False, p=weights / weights.sum()))
            columns, weights = columns.take(chosen), weights[chosen]
        # Some columns of each structure at its own noise scale, beside those of the samples.
        kinds = found.structures.kinds
        copies = np.maximum(1, np.rint(STRUCTURE_SHARES[kinds] * len(columns) / len(kinds)).astype(np.int64))
        which = np.repeat(np.arange(len(kinds)), copies)
        radii, n = found.radii[which], len(columns)
        self._columns = Bank.join([columns, found.structures.take(which)])
        self._weights = np.concatenate([weights, STRUCTURE_WEIGHTS[kinds[which]]])
        self._reaches = search.scale * np.concatenate([np.full(n, REACH), 2.0 * radii])
        self._sigmas = search.scale * np.concatenate([np.full(n, SIGMA), 0.5 * radii])
        self._forest = RuzHashForest(n_trees=N_TREES, rng=search.rng, n_jobs=search.n_jobs)

    def fit(self, points: Array, residuals: Array, places: NDArray[np.int64]) -> Array:
        """Grow the forest on the matches and return their scores.

        `points` (4, n) are the matches as rows of coordinates, `residuals` (n, k) theirs to the structures, both in the frame.
        """
        rows = self._embed(points, places)
        scores = self._forest.fit_anomaly_scores(rows)
        agreement = rows @ np.ones(rows.shape[1])
        self._most = max(float(agreement.max()), 1e-300)
        return self._finish(scores, agreement, residuals)

    def score(self, decoys: Array) -> Array:
        """Return the scores of decoys (n, 4); these have no place, and so no columns of their own."""
        points = coordinate_rows(decoys)
        rows = self._embed(points, np.full(len(decoys), NOWHERE))
        return self._finish(
            self._forest.anomaly_scores(rows), rows @ np.ones(rows.shape[1]), self._found.residuals(points)
        )

    def _embed(self, points: Array, places: NDArray[np.int64]) -> sparse.csr_array:
        bank = self._columns
        columns, _ = agree(
            points, np.zeros(len(places)), places, bank.packed, bank.kinds, bank.makers, self._reaches, self._sigmas,
            n_jobs=self._search.n_jobs,
        )  # fmt: skip
        return columns.to_rows(self._weights)

    def _finish(self, scores: Array, agreement: Array, residuals: Array) -> Array:
        # The forest's trees end after two levels; among what gets that far, more agreement is less anomalous. And where most agree
        # with nothing, what is nearer to a structure is: of an object in space one plane is found.
        with np.errstate(over="ignore"):
            nearness = NEARNESS_SHARES[self._found.structures.kinds] / (1.0 + residuals / (SIGMA * self._search.scale))
        share = agreement / self._most + nearness.max(axis=1)
        return np.asarray(scores * np.exp2(-AGREEMENT_SHARE * share))
