"""Share of verdicts that change with the seed, the order of the images, a mirror, jitter, or a far mismatch.

    python benchmarks/evaluate_changes.py             # about two minutes
    python benchmarks/evaluate_changes.py --scenes 3

Prints a line for each kind of drawn scene: the matches that are kept in one call and flagged in the other, in percent, mean over
scenes of 300 matches, of which 20 to 60 % are wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import cv2
import numpy as np
from geometry import Points
from rendered import build
from rendering import draw_correspondences
from report import about_this_run, markdown

from ruzhash_cv import filter_points

N_MATCHES, NOISE, RATES, FIRST_SEED = 300, 1.0, (0.2, 0.4, 0.6), 700
KINDS = {
    "one plane": ("one plane", 1),
    "three planes": ("planes", 3),
    "one rigid motion": ("one rigid", 1),
    "two motions": ("motions", 2),
}
TRANSPARENT = "two motions seen through each other"


def transparent(seed: int, rate: float) -> tuple[Points, Points]:
    """Matches of two rigid motions that fill the same part of the image."""
    rng, views = np.random.default_rng(seed), []
    for n in (N_MATCHES - N_MATCHES // 2, N_MATCHES // 2):
        X = rng.uniform([-1.5, -1.2, 3.0], [1.5, 1.2, 6.0], (n, 3))
        Y = X @ cv2.Rodrigues(rng.normal(0, 0.08, 3))[0].T + rng.uniform(-0.5, 0.5, 3)
        views.append(400 + 800 * np.hstack([X[:, :2] / X[:, 2:], Y[:, :2] / Y[:, 2:]]))
    pairs = rng.permutation(np.vstack(views)) + rng.normal(0, NOISE / np.sqrt(2), (N_MATCHES, 4))
    n_wrong = int(rate * N_MATCHES)
    pairs[:n_wrong, 2:] = rng.uniform(0, 800, (n_wrong, 2))
    return pairs[:, :2], pairs[:, 2:]


def scenes(kind: str, n_scenes: int) -> Iterator[tuple[Points, Points]]:
    """Points of both images, in turn with each share of mismatches."""
    for number in range(n_scenes):
        seed, rate = FIRST_SEED + number, RATES[number % len(RATES)]
        if kind == TRANSPARENT:
            yield transparent(seed, rate)
        else:
            drawn = draw_correspondences(
                build(*KINDS[kind], seed), N_MATCHES, mismatch_rate=rate, noise=NOISE, rng=seed
            )
            yield drawn.points1, drawn.points2


def jittered(points1: Points, points2: Points) -> tuple[Points, Points]:
    """Points moved by .05 px."""
    rng = np.random.default_rng(0)
    return points1 + rng.normal(0, 0.05, points1.shape), points2 + rng.normal(0, 0.05, points2.shape)


CHANGES: dict[str, tuple[Callable[[Points, Points], tuple[Points, Points]], int]] = {
    "another seed": (lambda one, two: (one, two), 1),
    "images exchanged": (lambda one, two: (two, one), 0),
    "mirrored": (lambda one, two: (one * [-1, 1], two * [-1, 1]), 0),
    "jitter of .05 px": (jittered, 0),
    "a far mismatch": (lambda one, two: (np.vstack([one, [[5e4, 0.0]]]), np.vstack([two, [[0.0, -5e4]]])), 0),
}
"""The changed points and the seed, by what changes."""


def shares(points1: Points, points2: Points) -> list[float]:
    """Share of verdicts that each change changes."""
    kept = filter_points(points1, points2).inlier_mask
    masks = (filter_points(*change(points1, points2), rng=seed).inlier_mask for change, seed in CHANGES.values())
    return [float((mask[: len(kept)] != kept).mean()) for mask in masks]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=int, default=30, help="of each kind")
    options = parser.parse_args()
    rows = []
    for kind in (*KINDS, TRANSPARENT):
        means = np.mean([shares(*points) for points in scenes(kind, options.scenes)], axis=0)
        rows.append([kind, *(f"{100 * mean:.1f}" for mean in means)])
    print(markdown(["verdicts changed, %", *CHANGES], rows), about_this_run(), sep="\n\n")


if __name__ == "__main__":
    main()
