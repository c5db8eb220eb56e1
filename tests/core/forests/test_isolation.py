"""What both forests share: the numbers of section 4, and the same scores for any number of threads."""

from functools import partial
from typing import Any

import naive
import numpy as np
import pytest
from stage_cases import clusters

from ruzhash_cv.core.forests.isolation import depth_limit, expected_depths
from ruzhash_cv.paper import RuzHashForest, VoronoiForest


@pytest.mark.parametrize(("psi", "b"), [(125, 5), (126, 5), (256, 2), (257, 2), (256, 16), (243, 3), (1, 2), (2, 2)])
def test_depth_limit_is_the_smallest_d_with_b_to_the_d_at_least_psi(psi: int, b: int) -> None:
    depth = depth_limit(psi, b)
    assert b**depth >= psi
    assert depth == 0 or b ** (depth - 1) < psi


@pytest.mark.parametrize("b", [2, 3, 5, 16, 256])
def test_expected_depths_follow_the_formula(b: int) -> None:
    for largest in (0, 1, 2, 300):
        depths = expected_depths(largest, b)
        np.testing.assert_allclose(depths, [naive.expected_depth(size, b) for size in range(largest + 1)], rtol=1e-12)
    assert (np.diff(depths) >= 0).all() or b == 2


@pytest.mark.parametrize("forest", [RuzHashForest, partial(VoronoiForest, n_trees=32, branching_factor=16)])
def test_scores_do_not_depend_on_the_number_of_threads(forest: Any) -> None:
    rows, decoys = clusters(n=600, m=500), clusters(seed=1, n=500, m=500)  # so many that trees, too, grow in several
    once = forest(rng=5, n_jobs=1).fit_anomaly_scores(rows, decoys)
    for n_jobs in (2, 4, None):
        for first, second in zip(once, forest(rng=5, n_jobs=n_jobs).fit_anomaly_scores(rows, decoys), strict=True):
            np.testing.assert_array_equal(first, second)
    assert (forest(rng=6).fit_anomaly_scores(rows) != once[0]).any()


@pytest.mark.parametrize("forest", [RuzHashForest, VoronoiForest])
def test_a_forest_that_was_drawn_earlier_grows_as_if_it_had_grown_then(forest: Any) -> None:
    rows, rng, later = clusters(), np.random.default_rng(3), np.random.default_rng(3)
    at_once, drawn = forest(rng=rng, n_trees=5).fit_anomaly_scores(rows), forest(rng=later, n_trees=5).draw()
    assert rng.random() == later.random()
    np.testing.assert_array_equal(drawn.fit_anomaly_scores(rows), at_once)
    assert (drawn.fit_anomaly_scores(rows) != at_once).any()
