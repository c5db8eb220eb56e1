"""Every method under comparison behind one call, and the names of those this machine lacks, with the reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import cv2
import numpy as np
from geometry import Matrix, Points, residuals
from lpm import locality_preserving_matching
from numpy.typing import NDArray
from optional_peers import ABSENT, optional_peers
from sequential import extract
from verdict import Peer, Verdict

__all__ = ["ABSENT", "all_peers"]


def _estimate(
    kind: str, method: int, threshold: float, points1: Points, points2: Points, **options: float
) -> tuple[Matrix | None, NDArray[np.bool_]]:
    """One OpenCV estimate; on failure the mask is empty (OpenCV leaves it uninitialised)."""
    nothing = np.zeros(len(points1), dtype=bool)
    fewest = 4 if kind == "homography" else 8
    if len(points1) < fewest:
        return None, nothing
    find = cv2.findHomography if kind == "homography" else cv2.findFundamentalMat
    try:
        model, mask = find(points1, points2, method, threshold, **options)
    except cv2.error:
        return None, nothing
    if model is None or model.shape != (3, 3) or mask is None:
        return None, nothing
    return model, mask.ravel().astype(bool)


def single(
    points1: Points,
    points2: Points,
    seed: int,
    *,
    kind: str,
    method: int,
    threshold: float,
    options: dict[str, float] | None = None,
) -> Verdict:
    """One model by OpenCV; the legacy methods take the seed, USAC's flags offer no way to (rows are shuffled)."""
    cv2.setRNGSeed(seed)
    model, mask = _estimate(kind, method, threshold, points1, points2, **(options or {}))
    if model is None:
        return Verdict(mask, None, None)
    return Verdict(mask, residuals(kind, model, points1, points2), np.where(mask, 0, -1))


def sequential_usac(points1: Points, points2: Points, seed: int, *, threshold: float, **options: float) -> Verdict:
    """Sequential USAC_MAGSAC homographies of at least 12 matches each."""
    estimate = partial(_estimate, "homography", cv2.USAC_MAGSAC, threshold, **options)
    return extract(points1, points2, estimate, fewest=12)


def keep_everything(points1: Points, points2: Points, seed: int) -> Verdict:
    """The ratio test alone."""
    return Verdict(np.ones(len(points1), dtype=bool))


def lpm(points1: Points, points2: Points, seed: int, *, first: float = 0.8) -> Verdict:
    """Locality Preserving Matching."""
    mask, cost = locality_preserving_matching(points1, points2, thresholds=(first, 0.5))
    return Verdict(mask, cost)


def ruzhash(points1: Points, points2: Points, seed: int, *, model: str) -> Verdict:
    """This package with its defaults."""
    from ruzhash_cv import filter_points

    result = filter_points(points1, points2, model=model, rng=seed)
    labels = getattr(result, "labels", None)
    return Verdict(result.inlier_mask, result.anomaly_scores, None if labels is None else np.asarray(labels))


def _opencv_peers() -> list[Peer]:
    flags = {
        "RANSAC": cv2.RANSAC,
        "LMEDS": cv2.LMEDS,
        "USAC_MAGSAC": cv2.USAC_MAGSAC,
        "USAC_ACCURATE": cv2.USAC_ACCURATE,
    }
    peers = []
    for letter, kind in (("H", "homography"), ("F", "fundamental")):
        for name, flag in flags.items():
            run = partial(single, kind=kind, method=flag, threshold=3.0)
            peers.append(Peer(f"{letter} {name}", run))
    wide = {"H": 16.0, "F": 8.0}
    for letter, kind in (("H", "homography"), ("F", "fundamental")):
        run = partial(single, kind=kind, method=cv2.USAC_MAGSAC, threshold=wide[letter])
        peers.append(Peer(f"{letter} USAC_MAGSAC {wide[letter]:.0f} px", run, tuned=True))
    patient = {"maxIters": 20_000, "confidence": 0.999}
    for letter, kind in (("H", "homography"), ("F", "fundamental")):
        run = partial(single, kind=kind, method=cv2.USAC_MAGSAC, threshold=3.0, options=patient)
        peers.append(Peer(f"{letter} USAC_MAGSAC 20,000 rounds", run))
    return peers


def _ruzhash_peers() -> list[Peer]:
    try:
        from ruzhash_cv import filter_points  # noqa: F401
    except ImportError as error:
        ABSENT["ruzhash_cv"] = str(error)
        return []
    names: dict[str, str] = {
        "ruzhash_cv": "auto",
        "ruzhash_cv homography": "homography",
        "ruzhash_cv fundamental": "fundamental",
    }
    return [Peer(name, partial(ruzhash, model=model)) for name, model in names.items()]


def all_peers() -> dict[str, Peer]:
    """Every method this machine can run, by name; :data:`ABSENT` says which are missing and why."""
    makers: list[Callable[[], list[Peer]]] = [_ruzhash_peers, _opencv_peers, optional_peers]
    peers = [peer for maker in makers for peer in maker()]
    peers.append(Peer("sequential H USAC_MAGSAC 3 px", partial(sequential_usac, threshold=3.0)))
    for threshold in (6.0, 12.0, 24.0):
        run = partial(sequential_usac, threshold=threshold)
        peers.append(Peer(f"sequential H USAC_MAGSAC {threshold:.0f} px", run, tuned=threshold > 6))
    run = partial(sequential_usac, threshold=12.0, maxIters=10_000, confidence=0.999)
    peers.append(Peer("sequential H USAC_MAGSAC 12 px, 10,000 rounds", run, tuned=True))
    peers.append(Peer("LPM", lpm))
    peers.append(Peer("LPM 0.7", partial(lpm, first=0.7), tuned=True))
    peers.append(Peer("keep everything", keep_everything))
    return {peer.name: peer for peer in peers}
