"""Calibration: what the scores of decoys say about the scores of matches."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv._validation import as_vector

Array = NDArray[np.float64]


def p_values(scores: ArrayLike, decoy_scores: ArrayLike) -> Array:
    """Return, for each score, the probability that a mismatch looks at least as good: (1 + #) / (1 + N).

    # of the N decoys have an anomaly score at most as high. Without decoys every p-value is 1.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Anomaly scores of matches; finite.
    decoy_scores : array_like, shape (N,)
        Anomaly scores of decoys from the same forest; finite.

    Returns
    -------
    ndarray of float64, shape (n,)
        In (0, 1].

    Examples
    --------
    >>> p_values(np.array([0.2, 0.8]), np.array([0.5, 0.7, 0.9]))
    array([0.25, 0.75])
    """
    own, others = as_vector(scores, "scores"), as_vector(decoy_scores, "decoy_scores")
    as_good = np.searchsorted(np.sort(others), own, side="right")
    return np.asarray((1.0 + as_good) / (1.0 + len(others)), dtype=np.float64)


def mismatch_rate(p: Array, *, beyond: float = 0.5) -> float:
    """Return the share of mismatches among matches, from how many p-values exceed `beyond`.

    p-values of mismatches are uniform, those of inliers are small: the share of p-values above a level, divided by
    1 - level, is the mismatches' (Storey, "A direct approach to false discovery rates", JRSS B 2002).

    Examples
    --------
    >>> mismatch_rate(np.array([0.001, 0.001, 0.2, 0.7]))
    0.5
    """
    return min(1.0, float(np.mean(p > beyond)) / (1.0 - beyond)) if len(p) else 0.0
