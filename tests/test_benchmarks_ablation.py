"""The variants of the ablation still fit the package."""

from __future__ import annotations

import numpy as np
import pytest
from evaluate_ablation import VARIANTS, changed
from rendering import Correspondences, draw_correspondences, facade_scene

from ruzhash_cv import filter_points


@pytest.fixture(scope="module")
def drawn() -> Correspondences:
    """Five rounds of both families: most matches crowd around three planes, and none of these holds half of all."""
    return draw_correspondences(facade_scene(3, rng=1), 60, mismatch_rate=0.6, mismatches="nearby", rng=2)


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_runs_to_its_end(drawn: Correspondences, name: str) -> None:
    change, options = VARIANTS[name]
    with changed(change):
        result = filter_points(drawn.points1, drawn.points2, n_jobs=1, **options)
    assert len(result.inlier_mask) == 60
    assert result.n_models > 0


def test_a_variant_is_another_package_and_leaves_it_as_it_was() -> None:
    drawn = draw_correspondences(facade_scene(3, rng=1), 100, mismatch_rate=0.3, rng=2)

    def scores() -> np.ndarray:
        return filter_points(drawn.points1, drawn.points2, n_jobs=1).anomaly_scores

    before = scores()
    with changed(VARIANTS["path length alone"][0]):
        during = scores()
    assert (during >= before).all()
    assert (during > before).mean() > 0.5
    np.testing.assert_array_equal(scores(), before)
