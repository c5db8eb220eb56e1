"""p-values and the rate of mismatches from decoys' scores."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ruzhash_cv import p_values
from ruzhash_cv.calibration import mismatch_rate

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


def test_mismatch_rate_of_a_mixture_is_its_share() -> None:
    rng = np.random.default_rng(0)
    for share in (0.0, 0.3, 0.8, 1.0):
        n_wrong = int(4000 * share)
        p = np.concatenate([rng.random(n_wrong), rng.uniform(0, 0.02, 4000 - n_wrong)])
        # Twice a binomial share.
        assert abs(mismatch_rate(p) - share) < 4 * 2 * np.sqrt(0.25 / 4000)
    assert mismatch_rate(np.zeros(0)) == 0
    assert mismatch_rate(np.ones(5)) == 1
