"""Figures of merit: of masks, probabilities, labels, models and poses."""

import numpy as np
from geometry import Matrix, Points, residuals
from numpy.typing import NDArray
from problems import Cameras
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


def calibration_error(probabilities: NDArray[np.float64], true: Mask) -> float:
    """Mean over matches of how far the share of true ones is from the mean probability, in ten bins of this."""
    bins = np.minimum((probabilities * N_BINS).astype(int), N_BINS - 1)
    return float(np.abs(np.bincount(bins, probabilities - true, N_BINS)).sum() / max(len(true), 1))


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


def model_errors(kind: str, model: Matrix | None, exact1: Points, exact2: Points) -> NDArray[np.float64]:
    """Residuals in pixels of true matches free of noise; infinite without a model."""
    if model is None or not np.isfinite(model).all():
        return np.full(len(exact1), np.inf)
    return residuals(kind, model, exact1, exact2)


def rotation_angle(R: Matrix, true: Matrix) -> float:
    """Angle between two rotations, degrees."""
    # The arcus cosine of the trace alone loses half of the digits near 0.
    sine = np.linalg.norm(R - true) / np.sqrt(8)
    return float(np.degrees(2 * np.arcsin(min(1.0, sine))))


def direction_angle(t: NDArray[np.float64], true: NDArray[np.float64]) -> float:
    """Angle between two directions, degrees, from 0 to 180; the sign counts."""
    t, true = (np.ravel(v) / np.linalg.norm(v) for v in (t, true))
    return float(np.degrees(2 * np.arctan2(np.linalg.norm(t - true), np.linalg.norm(t + true))))


def pose_error(pose: tuple[Matrix, NDArray[np.float64]] | None, true: Cameras) -> float:
    """The larger of both angles in degrees, the rotation's alone if the camera stood still; 180 without a pose."""
    if pose is None or not all(np.isfinite(part).all() for part in pose):
        return 180.0
    error = rotation_angle(pose[0], true.R)
    if not true.t.any():
        return error
    return max(error, direction_angle(pose[1], true.t)) if np.any(pose[1]) else 180.0


def pose_score(errors: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """What each pair adds to the AUC@threshold, in [0, 1]: its mean is the area under the recall's curve up to there."""
    return np.clip(1 - np.asarray(errors) / threshold, 0, 1)
