"""What holds for every public function whatever the points: invariances, bounds, types on success and failure alike.

`PROPERTY_EXAMPLES=200 pytest tests/test_properties.py` tries the invariances on more random scenes; the default is a few.
"""

import os
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from result_rows import labels

import ruzhash_cv as rc
from ruzhash_cv import paper
from ruzhash_cv.paper import VoronoiForest

Array = np.ndarray[Any, Any]
few = settings(derandomize=True, max_examples=int(os.environ.get("PROPERTY_EXAMPLES", 8)), deadline=None)
seeds = st.integers(0, 2**32 - 1)
forests = [paper.RuzHashForest, VoronoiForest]
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {}, {"model": "homography"}, {"model": "fundamental"}, {"model": "fundamental", "threshold": 2.0}, {"rng": 2**40},
    {"false_discovery_rate": 0.05},
)  # fmt: skip


def scene(rng: np.random.Generator) -> Array:
    """Matches (n, 4) in whole sixteenths of pixels: planes or relief, up to half of mismatches; or too few for anything."""
    n = int(rng.choice([5, 20, 60, 90, 120], p=[0.1, 0.1, 0.2, 0.3, 0.3]))
    depths = rng.choice([3.0, 4.0, 6.0][: rng.integers(1, 4)], n) + rng.choice([0, 0, 1]) * rng.uniform(0, 1, n)
    X = np.column_stack([rng.uniform(-1, 1, (n, 2)), depths])
    Y = X @ cv2.Rodrigues(rng.normal(0, 0.05, 3))[0].T + rng.uniform(-0.3, 0.3, 3)
    pairs = 800 + 600 * np.hstack([X[:, :2] / X[:, 2:], Y[:, :2] / Y[:, 2:]]) + rng.normal(0, 0.4, (n, 4))
    wrong = rng.random(n) < rng.choice([0, 0.2, 0.5])
    pairs[wrong, 2:] = rng.uniform(600, 1000, (int(wrong.sum()), 2))
    return np.round(pairs * 16) / 16


def preferences(seed: int, n: int, m: int) -> Array:
    rng = np.random.default_rng(seed)
    return np.round(rng.random((n, m)) * (rng.random((n, m)) < 0.5), 2)


def filtered(pairs: Array, **options: Any) -> rc.FilterResult:
    return rc.filter_points(pairs[:, :2], pairs[:, 2:], **options)


def arrays_of(result: rc.FilterResult) -> list[Array]:
    return [result.inlier_mask, result.anomaly_scores, result.inlier_probabilities, labels(result)]


# What changes no bit. Each returns other matches, other options, and the row of each old match among the new ones.

Changed = tuple[Array, dict[str, Any], Any]


def order(pairs: Array, rng: np.random.Generator) -> Changed:
    rows = rng.permutation(len(pairs))
    return pairs[rows], {}, np.argsort(rows)


def shift(pairs: Array, rng: np.random.Generator) -> Changed:
    """Whole shifts are exact for coordinates in whole sixteenths."""
    return pairs + rng.integers(-5000, 5000, 4), {}, slice(None)


def scale(pairs: Array, rng: np.random.Generator) -> Changed:
    factor = 2.0 ** int(rng.choice([-9, -3, -1, 2, 5, 12]))
    return factor * pairs, {"pixel": factor}, slice(None)


def duplicates(pairs: Array, rng: np.random.Generator) -> Changed:
    rows = rng.integers(len(pairs), size=rng.choice([1, len(pairs), 3 * len(pairs)]))
    places = np.append(np.arange(len(pairs)), rows)
    return pairs[places], {}, np.argsort(places, kind="stable")[np.searchsorted(np.sort(places), np.arange(len(pairs)))]


def not_finite(pairs: Array, rng: np.random.Generator) -> Changed:
    bad = rng.uniform(0, 800, (int(rng.choice([1, 5, 50])), 4))
    bad[np.arange(len(bad)), rng.integers(4, size=len(bad))] = rng.choice([np.nan, np.inf, -np.inf, 1e300], len(bad))
    rows = rng.permutation(len(pairs) + len(bad))
    return np.vstack([pairs, bad])[rows], {}, np.argsort(rows)[: len(pairs)]


def single_precision(pairs: Array, rng: np.random.Generator) -> Changed:
    return pairs.astype(np.float32), {}, slice(None)


@pytest.mark.parametrize("change", [order, shift, scale, duplicates, not_finite, single_precision])
@few
@given(seed=seeds, options=st.sampled_from(OPTIONS))
def test_the_same_bits(change: Callable[..., Changed], seed: int, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(seed)
    # Sums of numbers with many digits depend on their order.
    pairs = scene(rng) * (np.pi if change in (order, duplicates) else 1.0)
    other, more, rows = change(pairs, rng)
    if "pixel" in more and "threshold" in options:
        more["threshold"] = more["pixel"] * options["threshold"]
    result, after = filtered(pairs, **options), filtered(other, **options | more)
    for one, two in zip(arrays_of(result), arrays_of(after), strict=True):
        assert one.tobytes() == two[rows].tobytes()
    assert not after.inlier_mask[~(np.abs(other.astype(np.float64)) < 1e200).all(axis=1)].any()
    if change is duplicates:
        expected = [bool(result.inlier_mask[(pairs == row).all(axis=1)].all()) for row in other[len(pairs) :]]
        assert after.inlier_mask[len(pairs) :].tolist() == expected


# Preference space


@few
@given(seeds, st.sampled_from(forests), st.sampled_from([0, 1, 2, 3, 30]), st.sampled_from([0, 7]), st.integers(2, 20))
def test_forests_score_any_number_of_rows_within_bounds(seed: int, forest: Any, n: int, m: int, b: int) -> None:
    rows, decoys = preferences(seed, n, m), preferences(seed + 1, 9, m)
    results = []
    for n_jobs in (1, 3):
        grown = forest(n_trees=20, branching_factor=b, rng=seed, n_jobs=n_jobs)
        results.append([*grown.fit_anomaly_scores(rows, decoys), grown.path_lengths(decoys)])
    assert [array.tobytes() for array in results[0]] == [array.tobytes() for array in results[1]]
    scores, others, lengths = results[0]
    assert [array.shape for array in results[0]] == [(n,), (9,), (9,)]
    assert ((np.concatenate([scores, others]) > 0) & (np.concatenate([scores, others]) <= 1)).all()
    assert (lengths >= 0).all()
