"""The paper's configuration and data; samples, preferences, distances and trees have their plain twins beside this file."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from paper.problems import make_shape, pose
from sklearn.metrics import roc_auc_score

from ruzhash_cv.datasets import AdelaideScene
from ruzhash_cv.paper import BINARY_METHODS, METHODS, RuzHashForest, VoronoiForest, paper_forest


def test_the_methods_are_the_paper_s() -> None:
    pif, hashed = paper_forest("PIF-R", branching_factor=4, rng=3), paper_forest("RHF-B")
    assert isinstance(pif, VoronoiForest)
    assert (pif.metric, pif.branching_factor, pif.n_trees, pif.subsample_size) == ("ruzicka", 4, 100, 256)
    assert isinstance(hashed, RuzHashForest)
    assert hashed.sink_credit
    assert (paper_forest("PIF").metric, paper_forest("PIF-B").metric) == ("tanimoto", "jaccard")


def test_preferences_are_of_ten_models_a_point_and_every_point_votes_for_its_own() -> None:
    problem = pose(make_shape("stair4", anomalies=0.3, rng=1))
    rows = problem.preferences(rng=2)
    assert rows.shape == (260, 2600)
    # No self-exclusion: the two points a line was drawn through agree with it entirely.
    assert ((rows.toarray() > 0.999).sum(axis=0) >= 2).all()
    np.testing.assert_array_equal(problem.preferences(binary=True, rng=2).toarray() > 0, rows.toarray() > 0)
    assert rows.data.min() >= math.exp(-(problem.k**2) / 2) - 1e-6


@pytest.mark.parametrize(("name", "k"), [("ladysymon", 5.0), ("cube", 0.25)])
def test_scenes_are_posed_in_normalised_coordinates(scene: Callable[[str], AdelaideScene], name: str, k: float) -> None:
    problem = pose(scene(name))
    assert problem.k == k
    assert np.abs(np.median(problem.data, axis=0)).max() < 1e-9
    assert np.abs(problem.data).mean() == pytest.approx(1.0, abs=0.5)
    assert 0 < problem.sigma < 0.05


def test_the_paper_s_planes_are_found(scene: Callable[[str], AdelaideScene]) -> None:
    problem = pose(scene("ladysymon"))
    for method in METHODS:
        rows = problem.preferences(binary=method in BINARY_METHODS)
        scores = paper_forest(method, branching_factor=4).fit(rows).anomaly_scores(rows)
        assert roc_auc_score(problem.labels < 0, scores) > 0.95


@pytest.mark.parametrize("name", ["stair4", "star5", "circle3"])
def test_shapes_have_the_noise_and_the_anomalies_asked_for(name: str) -> None:
    shape = make_shape(name, noise=0.0, anomalies=2.0)
    genuine, alone = shape.points[shape.labels >= 0], shape.points[shape.labels < 0]
    assert len(alone) == 2 * len(genuine)
    assert ((alone >= genuine.min(axis=0)) & (alone <= genuine.max(axis=0))).all()
    assert pose(shape).sigma < 1e-9
    # Each line is fitted to its points: two of 50 degrees of freedom are lost. A circle's residual is algebraic, r^2 - R^2.
    unit = 1.0 if shape.kind == "line" else 2.0
    assert pose(make_shape(name, noise=0.01)).sigma == pytest.approx(0.01 * unit, rel=0.15)
