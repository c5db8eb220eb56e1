"""The judge's own residuals and refits, kept apart from the package's on purpose: a fault there must not hide here."""

import cv2
import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Matrix = NDArray[np.float64]


def homogeneous(points: Points) -> Points:
    """Append a column of ones."""
    return np.column_stack([points, np.ones(len(points))])


def apply_homography(H: Matrix, points: Points) -> Points:
    """Map points (n, 2) through H; points on the line at infinity become inf or NaN."""
    mapped = homogeneous(points) @ H.T
    with np.errstate(divide="ignore", invalid="ignore"):
        return mapped[:, :2] / mapped[:, 2:]


def transfer_error(H: Matrix, points1: Points, points2: Points) -> NDArray[np.float64]:
    """Root mean square of the forward and the backward distance, in pixels; inf where undefined."""
    try:
        inverse = np.linalg.inv(H)
    except np.linalg.LinAlgError:
        return np.full(len(points1), np.inf)
    forward = np.sum((apply_homography(H, points1) - points2) ** 2, axis=1)
    backward = np.sum((apply_homography(inverse, points2) - points1) ** 2, axis=1)
    error = np.sqrt((forward + backward) / 2)
    return np.where(np.isfinite(error), error, np.inf)


def sampson_distance(F: Matrix, points1: Points, points2: Points) -> NDArray[np.float64]:
    """First-order distance to the epipolar constraint x2^T F x1 = 0, in pixels."""
    x1, x2 = homogeneous(points1), homogeneous(points2)
    line2, line1 = x1 @ F.T, x2 @ F
    numerator = np.abs(np.sum(x2 * line2, axis=1))
    denominator = np.sqrt(np.sum(line2[:, :2] ** 2, axis=1) + np.sum(line1[:, :2] ** 2, axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = numerator / denominator
    return np.where(np.isfinite(distance), distance, np.inf)


def residuals(kind: str, model: Matrix, points1: Points, points2: Points) -> NDArray[np.float64]:
    """Residuals in pixels to a model of `kind` ("homography" or "fundamental")."""
    distance = transfer_error if kind == "homography" else sampson_distance
    return distance(model, points1, points2)


def refit(kind: str, points1: Points, points2: Points) -> Matrix | None:
    """Fit one model to all correspondences by least squares; None where there are too few or no fit."""
    fewest = 4 if kind == "homography" else 8
    if len(points1) < fewest:
        return None
    if kind == "homography":
        model, _ = cv2.findHomography(points1, points2, 0)
    else:
        model, _ = cv2.findFundamentalMat(points1, points2, cv2.FM_8POINT)
    return model if model is not None and model.shape == (3, 3) and np.isfinite(model).all() else None


def skew(v: NDArray[np.float64]) -> Matrix:
    """Matrix of the cross product with v."""
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])
