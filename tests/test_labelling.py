"""The mask: the structure a match belongs to, how good it looks beside decoys, one match for each keypoint; and p-values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from stage_cases import in_pixels

from ruzhash_cv import p_values
from ruzhash_cv.filtering import PARAMETERS
from ruzhash_cv.labelling import (
    OWN_CHOICE,
    Agreement,
    Choice,
    Labelling,
    Limits,
    adjust,
    better_rejected,
    break_one_to_one,
    empirical_null,
    label,
    mismatch_rate,
    nearest_structures,
)
from ruzhash_cv.matches import MatchSet

POINT, LINE = 2, 1
REACH, MIDDLE = PARAMETERS.reach, PARAMETERS.middle_p
#: The share of decoys that may look as good as what lies beyond a tolerance.
SURE = 2.0 / (1.0 + PARAMETERS.n_decoys)
#: Decoys that lie far from everything, their scores evenly spread.
DECOY_SCORES = np.linspace(0.5, 1.0, 2000)


def labelled(
    residuals: Any,
    scores: Any,
    *,
    tolerances: Any = (4.0,),
    codimensions: Any = (POINT,),
    choice: Choice = OWN_CHOICE,
) -> Labelling:
    residuals = np.asarray(residuals, float).reshape(len(scores), len(tolerances))
    far = np.full((len(DECOY_SCORES), residuals.shape[1]), 1e3 * max(tolerances))
    limits = Limits(np.array(tolerances, float), np.array(codimensions))
    matches, decoys = Agreement(residuals, np.asarray(scores, float)), Agreement(far, DECOY_SCORES)
    return label(matches, decoys, limits, PARAMETERS, choice)


def score_at(share: float) -> float:
    """The score that so many decoys are as good as."""
    return float(np.quantile(DECOY_SCORES, share))


# Keep or not


def test_within_a_plane_s_tolerance_every_match_is_kept_and_beyond_its_reach_none() -> None:
    residuals = 4.0 * np.array([0.0, 0.5, 1.0, 1.01 * REACH, 10.0])
    for score in (0.1, 0.99):
        found = labelled(residuals, np.full(5, score))
        assert found.keep.tolist() == [True, True, True, False, False]
        assert found.labels.tolist() == [0, 0, 0, -1, -1]


@pytest.mark.parametrize(("share", "kept"), [(SURE / 4, True), (4 * SURE, False), (0.5, False)])
def test_a_little_beyond_the_tolerance_a_match_must_look_better_than_decoys(share: float, kept: bool) -> None:
    found = labelled(4.0 * np.array([1.1, 0.9 * REACH]), np.full(2, score_at(share)))
    assert found.keep.tolist() == [kept, kept]
    assert found.labels.tolist() == [kept - 1, kept - 1]


def test_a_little_beyond_the_tolerance_a_match_must_look_better_than_what_is_far_off() -> None:
    """Mismatches far off that look as good as it: a crowd."""
    residuals = np.concatenate([[5.0], np.full(100, 400.0)])
    assert labelled(residuals, np.full(101, 0.1)).keep[0]
    assert not labelled(residuals, np.concatenate([[0.1], np.full(100, 0.05)])).keep[0]


@pytest.mark.parametrize("kind", [POINT, LINE])
def test_a_crowd_as_dense_near_a_structure_as_further_off_is_not_kept(kind: int) -> None:
    """Between 1 and 3 tolerances is as much room as between 3 and `further`: two rings, or two pairs of strips."""
    further = (2.0 * REACH**kind - 1.0) ** (1.0 / kind)
    near, far, beyond = (
        np.linspace((1.01 * begin) ** kind, (0.99 * end) ** kind, 60) ** (1.0 / kind)
        for begin, end in ((1.0, REACH), (REACH, further), (further, 2.0 * further))
    )
    enough = int(60 / PARAMETERS.density_ratio)
    for n_far, kept in ((60, False), (enough, False), (enough - 1, True), (0, True)):
        distances = np.concatenate([np.linspace(0.0, 1.0, 20), near, far[:n_far], beyond])
        # All look better than decoys, and the better the nearer they are.
        found = labelled(4.0 * distances, 0.1 + 0.01 * distances, codimensions=(kind,))
        assert found.keep.tolist() == [True] * 20 + [kept] * 60 + [False] * (n_far + 60)


@pytest.mark.parametrize(("times", "kept"), [(0.5, True), (2.0, False)])
def test_on_a_line_a_match_must_look_better_than_decoys(times: float, kept: bool) -> None:
    score = score_at(times * PARAMETERS.line_decoy_share)
    assert labelled([1.0], [score], codimensions=(LINE,)).keep.tolist() == [kept]
    assert labelled([1.0], [score], codimensions=(POINT,)).keep.tolist() == [True]


@pytest.mark.parametrize("kind", [POINT, LINE])
def test_within_a_tolerance_chosen_by_the_caller_a_match_is_kept_whatever_its_score(kind: int) -> None:
    found = labelled([1.0, 2.0, 2.1], [0.99, 0.1, 0.1], codimensions=(kind,), choice=Choice(tolerance=2.0))
    assert found.keep.tolist() == [True, True, False]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(0, 60), st.sampled_from([None, 5.0]),
    st.sampled_from([None, 0.01, 0.3]),
)  # fmt: skip
def test_a_labelling_is_well_formed(seed: int, k: int, n: int, tolerance: float | None, rate: float | None) -> None:
    rng = np.random.default_rng(seed)
    residuals, scores = rng.exponential(15, (n, k)), np.round(rng.random(n), 1) * 0.9 + 0.1
    residuals[rng.random((n, k)) < 0.1] = np.inf
    tolerances, codimensions = rng.uniform(1, 30, k), rng.integers(1, 3, k)
    limits = REACH * tolerances if tolerance is None else np.full(k, tolerance)
    found = labelled(
        residuals, scores, tolerances=tolerances, codimensions=codimensions, choice=Choice(tolerance, rate)
    )
    assert found.keep.shape == found.p.shape == found.labels.shape == (n,)
    assert ((found.p > 0) & (found.p <= 1)).all()
    assert (found.labels[~found.keep] == -1).all()
    assert 0 <= found.mismatch_rate <= 1
    assert 0 <= found.score_threshold <= 1
    own = np.flatnonzero(found.labels >= 0)
    assert (residuals[own, found.labels[own]] <= limits[found.labels[own]]).all()
    if rate is None:
        assert (found.labels[found.keep] >= 0).all()
    else:
        within = tolerance is None or (residuals <= tolerance).any(axis=1)
        np.testing.assert_array_equal(found.keep, (found.p <= rate) & within)


def test_structures_that_are_left_out_are_no_match_s_and_the_others_are_numbered_anew() -> None:
    found = Labelling(
        np.array([True, True, True, False]), np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 2, 2, -1]), 0.5, 0.1
    )
    assert found.of_structures(np.array([True, False, True])).labels.tolist() == [0, 1, 1, -1]
    fewer = found.without(np.array([1]))
    assert (fewer.keep.tolist(), fewer.labels.tolist()) == ([True, False, True, False], [0, -1, 2, -1])
    np.testing.assert_allclose(fewer.match_weights(np.full(4, 0.5)), [0.5, 0.4, 0.5, 0.3])
    assert found.keep.all() == found.keep[3]


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
    residuals = np.array([[np.inf, np.inf], [np.inf, 1e300], [1.0, np.inf]])
    _, distance = nearest_structures(residuals, Limits(np.array([2.0, 1e-300]), np.array([POINT, LINE])))
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
    matches: MatchSet, keep: list[bool], labels: list[int], scores: np.ndarray, planes: np.ndarray = ON_LINES
) -> set[int]:
    """Return which of the first matches lose; the ten others are kept, in structure 0."""
    n = len(keep)
    given = Labelling(np.array(keep + [True] * 10), np.full(n + 10, 0.5), np.array(labels + [0] * 10), 0.5, 0.1)
    return set(break_one_to_one(matches, given, scores, planes, PARAMETERS).tolist())


@pytest.mark.parametrize("swapped", [False, True])
def test_of_matches_that_lead_elsewhere_a_keypoint_keeps_the_best(swapped: bool) -> None:
    matches, scores = of_one_keypoint(0.0, NEAR, FAR, swapped=swapped), np.full(13, 0.9)
    scores[:3] = 0.2, 0.4, 0.5
    assert losing(matches, [True] * 3, [0, 0, 1], scores) == {2}
    scores[2] = 0.1  # the better one is elsewhere: one of the two others is far from it
    assert losing(matches, [True] * 3, [0, 0, 1], scores) == {0}
    scores[:3] = 0.4, 0.5, 0.1
    assert losing(of_one_keypoint(0.0, 0.1 * NEAR, FAR, swapped=swapped), [True] * 3, [0, 0, 1], scores) == {0, 1}


def test_within_the_same_plane_there_is_room_for_several() -> None:
    matches, scores = of_one_keypoint(0.0, FAR), np.linspace(0.1, 0.9, 12)
    assert losing(matches, [True, True], [0, 0], scores, ON_PLANES) == set()
    assert losing(matches, [True, True], [0, 1], scores, ON_PLANES) == {1}
    assert losing(matches, [True, True], [0, 0], scores) == {1}


def test_a_rejected_match_takes_no_keypoint() -> None:
    matches, scores = of_one_keypoint(0.0, FAR), np.linspace(0.1, 0.9, 12)
    assert losing(matches, [False, True], [-1, 0], scores) == set()
    nothing = Labelling(np.zeros(12, bool), np.ones(12), np.full(12, -1), 0.0, 1.0)
    assert len(break_one_to_one(matches, nothing, scores, ON_LINES, PARAMETERS)) == 0


# p-values

SCORES = st.lists(st.sampled_from([0.1, 0.25, 0.5, 0.75, 1.0]), max_size=12).map(np.array)
#: p-values of decoys that all look different.
UNIFORM = np.linspace(0.001, 1.0, 1000)


@given(SCORES, SCORES)
def test_p_values_count_the_decoys_that_look_as_good(scores: np.ndarray, decoys: np.ndarray) -> None:
    expected = [(1 + sum(decoy <= score for decoy in decoys)) / (1 + len(decoys)) for score in scores]
    np.testing.assert_array_equal(p_values(scores, decoys), expected)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_p_values_of_a_labelling_are_hardly_below_the_shares_of_decoys_that_look_as_good(seed: int) -> None:
    """Mismatches and decoys of one law, far from everything: of each p-value no more than so many."""
    rng = np.random.default_rng(seed)
    p = labelled(np.full(2000, 1e4), 0.5 + 0.5 * rng.random(2000), choice=Choice(4.0)).p
    for level in (0.05, 0.2, 0.5):
        # Four standard errors, of the matches and of the 2,000 decoys, and what a law fitted to them may add.
        assert (p <= level).mean() < 1.2 * level + 4 * np.sqrt(level * (1 - level) / 1000)


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.7, 1.0]), st.booleans()), max_size=12))
def test_a_p_value_is_no_smaller_than_the_share_of_the_rejected_that_look_better(rows: list) -> None:
    scores, rejected = (np.array([row[part] for row in rows], [float, bool][part]) for part in range(2))
    better = np.array([sum(row[1] and row[0] < score for row in rows) for score in scores])
    np.testing.assert_array_equal(better_rejected(scores, rejected), better / max(1, rejected.sum()))


def test_the_mismatch_rate_of_a_mixture_is_its_share() -> None:
    rng = np.random.default_rng(0)
    for share in (0.0, 0.3, 0.8, 1.0):
        n_wrong = int(4000 * share)
        p = np.concatenate([rng.random(n_wrong), rng.uniform(0, 0.02, 4000 - n_wrong)])
        # Twice a binomial share.
        assert abs(mismatch_rate(p, UNIFORM, MIDDLE) - share) < 4 * 2 * np.sqrt(0.25 / 4000)
    assert mismatch_rate(np.zeros(0), UNIFORM, MIDDLE) == 0
    assert mismatch_rate(np.ones(5), UNIFORM, MIDDLE) == mismatch_rate(np.ones(5), np.zeros(0), MIDDLE) == 1


def test_the_rate_of_mismatches_that_share_the_largest_p_value_is_their_share() -> None:
    """Nine of ten agree with nothing and stand at 1, decoys and mismatches alike."""
    decoys = np.concatenate([np.ones(900), np.linspace(0.001, 0.1, 100)])
    p = np.concatenate([np.ones(180), np.linspace(0.001, 0.1, 20), np.full(300, 0.001)])
    assert abs(mismatch_rate(p, decoys, MIDDLE) - 0.4) < 1e-9
    assert mismatch_rate(p, UNIFORM, MIDDLE) > 0.7


# The law of mismatches' p-values


def shift_of(p: Any, n_decoys: int = 1000) -> float:
    return empirical_null(np.asarray(p), n_decoys, PARAMETERS)


def test_the_null_of_mismatches_like_decoys_is_hardly_shifted() -> None:
    rng = np.random.default_rng(0)
    shifts = [shift_of(np.concatenate([rng.random(300), rng.uniform(0, 0.01, 300)])) for _ in range(40)]
    assert min(shifts) >= 0.0
    assert np.mean(shifts) < 0.1


def test_the_null_of_mismatches_that_look_better_is_found_from_the_worse_half() -> None:
    """p-values of normal scores shifted by 0.8: with the law found, a share of q is at most q again."""
    wrong = ndtr(np.random.default_rng(1).normal(-0.8, 1.0, 4000))
    shift = shift_of(np.concatenate([wrong, np.full(2000, 1e-4)]), 1_000_000)
    assert abs(shift - 0.8) < 0.15
    for level in (0.01, 0.05, 0.1):
        assert level / 1.5 < (adjust(wrong, shift) <= level).mean() < level * 1.5
        assert (wrong <= level).mean() > 1.9 * level


@given(st.lists(st.floats(0.051, 1.0), max_size=60))
def test_inliers_do_not_tell_the_law_of_mismatches(wrong: list[float]) -> None:
    """However many they are: only p-values that are hardly ever inliers' do."""
    alone = shift_of(np.array(wrong), 10**9)
    assert shift_of([*wrong, *[0.001] * 500], 10**9) == pytest.approx(alone, abs=1e-6)


def test_few_matches_or_decoys_leave_the_null_nearly_alone() -> None:
    assert 0 <= shift_of([0.03, 0.3, 0.4]) < 0.2
    assert 0 <= shift_of(np.full(1000, 0.3), 3) < 0.2
    for n_decoys in (0, 1000):
        assert shift_of(np.zeros(0), n_decoys) == pytest.approx(0.0, abs=1e-9)


def test_the_null_is_told_no_better_than_the_decoys_tell_it() -> None:
    """Ten thousand mismatches just like decoys, and a thousand decoys that happen to look a little better or worse than usual."""
    rng = np.random.default_rng(0)
    drawn = [(np.sort(rng.random(1000)), rng.random(10_000)) for _ in range(40)]
    shifts = [shift_of((1.0 + np.searchsorted(decoys, scores)) / 1001.0) for decoys, scores in drawn]
    assert np.mean(shifts) < 0.05


@pytest.mark.parametrize("shift", [0.0, 1.2])
def test_adjusted_p_values_keep_their_order_are_no_smaller_and_in_0_1(shift: float) -> None:
    p = np.array([1e-300, 1e-12, 0.001, 0.5, 1.0])
    adjusted = adjust(p, shift)
    assert (np.diff(adjusted) >= 0).all()
    assert (adjusted >= p).all()
    assert ((adjusted > 0) & (adjusted <= 1)).all()
