"""How hard the search looks: planes with few true matches, beside OpenCV's and PoseLib's estimators at the same settings.

    python benchmarks/effort.py

Prints, for each number of true matches, how many planes of twelve are found, with more than .6 of their true matches, and the median
time on the processor.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import cv2
import numpy as np
from methods import of_poselib, opencv, poselib
from rendering import draw_correspondences, plane_scene

from ruzhash_cv import filter_points, find_homography

CASES, N_PLANES, FOUND = ((15, 300), (50, 1000)), 12, 0.6
EFFORTS = {"10,000 iterations, .999": (10_000, 0.999), "100,000 iterations, .9999": (100_000, 0.9999)}


def methods() -> dict[str, Callable[..., np.ndarray]]:
    """Functions from points to a mask, by name."""
    by_name: dict[str, Callable[..., np.ndarray]] = {
        "`filter_points`": lambda *points: filter_points(*points).inlier_mask,
        "`filter_points(max_iters=500)`": lambda *points: filter_points(*points, max_iters=500).inlier_mask,
        "`filter_points(confidence=0.99)`": lambda *points: filter_points(*points, confidence=0.99).inlier_mask,
    }
    for name, (most, confidence) in EFFORTS.items():
        bounds = {"maxIters": most, "confidence": confidence}
        by_name[f"`find_homography`, {name}"] = lambda *points, of=bounds: (
            np.ravel(find_homography(*points, **of)[1]) > 0
        )
        magsac = partial(opencv, "homography", "USAC_MAGSAC", 3.0, **bounds)
        by_name[f"MAGSAC, {name}"] = lambda *points, of=magsac: of(*points, 0)[1]
        if poselib is not None:
            one = partial(of_poselib, "homography", threshold=3.0, max_iterations=most, success_prob=confidence)
            by_name[f"PoseLib, {name}"] = lambda *points, of=one: of(*points, 0)[1]
    return by_name


def main() -> None:
    cv2.setNumThreads(1)
    for n_true, n in CASES:
        drawn = [
            draw_correspondences(plane_scene(rng=seed), n, mismatch_rate=1 - n_true / n, noise=0.7, rng=seed)
            for seed in range(N_PLANES)
        ]
        print(f"\n| {n_true} true of {n} | found | ms |\n| --- | ---: | ---: |")
        for name, method in methods().items():
            shares, seconds = [], []
            for pair in drawn:
                began = time.process_time()
                mask = method(pair.points1, pair.points2)
                seconds.append(time.process_time() - began)
                shares.append(mask[pair.labels > 0].mean())
            print(f"| {name} | {np.mean(np.array(shares) > FOUND):.2f} | {1e3 * np.median(seconds):.0f} |")


if __name__ == "__main__":
    main()
