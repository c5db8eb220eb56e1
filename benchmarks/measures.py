"""Figures of merit: how good a mask is, how good the model refitted on it, and paired comparisons."""

from __future__ import annotations

import numpy as np
from geometry import Matrix, Points, apply_homography, refit, sampson_distance
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

Mask = NDArray[np.bool_]
N_BINS = 10
"""Of probabilities, for calibration."""


def mask_quality(kept: Mask, true: Mask) -> dict[str, float]:
    """Precision, recall, F1 and balanced accuracy; positives are the true matches.

    Keeping nothing has precision 1 and recall 0, F1 0; without true matches recall is 1.
    """
    hits = float(np.sum(kept & true))
    precision = hits / kept.sum() if kept.any() else 1.0
    recall = hits / true.sum() if true.any() else 1.0
    f1 = 2 * hits / (kept.sum() + true.sum()) if kept.any() or true.any() else 1.0
    specificity = float(np.mean(~kept[~true])) if (~true).any() else 1.0
    return {"precision": precision, "recall": recall, "f1": f1, "balanced_accuracy": (recall + specificity) / 2}


def roc_auc(scores: NDArray[np.float64], mismatch: Mask) -> float:
    """Probability that a mismatch scores above a true match, ties counting half; NaN with one class only."""
    n_positive, n_negative = int(mismatch.sum()), int((~mismatch).sum())
    if n_positive == 0 or n_negative == 0:
        return float("nan")
    ranks = rankdata(scores)  # average ranks for ties
    return float((ranks[mismatch].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))


def reliability(probabilities: NDArray[np.float64], true: Mask) -> NDArray[np.float64]:
    """Counts of matches in ten bins of probability, the sums of their probabilities, and how many are true; shape (3, 10)."""
    bins = np.minimum((probabilities * N_BINS).astype(int), N_BINS - 1)
    return np.array([np.bincount(bins, weights, minlength=N_BINS) for weights in (None, probabilities, true)], float)


def calibration_error(probabilities: NDArray[np.float64], true: Mask) -> float:
    """Mean over matches of how far the share of true ones is from the mean probability, in ten bins of this."""
    counts, sums, hits = reliability(probabilities, true)
    return float(np.abs(sums - hits).sum() / max(counts.sum(), 1))


def label_error(found: NDArray[np.intp], truth: NDArray[np.intp]) -> float:
    """Share of matches in the wrong structure under the best one-to-one naming of structures.

    `found` has -1 for mismatches, `truth` has 0: mismatches are a class of their own and are never renamed.
    """
    if len(truth) == 0:
        return 0.0
    names_found, names_true = np.unique(found[found >= 0]), np.unique(truth[truth > 0])
    overlap = np.array([[np.sum((found == f) & (truth == t)) for t in names_true] for f in names_found])
    agreed = int(np.sum((found < 0) & (truth == 0)))
    if overlap.size:
        rows, columns = linear_sum_assignment(-overlap)
        agreed += int(overlap[rows, columns].sum())
    return 1.0 - agreed / len(truth)


def grid_over(points: Points, steps: int = 20) -> Points:
    """Regular grid over the bounding box of the points."""
    low, high = points.min(axis=0), points.max(axis=0)
    axes = [np.linspace(low[axis], high[axis], steps) for axis in (0, 1)]
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


def homography_error(estimate: Matrix | None, truth: Matrix, exact1: Points) -> float:
    """Mean distance in pixels between both images of a grid over the exact points; inf without an estimate."""
    if estimate is None:
        return float("inf")
    grid = grid_over(exact1)
    error = np.linalg.norm(apply_homography(estimate, grid) - apply_homography(truth, grid), axis=1)
    return float(np.mean(error)) if np.isfinite(error).all() else float("inf")


def fundamental_error(estimate: Matrix | None, exact1: Points, exact2: Points) -> float:
    """Mean Sampson distance in pixels of noise-free correspondences; inf without an estimate."""
    if estimate is None:
        return float("inf")
    return float(np.mean(sampson_distance(estimate, exact1, exact2)))


def refit_error(
    kind: str, points1: Points, points2: Points, kept: Mask, exact1: Points, exact2: Points, truth: Matrix
) -> float:
    """Error of the one model refitted by least squares to what a method kept."""
    estimate = refit(kind, points1[kept], points2[kept])
    if kind == "homography":
        return homography_error(estimate, truth, exact1)
    return fundamental_error(estimate, exact1, exact2)


def paired_difference(first: NDArray[np.float64], second: NDArray[np.float64]) -> tuple[float, float]:
    """Mean of first - second over problems, and its standard error (NaN with fewer than two problems)."""
    difference = np.asarray(first) - np.asarray(second)
    if len(difference) < 2:
        return (float(difference.mean()) if len(difference) else float("nan")), float("nan")
    return float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(len(difference)))
