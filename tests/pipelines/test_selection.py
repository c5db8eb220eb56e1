"""What a host gets of a pair: the matches of the strongest motion, without a search where there is no choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from two_views import H, motion

from ruzhash_cv import FilterResult, Structure, filter_points
from ruzhash_cv.models.distances import sampson_distance
from ruzhash_cv.pipelines import selection

Array = NDArray[np.float64]
N = 120


def plane() -> Array:
    """Return matches of one plane, a quarter of them wrong."""
    rng = np.random.default_rng(0)
    first = rng.uniform(0, 600, (N, 2))
    mapped = np.column_stack([first, np.ones(N)]) @ H.T
    second = mapped[:, :2] / mapped[:, 2:] + 0.3 * rng.normal(size=(N, 2))
    second[: N // 4] = rng.uniform(0, 600, (N // 4, 2))
    return np.hstack([first, second])


def filtered(points: Array) -> FilterResult:
    return filter_points(points[:, :2], points[:, 2:])


@pytest.mark.parametrize("points", [plane(), motion(N, noise=0.3, seed=0)], ids=["plane", "motion"])
def test_one_structure_is_the_strongest_motion_and_is_not_searched_for(points: Array) -> None:
    result = filtered(points)
    selection.prepare(result)
    mask, F = selection.strongest_motion(result)
    assert len(result.models) == 1
    assert "_motions" not in vars(result)
    assert mask.sum() > N / 2
    assert np.array_equal(mask, result.motion_labels == 0)  # searches now
    if result.models[0].kind == "fundamental":
        assert F is not None
        assert np.median(sampson_distance(points[mask, :2], points[mask, 2:], F)) < 0.5
    else:
        assert F is None


def test_of_several_structures_the_motion_of_most_matches_is_taken() -> None:
    points = motion(N, noise=0.3, seed=0)
    points[:25, 2:] = points[:25, :2] + [-80.0, -80.0] + 0.3 * np.random.default_rng(2).normal(size=(25, 2))
    result = filtered(points)
    selection.prepare(result)
    assert "_motions" in vars(result)
    mask, F = selection.strongest_motion(result)
    assert F is not None
    assert mask[25:].mean() > 0.9
    assert mask[:25].mean() < 0.2


def test_what_stood_still_is_never_the_strongest_motion() -> None:
    """A watermark may hold more matches than any motion of the scene."""
    result = filtered(motion(N, noise=0.3, seed=0))
    mark = replace(result.motions[0], stationary=True, support=N)
    labels = np.where(np.arange(N) < 70, 0, 1)
    vars(result)["_motions"] = (mark, result.motions[0]), labels  # as once they have been searched for
    mask, F = selection.strongest_motion(replace_models(result, result.models * 2))
    assert mask.tolist() == (labels == 1).tolist()
    assert F is not None
    alone = replace_models(result, (replace(result.models[0], stationary=True),))
    assert selection.strongest_motion(alone)[0].sum() == 0


def replace_models(result: FilterResult, models: tuple[Structure, ...]) -> FilterResult:
    """Return a result with other models and the motions that it has."""
    changed = replace(result, models=models)
    vars(changed)["_motions"] = vars(result)["_motions"]
    return changed


def test_where_nothing_is_found_nothing_is_chosen() -> None:
    points = np.random.default_rng(0).uniform(0, 600, (N, 4))
    mask, F = selection.strongest_motion(filtered(points))
    assert (mask.sum(), F) == (0, None)
