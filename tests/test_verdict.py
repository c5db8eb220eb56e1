"""What the mask is made of: the structure a match belongs to, how good it looks, and rivals for a keypoint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rendering import draw_correspondences, plane_scene
from ruzhash_cv.matchset import LENGTH, MatchSet
from ruzhash_cv.structures.evidence import DENSITY_RATIO
from ruzhash_cv.verdict import (
    ON_A_LINE,
    REACH,
    RIVALS_APART,
    SURE,
    Verdict,
    decide,
    lost_to_rivals,
    nearest_structures,
)

from ruzhash_cv import filter_points

POINT, LINE = 2, 1
#: Decoys that lie far from everything, their scores evenly spread.
NULL_SCORES = np.linspace(0.5, 1.0, 2000)


def verdict_of(
    residuals: Any, scores: Any, *, tolerances: Any = (4.0,), codimensions: Any = (POINT,), threshold: float | None = None,
    rate: float | None = None, null_scores: np.ndarray = NULL_SCORES,
) -> Verdict:  # fmt: skip
    residuals = np.asarray(residuals, float).reshape(len(scores), len(tolerances))
    null_residuals = np.full((len(null_scores), residuals.shape[1]), 1e3 * max(tolerances))
    return decide(
        residuals, null_residuals, np.array(tolerances, float), np.array(codimensions), np.asarray(scores, float),
        null_scores, None if threshold is None else np.full(len(tolerances), threshold), rate,
    )  # fmt: skip


def score_at(share: float) -> float:
    """The score that so many decoys are as good as."""
    return float(np.quantile(NULL_SCORES, share))


# Keep or not


def test_within_a_plane_s_tolerance_every_match_is_kept_and_beyond_its_reach_none() -> None:
    residuals = 4.0 * np.array([0.0, 0.5, 1.0, 1.01 * REACH, 10.0])
    for score in (0.1, 0.99):
        verdict = verdict_of(residuals, np.full(5, score))
        assert verdict.keep.tolist() == [True, True, True, False, False]
        assert verdict.labels.tolist() == [0, 0, 0, -1, -1]


@pytest.mark.parametrize(("share", "kept"), [(SURE / 4, True), (4 * SURE, False), (0.5, False)])
def test_a_little_beyond_the_tolerance_a_match_must_look_better_than_decoys(share: float, kept: bool) -> None:
    residuals = 4.0 * np.array([1.1, 0.9 * REACH])
    verdict = verdict_of(residuals, np.full(2, score_at(share)))
    assert verdict.keep.tolist() == [kept, kept]
    assert verdict.labels.tolist() == [kept - 1, kept - 1]


def test_a_little_beyond_the_tolerance_a_match_must_look_better_than_what_is_far_off() -> None:
    """Mismatches far off that look as good as it: a crowd."""
    residuals = np.concatenate([[5.0], np.full(100, 400.0)])
    assert verdict_of(residuals, np.full(101, 0.1)).keep[0]
    crowd = np.concatenate([[0.1], np.full(100, 0.05)])
    assert not verdict_of(residuals, crowd).keep[0]


@pytest.mark.parametrize("kind", [POINT, LINE])
def test_a_crowd_as_dense_near_a_structure_as_further_off_is_not_kept(kind: int) -> None:
    """Between 1 and 3 tolerances is as much room as between 3 and `further`: two rings, or two pairs of strips."""
    further = (2.0 * REACH**kind - 1.0) ** (1.0 / kind)
    near, far, beyond = (
        np.linspace((1.01 * begin) ** kind, (0.99 * end) ** kind, 60) ** (1.0 / kind)
        for begin, end in ((1.0, REACH), (REACH, further), (further, 2.0 * further))
    )
    enough = int(60 / DENSITY_RATIO)
    for n_far, kept in ((60, False), (enough, False), (enough - 1, True), (0, True)):
        distances = np.concatenate([np.linspace(0.0, 1.0, 20), near, far[:n_far], beyond])
        # All look better than decoys, and the better the nearer they are.
        verdict = verdict_of(4.0 * distances, 0.1 + 0.01 * distances, codimensions=(kind,))
        assert verdict.keep.tolist() == [True] * 20 + [kept] * 60 + [False] * (n_far + 60)


@pytest.mark.parametrize(("share", "kept"), [(ON_A_LINE / 2, True), (2 * ON_A_LINE, False)])
def test_on_a_line_a_match_must_look_better_than_decoys(share: float, kept: bool) -> None:
    on_a_line, on_a_plane = (
        verdict_of([1.0], [score_at(share)], codimensions=(kind,)).keep.tolist() for kind in (LINE, POINT)
    )
    assert on_a_line == [kept]
    assert on_a_plane == [True]


def test_with_a_threshold_nothing_is_kept_beyond_it() -> None:
    for rate in (None, 0.5):
        verdict = verdict_of([1.0, 3.9, 4.1, 8.0], np.full(4, 0.01), threshold=4.0, rate=rate)
        assert verdict.keep.tolist() == [True, True, False, False]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(0, 60), st.sampled_from([None, 5.0]),
    st.sampled_from([None, 0.01, 0.3]),
)  # fmt: skip
def test_a_verdict_is_well_formed(seed: int, k: int, n: int, threshold: float | None, rate: float | None) -> None:
    rng = np.random.default_rng(seed)
    residuals, scores = rng.exponential(15, (n, k)), np.round(rng.random(n), 1) * 0.9 + 0.1
    residuals[rng.random((n, k)) < 0.1] = np.inf
    tolerances = rng.uniform(1, 30, k)
    limits = REACH * tolerances if threshold is None else np.full(k, threshold)
    codimensions = rng.integers(1, 3, k)
    verdict = verdict_of(
        residuals, scores, tolerances=tolerances, codimensions=codimensions, threshold=threshold, rate=rate
    )
    assert verdict.keep.shape == verdict.p.shape == verdict.labels.shape == (n,)
    assert ((verdict.p > 0) & (verdict.p <= 1)).all()
    assert (verdict.labels[~verdict.keep] == -1).all()
    assert 0 <= verdict.mismatch_rate <= 1
    assert 0 <= verdict.score_threshold <= 1
    own = np.flatnonzero(verdict.labels >= 0)
    assert (residuals[own, verdict.labels[own]] <= limits[verdict.labels[own]]).all()
    if rate is None:
        assert (verdict.labels[verdict.keep] >= 0).all()
    elif threshold is None:
        np.testing.assert_array_equal(verdict.keep, verdict.p <= rate)
    else:
        within = (residuals <= threshold).any(axis=1)
        np.testing.assert_array_equal(verdict.keep, (verdict.p <= rate) & within)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_p_values_are_like_the_shares_of_decoys_that_look_as_good(seed: int) -> None:
    """Mismatches and decoys of one law, far from everything: of each p-value no more than so many."""
    rng = np.random.default_rng(seed)
    p = verdict_of(np.full(2000, 1e4), 0.5 + 0.5 * rng.random(2000), threshold=4.0).p
    for level in (0.05, 0.2, 0.5):
        # Four standard errors, of the matches and of the 2,000 decoys, and what a law fitted to them may add.
        assert (p <= level).mean() < 1.2 * level + 4 * np.sqrt(level * (1 - level) / 1000)


# Whose it is


@pytest.mark.parametrize("planes", [0, 2, 4])
def test_a_match_belongs_to_the_narrowest_of_the_structures_that_hold_it(planes: int) -> None:
    rng = np.random.default_rng(planes)
    kinds = np.array([POINT] * planes + [LINE] * (4 - planes))
    tolerances, residuals = rng.uniform(1, 30, 4), rng.exponential(15, (300, 4))
    nearest, distance = nearest_structures(residuals, tolerances, kinds)
    for row in range(300):
        ratios = residuals[row] / tolerances
        holding = np.flatnonzero(ratios <= 1)
        # Planes come before lines.
        holding = holding[kinds[holding] == POINT] if (kinds[holding] == POINT).any() else holding
        expected = holding[np.argmin(tolerances[holding])] if len(holding) else np.argmin(ratios)
        assert nearest[row] == expected
        assert distance[row] == ratios[nearest[row]]


def test_residuals_that_are_not_finite_or_overflow_are_far() -> None:
    residuals = np.array([[np.inf, np.inf], [np.inf, 1e300], [1.0, np.inf]])
    _, distance = nearest_structures(residuals, np.array([2.0, 1e-300]), np.array([POINT, LINE]))
    assert (distance[:2] == np.inf).all()
    assert distance[2] == 0.5


def test_a_crowd_taken_for_a_structure_leaves_the_plane_its_matches() -> None:
    """Mismatches 12 to 25 px off make a wide copy of the plane, which holds all that the plane holds."""
    drawn = draw_correspondences(plane_scene(rng=1), 600, mismatch_rate=0.4, noise=0.7, rng=1)
    rng, points2, near = np.random.default_rng(1), drawn.points2.copy(), np.flatnonzero(drawn.labels == 0)[::4]
    angle, length = rng.uniform(0, 2 * np.pi, len(near)), rng.uniform(12, 25, len(near))
    true = np.column_stack([drawn.points1[near], np.ones(len(near))]) @ drawn.homographies[0].T
    points2[near] = true[:, :2] / true[:, 2:] + length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    result = filter_points(drawn.points1, points2)
    true = drawn.labels == 1
    assert result.inlier_mask[true].mean() > 0.98
    precise = int(np.argmin([model.tolerance for model in result.models]))
    assert (result.labels[true] == precise).mean() > 0.95


# Rivals


def rivals(*second: tuple[float, float]) -> MatchSet:
    """Matches of one keypoint with others, and of ten keypoints a row below with themselves; rows are sorted by the last coordinate."""
    others = np.column_stack([100.0 * np.arange(10), np.full(10, 900.0)])
    points1 = np.vstack([np.zeros((len(second), 2)), others])
    points2 = np.vstack([second, others])
    matches = MatchSet.of(points1, points2)
    np.testing.assert_array_equal(matches.where[: len(second)], np.arange(len(second)))
    return matches


def verdict_on(keep: list[bool], labels: list[int]) -> Verdict:
    """A verdict on the first matches; the ten others are kept, in structure 0."""
    n = len(keep)
    return Verdict(np.array(keep + [True] * 10), np.full(n + 10, 0.5), np.array(labels + [0] * 10), 0.5, 0.1)


FAR, NEAR = 1.5 * RIVALS_APART * LENGTH, 0.5 * RIVALS_APART * LENGTH
LINES, ON_PLANES = np.array([LINE, LINE]), np.array([POINT, POINT])


@pytest.mark.parametrize("swapped", [False, True])
def test_of_matches_that_lead_elsewhere_a_keypoint_keeps_the_best(swapped: bool) -> None:
    matches, scores = rivals((0.0, 0.0), (0.0, NEAR), (0.0, FAR)), np.full(13, 0.9)
    scores[:3] = 0.2, 0.4, 0.5
    if swapped:  # the keypoint of the second image has three partners
        data = np.ascontiguousarray(matches.data[:, [2, 3, 0, 1]])
        matches = MatchSet(
            data, matches.groups, matches.keypoints[::-1], matches.votes, matches.frame, matches.length, matches.finite,
            matches.where,
        )  # fmt: skip
    kept = verdict_on([True] * 3, [0, 0, 1])
    assert set(lost_to_rivals(matches, kept, scores, LINES)) == {2}
    # The better one elsewhere: the other two are rivals of it.
    scores[2] = 0.1
    assert set(lost_to_rivals(matches, kept, scores, LINES)) >= {0}
    assert 2 not in lost_to_rivals(matches, kept, scores, LINES)


def test_within_the_same_plane_there_is_room_for_several() -> None:
    matches, scores = rivals((0.0, 0.0), (0.0, FAR)), np.linspace(0.1, 0.9, 12)
    assert len(lost_to_rivals(matches, verdict_on([True, True], [0, 0]), scores, ON_PLANES)) == 0
    assert set(lost_to_rivals(matches, verdict_on([True, True], [0, 1]), scores, ON_PLANES)) == {1}
    assert set(lost_to_rivals(matches, verdict_on([True, True], [0, 0]), scores, LINES)) == {1}


def test_rejected_matches_are_no_rivals() -> None:
    matches, scores = rivals((0.0, 0.0), (0.0, FAR)), np.linspace(0.1, 0.9, 12)
    assert len(lost_to_rivals(matches, verdict_on([False, True], [-1, 0]), scores, LINES)) == 0
    nothing = Verdict(np.zeros(12, bool), np.ones(12), np.full(12, -1), 0.0, 1.0)
    assert len(lost_to_rivals(matches, nothing, scores, LINES)) == 0
