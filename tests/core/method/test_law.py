"""Probabilities are a mixture's, masks follow from them, and near misses are flagged."""

import itertools
from dataclasses import replace
from functools import cache
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from posed_views import FLOOR, POSE, TURN, WALL, filtered, on_plane, views
from result_rows import structures
from stage_cases import in_pixels, mismatches
from two_views import plane

from ruzhash_cv import FilterResult, filter_points
from ruzhash_cv.core.families.base import Models
from ruzhash_cv.core.method import law
from ruzhash_cv.core.method.parameters import PARAMETERS
from ruzhash_cv.core.method.sampling import Problem
from ruzhash_cv.core.method.scene import Scene
from ruzhash_cv.filtering import families_of

PARTS = (WALL,), (FLOOR,), (WALL, 0.5, 0.9)
RIGID = views(np.vstack([on_plane(f, 90, np.random.default_rng(1), *depths) for f, *depths in PARTS]))
SCENES = {
    "a plane": np.hsplit(np.vstack([plane(200, 0.5), mismatches(100)]), 2),
    "a rigid scene": [np.vstack([image, np.hsplit(mismatches(150), 2)[side]]) for side, image in enumerate(RIGID)],
    "nothing": np.hsplit(mismatches(200), 2),
}


@cache
def result_of(scene: str, threshold: float | None = None, keep_stationary: bool = True) -> FilterResult:
    return filter_points(*SCENES[scene], threshold=threshold, keep_stationary=keep_stationary)


@pytest.mark.parametrize("threshold", [None, 2.0])
@pytest.mark.parametrize("scene", SCENES)
def test_a_match_is_kept_and_labelled_if_it_is_more_probable_than_not(scene: str, threshold: float | None) -> None:
    result = result_of(scene, threshold)
    np.testing.assert_array_equal(result.inlier_mask, result.inlier_probabilities > 0.5)
    np.testing.assert_array_equal(result.inlier_mask, result.motion_labels >= 0)


@pytest.mark.parametrize("scene", SCENES)
def test_a_larger_threshold_keeps_all_that_a_smaller_one_keeps(scene: str) -> None:
    masks = [result_of(scene, threshold).inlier_mask for threshold in np.geomspace(0.1, 50.0, 12).tolist()]
    assert all((smaller <= larger).all() for smaller, larger in itertools.pairwise(masks))
    assert masks[-1].sum() > masks[0].sum() or scene == "nothing"


@pytest.mark.parametrize("scene", SCENES)
def test_a_threshold_leaves_models_and_scores_as_they_are(scene: str) -> None:
    one, other = result_of(scene), result_of(scene, 2.0)
    np.testing.assert_array_equal(one.anomaly_scores, other.anomaly_scores)
    models = [sorted(model.matrix.tolist() for model in of.motions) for of in (one, other)]
    assert models[0] == models[1]
    assert {model.tolerance for model in structures(other)} <= {2.0}


@pytest.mark.parametrize("n_wrong", [40, 400])
@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_as_many_matches_are_true_as_probabilities_say(noise: float, n_wrong: int) -> None:
    data = np.vstack([plane(300, noise), mismatches(n_wrong)])
    probabilities = filter_points(data[:, :2], data[:, 2:]).inlier_probabilities
    # The standard deviation is below sqrt(300).
    assert abs(probabilities.sum() - 300) < 3 * np.sqrt(300)
    assert probabilities[:300].mean() > 0.95


def test_a_crowd_around_a_plane_makes_its_matches_less_probable() -> None:
    rng, data = np.random.default_rng(1), np.vstack([plane(200, 0.7), mismatches(50)])
    crowd = plane(300, seed=2)
    crowd[:, 2:] += rng.normal(0.0, 15.0, (300, 2))
    alone, among = (filter_points(*np.hsplit(each, 2)) for each in (data, np.vstack([data, crowd])))
    assert among.inlier_probabilities[:200].mean() < alone.inlier_probabilities[:200].mean()
    assert among.inlier_mask[:200].mean() > 0.9
    assert among.inlier_mask[250:].mean() < 0.15


@pytest.mark.parametrize("pose", [POSE, TURN], ids=["moved", "turned"])
def test_near_misses_are_flagged(pose: Any) -> None:
    """A fifth of the matches of a wall, a floor and things before them is 6 to 20 px off."""
    shares = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        points = np.vstack([on_plane(WALL, 120, rng), on_plane(FLOOR, 80, rng), on_plane(WALL, 60, rng, 0.5, 0.9)])
        first, second = views(points, pose, seed)
        off = np.flatnonzero(rng.random(len(points)) < 0.2)
        distance, angle = rng.uniform(6, 20, len(off)), rng.uniform(0, 2 * np.pi, len(off))
        second[off] += (distance * np.array([np.cos(angle), np.sin(angle)])).T
        result = filtered((first, second), seed=seed)
        others = np.setdiff1d(np.arange(len(points)), off)
        kept = result.inlier_mask
        shares.append((kept[others].mean(), kept[off].mean(), result.inlier_probabilities[off].mean()))
    of_others, of_near_misses, probability = np.mean(shares, axis=0)
    assert of_others > 0.95
    # A near miss along its epipolar line is not wrong if it is off all planes.
    assert of_near_misses < 0.2
    assert probability < 0.2


@pytest.mark.parametrize("holding", [True, False])
def test_matches_off_surfaces_are_probable_only_if_their_motion_may_hold_matches(holding: bool) -> None:
    families, matches, decoys = families_of("fundamental"), in_pixels(np.hstack(RIGID)), mismatches(200)
    matrix = families[1].fit(matches.data, np.ones((1, len(matches))))
    scene = Scene.of(Models.of_family(matrix, 1), np.ones(1), np.ones(1), np.array([0.5]))
    problem = Problem(matches, decoys, families, PARAMETERS)
    probabilities = law.probabilities_of(scene, matches, decoys, np.array([holding]), problem)[:, 0]
    assert np.median(probabilities) > 0.9 if holding else (probabilities == 0.0).all()


def test_a_surface_of_a_motion_has_a_component_of_relief_along_its_epipolar_lines() -> None:
    """Noise across and along, three and six times both, and noise across beside relief along; a plane of no motion has three."""
    families = families_of("auto")
    models = Models(np.ones((3, 9)), np.array([1, 0, 0], np.uint8))
    alone = Scene.of(models, np.ones(3), np.ones(3), np.array([0.5, 0.8, 0.8]))
    scene = replace(alone, owners=np.array([0, 0, 2]))
    decoys = np.random.default_rng(0).uniform(0.0, 500.0, (3, 200)) ** 2
    given = PARAMETERS.unit, families, PARAMETERS
    structures, owners, across, along, _, coordinates = law.components_of(scene, decoys, np.ones(3, bool), True, *given)
    true = coordinates > 0
    of_plane = true & (structures == 1)
    assert [coordinates[true & (structures == item)].tolist() for item in range(3)] == [[1] * 3, [2] * 4, [2] * 3]
    relief = PARAMETERS.relief_scale * PARAMETERS.unit
    noise = [[0.5, 0.8], [1.5, 2.4], [3.0, 4.8], [0.5, relief]]
    np.testing.assert_allclose(np.column_stack([across, along])[of_plane], noise)
    assert (owners[of_plane] == 0).all()
    assert [int((true & (structures == item)).sum()) for item in range(3)] == [3, 4, 3]
    without = law.components_of(scene, decoys, np.array([False, True, True]), True, *given)
    assert not without[5][without[0] == 0].any()
    assert (without[0] == 0).sum() == 2
    no_tail = law.components_of(scene, decoys, np.ones(3, bool), False, *given)
    np.testing.assert_allclose(no_tail[2][(no_tail[0] == 1) & (no_tail[5] > 0)], [0.5, 1.5, 0.5])


@pytest.mark.parametrize("n", [0, 1, 40])
def test_shares_and_probabilities_equal_their_twins(n: int) -> None:
    """Of distances some of which are 0 and some infinite."""
    rng = np.random.default_rng(n)
    distances = rng.exponential(4.0, (n, 3)) * rng.choice([0.0, 1.0, np.inf], (n, 3), p=[0.1, 0.8, 0.1])
    scales, weights = 3.0 ** rng.integers(-2, 3, (2, 5)), rng.random(n)
    owners, heights, coordinates = rng.choice([-1, 0], 5), rng.exponential(100.0, 5), rng.integers(0, 3, 5)
    components, factors = (rng.integers(1, 3, 5), owners, *scales, heights, coordinates), rng.uniform(1.0, 5.0, n)
    ratios, start = naive.densities(distances, *components, factors), np.append(np.full(5, 0.7 / 5), 0.3)
    squares = np.ascontiguousarray(np.square(distances).T)
    shares = law.shares_of(squares, components, weights, factors)
    np.testing.assert_allclose(shares, naive.shares(ratios, weights, law._N_STEPS, law._PRIOR, start), rtol=1e-7)
    expected = naive.probabilities(ratios, shares, components[0], coordinates > 0, 3)
    probabilities = law.by_shares(squares, components, shares, factors)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-7, atol=1e-300)


def test_single_precision_tells_a_kept_match_from_one_half() -> None:
    assert np.float32(law.MORE_THAN_HALF) > 0.5
    assert law.MORE_THAN_HALF < 0.50001


# As many as a rate allows


def labels_of(probabilities: Any) -> law.Labels:
    """Return labels by probabilities; kept matches are of structure 0."""
    probabilities = np.asarray(probabilities, float)
    keep = probabilities > 0.5
    return law.Labels(keep, probabilities, np.where(keep, 0, -1))


def test_the_most_probable_are_kept_while_the_mean_of_what_is_wrong_is_at_most_the_rate() -> None:
    labels = labels_of([1.0, 0.98, 0.6, 0.4, 0.0])
    for rate, n_kept in ((0.005, 1), (0.011, 2), (0.13, 2), (0.141, 3), (0.25, 3), (0.256, 4), (0.99, 4)):
        most = law.most_probable(labels, rate)
        assert most.keep.tolist() == [item < n_kept for item in range(5)]
        # What is no more probable than not belongs to no structure.
        assert most.labels.tolist() == [0 if item < min(n_kept, 3) else -1 for item in range(5)]


@given(st.lists(st.sampled_from([0.0, 0.3, 0.5, 0.9, 0.97, 1.0]), max_size=12), st.sampled_from([0.01, 0.1, 0.4]))
def test_matches_as_probable_are_kept_together_and_one_more_would_be_too_many(values: list[float], rate: float) -> None:
    probabilities = np.array(values)
    keep = law.most_probable(labels_of(probabilities), rate).keep
    assert not keep[probabilities == 0.0].any()
    for value in values:
        assert len(set(keep[probabilities == value].tolist())) == 1
        if value > 0.0 and not keep[probabilities == value][0]:
            assert np.mean(1 - probabilities[probabilities >= value]) > rate - 1e-12  # sums round differently
    if keep.any():
        assert np.mean(1 - probabilities[keep]) <= rate + 1e-12


def test_a_rate_is_of_the_matches_that_are_left_without_overlays_and_makes_none() -> None:
    kept = np.zeros(400, int)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        points1, points2 = rng.uniform(0, 640, (2, 400, 2))
        points2[:150] = points1[:150]
        points2[150:250] = 1.2 * points1[150:250] - [40, 9] + rng.normal(0, 1, (100, 2))
        kept += filter_points(points1, points2, keep_stationary=False, false_discovery_rate=0.01).inlier_mask
    assert kept[250:].sum() < 0.01 * kept.sum()
    assert not filter_points(points1, points1, false_discovery_rate=1e-12).motions[0].stationary


# Scores

SCORES = st.lists(st.sampled_from([0.1, 0.25, 0.5, 0.75, 1.0]), max_size=12).map(np.array)


@given(SCORES, SCORES)
def test_shares_count_the_decoys_that_score_as_well(scores: np.ndarray, decoys: np.ndarray) -> None:
    expected = [(1 + sum(decoy <= score for decoy in decoys)) / (1 + len(decoys)) for score in scores]
    np.testing.assert_array_equal(law.tail_shares(scores, np.sort(decoys)), expected)


def test_no_decoys_leave_scores_without_meaning() -> None:
    assert law.tail_shares(np.full(200, 0.1), np.zeros(0)).tolist() == [1.0] * 200
