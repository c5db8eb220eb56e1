"""The mask: the structure a match belongs to, how probable it is, and one match for each keypoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage_cases import in_pixels

from ruzhash_cv.filtering import PARAMETERS
from ruzhash_cv.labelling import (
    MORE_THAN_HALF,
    Labelling,
    break_one_to_one,
    label,
    most_probable,
    nearest_structures,
)
from ruzhash_cv.law import Limits
from ruzhash_cv.matches import MatchSet

POINT, LINE = 2, 1


def labelled(
    distances: Any,
    posteriors: Any,
    *,
    decoy_shares: Any = 0.001,
    tolerances: Any = (4.0,),
    codimensions: Any = (POINT,),
    strict: bool = False,
) -> Labelling:
    """Return the labelling of matches (n,) or (n, k) by what the law says of them."""
    k = len(tolerances)
    distances, posteriors = (np.asarray(each, float).reshape(-1, k) for each in (distances, posteriors))
    shares = np.broadcast_to(np.asarray(decoy_shares, float), len(distances))
    limits = Limits(np.array(tolerances, float), np.array(codimensions))
    return label(distances, posteriors, shares, limits, PARAMETERS, strict=strict)


# Keep or not


def test_within_a_plane_s_tolerance_every_match_is_kept_and_beyond_it_what_is_probable() -> None:
    distances = 4.0 * np.array([0.0, 0.5, 1.0, 1.01, 1.01, 10.0])
    for share in (0.001, 1.0):
        found = labelled(distances, [0.99, 0.6, 0.2, 0.49, 0.51, 0.0], decoy_shares=share)
        assert found.keep.tolist() == [True, True, True, False, True, False]
        assert found.labels.tolist() == [0, 0, 0, -1, 0, -1]
        np.testing.assert_array_equal(found.probabilities, [0.99, 0.6, MORE_THAN_HALF, 0.49, 0.51, 0.0])


@pytest.mark.parametrize(("times", "kept"), [(0.5, True), (1.0, True), (2.0, False)])
def test_on_a_line_a_match_must_look_better_than_decoys(times: float, kept: bool) -> None:
    shares = times * PARAMETERS.significant_share
    for posterior in (0.9, 0.1):
        assert labelled([1.0], [posterior], decoy_shares=shares, codimensions=(LINE,)).keep.tolist() == [kept]
        assert labelled([1.0], [posterior], decoy_shares=shares, codimensions=(POINT,)).keep.all()
    # Beyond the line's tolerance the law decides alone.
    assert labelled([5.0], [0.9], decoy_shares=shares, codimensions=(LINE,)).keep.all()


@pytest.mark.parametrize("kind", [POINT, LINE])
def test_with_a_tolerance_of_the_caller_s_what_lies_within_is_kept_whatever_its_score_and_nothing_beyond(
    kind: int,
) -> None:
    found = labelled(
        [1.0, 4.0, 4.1], [0.9, 0.3, 0.9], decoy_shares=[0.001, 0.9, 0.001], codimensions=(kind,), strict=True
    )
    assert found.probabilities.tolist() == [0.9, MORE_THAN_HALF, 0.0]
    assert found.labels.tolist() == [0, 0, -1]


def test_beyond_all_tolerances_a_match_belongs_to_the_structure_that_is_more_probable() -> None:
    found = labelled([[8.0, 6.0]], [[0.5, 0.2]], tolerances=(4.0, 4.0), codimensions=(POINT, POINT))
    assert found.labels.tolist() == [0]
    assert found.probabilities == pytest.approx([0.7])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(0, 60), st.booleans())
def test_a_labelling_is_well_formed(seed: int, k: int, n: int, strict: bool) -> None:
    rng = np.random.default_rng(seed)
    distances, shares = rng.exponential(15, (n, k)), rng.random(n)
    distances[rng.random((n, k)) < 0.1] = np.inf
    posteriors = rng.dirichlet(np.full(k + 1, 0.3), n)[:, :k]
    tolerances, codimensions = rng.uniform(1, 30, k), rng.integers(1, 3, k)
    found = labelled(
        distances, posteriors, decoy_shares=shares, tolerances=tolerances, codimensions=codimensions, strict=strict
    )
    assert found.keep.shape == found.probabilities.shape == found.labels.shape == (n,)
    assert ((found.probabilities >= 0) & (found.probabilities <= 1)).all()
    np.testing.assert_array_equal(found.keep, found.probabilities > 0.5)
    np.testing.assert_array_equal(found.keep, found.labels >= 0)
    within = (distances <= tolerances).any(axis=1)
    assert (found.keep <= within).all() or not strict
    np.testing.assert_allclose(found.probabilities[~within], 0.0 if strict else posteriors[~within].sum(axis=1))


def test_single_precision_tells_a_kept_match_from_one_half() -> None:
    assert np.float32(MORE_THAN_HALF) > 0.5
    assert MORE_THAN_HALF < 0.50001


def test_structures_that_are_left_out_are_no_match_s_and_the_others_are_numbered_anew() -> None:
    found = labelling_of([0.9, 0.8, 0.7, 0.4], [0, 2, 2, -1])
    assert found.of_structures(np.array([True, False, True])).labels.tolist() == [0, 1, 1, -1]
    fewer = found.without(np.array([1]))
    assert (fewer.keep.tolist(), fewer.labels.tolist()) == ([True, False, True, False], [0, -1, 2, -1])
    assert found.keep.all() == found.keep[3]


def test_a_flagged_match_weighs_by_the_flagged_ones_that_score_no_better() -> None:
    found = labelling_of([0.9, 0.1, 0.1, 0.1, 0.1])
    weights = found.match_weights(np.array([0.5, 1.0, 1.0, 0.5, 1.0]), np.array([0.9, 0.6, 0.5, 0.7, 0.6]))
    np.testing.assert_allclose(weights, [0.5, 0.75, 1.0, 0.125, 0.75])
    everything = labelling_of(np.ones(3)).match_weights(np.ones(3), np.ones(3))
    np.testing.assert_array_equal(everything, np.ones(3))


def labelling_of(probabilities: Any, labels: Any = None) -> Labelling:
    """Return a labelling by probabilities; what is kept is of structure 0 unless `labels` say otherwise."""
    probabilities = np.asarray(probabilities, float)
    keep = probabilities > 0.5
    labels = np.where(keep, 0, -1) if labels is None else np.asarray(labels)
    return Labelling(keep, probabilities, labels)


# As many as a rate allows


def test_the_most_probable_are_kept_while_the_mean_of_what_is_wrong_is_at_most_the_rate() -> None:
    given = labelling_of([1.0, 0.98, 0.6, 0.4, 0.0])
    for rate, n_kept in ((0.005, 1), (0.011, 2), (0.13, 2), (0.141, 3), (0.25, 3), (0.256, 4), (0.99, 4)):
        found = most_probable(given, rate)
        assert found.keep.tolist() == [item < n_kept for item in range(5)]
        # What is no more probable than not belongs to no structure.
        assert found.labels.tolist() == [0 if item < min(n_kept, 3) else -1 for item in range(5)]


@given(st.lists(st.sampled_from([0.0, 0.3, 0.5, 0.9, 0.97, 1.0]), max_size=12), st.sampled_from([0.01, 0.1, 0.4]))
def test_matches_as_probable_are_kept_together_and_one_more_would_be_too_many(values: list[float], rate: float) -> None:
    probabilities = np.array(values)
    keep = most_probable(labelling_of(probabilities), rate).keep
    assert not keep[probabilities == 0.0].any()
    for value in values:
        assert len(set(keep[probabilities == value].tolist())) == 1
        if value > 0.0 and not keep[probabilities == value][0]:
            assert np.mean(1 - probabilities[probabilities >= value]) > rate
    if keep.any():
        assert np.mean(1 - probabilities[keep]) <= rate + 1e-12


# Whose it is


@pytest.mark.parametrize("planes", [0, 2, 4])
def test_a_match_belongs_to_the_narrowest_of_the_structures_that_hold_it(planes: int) -> None:
    rng = np.random.default_rng(planes)
    kinds = np.array([POINT] * planes + [LINE] * (4 - planes))
    tolerances, residuals = rng.uniform(1, 30, 4), rng.exponential(15, (300, 4))
    nearest, distance = nearest_structures(residuals, Limits(tolerances, kinds))
    for row in range(300):
        ratios = residuals[row] / tolerances
        holding = np.flatnonzero(ratios <= 1)
        # Planes come before lines.
        holding = holding[kinds[holding] == POINT] if (kinds[holding] == POINT).any() else holding
        assert nearest[row] == (holding[np.argmin(tolerances[holding])] if len(holding) else np.argmin(ratios))
        assert distance[row] == ratios[nearest[row]]


def test_residuals_that_are_not_finite_or_overflow_are_far() -> None:
    distances = np.array([[np.inf, np.inf], [np.inf, 1e300], [1.0, np.inf]])
    _, distance = nearest_structures(distances, Limits(np.array([2.0, 1e-300]), np.array([POINT, LINE])))
    assert distance.tolist() == [np.inf, np.inf, 0.5]


# One match for each keypoint

APART = PARAMETERS.preference_limit * PARAMETERS.unit
NEAR, FAR = 0.5 * APART, 1.5 * APART
ON_LINES, ON_PLANES = np.zeros(2, bool), np.ones(2, bool)


def of_one_keypoint(*second: float, swapped: bool = False) -> MatchSet:
    """Matches of one keypoint with points on a vertical, and of ten keypoints with their own."""
    others = np.column_stack([100.0 * np.arange(10), np.full(10, 900.0)])
    points2 = np.vstack([np.column_stack([np.zeros(len(second)), second]), others])
    data = np.hstack([np.vstack([np.zeros((len(second), 2)), others]), points2])
    keypoints = np.stack([np.append(np.zeros(len(second), int), np.arange(1, 11)), np.arange(len(data))])
    return (
        in_pixels(data[:, [2, 3, 0, 1]], keypoints=keypoints[::-1]) if swapped else in_pixels(data, keypoints=keypoints)
    )


def losing(
    matches: MatchSet, probabilities: list[float], labels: list[int], scores: np.ndarray, planes: np.ndarray = ON_LINES
) -> set[int]:
    """Return which of the first matches lose; the ten others are kept, in structure 0."""
    given = labelling_of(probabilities + [0.9] * 10, labels + [0] * 10)
    found = break_one_to_one(matches, given, scores, planes, PARAMETERS)
    np.testing.assert_array_equal(found.keep, found.probabilities > 0.5)
    assert (found.labels[~found.keep] == -1).all()
    assert (found.probabilities <= given.probabilities).all()
    return set(np.flatnonzero(given.keep & ~found.keep).tolist())


@pytest.mark.parametrize("swapped", [False, True])
def test_of_matches_that_lead_elsewhere_a_keypoint_keeps_the_most_probable(swapped: bool) -> None:
    matches, scores = of_one_keypoint(0.0, NEAR, FAR, swapped=swapped), np.full(13, 0.9)
    assert losing(matches, [0.9, 0.8, 0.7], [0, 0, 1], scores) == {2}
    # The better one is elsewhere: one of the two others is far from it.
    assert losing(matches, [0.9, 0.8, 0.95], [0, 0, 1], scores) == {0}
    nearer = of_one_keypoint(0.0, 0.1 * NEAR, FAR, swapped=swapped)
    assert losing(nearer, [0.9, 0.8, 0.95], [0, 0, 1], scores) == {0, 1}


def test_of_matches_as_probable_the_one_of_better_score_is_kept() -> None:
    matches, scores = of_one_keypoint(0.0, FAR), np.full(12, 0.9)
    for better in (0, 1):
        scores[:2] = 0.9
        scores[better] = 0.2
        assert losing(matches, [0.8, 0.8], [0, 1], scores) == {1 - better}


def test_a_match_is_at_most_as_probable_as_it_is_that_the_better_one_is_wrong() -> None:
    matches, scores = of_one_keypoint(0.0, FAR), np.full(12, 0.9)
    given = labelling_of([0.7, 0.95] + [0.9] * 10)
    found = break_one_to_one(matches, given, scores, ON_LINES, PARAMETERS)
    np.testing.assert_allclose(found.probabilities, [0.05, 0.95] + [0.9] * 10)


def test_within_the_same_plane_there_is_room_for_several() -> None:
    matches, scores = of_one_keypoint(0.0, FAR), np.linspace(0.1, 0.9, 12)
    assert losing(matches, [0.9, 0.8], [0, 0], scores, ON_PLANES) == set()
    assert losing(matches, [0.9, 0.8], [0, 1], scores, ON_PLANES) == {1}
    assert losing(matches, [0.9, 0.8], [0, 0], scores) == {1}


def test_a_rejected_match_takes_no_keypoint() -> None:
    matches, scores = of_one_keypoint(0.0, FAR), np.linspace(0.1, 0.9, 12)
    assert losing(matches, [0.5, 0.9], [-1, 0], scores) == set()
    nothing = labelling_of(np.zeros(12))
    assert not break_one_to_one(matches, nothing, scores, ON_LINES, PARAMETERS).keep.any()
