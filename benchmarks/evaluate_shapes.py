"""`find_structures` beside scikit-image's `ransac` on lines and circles, half of whose points are anomalies; and detectors.

    pip install scikit-image
    python benchmarks/evaluate_shapes.py

The shapes are the paper's (`paper/problems.py`). `ransac` finds one structure; "ransac, repeated" removes its inliers and resumes. Both
are given what `find_structures` is not: the threshold, 2.5 standard deviations of the true noise, and how many structures there are.
The second table has the ROC AUC of anomalies by `PreferenceIsolationForest`, with its defaults, beside scikit-learn's detectors.
"""

import argparse
import time
import warnings

import numpy as np
from paper.problems import SHAPE_NAMES, Shape, fit_noise, load_shape
from report import about_this_run, markdown, shown
from skimage.measure import CircleModel, LineModelND, ransac
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from ruzhash_cv import find_structures
from ruzhash_cv.models import Circles, Lines
from ruzhash_cv.sklearn import PreferenceIsolationForest

FAMILIES = {"line": (Lines(), LineModelND, 2), "circle": (Circles(), CircleModel, 3)}
HELD, TRIALS = 0.7, 1000
"""A structure is found if one mask holds this share of its points; trials of `ransac`."""


def ransac_masks(shape: Shape, seed: int, n_models: int) -> np.ndarray:
    """Return the masks (k, n) of `ransac`, each among the points that those before left."""
    family, model, size = FAMILIES[shape.kind]
    threshold = 2.5 * fit_noise(shape.points, shape.labels, family)
    masks, left, rng = [], np.arange(len(shape.points)), np.random.default_rng(seed)
    for _ in range(n_models):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # samples on a line make no circle
            _, inliers = ransac(shape.points[left], model, size, threshold, max_trials=TRIALS, rng=rng)
        if inliers is None:
            break
        masks.append(np.isin(np.arange(len(shape.points)), left[inliers]))
        left = left[~inliers]
    return np.array(masks, bool).reshape(-1, len(shape.points))


METHODS = {
    "find_structures": lambda shape, seed: find_structures(shape.points, FAMILIES[shape.kind][0], rng=seed).masks,
    "ransac": lambda shape, seed: ransac_masks(shape, seed, 1),
    "ransac, repeated": lambda shape, seed: ransac_masks(shape, seed, int(shape.labels.max()) + 1),
}
DETECTORS = {
    "PreferenceIsolationForest": lambda kind, seed: PreferenceIsolationForest(FAMILIES[kind][0], random_state=seed),
    "IsolationForest": lambda kind, seed: IsolationForest(random_state=seed),
    "LocalOutlierFactor": lambda kind, seed: LocalOutlierFactor(novelty=True),
}


def judge(shape: Shape, masks: np.ndarray) -> tuple[int, int, float]:
    """Return how many structures were found, how many masks hold none, and F1 of the points in any mask."""
    true = np.array([shape.labels == label for label in range(shape.labels.max() + 1)])
    shares = (masks.astype(float) @ true.T) / true.sum(axis=1) >= HELD
    kept, genuine = masks.any(axis=0), shape.labels >= 0
    f1 = 2.0 * (kept & genuine).sum() / max(kept.sum() + genuine.sum(), 1)
    return int(shares.any(axis=0).sum()), int((~shares.any(axis=1)).sum()), float(f1)


def structure_rows(seeds: list[int]) -> list[list[str]]:
    """Return a row for each shape and method: structures found, masks that hold none, F1 of points, seconds."""
    rows = []
    for name in SHAPE_NAMES:
        shapes = [load_shape(name, rng=seed) for seed in seeds]
        for method, masks_of in METHODS.items():
            found = []
            for shape, seed in zip(shapes, seeds, strict=True):
                start = time.process_time()
                masks = masks_of(shape, seed)
                found.append((*judge(shape, masks), time.process_time() - start))
            held, false, f1, seconds = np.mean(found, axis=0)
            title, n = f"{name}: {method}", shapes[0].labels.max() + 1
            rows.append([title, f"{held:.1f} of {n}", shown(false, 1), shown(f1), shown(seconds)])
    return rows


def detector_rows(seeds: list[int]) -> list[list[str]]:
    """Return a row for each detector: mean AUC of each shape, then of all."""
    rows = []
    for name, make in DETECTORS.items():
        means = []
        for shapes in ([load_shape(shape, rng=seed) for seed in seeds] for shape in SHAPE_NAMES):
            fitted = (make(shape.kind, seed).fit(shape.points) for shape, seed in zip(shapes, seeds, strict=True))
            pairs = zip(shapes, fitted, strict=True)
            scores = [(shape.labels >= 0, of.score_samples(shape.points)) for shape, of in pairs]
            means.append(np.mean([roc_auc_score(*of) for of in scores]))
        rows.append([name, *(shown(auc) for auc in [*means, np.mean(means)])])
    return rows


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10_000, 10_010)))
    seeds = parser.parse_args().seeds
    header = ["shape: method", "structures found", "masks that hold none", "F1 of points", "seconds"]
    print(about_this_run(), markdown(header, structure_rows(seeds)), sep="\n\n")
    print("\n" + markdown(["AUC", *SHAPE_NAMES, "mean"], detector_rows(seeds)))


if __name__ == "__main__":
    main()
