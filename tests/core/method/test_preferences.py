"""Preferences of several noise scales, duplicate groups and rows for the forest, against dense NumPy."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage_cases import Tabled, given_residuals, in_pixels

from ruzhash_cv.core.families.base import GIVEN, OF_MOTION, OF_PLANE, OF_RAYS, Families, Models
from ruzhash_cv.core.kernels.residuals import squared_residuals
from ruzhash_cv.core.method.parameters import PARAMETERS
from ruzhash_cv.core.method.preferences import as_rows, best_models, embed, expected_preference
from ruzhash_cv.core.method.sampling import Problem
from ruzhash_cv.core.method.scores import weights_of_structures

LIMIT = PARAMETERS.preference_limit
seeds = st.integers(0, 2**32)


def preferences_of(squared: np.ndarray, groups: np.ndarray, sample_groups: np.ndarray, unit: float = 1.0) -> np.ndarray:
    return embed(given_residuals(squared), unit, PARAMETERS, groups, sample_groups, np.zeros(len(groups)))[0]


@settings(max_examples=60, deadline=None)
@given(seed=seeds, m=st.integers(0, 6), n=st.integers(0, 30), unit=st.floats(1e-3, 1e3))
def test_embedding_equals_its_twin(seed: int, m: int, n: int, unit: float) -> None:
    rng = np.random.default_rng(seed)
    residuals = unit * LIMIT * rng.uniform(0.0, 1.3, (m, n)) ** 2
    residuals[rng.random(residuals.shape) < 0.1] = np.inf
    residuals[rng.random(residuals.shape) < 0.1] = np.nan
    groups, sample_groups, weights = rng.integers(0, 12, n), rng.integers(-1, 12, (m, 4)), rng.random(n)
    preferences, sums = embed(given_residuals(residuals**2), unit, PARAMETERS, groups, sample_groups, weights)
    expected = naive.embed(residuals, list(unit * PARAMETERS.scales), unit * LIMIT, groups, sample_groups)
    # Single precision, of which the powers of the kernel lose three digits.
    np.testing.assert_allclose(preferences, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(sums, preferences @ weights)


@pytest.mark.parametrize("kind", [GIVEN, OF_PLANE, OF_MOTION, OF_PLANE + OF_RAYS, OF_MOTION + OF_RAYS])
def test_preferences_have_three_digits(kind: int) -> None:
    rng = np.random.default_rng(kind + 9)
    models = rng.normal(size=(20, 9))
    if kind in (OF_PLANE, OF_PLANE + OF_RAYS):
        models = np.eye(3).ravel() + 0.01 * models
    points, unit = np.ones((6, 300)), 0.01
    points[:2] = rng.uniform(-0.5, 0.5, (2, 300))
    points[3:5] = points[:2] + rng.normal(0.0, 0.03, (2, 300))
    points = points if kind >= OF_RAYS else points[[0, 1, 3, 4]]
    if kind == GIVEN:
        points = (0.1 * rng.random((20, 300))) ** 2
    residuals = np.full(20, kind), np.ascontiguousarray(points), models / np.linalg.norm(models, axis=1)[:, None]
    given = unit, PARAMETERS, np.arange(300), rng.integers(300, size=(20, 4)), rng.random(300)
    preferences, sums = embed(residuals, *given)
    squared = np.empty((20, 300))
    squared_residuals(*residuals, squared)
    expected = naive.embed(np.sqrt(squared), list(unit * PARAMETERS.scales), unit * LIMIT, *given[2:4])
    assert (expected > 0.0).any(axis=1).mean() > 0.5
    np.testing.assert_allclose(preferences, expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(sums, preferences @ given[-1])


@pytest.mark.parametrize("codimension", [1, 2])
def test_the_expected_preference_is_the_mean_of_what_is_spread_evenly(codimension: int) -> None:
    """On a strip of 2 LIMIT, or a disc of that diameter."""
    residuals = np.linalg.norm(np.random.default_rng(0).uniform(-LIMIT, LIMIT, (200_000, codimension)), axis=1)
    residuals = residuals[residuals <= LIMIT]
    preferences = preferences_of(residuals[None] ** 2, np.arange(len(residuals)), np.full((1, 1), -1))
    assert expected_preference(codimension, PARAMETERS) == pytest.approx(preferences.mean(), rel=0.02)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, m=st.integers(1, 20), n=st.integers(1, 12), saturation=st.floats(0.5, 8.0))
def test_a_row_passes_a_node_with_a_probability_by_its_agreement(seed: int, m: int, n: int, saturation: float) -> None:
    """1 - prod(1 - p) = 1 - exp(-s sum(w g) / Lambda), Lambda being the sum of the row that agrees most."""
    rng = np.random.default_rng(seed)
    preferences, weights = rng.random((m, n)).astype(np.float32), rng.uniform(0.0, 1.0, m)
    agreement = weights @ preferences
    rows, largest = as_rows(preferences, weights, saturation)
    assert (len(rows), largest) == (n, pytest.approx(agreement.max()))
    np.testing.assert_array_equal(as_rows(preferences, weights, saturation, largest)[0], rows)
    passing = 1.0 - np.prod(1.0 - rows.astype(np.float64), axis=1)
    np.testing.assert_allclose(passing, 1.0 - np.exp(-saturation * agreement / agreement.max()), rtol=1e-4)
    assert not rows[:, m:].any()
    # Others may agree far more than all that the largest sum is of.
    assert 0.0 <= as_rows(preferences, weights, saturation, 1e-20)[0].min(initial=0.0) <= 1.0


@settings(max_examples=60, deadline=None)
@given(seed=seeds, n=st.integers(1, 30), m=st.integers(0, 20), wanted=st.integers(1, 25))
def test_the_best_models_equal_their_twin(seed: int, n: int, m: int, wanted: int) -> None:
    """Greedily, by sums weighted by max(0, 1 - D / S); how much a decoy prefers a model does not matter."""
    rng = np.random.default_rng(seed)
    squared = (LIMIT * rng.uniform(0.0, 4.0, (m, n))) ** 2
    proposal, of_matches, samples = rng.choice([0.0, 1.0], n), rng.uniform(0.2, 1, n), np.full((m, 1), -1)
    decoys = (LIMIT * rng.uniform(0.0, 20.0, (m, n))) ** 2
    matches = replace(in_pixels(np.zeros((n, 4)), of_matches), unit=1.0)
    # As many decoys as matches: the table's columns are asked for by their number.
    tables = iter([squared, decoys])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tabled, "squared_residuals", lambda *_: next(tables))
        problem = Problem(matches, np.zeros((n, 4)), Families((Tabled(squared),), (True,)), PARAMETERS)
        models = Models.of_family(np.arange(9.0 * m).reshape(m, 9), 0)
        found = best_models(models, samples, proposal, wanted, problem)
    preferences = preferences_of(squared, np.arange(n), samples)
    shares, n_near = preferences @ of_matches / of_matches.sum(), (decoys <= LIMIT**2).sum(axis=1)
    chance = expected_preference(2, PARAMETERS) * (1.0 + n_near) / (n + 1.0)
    weights = np.array([1.0 - c / s if s > c else 0.0 for c, s in zip(chance, shares, strict=True)])
    expected = naive.greedy_cover(preferences.astype(np.float64), of_matches * proposal, weights, wanted)
    assert (found.matrices[:, 0] / 9.0).astype(int).tolist() == expected
    np.testing.assert_allclose(found.weights, weights[expected], rtol=1e-4, atol=1e-5)  # in single precision


def test_structures_columns_weigh_as_the_share_of_their_support_that_is_not_chance() -> None:
    """What a sample of a structure's family gives in any case is subtracted."""
    matches = replace(in_pixels(np.zeros((90, 4))), unit=1.0)
    squared = np.full((2, 190), np.inf)
    squared[0, :40], squared[1, :3], squared[0, 90:100] = 0.0, 0.0, 0.0
    problem = Problem(matches, np.zeros((100, 4)), Families((Tabled(squared),), (True,)), PARAMETERS)
    sums = preferences_of(squared, np.arange(190), np.full((2, 1), -1))[:, :90].sum(axis=1)
    weights = weights_of_structures(Models.of_family(np.zeros((2, 9)), 0), sums, problem)
    chance = expected_preference(2, PARAMETERS) * 11.0 / 101.0
    np.testing.assert_allclose(weights, [PARAMETERS.structure_weight * (1.0 - chance / (36.0 / 90.0)), 0.0])
