"""PyOD's own base class, its utilities, and its signs."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyod")

from pyod.utils.data import evaluate_print

from ruzhash_cv.adapters.pyod import PreferenceIsolationForest
from ruzhash_cv.datasets import make_shape
from ruzhash_cv.families import Lines


def test_scores_labels_and_probabilities_have_pyod_s_signs(capsys: pytest.CaptureFixture[str]) -> None:
    shape = make_shape("stair4")
    truth = (shape.labels < 0).astype(int)
    detector = PreferenceIsolationForest(Lines(), contamination=0.45, random_state=0).fit(shape.points)
    assert detector.decision_scores_[truth == 1].mean() > detector.decision_scores_[truth == 0].mean()
    np.testing.assert_array_equal(detector.labels_, detector.decision_scores_ > detector.threshold_)
    assert detector.labels_.mean() == pytest.approx(0.45, abs=0.01)
    np.testing.assert_array_equal(detector.predict(shape.points), detector.labels_)
    probabilities = detector.predict_proba(shape.points)
    assert probabilities.shape == (len(truth), 2)
    assert probabilities[truth == 1, 1].mean() > probabilities[truth == 0, 1].mean()
    evaluate_print("forest", truth, detector.decision_scores_)
    assert "ROC:0.9" in capsys.readouterr().out


def test_parameters_are_pyod_s_to_read_and_set() -> None:
    detector = PreferenceIsolationForest(n_models=50, random_state=1)
    assert detector.get_params()["n_models"] == 50
    detector.set_params(n_estimators=7, contamination=0.2).fit(np.random.default_rng(0).normal(size=(50, 3)))
    assert detector.detector_.forest_.n_trees == 7
    assert 0 < detector.labels_.sum() <= 10  # fewer where scores are equal
