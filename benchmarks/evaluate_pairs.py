"""Whole pairs: do both images show one scene, and what becomes of overlays and of a camera that stood still."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from estimators import Found, of_poselib, opencv, poselib
from geometry import Points
from matching import RATIO
from measures import roc_auc
from numpy.typing import NDArray
from pair_sets import Overlaid, look_alike, overlaid, photographs, related, still, unrelated
from pose_measures import pose_error, pose_score, poselib_pose
from report import about_this_run, markdown

from ruzhash_cv import FilterResult, filter_points
from ruzhash_cv.pipelines.selection import LEAST_EVIDENCE

Rows = Sequence[tuple[Points, Points]]
Scores = dict[str, NDArray[np.float64]]
#: Name -> (what it reads from a result, the cut from which a pair counts as related).
OURS: dict[str, tuple[Callable[[FilterResult], float], float]] = {
    "evidence": (lambda result: result.evidence, LEAST_EVIDENCE),
    "evidence, lower cut": (lambda result: result.evidence, 20.0),
    "evidence of all structures": (lambda result: sum(of.evidence for of in result.models), LEAST_EVIDENCE),
    "kept matches": (lambda result: float(result.inlier_mask.sum()), 15.0),
}
FEWEST = 15.0  # inliers from which COLMAP takes two images for related, by default
ROUNDS = 2_000  # PoseLib's default of 100,000 takes a second for a pair that shares nothing
CAMERA = 10.0  # degrees, of the AUC


def inliers(estimate: Callable[[str, Points, Points], Found]) -> Callable[[Points, Points], float]:
    """Number of inliers of the better of a homography and a fundamental matrix."""
    return lambda *points: float(max(estimate(kind, *points)[1].sum() for kind in ("homography", "fundamental")))


def inliers_peers() -> dict[str, Callable[[Points, Points], float]]:
    """What others tell pairs by."""
    peers = {"inliers of USAC_MAGSAC 3 px": inliers(lambda kind, *points: opencv(kind, "USAC_MAGSAC", 3.0, *points, 0))}
    if poselib is not None:
        of = inliers(lambda kind, *points: of_poselib(kind, *points, 0, max_iterations=ROUNDS))
        peers[f"inliers of PoseLib, {ROUNDS:,} rounds"] = of
    return peers


def scores_of(pairs: Rows, peers: dict[str, Callable[[Points, Points], float]], seed: int) -> Scores:
    """Every number of every pair."""
    found: dict[str, list[float]] = {name: [] for name in (*OURS, *peers)}
    for points1, points2 in pairs:
        result = filter_points(points1, points2, rng=seed)
        for name, (read, _) in OURS.items():
            found[name].append(read(result))
        for name, peer in peers.items():
            found[name].append(peer(points1, points2))
    return {name: np.array(values) for name, values in found.items()}


def pair_table(sets: dict[str, Scores]) -> str:
    """How well each number tells related pairs from the others."""
    others = [kind for kind in sets if kind != "related"]
    header = ["pair's number", *(f"AUC, {kind}" for kind in others), "cut"]
    header += [f"{kind} above the cut ({len(next(iter(of.values())))})" for kind, of in sets.items()]
    header += [f"related above 99 % of {kind}" for kind in others]
    lines = []
    for name, own in sets["related"].items():
        cut = OURS[name][1] if name in OURS else FEWEST
        line = [name]
        for kind in others:
            values = np.concatenate([sets[kind][name], own])
            line.append(f"{roc_auc(values, np.arange(len(values)) >= len(sets[kind][name])):.4f}")
        line += [f"{cut:g}", *(f"{np.mean(of[name] >= cut):.1%}" for of in sets.values())]
        line += [f"{np.mean(own > np.percentile(sets[kind][name], 99)):.1%}" for kind in others]
        lines.append(line)
    return markdown(header, lines)


def overlay_row(found: Overlaid, options: dict[str, Any], seed: int) -> list[float]:
    """Shares kept of the scene, of static matches and of mismatches, and what happens to the camera; see the table's header."""
    pair, group = found.pair, found.group
    result = filter_points(pair.points1, pair.points2, rng=seed, **options)
    shares = [result.inlier_mask[group == wanted].mean() if (group == wanted).any() else np.nan for wanted in (1, 2, 0)]
    told = [number for number, model in enumerate(result.models) if model.stationary]
    shares.append(np.isin(result.labels[group == 2], told).mean())
    if not (group == 1).any():
        return [*shares, np.nan, np.nan, np.nan, np.nan]
    moving = next((number for number, motion in enumerate(result.motions) if not motion.stationary), None)
    shares.append(0.0 if moving is None else (result.motion_labels[group == 2] == moving).mean())
    own = None if moving is None else tuple(result.camera_pose(pair.K1, pair.K2, moving))
    masks = np.ones(len(group), bool), result.inlier_mask
    poses = [own, *(poselib_pose(pair, mask, seed) if poselib is not None else None for mask in masks)]
    return [*shares, *(float(pose_score(np.array(pose_error(pose, pair)), CAMERA)) for pose in poses)]


def overlay_table(half: str, per_kind: int, seed: int) -> str:
    """Means by kind of overlay, with static structures kept and dropped."""
    header = [
        "overlay",
        "pairs",
        "static matches",
        "scene kept",
        "static kept",
        "mismatches kept",
        "static told static",
    ]
    header += [
        "static in the scene's motion",
        f"pose AUC@{CAMERA:.0f}, camera_pose",
        "PoseLib, all matches",
        "PoseLib, mask",
    ]
    variants: dict[str, dict[str, Any]] = {"kept (default)": {}, "dropped": {"keep_stationary": False}}
    problems = [*overlaid(half, per_kind), *still(half, per_kind)]
    lines = []
    for kind in dict.fromkeys(found.kind for found in problems):
        for name, options in variants.items():
            rows = np.array([overlay_row(found, options, seed) for found in problems if found.kind == kind])
            numbers = ["" if np.isnan(column).all() else f"{np.nanmean(column):.3f}" for column in rows.T]
            lines.append([kind, str(len(rows)), name, *numbers])
    return markdown(header, lines)


def main() -> None:
    """Print the tables of one half."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", default="tune", choices=["tune", "judge"])
    parser.add_argument(
        "--count", type=int, default=200, help="given pairs of each kind; a tenth of it for each overlay"
    )
    parser.add_argument("--per-cell", type=int, default=3, help="rendered scenes of each family, all paired with all")
    parser.add_argument("--seed", type=int, help="of the method; default 0 and 10,000 for judging")
    parser.add_argument("--no-peers", action="store_true", help="this package alone")
    options = parser.parse_args()
    half, seed = options.half, options.seed
    if seed is None:
        seed = 10_000 if half == "judge" else 0
    peers = {} if options.no_peers else inliers_peers()
    print(about_this_run())
    print(f"\n### overlays\n\n{overlay_table(half, max(1, options.count // 10), seed)}", flush=True)
    makers = {"related": related, "unrelated": unrelated, "alike": look_alike}
    sets = {kind: scores_of(list(make(half, options.count)), peers, seed) for kind, make in makers.items()}
    print(f"\n### given matches\n\n{pair_table(sets)}", flush=True)
    for title, ratio in ((f"SIFT, ratio test {RATIO}", RATIO), ("SIFT without ratio test", None)):
        shots = list(photographs(half, options.per_cell, ratio))
        sets = {kind: scores_of([shot[1:] for shot in shots if shot[0] == kind], peers, seed) for kind in makers}
        print(f"\n### {title}\n\n{pair_table(sets)}", flush=True)


if __name__ == "__main__":
    main()
