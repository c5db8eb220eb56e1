"""p-values and the rate of mismatches from decoys' scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruzhash_cv.verdict import adjust, better_rejected, empirical_null, mismatch_rate
from scipy.special import ndtr

from ruzhash_cv import p_values

SCORES = st.lists(st.sampled_from([0.1, 0.25, 0.5, 0.75, 1.0]), max_size=12).map(np.array)


@given(SCORES, SCORES)
def test_p_values_count_the_decoys_that_look_as_good(scores: np.ndarray, decoys: np.ndarray) -> None:
    expected = [(1 + sum(decoy <= score for decoy in decoys)) / (1 + len(decoys)) for score in scores]
    np.testing.assert_array_equal(p_values(scores, decoys), expected)


def test_p_values_of_mismatches_like_decoys_do_not_fall_below_their_level_too_often() -> None:
    """P(p <= a) <= a for exchangeable scores, ties or not."""
    rng = np.random.default_rng(0)
    for digits in (16, 1):
        p = np.array([p_values(s[:1], s[1:])[0] for s in np.round(rng.random((4000, 40)), digits)])
        for level in (0.05, 0.2, 0.5):
            assert (p <= level).mean() < level + 4 * np.sqrt(level * (1 - level) / 4000)


#: p-values of decoys that all look different.
UNIFORM = np.linspace(0.001, 1.0, 1000)


def test_mismatch_rate_of_a_mixture_is_its_share() -> None:
    rng = np.random.default_rng(0)
    for share in (0.0, 0.3, 0.8, 1.0):
        n_wrong = int(4000 * share)
        p = np.concatenate([rng.random(n_wrong), rng.uniform(0, 0.02, 4000 - n_wrong)])
        # Twice a binomial share.
        assert abs(mismatch_rate(p, UNIFORM) - share) < 4 * 2 * np.sqrt(0.25 / 4000)
    assert mismatch_rate(np.zeros(0), UNIFORM) == 0
    assert mismatch_rate(np.ones(5), UNIFORM) == mismatch_rate(np.ones(5), np.zeros(0)) == 1


def test_the_rate_of_mismatches_that_share_the_largest_p_value_is_their_share() -> None:
    """Nine of ten agree with nothing and stand at 1, decoys and mismatches alike."""
    decoys = np.concatenate([np.ones(900), np.linspace(0.001, 0.1, 100)])
    p = np.concatenate([np.ones(180), np.linspace(0.001, 0.1, 20), np.full(300, 0.001)])
    assert abs(mismatch_rate(p, decoys) - 0.4) < 1e-9
    assert mismatch_rate(p, UNIFORM) > 0.7


def test_the_null_of_mismatches_like_decoys_is_hardly_shifted() -> None:
    rng = np.random.default_rng(0)
    shifts = [empirical_null(np.concatenate([rng.random(300), rng.uniform(0, 0.01, 300)]), 1000) for _ in range(40)]
    assert min(shifts) >= 0.0
    assert np.mean(shifts) < 0.1


def test_the_null_of_mismatches_that_look_better_is_found_from_the_worse_half() -> None:
    """p-values of normal scores shifted by 0.8: with the law found, a share of q is at most q again."""
    rng = np.random.default_rng(1)
    wrong = ndtr(rng.normal(-0.8, 1.0, 4000))
    shift = empirical_null(np.concatenate([wrong, np.full(2000, 1e-4)]), 1_000_000)
    assert abs(shift - 0.8) < 0.15
    adjusted = adjust(wrong, shift)
    for level in (0.01, 0.05, 0.1):
        assert level / 1.5 < (adjusted <= level).mean() < level * 1.5
        assert (wrong <= level).mean() > 1.9 * level


@given(st.lists(st.floats(0.051, 1.0), max_size=60))
def test_inliers_do_not_tell_the_law_of_mismatches(wrong: list[float]) -> None:
    """However many they are: only p-values that are hardly ever inliers' do."""
    alone = empirical_null(np.array(wrong), 10**9)
    assert empirical_null(np.array([*wrong, *[0.001] * 500]), 10**9) == pytest.approx(alone, abs=1e-6)


def test_few_matches_or_decoys_leave_the_null_nearly_alone() -> None:
    assert 0 <= empirical_null(np.array([0.03, 0.3, 0.4]), 1000) < 0.2
    assert 0 <= empirical_null(np.full(1000, 0.3), 3) < 0.2
    for n_decoys in (0, 1000):
        assert empirical_null(np.zeros(0), n_decoys) == pytest.approx(0.0, abs=1e-9)


def test_the_null_is_told_no_better_than_the_decoys_tell_it() -> None:
    """Ten thousand mismatches just like decoys, and a thousand decoys that happen to look a little better or worse than usual."""
    rng = np.random.default_rng(0)
    shifts = []
    for _ in range(40):
        decoys = np.sort(rng.random(1000))
        shifts.append(empirical_null((1.0 + np.searchsorted(decoys, rng.random(10_000))) / 1001.0, 1000))
    assert np.mean(shifts) < 0.05


@pytest.mark.parametrize("shift", [0.0, 1.2])
def test_adjusted_p_values_keep_their_order_are_no_smaller_and_in_0_1(shift: float) -> None:
    p = np.array([1e-300, 1e-12, 0.001, 0.5, 1.0])
    adjusted = adjust(p, shift)
    assert (np.diff(adjusted) >= 0).all()
    assert (adjusted >= p).all()
    assert (adjusted > 0).all()
    assert (adjusted <= 1).all()


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.7, 1.0]), st.booleans()), max_size=12))
def test_better_rejected_counts_the_rejected_that_look_better(rows: list) -> None:
    scores, rejected = (np.array([row[part] for row in rows], [float, bool][part]) for part in range(2))
    better = np.array([sum(row[1] and row[0] < score for row in rows) for score in scores])
    np.testing.assert_array_equal(better_rejected(scores, rejected), better / max(1, rejected.sum()))
