"""Laws of filtering: what a change of the matches does to the result, to the bit, or by how much the masks agree."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from inputs import Array, Draw
from targets import Target, claim

import ruzhash_cv

MODELS = ("auto", "auto", "homography", "fundamental")


def scene(draw: Draw, n: int | None = None) -> Array:
    """Return correspondences (n, 4) in whole sixteenths of pixels: planes in space seen from two places, and mismatches."""
    rng = draw.rng
    n = draw.pick([9, 20, 40, 60, 90, 120]) if n is None else n
    depths = rng.choice([3.0, 4.0, 6.0][: draw.pick([1, 2, 3])], n)
    X = np.column_stack([rng.uniform(-1, 1, (n, 2)), depths + draw.pick([0, 0, 1]) * rng.uniform(0, 1, n)])
    Y = X @ cv2.Rodrigues(rng.normal(0, 0.05, 3))[0].T + rng.uniform(-0.3, 0.3, 3)
    pairs = 800 + 600 * np.hstack([X[:, :2] / X[:, 2:], Y[:, :2] / Y[:, 2:]]) + rng.normal(0, 0.4, (n, 4))
    wrong = rng.random(n) < draw.pick([0, 0.2, 0.5])
    pairs[wrong, 2:] = rng.uniform(600, 1000, (int(wrong.sum()), 2))
    return np.round(pairs * 16) / 16


def filtered(pairs: Array, **options: Any) -> ruzhash_cv.FilterResult:
    return ruzhash_cv.filter_points(pairs[:, :2], pairs[:, 2:], **options)


def same(
    there: ruzhash_cv.FilterResult, back: ruzhash_cv.FilterResult, order: Any = slice(None), rows: Any = slice(None)
) -> None:
    """Raise unless two results are the same to the bit, in some order of the first and some rows of the second."""
    for name in ("inlier_mask", "anomaly_scores", "inlier_probabilities", "labels"):
        one, two = getattr(there, name)[order], getattr(back, name)[rows]
        claim(one.tobytes() == two.tobytes(), f"{name}: {np.sum(one != two)} of {len(one)} differ")


def options_of(draw: Draw) -> dict[str, Any]:
    return draw.some(model=draw.pick(MODELS), threshold=draw.pick((None, 2.0)), rng=draw.pick((0, 1, 2**40)))


# To the bit


def permutation(draw: Draw) -> None:
    pairs, options = scene(draw) * np.pi, options_of(draw)  # sums depend on their order
    order = draw.rng.permutation(len(pairs))
    same(filtered(pairs, **options), filtered(pairs[order], **options), order)


def translation(draw: Draw) -> None:
    pairs, options = scene(draw), options_of(draw)
    same(filtered(pairs, **options), filtered(pairs + draw.rng.integers(-5000, 5000, 4), **options))


def scaling(draw: Draw) -> None:
    pairs, options, scale = scene(draw), options_of(draw), 2.0 ** draw.pick((-9, -3, -1, 2, 5, 12))
    scaled = {**options, "pixel": scale}
    if options.get("threshold") is not None:
        scaled["threshold"] = scale * options["threshold"]
    same(filtered(pairs, **options), filtered(scale * pairs, **scaled))


def duplicates(draw: Draw) -> None:
    pairs, options = scene(draw) * np.pi, options_of(draw)
    rows = draw.rng.integers(len(pairs), size=draw.pick([1, len(pairs), 3 * len(pairs)]))
    once, again = filtered(pairs, **options), filtered(np.vstack([pairs, pairs[rows]]), **options)
    same(once, again, rows=slice(len(pairs)))
    same(once, again, order=rows, rows=slice(len(pairs), None))


def nan_rows(draw: Draw) -> None:
    pairs, options, n_bad = scene(draw), options_of(draw), draw.pick([1, 5, 50])
    bad = draw.rng.uniform(0, 800, (n_bad, 4))
    hostile = [np.nan, np.inf, -np.inf, 1e300]
    bad[np.arange(n_bad), draw.rng.integers(4, size=n_bad)] = draw.rng.choice(hostile, n_bad)
    order = draw.rng.permutation(len(pairs) + n_bad)
    result, back = filtered(np.vstack([pairs, bad])[order], **options), np.argsort(order)
    same(filtered(pairs, **options), result, rows=back[: len(pairs)])
    claim(not result.inlier_mask[back[len(pairs) :]].any(), "a match without a position was kept")


def forms(draw: Draw) -> None:
    """The same numbers as float32, or looked up by matches."""
    pairs, options, order = scene(draw), options_of(draw), None
    there = filtered(pairs, **options)
    same(there, filtered(pairs.astype("f4"), **options))
    order = draw.rng.permutation(len(pairs))
    result = ruzhash_cv.filter_points(pairs[:, :2], pairs[:, 2:], np.stack([order, order], axis=1), **options)
    same(there, result, order)


# By how much the masks agree: measured, and bounded in the mean of many cases


def agreement(one: Array, two: Array) -> float:
    """Return the Jaccard index of two masks; 1 of two that keep nothing."""
    either = np.sum(one | two)
    return float(np.sum(one & two) / either) if either else 1.0


def statistical(change: Any) -> Target:
    """Return the measure of a law: `change` returns other matches and the rows of the old ones among them."""

    def law(draw: Draw) -> float:
        pairs = scene(draw, draw.pick([60, 90, 120, 200]))
        other, rows = change(draw, pairs)
        return agreement(filtered(pairs).inlier_mask[rows], filtered(other).inlier_mask[: len(pairs[rows])])

    return law


ALL = slice(None)


def dropped(draw: Draw, pairs: Array) -> tuple[Array, Any]:
    rows = np.sort(draw.rng.permutation(len(pairs))[max(1, len(pairs) // 100) :])
    return pairs[rows], rows


def turned(draw: Draw, pairs: Array) -> tuple[Array, Any]:
    angle = draw.pick([np.pi / 2, draw.rng.uniform(0, 6)])
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return np.hstack([pairs[:, :2] @ turn.T, pairs[:, 2:] @ turn.T]), ALL


def seed(draw: Draw) -> float:
    """Another seed."""
    pairs = scene(draw, draw.pick([60, 90, 120, 200]))
    return agreement(filtered(pairs).inlier_mask, filtered(pairs, rng=1 + int(draw.rng.integers(100))).inlier_mask)


EXACT: dict[str, Target] = {
    each.__name__: each for each in (permutation, translation, scaling, duplicates, nan_rows, forms)
}
STATISTICAL: dict[str, Target] = {
    "seed": seed,
    "swap": statistical(lambda _, pairs: (pairs[:, [2, 3, 0, 1]], ALL)),
    "mirror": statistical(lambda _, pairs: (pairs * [-1, 1, -1, 1], ALL)),
    "rotation": statistical(turned),
    "jitter": statistical(lambda draw, pairs: (pairs + draw.rng.normal(0, 0.05, pairs.shape), ALL)),
    "dropping": statistical(dropped),
    "far_outlier": statistical(lambda draw, pairs: (np.vstack([pairs, draw.rng.uniform(-1e5, 1e5, (1, 4))]), ALL)),
}
