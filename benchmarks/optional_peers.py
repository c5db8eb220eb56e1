"""Peers from packages that need not be installed; a missing one is recorded, never silently dropped."""

from __future__ import annotations

import importlib
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from geometry import Matrix, Points, residuals
from numpy.typing import NDArray
from sequential import extract
from verdict import Peer, Verdict

ABSENT: dict[str, str] = {}
"""Method -> why it did not run."""


def _module(name: str, method: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except Exception as error:  # a wheel built for another numpy fails with more than ImportError
        ABSENT[method] = f"{type(error).__name__}: {error}".splitlines()[0]
        return None


def _poselib_estimate(
    module: Any, kind: str, options: dict[str, float], points1: Points, points2: Points
) -> tuple[Matrix | None, NDArray[np.bool_]]:
    if len(points1) < 8:
        return None, np.zeros(len(points1), dtype=bool)
    estimate = module.estimate_homography if kind == "homography" else module.estimate_fundamental
    model, info = estimate(points1, points2, dict(options))
    mask = np.asarray(info["inliers"], dtype=bool)
    return (model, mask) if mask.any() else (None, mask)


def _poselib(points1: Points, points2: Points, seed: int, *, module: Any, kind: str) -> Verdict:
    model, mask = _poselib_estimate(module, kind, {"seed": seed}, points1, points2)
    scores = None if model is None else residuals(kind, model, points1, points2)
    return Verdict(mask, scores, np.where(mask, 0, -1))


def _poselib_sequential(points1: Points, points2: Points, seed: int, *, module: Any, threshold: float) -> Verdict:
    # PoseLib's default of 100,000 rounds costs half a minute on 5,000 matches, as every sequence ends in a failure; on
    # AdelaideRMF 20,000 are as accurate.
    options = {"seed": seed, "max_reproj_error": threshold, "max_iterations": 20_000}
    estimate = partial(_poselib_estimate, module, "homography", options)
    return extract(points1, points2, estimate, fewest=16)


def _poselib_peers() -> list[Peer]:
    module = _module("poselib", "poselib")
    if module is None:
        return []
    return [
        Peer("H poselib", partial(_poselib, module=module, kind="homography")),
        Peer("F poselib", partial(_poselib, module=module, kind="fundamental")),
        Peer("sequential H poselib", partial(_poselib_sequential, module=module, threshold=12.0)),
    ]


def _pydegensac(points1: Points, points2: Points, seed: int, *, module: Any, kind: str, threshold: float) -> Verdict:
    if len(points1) < 8:
        return Verdict(np.zeros(len(points1), dtype=bool))
    find = module.findHomography if kind == "homography" else module.findFundamentalMatrix
    model, mask = find(points1, points2, threshold, seed=seed)
    mask = np.asarray(mask, dtype=bool).ravel()
    if not mask.any() or not np.isfinite(model).all():
        return Verdict(np.zeros(len(points1), dtype=bool))
    return Verdict(mask, residuals(kind, np.asarray(model), points1, points2), np.where(mask, 0, -1))


def _pydegensac_peers() -> list[Peer]:
    module = _module("pydegensac", "pydegensac")
    if module is None:
        return []
    settings = [("H", "homography", 1.0, ""), ("F", "fundamental", 0.5, "")]
    settings += [("H", "homography", 3.0, " 3 px"), ("F", "fundamental", 3.0, " 3 px")]
    return [
        Peer(f"{letter} pydegensac{suffix}", partial(_pydegensac, module=module, kind=kind, threshold=threshold))
        for letter, kind, threshold, suffix in settings
    ]


def _isolation_forest(points1: Points, points2: Points, seed: int, *, module: Any) -> Verdict:
    features = np.column_stack([points1, points2 - points1])
    forest = module.IsolationForest(random_state=seed % 2**32).fit(features)
    return Verdict(forest.predict(features) > 0, -forest.score_samples(features))


def _isolation_forest_peers() -> list[Peer]:
    module = _module("sklearn.ensemble", "isolation forest on displacements")
    if module is None:
        return []
    return [Peer("isolation forest on displacements", partial(_isolation_forest, module=module))]


def _adalam(points1: Points, points2: Points, seed: int, *, adalam: Any, torch: Any, **settings: float) -> Verdict:
    config = adalam.get_adalam_default_config()
    # Bare coordinates carry neither orientation nor scale: both checks are switched off.
    config.update(orientation_difference_threshold=None, scale_rate_threshold=None, force_seed_mnn=False)
    config.update(settings)
    torch.manual_seed(seed)
    # AdaLAM seeds neighbourhoods at the best ratio-test scores; without descriptors any order is as good.
    ratio = torch.rand(len(points1))
    first, second = (torch.as_tensor(points, dtype=torch.float32) for points in (points1, points2))
    matches = torch.arange(len(points1))
    kept = adalam.AdalamFilter(config).filter_matches(first, second, matches, ratio)
    mask = np.zeros(len(points1), dtype=bool)
    mask[kept[:, 0].numpy()] = True
    return Verdict(mask)


def _adalam_peers() -> list[Peer]:
    torch = _module("torch", "AdaLAM")
    adalam = _module("kornia.feature.adalam.adalam", "AdaLAM") if torch is not None else None
    if adalam is None:
        return []
    run = partial(_adalam, adalam=adalam, torch=torch)
    dense = partial(run, area_ratio=400, search_expansion=8)
    return [Peer("AdaLAM", run), Peer("AdaLAM 400 seeds, twice the reach", dense, tuned=True)]


def optional_peers() -> list[Peer]:
    """Peers of the packages found here; the others are named in :data:`ABSENT`."""
    makers = (_poselib_peers, _pydegensac_peers, _isolation_forest_peers, _adalam_peers)
    return [peer for maker in makers for peer in maker()]
