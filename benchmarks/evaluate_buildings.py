"""How many matches lie within 3 px of one model, over those of OpenCV's best flag: a photographed building and the bundled pairs.

Of those that stand still also how many `filter_points(threshold=3)` keeps, over those of OpenCV's best fundamental matrix, and how
many have a rigid motion of less than a pixel of noise as their first model, and as their first motion.

The building is ../shared/sceaux_castle, images halved: pairs of 50 matches or more, of which USAC_MAGSAC holds .6 or more within 1 px
one fundamental matrix. Without these photographs only the bundled pairs are measured.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import cv2
import numpy as np
from cache import Arrays, stored
from estimators import Found, opencv
from geometry import Points
from matching import RATIO, Image, detect, nearest
from numpy.typing import NDArray
from photos import home
from report import about_this_run, markdown

from ruzhash_cv import (
    Structure,
    filter_points,
    find_fundamental_matrix,
    find_homography,
    sampson_distance,
    transfer_error,
)
from ruzhash_cv.datasets import load_pair

THRESHOLD = 3.0  # pixels
N_FEATURES, FEWEST_MATCHES, RIGID_SHARE = 4000, 50, 0.6
BUNDLED = ("facade", "rigid", "desk", "plane")
MOVING = ("desk", "plane")
PRECISE = 1.0  # pixels
FLAGS = (
    "RANSAC", "LMEDS", "USAC_DEFAULT", "USAC_PARALLEL", "USAC_FAST", "USAC_ACCURATE", "USAC_PROSAC", "USAC_MAGSAC",
)  # fmt: skip
OPTIONS = {"maxIters": 10_000, "confidence": 0.999}
KINDS: dict[str, tuple[Callable[..., Any], Callable[..., NDArray[np.float64]]]] = {
    "homography": (find_homography, transfer_error),
    "fundamental": (find_fundamental_matrix, sampson_distance),
}


def features_of(image: Image) -> Arrays:
    """SIFT keypoints of a gray picture."""
    return detect(image, "sift", N_FEATURES)


def matched(first: Arrays, second: Arrays) -> tuple[Points, Points]:
    """The points of matches that pass the ratio test."""
    found = nearest(first, second, "sift")
    pairs = found.pairs[found.ratio < RATIO]
    return first["keypoints"][pairs[:, 0]], second["keypoints"][pairs[:, 1]]


def building() -> Iterator[tuple[str, Points, Points]]:
    """Pairs of photographs of one building, each a rigid scene to USAC_MAGSAC."""
    sides = {}
    for path in sorted((home().parent / "sceaux_castle").glob("*.[jJ][pP][gG]")):
        image = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        small = cv2.resize(image, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
        sides[path.stem] = stored(f"castle_{path.stem}_opencv{cv2.__version__}", partial(features_of, small))
    for one, two in itertools.combinations(sides, 2):
        points1, points2 = matched(sides[one], sides[two])
        if len(points1) >= FEWEST_MATCHES:
            mask = opencv("fundamental", "USAC_MAGSAC", 1.0, points1, points2, 0, maxIters=10_000, confidence=0.9999)[1]
            if mask.mean() >= RIGID_SHARE:
                yield f"{one} {two}", points1, points2


def bundled() -> Iterator[tuple[str, Points, Points]]:
    """The pairs that come with the package."""
    for name in BUNDLED:
        pair = load_pair(name)
        sides = [features_of(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)) for image in (pair.img1, pair.img2)]
        yield name, *matched(*sides)


def n_within(kind: str, found: Found, points1: Points, points2: Points) -> int:
    """Matches within the threshold of a model, measured alike for all."""
    model = found[0]
    return 0 if model is None else int(np.count_nonzero(KINDS[kind][1](points1, points2, model) <= THRESHOLD))


def most_of_opencv(kind: str, points: tuple[Points, ...], seeds: range) -> int:
    """Matches within the threshold of OpenCV's best flag and seed."""
    models = (opencv(kind, flag, THRESHOLD, *points, seed, **OPTIONS) for flag in FLAGS for seed in seeds)
    return max(n_within(kind, model, *points) for model in models)


def still(pairs: list[tuple[str, Points, Points]], seeds: range) -> str:
    """The table of `filter_points` on scenes that stand still."""
    rows = []
    best = np.array([[most_of_opencv("fundamental", tuple(points), seeds)] for _, *points in pairs])
    for threshold in (None, THRESHOLD):
        found = [[filter_points(*points, threshold=threshold, rng=seed) for seed in seeds] for _, *points in pairs]
        kept = np.array([[result.inlier_mask.sum() for result in each] for each in found]) / best
        precise = [
            np.mean([is_precise(of(result)) for each in found for result in each])
            for of in (lambda result: result.models[:1], lambda result: result.motions[:1])
        ]
        shares = [f"{kept.mean():.3f}", f"{kept.min():.3f}", f"{(kept >= 0.97).mean():.1%}"]
        rows.append([str(threshold), *shares, *(f"{share:.1%}" for share in precise)])
    header = ["threshold", "mean", "minimum", "at least .97", "precise motion first in `models`", "in `motions`"]
    return markdown(header, rows)


def is_precise(first: tuple[Structure, ...]) -> bool:
    """Whether the first model, if there is one, is a rigid motion of little noise."""
    return any(model.kind == "fundamental" and model.noise_scale < PRECISE for model in first)


def measure(pairs: list[tuple[str, Points, Points]], kind: str, seeds: range) -> dict[str, NDArray[np.float64]]:
    """Matches (pairs, seeds) within the threshold, by method, over those of OpenCV's best flag, and our own."""
    find, counts = KINDS[kind][0], {}
    for flag in FLAGS:
        counts[flag] = [
            [n_within(kind, opencv(kind, flag, THRESHOLD, *points, seed, **OPTIONS), *points) for seed in seeds]
            for _, *points in pairs
        ]
    ours = [
        [n_within(kind, find(*points, threshold=THRESHOLD, rng=seed), *points) for seed in seeds]
        for _, *points in pairs
    ]
    best = np.max([np.max(each, axis=1) for each in counts.values()], axis=0)[:, None]
    return {"ruzhash_cv": np.array(ours) / best} | {flag: np.array(each) / best for flag, each in counts.items()}


def main() -> None:
    """Print a table for each kind of model, and one of the filter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="repetitions of each pair")
    seeds = range(parser.parse_args().seeds)
    pairs = [*building(), *bundled()]
    print(about_this_run())
    for kind in KINDS:
        found = measure(pairs, kind, seeds)
        rows = [
            [name, f"{of.mean():.3f}", f"{of.min():.3f}", f"{(of >= 0.97).mean():.1%}"] for name, of in found.items()
        ]
        header = ["method", "mean", "minimum", "at least .97"]
        print(f"\n### {kind}: {len(pairs)} pairs, {len(seeds)} seeds\n\n{markdown(header, rows)}", flush=True)
    standing = [pair for pair in pairs if pair[0] not in MOVING]
    print(
        f"\n### filter_points: {len(standing)} pairs that stand still, {len(seeds)} seeds\n\n{still(standing, seeds)}"
    )


if __name__ == "__main__":
    main()
