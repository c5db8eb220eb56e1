"""Calibration: what the scores of decoys say about the scores of matches."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from ruzhash_cv._core.validation import as_vector

Array = NDArray[np.float64]

#: p-values above the first of these are hardly ever inliers'; how many of them are at most the second tells the mismatches' own law.
INLIERS, MIDDLE = 0.05, 0.5
#: Matches that speak for the decoys' law beforehand.
PRIOR_MATCHES = 40.0


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

    Raises
    ------
    TypeError, ValueError
        An argument is not of a form above; the message names it and what arrived.

    Examples
    --------
    >>> p_values(np.array([0.2, 0.8]), np.array([0.5, 0.7, 0.9]))
    array([0.25, 0.75])
    """
    own, others = as_vector(scores, "scores"), as_vector(decoy_scores, "decoy_scores")
    return tail_shares(own, np.sort(others))


def tail_shares(scores: Array, ranked: Array) -> Array:
    """Return `p_values` of clean arrays; `ranked` are the decoys' scores in ascending order."""
    as_good = np.searchsorted(ranked, scores, side="right")
    return np.asarray((1.0 + as_good) / (1.0 + len(ranked)), dtype=np.float64)


def empirical_null(p: Array, n_decoys: int) -> float:
    """Return the shift of the law of mismatches' p-values: Phi^-1(p) + shift is standard normal.

    0 where they are like decoys. Mismatches of real matchers look a little better: they join what looks alike and lies near each
    other. Large p-values are theirs alone, and tell the law by which the small ones follow (Efron, "Large-scale simultaneous
    hypothesis testing: the choice of a null hypothesis", JASA 2004). Fitted to the share of p-values above 0.05 that are at most 0.5.
    n matches speak for n N / (n + N) of them: the `n_decoys` N that p-values come from are a sample too.

    Examples
    --------
    >>> empirical_null(np.linspace(0.001, 1, 500), 1000)
    0.0
    """
    n = int(np.count_nonzero(p > INLIERS))
    n_middle = np.count_nonzero((p > INLIERS) & (p <= MIDDLE))
    speaks = n_decoys / max(n_decoys + n, 1)
    shifts = np.linspace(0.0, 3.0, 301)
    below, middle = ndtr(ndtri(INLIERS) + shifts), ndtr(ndtri(MIDDLE) + shifts)
    expected = (middle - below) / (1.0 - below)
    share = (speaks * n_middle + PRIOR_MATCHES * expected[0]) / (speaks * n + PRIOR_MATCHES)
    # Not even by rounding is it less than the decoys' own.
    return float(np.interp(share, expected, shifts)) if share > expected[0] * (1.0 + 1e-9) else 0.0


def adjust(p: Array, shift: float) -> Array:
    """Return p-values under a law from `empirical_null`.

    Examples
    --------
    >>> adjust(np.array([0.01, 0.5]), 1.0).round(3)
    array([0.092, 0.841])
    """
    return p if shift == 0.0 else np.asarray(ndtr(ndtri(p) + shift))


def better_rejected(scores: Array, rejected: NDArray[np.bool_]) -> Array:
    """Return, for each match, the share of the rejected ones that look better than it.

    Mismatches crowd around true positions, as repeated corners and edges have them, and decoys do not. What was rejected is known
    to look as it does: a p-value is no smaller than the share of it.

    Examples
    --------
    >>> scores = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    >>> better_rejected(scores, scores > 0.15)
    array([0. , 0. , 0.2, 0.4, 0.6, 0.8])
    """
    ranked: Array = np.sort(scores[rejected])
    better = np.searchsorted(ranked, scores, side="left")
    return np.asarray(better / max(1, len(ranked)), dtype=np.float64)


def mismatch_rate(p: Array, decoy_p: Array | None = None, *, beyond: float = 0.5) -> float:
    """Return the share of mismatches among matches, from how many p-values exceed `beyond`.

    Hardly any of these are inliers': their share is the mismatches', times the share of mismatches that lie there (Storey, "A direct
    approach to false discovery rates", JRSS B 2002). That is 1 - `beyond` where p-values are uniform; where many mismatches agree
    with nothing and share the largest p-value it is more, as the decoys' own, `decoy_p`, tell.

    Examples
    --------
    >>> mismatch_rate(np.array([0.001, 0.001, 0.2, 0.7]))
    0.5
    """
    if len(p) == 0:
        return 0.0
    share = 1.0 - beyond if decoy_p is None or len(decoy_p) == 0 else float(np.mean(decoy_p > beyond))
    return min(1.0, float(np.mean(p > beyond)) / max(share, 1.0 - beyond))
