"""The benchmarks' figures of merit."""

import numpy as np
import pytest
from geometry import refit, sampson_distance, transfer_error
from measures import calibration_error, label_error, mask_quality, roc_auc
from sklearn.metrics import balanced_accuracy_score, f1_score, precision_score, recall_score, roc_auc_score


def test_auc_equals_sklearns_with_and_without_ties():
    rng = np.random.default_rng(0)
    mismatch = rng.random(200) < 0.3
    for scores in (rng.random(200), rng.integers(0, 4, 200).astype(float)):
        assert roc_auc(scores, mismatch) == pytest.approx(roc_auc_score(mismatch, scores))


def test_auc_of_one_class_is_undefined():
    assert np.isnan(roc_auc(np.arange(3.0), np.zeros(3, dtype=bool)))


def test_mask_quality_equals_sklearns():
    rng = np.random.default_rng(1)
    kept, true = rng.random(100) < 0.6, rng.random(100) < 0.5
    quality = mask_quality(kept, true)
    assert quality["precision"] == pytest.approx(precision_score(true, kept))
    assert quality["recall"] == pytest.approx(recall_score(true, kept))
    assert quality["f1"] == pytest.approx(f1_score(true, kept))
    assert quality["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(true, kept))


def test_keeping_nothing_has_f1_zero():
    assert mask_quality(np.zeros(4, dtype=bool), np.ones(4, dtype=bool))["f1"] == 0.0


@pytest.mark.parametrize(
    ("found", "truth", "error"),
    [
        ([1, 1, 0, 0, -1, -1], [1, 1, 2, 2, 0, 0], 0.0),  # names do not matter
        ([0, 0, 0, 0, -1, -1], [1, 1, 2, 2, 0, 0], 2 / 6),  # two structures merged
        ([0, 1, 2, 2, -1, -1], [1, 1, 2, 2, 0, 0], 1 / 6),  # one structure split
        ([-1, -1, -1, -1, -1, -1], [1, 1, 2, 2, 0, 0], 4 / 6),  # everything flagged
        ([0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1], 5 / 6),  # mismatches may not be renamed to a structure
    ],
)
def test_label_error_of_known_cases(found, truth, error):
    assert label_error(np.array(found), np.array(truth)) == pytest.approx(error)


def test_the_calibration_error_is_the_distance_of_shares_from_probabilities():
    """Of 100 matches of probability .75 all are true, of 300 of .25 a quarter: off by .25 and by 0."""
    probabilities, true = np.repeat([0.75, 0.25], [100, 300]), np.arange(400) < 175
    assert calibration_error(probabilities, true) == 0.25 * 100 / 400
    assert calibration_error(np.zeros(0), np.zeros(0, bool)) == 0.0


def test_residuals_vanish_on_exact_matches_and_grow_with_the_offset():
    rng = np.random.default_rng(4)
    points1 = rng.uniform(0, 500, (30, 2))
    np.testing.assert_allclose(transfer_error(np.eye(3), points1, points1 + np.array([3.0, 4.0])), 5.0)
    F = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # sideways: rows match
    np.testing.assert_allclose(sampson_distance(F, points1, points1 + np.array([7.0, 0.0])), 0.0, atol=1e-9)
    np.testing.assert_allclose(sampson_distance(F, points1, points1 + np.array([7.0, 2.0])), np.sqrt(2.0))


def test_refit_needs_enough_matches():
    assert refit("fundamental", np.zeros((7, 2)), np.zeros((7, 2))) is None
