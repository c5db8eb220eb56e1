"""`find_structures` beside scikit-image's `ransac` on lines and circles, half of whose points are anomalies.

    pip install scikit-image
    python benchmarks/evaluate_structures.py

The shapes are the paper's, from `../shared/synthetic2d`; shapes like them are drawn where that folder is absent. `ransac` finds one
structure. "ransac, repeated" removes its inliers and starts again. Both are told what `find_structures` is not: the threshold, 2.5
standard deviations of the true noise, and how many structures there are.

The second table has the ROC AUC of anomalies by `PreferenceIsolationForest`, with its defaults, beside scikit-learn's detectors.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from report import about_this_run, markdown, shown
from skimage.measure import CircleModel, LineModelND, ransac
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from ruzhash_cv import find_structures
from ruzhash_cv.datasets import SHAPE_NAMES, DatasetError, Shape, load_shape, make_shape
from ruzhash_cv.families import Circles, Lines
from ruzhash_cv.paper import fit_noise
from ruzhash_cv.sklearn import PreferenceIsolationForest

SHAPES_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "synthetic2d"
FAMILIES = {"line": (Lines(), LineModelND, 2), "circle": (Circles(), CircleModel, 3)}
HELD, TRIALS = 0.7, 1000
"""A structure is found if one mask holds this share of its points; trials of `ransac`."""


def load(name: str, seed: int) -> Shape:
    """Return the published shape among anomalies of a seed, or a drawn one."""
    try:
        return load_shape(name, SHAPES_FOLDER, rng=seed)
    except DatasetError:
        return make_shape(name, rng=seed)


def ours(shape: Shape, seed: int) -> np.ndarray:
    """Return the masks (k, n) of `find_structures`."""
    return find_structures(shape.points, FAMILIES[shape.kind][0], rng=seed).masks


def repeated_ransac(shape: Shape, seed: int, n_models: int) -> np.ndarray:
    """Return the masks (k, n) of `ransac`, each among the points that those before left."""
    family, model, size = FAMILIES[shape.kind]
    threshold = 2.5 * fit_noise(shape.points, shape.labels, family)
    masks, left, rng = [], np.arange(len(shape.points)), np.random.default_rng(seed)
    for _ in range(n_models):
        points = shape.points[left]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # samples on a line make no circle
            _, inliers = ransac(points, model, size, threshold, max_trials=TRIALS, rng=rng)
        if inliers is None:
            break
        masks.append(np.isin(np.arange(len(shape.points)), left[inliers]))
        left = left[~inliers]
    return np.array(masks, bool).reshape(-1, len(shape.points))


METHODS: dict[str, Callable[[Shape, int], np.ndarray]] = {
    "find_structures": ours,
    "ransac": lambda shape, seed: repeated_ransac(shape, seed, 1),
    "ransac, repeated": lambda shape, seed: repeated_ransac(shape, seed, int(shape.labels.max()) + 1),
}


def preference_scores(shape: Shape, seed: int, forest: str) -> np.ndarray:
    """Return scores (n,), low for outliers."""
    detector = PreferenceIsolationForest(FAMILIES[shape.kind][0], forest=forest, random_state=seed)
    return detector.fit(shape.points).score_samples(shape.points)


DETECTORS: dict[str, Callable[[Shape, int], np.ndarray]] = {
    "PreferenceIsolationForest": lambda shape, seed: preference_scores(shape, seed, "ruzhash"),
    'PreferenceIsolationForest(forest="voronoi")': lambda shape, seed: preference_scores(shape, seed, "voronoi"),
    "IsolationForest": lambda shape, seed: (
        IsolationForest(random_state=seed).fit(shape.points).score_samples(shape.points)
    ),
    "LocalOutlierFactor": lambda shape, _: LocalOutlierFactor().fit(shape.points).negative_outlier_factor_,
}


def detector_rows(seeds: list[int]) -> list[list[str]]:
    """Return a row for each detector: mean AUC of each shape, then of all."""
    rows = []
    for name, scores_of in DETECTORS.items():
        found = []
        for shapes in ([load(shape, seed) for seed in seeds] for shape in SHAPE_NAMES):
            own = zip(shapes, seeds, strict=True)
            found.append(np.mean([roc_auc_score(shape.labels >= 0, scores_of(shape, seed)) for shape, seed in own]))
        rows.append([name, *(shown(auc) for auc in [*found, np.mean(found)])])
    return rows


def judge(shape: Shape, masks: np.ndarray) -> tuple[int, int, float]:
    """Return how many structures were found, how many masks hold none, and F1 of the points in any mask."""
    true = np.array([shape.labels == label for label in range(shape.labels.max() + 1)])
    shares = (masks.astype(float) @ true.T) / true.sum(axis=1) >= HELD
    kept, genuine = masks.any(axis=0), shape.labels >= 0
    f1 = 2.0 * (kept & genuine).sum() / max(kept.sum() + genuine.sum(), 1)
    return int(shares.any(axis=0).sum()), int((~shares.any(axis=1)).sum()), float(f1)


def main() -> None:
    """Print a row for each shape and method, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10_000, 10_010)))
    seeds = parser.parse_args().seeds
    print(about_this_run(), "\n")
    find_structures(load("stair4", 0).points, Lines())  # kernels compile
    rows = []
    for method, masks_of in METHODS.items():
        sums = np.zeros(4)
        for name in SHAPE_NAMES:
            found = []
            for seed in seeds:
                shape = load(name, seed)
                started = time.perf_counter()
                masks = masks_of(shape, seed)
                found.append((*judge(shape, masks), time.perf_counter() - started))
            means, n_structures = np.mean(found, axis=0), int(shape.labels.max()) + 1
            sums += [means[0], means[1], means[2] / len(SHAPE_NAMES), means[3]]
            rows.append([f"{name}: {method}", f"{means[0]:.1f} of {n_structures}", *_shown(means[1:])])
        rows.append([f"all: {method}", f"{sums[0]:.1f}", *_shown(sums[1:])])
    print(markdown(["shape: method", "structures found", "masks that hold none", "F1 of points", "seconds"], rows))
    print("\n" + markdown(["AUC", *SHAPE_NAMES, "mean"], detector_rows(seeds)))


def _shown(values: np.ndarray) -> list[str]:
    return [shown(values[0], 1), shown(values[1], 3), shown(values[2], 2)]


if __name__ == "__main__":
    main()
