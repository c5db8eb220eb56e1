"""Every method under comparison behind one call that returns a mask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from estimators import (
    Estimator,
    Found,
    of_poselib,
    of_pydegensac,
    of_superansac,
    opencv,
    optional,
    poselib,
    pydegensac,
    pysuperansac,
)
from geometry import Points, residuals
from lpm import locality_preserving_matching
from numpy.typing import NDArray

OURS = "ruzhash_cv"
#: Settings chosen because they are the best for AdelaideRMF.
TUNED = ("sequential H USAC_MAGSAC 12 px",)
MODELS = {"H": "homography", "F": "fundamental"}


@dataclass(frozen=True)
class Verdict:
    """A method's answer: `mask` True = keep; `scores` high = mismatch; `labels` -1 = mismatch, else the structure."""

    mask: NDArray[np.bool_]
    scores: NDArray[np.float64] | None = None
    labels: NDArray[np.intp] | None = None


Peer = Callable[[Points, Points, int], Verdict]
"""Points of both images and a seed."""


def ruzhash(points1: Points, points2: Points, seed: int, *, model: str, threshold: float | None = None) -> Verdict:
    """This package."""
    from ruzhash_cv import filter_points

    result = filter_points(points1, points2, model=model, threshold=threshold, rng=seed)
    return Verdict(result.inlier_mask, result.anomaly_scores, np.asarray(result.labels))


def single(kind: str, estimate: Estimator, points1: Points, points2: Points, seed: int) -> Verdict:
    """The inliers of one model; scores are residuals to it."""
    model, mask = estimate(points1, points2, seed)
    if model is None:
        return Verdict(mask)
    return Verdict(mask, residuals(kind, model, points1, points2), np.where(mask, 0, -1))


def in_turn(estimate: Estimator, fewest: int, points1: Points, points2: Points, seed: int, most: int = 30) -> Verdict:
    """Find a homography, set its inliers aside, repeat until fewer than `fewest` agree; scores are residuals to the nearest one."""
    labels, scores = np.full(len(points1), -1), np.full(len(points1), np.inf)
    for index in range(most):
        left = np.flatnonzero(labels < 0)
        if len(left) < fewest:
            break
        model, inliers = estimate(points1[left], points2[left], seed)
        if model is None or inliers.sum() < fewest:
            break
        labels[left[inliers]] = index
        scores = np.minimum(scores, residuals("homography", model, points1, points2))
    return Verdict(labels >= 0, scores, labels)


def keep_everything(points1: Points, points2: Points, seed: int) -> Verdict:
    """The ratio test alone."""
    return Verdict(np.ones(len(points1), bool))


def lpm(points1: Points, points2: Points, seed: int) -> Verdict:
    """Locality Preserving Matching."""
    return Verdict(*locality_preserving_matching(points1, points2))


def isolation_forest(module: Any, points1: Points, points2: Points, seed: int) -> Verdict:
    """scikit-learn's isolation forest on places and displacements."""
    features = np.column_stack([points1, points2 - points1])
    forest = module.IsolationForest(random_state=seed % 2**32).fit(features)
    return Verdict(forest.predict(features) > 0, -forest.score_samples(features))


def adalam(module: Any, torch: Any, points1: Points, points2: Points, seed: int) -> Verdict:
    """AdaLAM. Bare coordinates carry neither orientation nor scale, so both checks are off, and its seeds are ranked at random."""
    config = module.get_adalam_default_config()
    config.update(orientation_difference_threshold=None, scale_rate_threshold=None, force_seed_mnn=False)
    torch.manual_seed(seed)
    ratio, matches = torch.rand(len(points1)), torch.arange(len(points1))
    first, second = (torch.as_tensor(points, dtype=torch.float32) for points in (points1, points2))
    mask = np.zeros(len(points1), bool)
    mask[module.AdalamFilter(config).filter_matches(first, second, matches, ratio)[:, 0].numpy()] = True
    return Verdict(mask)


def single_models(kind: str) -> dict[str, Estimator]:
    """Estimators of one model at their usual thresholds; fundamental matrices of some at 1.5 px too."""
    found: dict[str, Estimator] = {
        flag: partial(opencv, kind, flag, 3.0) for flag in ("RANSAC", "LMEDS", "USAC_MAGSAC", "USAC_ACCURATE")
    }
    if kind == "fundamental":
        found |= {f"{flag} 1.5 px": partial(opencv, kind, flag, 1.5) for flag in ("RANSAC", "USAC_MAGSAC")}
    if poselib is not None:
        found["PoseLib"] = partial(of_poselib, kind)
    if pydegensac is not None:
        found["pydegensac"] = partial(of_pydegensac, kind, 1.0 if kind == "homography" else 0.5)
    if pysuperansac is not None:
        found["SupeRANSAC"] = partial(of_superansac, kind, 3.0 if kind == "homography" else 1.5)
    return found


def _magsac_12(points1: Points, points2: Points, seed: int) -> Found:
    return opencv("homography", "USAC_MAGSAC", 12.0, points1, points2, seed)


def _poselib_12(points1: Points, points2: Points, seed: int) -> Found:
    # PoseLib's default of 100,000 rounds costs half a minute on 5,000 matches, as every sequence ends in a failure; on
    # AdelaideRMF 20,000 are as accurate.
    return of_poselib("homography", points1, points2, seed, max_reproj_error=12.0, max_iterations=20_000)


def all_peers() -> dict[str, Peer]:
    """Every method this machine can run, by name; `estimators.ABSENT` says which are missing and why."""
    peers: dict[str, Peer] = {OURS: partial(ruzhash, model="auto")}
    peers |= {f"{OURS} {kind}": partial(ruzhash, model=kind) for kind in MODELS.values()}
    peers[f"{OURS} 3 px"] = partial(ruzhash, model="auto", threshold=3.0)
    for letter, kind in MODELS.items():
        peers |= {f"{letter} {name}": partial(single, kind, one) for name, one in single_models(kind).items()}
    if poselib is not None:
        peers["sequential H PoseLib"] = partial(in_turn, _poselib_12, 16)
    peers["sequential H USAC_MAGSAC 12 px"] = partial(in_turn, _magsac_12, 12)
    if module := optional("sklearn.ensemble", "isolation forest on displacements"):
        peers["isolation forest on displacements"] = partial(isolation_forest, module)
    torch = optional("torch", "AdaLAM")
    if torch and (module := optional("kornia.feature.adalam.adalam", "AdaLAM")):
        peers["AdaLAM"] = partial(adalam, module, torch)
    return peers | {"LPM": lpm, "keep everything": keep_everything}
