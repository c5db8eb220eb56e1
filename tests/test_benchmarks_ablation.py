"""The variants of the ablation still fit the package."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from ruzhash_cv import filter_points
from ruzhash_cv.datasets import draw_correspondences, facade_scene

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from evaluate_ablation import VARIANTS, changed


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_runs_to_its_end_and_leaves_the_package_as_it_was(name: str) -> None:
    """Five rounds of both families: most matches crowd around three planes, and none of these holds half of all."""
    drawn = draw_correspondences(facade_scene(3, rng=1), 160, mismatch_rate=0.6, mismatches="nearby", rng=2)
    before = filter_points(drawn.points1, drawn.points2, n_jobs=1)
    change, options = VARIANTS[name]
    with changed(change):
        result = filter_points(drawn.points1, drawn.points2, n_jobs=1, **options)
    assert len(result.inlier_mask) == 160
    assert result.n_models > 0
    after = filter_points(drawn.points1, drawn.points2, n_jobs=1)
    np.testing.assert_array_equal(after.anomaly_scores, before.anomaly_scores)
