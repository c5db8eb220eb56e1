"""Camera poses: from the mask as a filter before a calibrated estimator, and from the fundamental matrix itself."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from estimators import Estimator, Found, Mask, estimators, poselib
from matching import RATIO
from measures import mask_quality, paired_difference
from pictured import posed
from pose_measures import THRESHOLDS, Pose, matrix_pose, opencv_pose, pose_error, pose_score, poselib_pose
from pose_scenes import Pair, given
from rendered import pictures
from report import about_this_run, markdown, shown
from variants import RULES
from variants import run as run_variant

from ruzhash_cv import FilterResult, filter_points, find_fundamental_matrix

KIND = "fundamental"
SETS: dict[str, Callable[[str, int], Iterator[Pair]]] = {
    "given": given,
    "sift": lambda half, per_cell: posed(half, max(1, per_cell // 3), RATIO),
    "sift-without-ratio": lambda half, per_cell: posed(half, max(1, per_cell // 3), None),
}
OWN_MATRIX = "matrix: camera_pose"  # what stands for the package among them
Row = dict[str, Any]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and its seconds."""
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def motion_of(result: FilterResult) -> Found:
    """The motion of most matches if it is a fundamental matrix, as (matrix, its matches)."""
    if not result.motions or result.motions[0].kind != KIND:
        return None, np.zeros(len(result.labels), bool)
    return result.motions[0].matrix, result.motion_labels == 0


def found_by_cv2_name(pair: Pair, threshold: float | None, seed: int) -> Found:
    """`find_fundamental_matrix`."""
    F, mask = find_fundamental_matrix(pair.points1, pair.points2, threshold=threshold, rng=seed)
    return F, mask.ravel() > 0


def matrices(
    pair: Pair, result: FilterResult, seed: int, peers: dict[str, Estimator]
) -> dict[str, tuple[Found, float]]:
    """(Fundamental matrix, its matches) and seconds of every way to a matrix."""
    found = {"motions[0]": timed(lambda: motion_of(result))}  # motions are searched for when first asked for
    for threshold in (None, 1.0, 3.0):
        name = "find_fundamental_matrix" + ("" if threshold is None else f" threshold={threshold:g}")
        found[name] = timed(lambda threshold=threshold: found_by_cv2_name(pair, threshold, seed))
    return found | {
        name: timed(lambda peer=peer: peer(pair.points1, pair.points2, seed)) for name, peer in peers.items()
    }


def run(pair: Pair, seed: int, peers: dict[str, Estimator], variant: str | None = None) -> list[Row]:
    """A row for every method: how the pose came about, degrees, seconds, F1 of the mask, and whether there was a matrix."""
    points, rows = (pair.points1, pair.points2), []

    def add(name: str, pose: Pose, kept: Mask, seconds: float, exists: bool) -> None:
        f1 = mask_quality(kept[pair.judged], pair.labels[pair.judged] > 0)["f1"]
        rows.append({"name": name, "error": pose_error(pose, pair), "seconds": seconds, "f1": f1, "found": exists})

    result, seconds = timed(lambda: filter_points(*points, rng=seed))
    masks, others = {"ruzhash_cv": (result.inlier_mask, seconds, any_fundamental(result))}, {}
    for name, ((F, kept), took) in matrices(pair, result, seed, peers).items():
        if name == "motions[0]":
            took += seconds
            pose, more = timed(lambda: tuple(result.camera_pose(pair.K1, pair.K2)) if result.motions else None)
            add(OWN_MATRIX, pose, result.motion_labels == 0, took + more, pose is not None)
            # Where the strongest motion has no fundamental matrix its matches still have a pose.
            others["motion_labels == 0"] = result.motion_labels == 0, took, F is not None
        elif "threshold" not in name:
            others[name] = kept, took, F is not None
        add(f"matrix: {name}", matrix_pose(F, pair, kept), kept, took, F is not None)
    masks |= {
        "nothing": (np.ones(len(pair.labels), bool), 0.0, True),
        "the truth": (pair.labels > 0, 0.0, True),
    } | others
    if variant is not None:
        other, took = timed(lambda: run_variant(RULES[variant], *points, seed))
        masks[variant] = other.inlier_mask, took, any_fundamental(other)
    ways = {"PoseLib": poselib_pose} if poselib is not None else {}
    for name, (kept, seconds, exists) in masks.items():
        for way, estimate in (ways | {"findEssentialMat": opencv_pose}).items():
            pose, took = timed(lambda estimate=estimate, kept=kept: estimate(pair, kept, seed))
            add(f"{way} after {name}", pose, kept, seconds + took, exists)
    return rows


def any_fundamental(result: FilterResult) -> bool:
    """Whether anything in the result is a rigid motion."""
    return any(model.kind == KIND for model in (*result.models, *result.motions))


def shuffled(pair: Pair, seed: int) -> Pair:
    """The same pair with its rows in another order: how a seed reaches methods that take none."""
    order = np.random.default_rng(seed).permutation(len(pair.labels))
    return replace(pair, **{name: getattr(pair, name)[order] for name in ("points1", "points2", "labels", "judged")})


def measure(pairs: list[Pair], seeds: range, peers: dict[str, Estimator], variant: str | None) -> pd.DataFrame:
    """Rows of all methods on all pairs, and what the pairs are."""
    rows = []
    for number, pair in enumerate(pairs):
        wrong = "under" if np.mean(pair.labels[pair.judged] == 0) < 0.6 else "over"
        told = {"pair": number, "motion": pair.motion, "scene": pair.scene, "wrong": f"{wrong} 60 % wrong"}
        told |= {"mismatches": pair.settings.get("mismatches"), "still": not pair.t.any()}
        rows += [told | row for seed in seeds for row in run(shuffled(pair, seed), seed, peers, variant)]
        print(f"\r{number + 1} of {len(pairs)} pairs", end="", file=sys.stderr)
    return pd.DataFrame(rows)


def ours(name: str) -> str:
    """The row of this package that a method is compared with."""
    return OWN_MATRIX if name.startswith("matrix") else f"{name.split(' after ')[0]} after ruzhash_cv"


def overall(rows: pd.DataFrame) -> str:
    """All methods on these pairs."""
    header = ["pose from", *(f"AUC@{threshold:.0f}" for threshold in THRESHOLDS), "median error (°)", "no matrix"]
    header += ["F1 of mask", "median ms", "AUC@10, ruzhash_cv minus this"]
    scores = rows.assign(score=pose_score(rows.error, 10.0)).groupby(["pair", "name"]).score.mean().unstack()
    lines = []
    for name, own in rows.groupby("name", sort=False):
        line = [str(name), *(f"{pose_score(own.error, threshold).mean():.3f}" for threshold in THRESHOLDS)]
        line += [f"{own.error.median():.2f}", f"{(~own.found).mean():.1%}", f"{own.f1.mean():.3f}"]
        mean, error = paired_difference(scores[ours(str(name))].to_numpy(), scores[name].to_numpy())
        difference = "" if ours(str(name)) == name else shown(mean, 3, error, "+")
        lines.append([*line, f"{1e3 * own.seconds.median():.1f}", difference])
    return markdown(header, lines)


def parts(rows: pd.DataFrame) -> str:
    """AUC@10 of all methods on parts of the pairs: by motion, scene, share and kind of mismatches."""
    columns = {}
    for field in ("motion", "scene", "wrong", "mismatches"):
        for value, own in rows.dropna(subset=[field]).groupby(field, sort=False):
            scores = own.assign(score=pose_score(own.error, 10.0)).groupby("name").score.mean()
            columns[f"{value} ({own.pair.nunique()})"] = scores
    names = rows.name.unique()
    lines = [[name, *(f"{column[name]:.3f}" for column in columns.values())] for name in names]
    return markdown(["AUC@10", *columns], lines)


def planes_told(half: str, per_cell: int, seeds: range) -> str:
    """How many pictures of planes, of which no motion can be told, are called planes."""
    lines = []
    for features in ("sift", "orb"):
        planes = [*pictures(features, half, per_cell, ["one plane"])]
        results = [filter_points(one.points1, one.points2, rng=seed) for one in planes for seed in seeds]
        told = [bool(result.motions) and result.motions[0].kind != KIND for result in results]
        lines.append([f"{features}, {len(planes)}", f"{np.mean(told):.1%}"])
    return "### Single planes\n\n" + markdown(["features, pairs", "called a plane"], lines)


def main() -> None:
    """Run all methods on all pairs of one half and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", default="tune", choices=["tune", "judge"])
    parser.add_argument("--seeds", type=int, default=1, help="repetitions of each pair")
    parser.add_argument(
        "--per-cell", type=int, default=6, help="pairs of each scene and motion; a third of it of pictures"
    )
    parser.add_argument("--set", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--no-peers", action="store_true", help="this package alone")
    parser.add_argument("--beside", choices=RULES, help="a rule of the ablation: the mask without it as one more")
    options = parser.parse_args()
    peers = {} if options.no_peers else estimators(KIND)
    first = 10_000 if options.half == "judge" else 0
    seeds = range(first, first + options.seeds)
    print(about_this_run())
    for name in options.set:
        rows = measure(list(SETS[name](options.half, options.per_cell)), seeds, peers, options.beside)
        still, moved = rows[rows.still], rows[~rows.still]
        print(f"\n### {name}: {moved.pair.nunique()} pairs with a baseline\n\n{overall(moved)}\n\n{parts(moved)}")
        if len(still):
            title = f"{name}: {still.pair.nunique()} pure rotations, error of the rotation; a matrix is wrong here"
            print(f"\n### {title}\n\n{overall(still)}", flush=True)
    if any(name != "given" for name in options.set):
        print(f"\n{planes_told(options.half, max(1, options.per_cell // 3), seeds)}")


if __name__ == "__main__":
    main()
