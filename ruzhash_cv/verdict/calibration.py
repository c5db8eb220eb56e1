"""Calibration: what the scores of decoys say about the scores of matches."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from ruzhash_cv._core.validation import as_vector

Array = NDArray[np.float64]

#: p-values above the first of these are hardly ever inliers'; how many lie between one and the next tells the mismatches' own law.
LEVELS = (0.05, 0.1, 0.2, 0.5, 1.0)
#: Shifts and spreads tried for that law.
SHIFTS, SPREADS = np.linspace(0.0, 3.0, 31), np.linspace(1.0, 2.5, 16)
#: Matches that speak for the decoys' law beforehand, the price of a spread, and the log-likelihood ratio another law needs.
PRIOR_OF_LAW, SPREAD_PRICE, FEWEST_NATS_OF_LAW = 40.0, 30.0, 0.8
#: The decoy whose score the exponential tail begins at, and the share of decoys that tell how fast it falls.
TAIL_RANK, TAIL_SHARE = 5, 0.1


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


def extend_tail(p: Array, scores: Array, ranked: Array) -> Array:
    """Return p-values that go on falling, exponentially in -log2 of the score, where the best of the decoys end.

    `ranked` are the decoys' scores in ascending order.

    Examples
    --------
    >>> decoys, scores = np.exp2(-np.linspace(1, 0, 101)), np.exp2([-0.5, -1.5, -2.5])
    >>> bool((np.diff(extend_tail(p_values(scores, decoys), scores, decoys)) < 0).all())
    True
    """
    n_tail = int(TAIL_SHARE * len(ranked))
    if n_tail <= TAIL_RANK:
        return p
    agreement, best = -np.log2(scores), -np.log2(ranked[: n_tail + 1])
    scale = float(np.mean(best[:n_tail] - best[n_tail]))
    beyond = agreement > best[TAIL_RANK]
    if scale > 0.0:
        start = (1.0 + TAIL_RANK) / (1.0 + len(ranked))
        p = p.copy()
        p[beyond] = start * np.exp((best[TAIL_RANK] - agreement[beyond]) / scale)
    return p


def empirical_null(p: Array, n_decoys: int) -> tuple[float, float]:
    """Return shift and spread of the law of mismatches' p-values: (ndtri(p) + shift) / spread is standard normal.

    (0, 1) where they are like decoys. Mismatches of real matchers look a little better: they join what looks alike and lies near
    each other. Large p-values are theirs alone, and tell the law by which the small ones follow (Efron, "Large-scale simultaneous
    hypothesis testing: the choice of a null hypothesis", JASA 2004). Fitted by the likelihood of the counts between `LEVELS`, which
    speak for n N / (n + N) of these n matches: the `n_decoys` N that p-values come from are a sample too.

    Examples
    --------
    >>> empirical_null(np.linspace(0.001, 1, 500), 1000)
    (0.0, 1.0)
    """
    levels = np.array(LEVELS)
    below = np.searchsorted(np.sort(p), levels, side="right")
    counts = np.diff(below)
    counts = counts * (n_decoys / max(n_decoys + counts.sum(), 1)) + PRIOR_OF_LAW * np.diff(levels) / (1.0 - levels[0])
    shift, spread, logs = _laws()
    gains = logs @ counts - SPREAD_PRICE * (spread - 1.0) ** 2
    best = int(np.argmax(gains))
    # Entry 0 is the law of decoys.
    return (float(shift[best]), float(spread[best])) if gains[best] > gains[0] + FEWEST_NATS_OF_LAW else (0.0, 1.0)


@cache
def _laws() -> tuple[Array, Array, Array]:
    """Return the shifts and spreads that are tried, and the logarithms of the shares they put between one level and the next."""
    shift, spread = (grid.ravel() for grid in np.meshgrid(SHIFTS, SPREADS, indexing="ij"))
    beyond = ndtr(-(ndtri(np.array(LEVELS)) + shift[:, None]) / spread[:, None])
    shares = (beyond[:, :-1] - beyond[:, 1:]) / beyond[:, :1]
    return shift, spread, np.log(np.maximum(shares, 1e-300))


def adjust(p: Array, null: tuple[float, float]) -> Array:
    """Return p-values under a law from `empirical_null`.

    Examples
    --------
    >>> adjust(np.array([0.01, 0.5]), (1.0, 1.0)).round(3)
    array([0.092, 0.841])
    """
    shift, spread = null
    adjusted = p if null == (0.0, 1.0) else ndtr((ndtri(p) + shift) / spread)
    # At least the smallest positive number: a p-value is never 0.
    return np.maximum(adjusted, np.finfo(np.float64).tiny)


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
