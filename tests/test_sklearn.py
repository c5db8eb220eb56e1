"""The outlier detector of scikit-learn: its own checks, its tools, and what the detector finds."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from paper.problems import make_shape
from sklearn.base import clone, is_outlier_detector
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from ruzhash_cv.models import Circles, Lines
from ruzhash_cv.paper import RuzHashForest, embed_preferences
from ruzhash_cv.sklearn import PreferenceIsolationForest

Array = np.ndarray


@pytest.mark.parametrize(
    ("detector", "check"),
    [
        pytest.param(detector, check, id=check.func.__name__)
        for detector, check in estimator_checks_generator(PreferenceIsolationForest(n_estimators=10), legacy=True)
    ],
)
def test_scikit_learn_s_own_checks_pass(detector: Any, check: Any) -> None:
    check(detector)


def shape(name: str = "stair4", seed: int = 0) -> tuple[Array, Array]:
    """Return points of a shape, and -1 for its anomalies, 1 for others."""
    drawn = make_shape(name, rng=seed)
    return drawn.points, np.where(drawn.labels < 0, -1, 1)


@pytest.mark.parametrize(("name", "family", "least"), [("stair4", Lines(), 0.93), ("circle3", Circles(), 0.8)])
def test_outliers_of_structures_are_separated_better_than_by_density(name: str, family: Any, least: float) -> None:
    points, truth = shape(name)
    detectors = PreferenceIsolationForest(family, random_state=0), IsolationForest(random_state=0)
    auc, by_density = (roc_auc_score(truth == 1, each.fit(points).score_samples(points)) for each in detectors)
    assert auc > max(least, by_density + 0.02)


def test_scores_have_scikit_learn_s_sign_and_are_cut_at_the_offset() -> None:
    points, truth = shape()
    detector = PreferenceIsolationForest(Lines(), contamination=0.3, random_state=0)
    labels = detector.fit_predict(points)
    scores = detector.score_samples(points)
    assert scores[truth == -1].mean() < scores[truth == 1].mean()
    assert ((scores >= -1.0) & (scores < 0.0)).all()
    np.testing.assert_array_equal(labels, np.where(scores < detector.offset_, -1, 1))
    assert abs((labels == -1).mean() - 0.3) < 0.01
    assert is_outlier_detector(detector)


def test_contamination_that_is_not_given_is_about_that_of_the_points() -> None:
    for seed in range(3):
        points, truth = shape(seed=seed)
        labels = PreferenceIsolationForest(Lines(), random_state=seed).fit_predict(points)
        assert abs((labels == -1).mean() - 0.5) < 0.12
        assert (labels == truth).mean() > 0.9


def test_a_clone_and_a_pickle_score_the_same() -> None:
    points, _ = shape()
    detector = PreferenceIsolationForest(Circles(), n_models=300, random_state=3)
    again = clone(detector)
    assert again.get_params() == detector.get_params()
    scores = detector.fit(points).score_samples(points)
    np.testing.assert_array_equal(again.fit(points).score_samples(points), scores)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(detector)).score_samples(points), scores)


def test_only_what_new_rows_need_is_kept_of_the_trees() -> None:
    trees = PreferenceIsolationForest(Circles(), n_models=300, random_state=3).fit(shape()[0]).forest_._trees
    assert (trees.keys.shape[1], trees.lengths.shape[2], trees.trained.size) == (trees.children.max() + 17, 1, 0)


def test_a_forest_of_preferences_scores_as_the_detector_does() -> None:
    points, _ = shape()
    detector = PreferenceIsolationForest(Lines(), noise_scale=0.02, n_models=200, random_state=0).fit(points)
    residuals = np.sqrt(Lines().squared_residuals(points, detector.models_)).T
    preferences = embed_preferences(residuals, sigma=0.02)
    scores = RuzHashForest(rng=detector.forest_.rng).fit(preferences).anomaly_scores(preferences)
    np.testing.assert_allclose(-scores, detector.score_samples(points), rtol=1e-6)


def test_a_pipeline_and_a_grid_search_choose_its_options() -> None:
    points, truth = shape()
    pipeline = make_pipeline(MinMaxScaler(), PreferenceIsolationForest(random_state=0, n_models=200))
    name = "preferenceisolationforest__"
    grid = {f"{name}family": ["points", Lines()], f"{name}noise_scale": [None, 0.02]}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(pipeline, grid, scoring="roc_auc", cv=folds).fit(points, truth)
    assert search.best_params_["preferenceisolationforest__family"] == Lines()
    assert search.best_score_ > 0.9
    assert set(search.predict(points)) == {-1, 1}


def test_the_5_percent_nearest_are_within_the_noise_scale_and_data_frames_name_columns() -> None:
    table = pd.DataFrame(shape()[0], columns=["x", "y"])
    detector = PreferenceIsolationForest(Lines(), random_state=0).fit(table)
    residuals = np.sqrt(Lines().squared_residuals(table.to_numpy(), detector.models_))
    assert (residuals[residuals > 0] <= detector.noise_scale_).mean() == pytest.approx(0.05, abs=1e-3)
    assert (detector.n_features_in_, detector.feature_names_in_.tolist()) == (2, ["x", "y"])


def test_new_rows_are_scored_one_by_one_as_together() -> None:
    points, _ = shape()
    far = np.array([[9.0, 9.0], [-9.0, 3.0], [0.5, 0.6]])
    detector = PreferenceIsolationForest(Circles(), n_models=100, random_state=0).fit(points)
    together = detector.score_samples(far)
    np.testing.assert_allclose([detector.score_samples(row[None])[0] for row in far], together)
    assert together[0] == together[1] == detector.score_samples(np.vstack([points, far])).min()


def test_max_samples_auto_is_256_as_in_scikit_learn() -> None:
    points = np.random.default_rng(0).normal(size=(400, 2))
    detectors = [PreferenceIsolationForest(max_samples=psi, n_models=50, random_state=0) for psi in ("auto", 256, 300)]
    scores = [detector.fit(points).score_samples(points) for detector in detectors]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert (scores[0] != scores[2]).any()


@pytest.mark.parametrize("family", [Lines(), Circles()])
def test_new_rows_whose_squares_overflow_are_outliers(family: Any) -> None:
    detector = PreferenceIsolationForest(family, n_models=100, random_state=0).fit(shape()[0])
    assert detector.predict(np.array([[1e155, 0.0], [1e300, 1e300]])).tolist() == [-1, -1]
