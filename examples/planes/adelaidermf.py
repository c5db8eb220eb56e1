"""Flag the mismatches of an AdelaideRMF pair: its labelled matches, or fresh SIFT or ORB matches on its two images.

    python examples/planes/adelaidermf.py barrsmith -o barrsmith.png
    python examples/planes/adelaidermf.py cubechips --features orb

Fresh matches have no labels. A match is true within 5 px of a model refitted to a labelled structure and inside its
hull, false beyond 15 px of all of them, and not judged otherwise. The labels of a static scene name its planes only, and
a match off them may be true: it is not judged if it fits the scene's one fundamental matrix within 3 px. Few matches make
this matrix wrong: with ORB, bonython has 3 judged true matches, and most "mismatches" kept are right ones on its tower.

OpenCV's MAGSAC has 100,000 iterations, the model and the threshold that are best on the scene, and runs in turn: fit the
best model, remove its inliers, repeat.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from ruzhash_cv import as_correspondences, draw_matches, filter_points
from ruzhash_cv.datasets import AdelaideScene, fetch_adelaidermf
from ruzhash_cv.models import sampson_distance, transfer_error

TRUE_WITHIN, FALSE_BEYOND, OFF_PLANE_WITHIN = 5.0, 15.0, 3.0  # pixels
THRESHOLDS = 1.0, 2.0, 3.0, 5.0, 12.0
#: Inliers that one more model in turn needs.
FEWEST = {"homography": 12, "fundamental": 16}
Points = NDArray[np.float64]
Mask = NDArray[np.bool_]


def match(scene: AdelaideScene, features: str) -> tuple[Points, Points]:
    """Detect, describe, match, and run the ratio test at 0.8."""
    detector: Any = cv2.SIFT.create() if features == "sift" else cv2.ORB.create(2000)
    (kp1, des1), (kp2, des2) = (detector.detectAndCompute(image, None) for image in (scene.img1, scene.img2))
    matcher = cv2.BFMatcher(cv2.NORM_L2 if features == "sift" else cv2.NORM_HAMMING)
    pairs = as_correspondences(kp1, kp2, matcher.knnMatch(des1, des2, k=2), ratio=0.8)
    passed = np.isfinite(pairs.points1).all(axis=1)
    return pairs.points1[passed], pairs.points2[passed]


def inside_hull(points: Points, corners: Points) -> Mask:
    """Tell which points lie in the convex hull of others."""
    hull = cv2.convexHull(corners.astype(np.float32))
    return np.array([cv2.pointPolygonTest(hull, (float(x), float(y)), False) >= 0 for x, y in points], dtype=bool)


def judge(scene: AdelaideScene, points1: Points, points2: Points) -> tuple[Mask, Mask]:
    """Return which fresh matches are true, and which can be judged at all."""
    true, nearest = np.zeros(len(points1), dtype=bool), np.full(len(points1), np.inf)
    for structure in range(int(scene.labels.max()) + 1):
        own1, own2 = scene.points1[scene.labels == structure], scene.points2[scene.labels == structure]
        if scene.kind == "homography":
            model = cv2.findHomography(own1, own2, 0)[0] if len(own1) >= 4 else None
        else:
            model = cv2.findFundamentalMat(own1, own2, cv2.FM_8POINT)[0] if len(own1) >= 8 else None
        if model is None or model.shape != (3, 3):
            continue
        residual = transfer_error if scene.kind == "homography" else sampson_distance
        error = residual(points1, points2, model).reshape(-1)
        true |= (error <= TRUE_WITHIN) & inside_hull(points1, own1) & inside_hull(points2, own2)
        nearest = np.minimum(nearest, error)
    return true, true | (nearest > FALSE_BEYOND)


def magsac(family: str, points1: Points, points2: Points, threshold: float) -> tuple[Any, Mask]:
    """Fit one model by OpenCV's MAGSAC and return it with its inliers; without a model, OpenCV's mask is uninitialised."""
    find: Any = cv2.findHomography if family == "homography" else cv2.findFundamentalMat
    model, mask = find(points1, points2, cv2.USAC_MAGSAC, threshold, maxIters=100_000, confidence=0.9999)
    return model, np.zeros(len(points1), dtype=bool) if model is None else mask.reshape(-1) > 0


def in_turn(family: str, points1: Points, points2: Points, threshold: float) -> Mask:
    """Fit, remove the inliers, and repeat until too few agree."""
    kept = np.zeros(len(points1), dtype=bool)
    while (left := np.flatnonzero(~kept)).size >= FEWEST[family]:
        inliers = magsac(family, points1[left], points2[left], threshold)[1]
        if inliers.sum() < FEWEST[family]:
            break
        kept[left[inliers]] = True
    return kept


def off_planes(points1: Points, points2: Points) -> Mask:
    """Tell which matches of a static scene fit its one fundamental matrix."""
    F, _ = magsac("fundamental", points1, points2, 1.0)
    return np.zeros(len(points1), dtype=bool) if F is None else sampson_distance(points1, points2, F) < OFF_PLANE_WITHIN


def quality(kept: Mask, true: Mask, judged: Mask) -> tuple[float, float, float]:
    """Precision, recall and F1 of the matches that can be judged."""
    both, n_kept, n_true = (int(rows[judged].sum()) for rows in (kept & true, kept, true))
    return both / max(n_kept, 1), both / max(n_true, 1), 2 * both / max(n_kept + n_true, 1)


def area_under_curve(scores: Points, mismatch: Mask) -> float:
    """ROC AUC of the scores, mismatches as the positive class."""
    positive, negative = int(mismatch.sum()), int((~mismatch).sum())
    if positive == 0 or negative == 0:
        return float("nan")
    rank_sum = float(rankdata(scores)[mismatch].sum())
    return (rank_sum - positive * (positive + 1) / 2) / (positive * negative)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="one of the 38 scenes")
    parser.add_argument("--features", choices=("labelled", "sift", "orb"), default="labelled")
    parser.add_argument("--model", choices=("auto", "homography", "fundamental"), default="auto")
    parser.add_argument("-o", "--output", help="draw the matches into this picture")
    options = parser.parse_args()
    try:
        scene = fetch_adelaidermf(options.name)
    except (ValueError, OSError) as error:
        sys.exit(f"{error}")

    if options.features == "labelled":
        points1, points2 = scene.points1, scene.points2
        true, judged = scene.labels >= 0, np.ones(len(points1), dtype=bool)
    else:
        points1, points2 = match(scene, options.features)
        true, judged = judge(scene, points1, points2)
    if scene.kind == "homography" and len(points1) >= FEWEST["fundamental"]:
        judged = judged & (true | ~off_planes(points1, points2))
    result = filter_points(points1, points2, model=options.model)

    kept = result.inlier_mask
    auc = area_under_curve(result.anomaly_scores[judged], ~true[judged])
    asked = list(product(FEWEST, THRESHOLDS))
    peers = [quality(in_turn(family, points1, points2, px), true, judged) for family, px in asked]
    best = max(range(len(asked)), key=lambda index: peers[index][2])
    n_judged, n_true = int(judged.sum()), int((true & judged).sum())
    print(
        f"{scene.name}, {options.features} matches: {len(kept)}, of which {n_judged} can be judged, {n_true} of them true"
    )
    print(f"kept {int(kept.sum())}, flagged {int((~kept).sum())}, motions {len(result.motions)}, AUC {auc:.4f}")
    names = "ruzhash_cv", f"MAGSAC in turn, {asked[best][0]}, {asked[best][1]:g} px"
    for name, (precision, recall, f1) in zip(names, (quality(kept, true, judged), peers[best]), strict=True):
        print(f"{name:38}  precision {precision:.4f}  recall {recall:.4f}  F1 {f1:.4f}")
    if result.reason is not None:
        print(f"nothing could be decided: {result.reason}")
    if options.output:
        identity = np.stack([np.arange(len(kept))] * 2, axis=1)
        if not cv2.imwrite(options.output, draw_matches(scene.img1, points1, scene.img2, points2, identity, result)):
            sys.exit(f"could not write {options.output}")


if __name__ == "__main__":
    main()
