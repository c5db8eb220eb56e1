"""-ln NFA against its formula, false alarms among mismatches, and the structures of matches whose answer is known."""

from __future__ import annotations

import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ruzhash_cv import selection
from ruzhash_cv.families import FundamentalMatrices, Homographies, TwoViewFamily
from ruzhash_cv.models.base import Families, Models
from ruzhash_cv.parameters import Parameters
from ruzhash_cv.selection import (
    Hypotheses,
    Radii,
    Structures,
    count_weights,
    evidence,
    extract,
    meaningful,
)

PARAMETERS = Parameters()
N_RADII, N_INDICES = PARAMETERS.n_radii, PARAMETERS.n_radius_indices
PLANES, MOTIONS = BOTH = Homographies(), FundamentalMatrices()
#: The unit of the method in the pixels of these tests.
UNIT = 3.0
RADII = Radii.of(UNIT, Families(BOTH, (True, True)), PARAMETERS)
each_family = pytest.mark.parametrize("family", BOTH, ids=lambda family: family.name)


def evidence_of(
    counts: np.ndarray, total: float, background: np.ndarray, family: TwoViewFamily = PLANES, n_tried: int = 100
) -> np.ndarray:
    ids = np.array([BOTH.index(family)], np.uint8)
    one = Hypotheses(np.zeros((1, 9)), ids, np.zeros((1, 0), np.uint8), background[None])
    return evidence(one, counts[None], total, RADII.rules, n_tried)[0]


# Evidence


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(BOTH), st.integers(1, 10_000))
def test_evidence_equals_its_twin(seed: int, family: TwoViewFamily, n_tried: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 20, N_INDICES) * (rng.random(N_INDICES) < 0.6) * 1.0
    total = counts.sum() + 20.0
    background = rng.uniform(1e-4, 0.5) * (PARAMETERS.radii / PARAMETERS.radii[-1]) ** family.codimension
    widest = PARAMETERS.plane_widest_radius if family.is_plane else PARAMETERS.motion_widest_radius
    annulus = PARAMETERS.annulus_steps, PARAMETERS.min_annulus_weight, PARAMETERS.density_ratio
    rules = family.sample_size, family.codimension, *annulus, widest - PARAMETERS.finest_radius
    expected = naive.evidence(counts, total, background, rules, n_tried)
    np.testing.assert_allclose(evidence_of(counts, total, background, family, n_tried), expected, atol=1e-9)


@each_family
def test_no_radius_above_a_threshold_has_evidence(family: TwoViewFamily) -> None:
    found = Hypotheses(
        np.zeros((1, 9)),
        np.array([BOTH.index(family)], np.uint8),
        np.zeros((1, 0), np.uint8),
        np.full((1, N_RADII), 1e-3),
    )
    counts = np.append(np.full(N_INDICES - 1, 5.0), 0.0)[None]
    for threshold in (0.1, 1.5, 3.0, 4.0, 100.0):
        radii = Radii.of(UNIT, RADII.families, PARAMETERS, threshold)
        within = PARAMETERS.radii * UNIT <= threshold * (1.0 + 1e-9)
        within[0] = True
        expected = evidence(found, counts, 200.0, RADII.rules, 100)[0]
        np.testing.assert_array_equal(
            evidence(found, counts, 200.0, radii.rules, 100)[0], np.where(within, expected, -np.inf)
        )


def counts_within(agreeing: float, total: float = 100.0) -> np.ndarray:
    """Weights of which `agreeing` lie within the smallest radius and none in the annuli."""
    counts = np.zeros(N_INDICES)
    counts[0], counts[-1] = agreeing, total - agreeing
    return counts


@each_family
@pytest.mark.parametrize("chance", [0.01, 0.1])
def test_evidence_never_exceeds_minus_the_logarithm_of_the_exact_number_of_false_alarms(
    family: TwoViewFamily, chance: float
) -> None:
    n = 100 - family.sample_size
    for agreeing in range(family.sample_size + 1, 101):
        bound = -stats.binom.logsf(agreeing - family.sample_size - 1, n, chance) - math.log(100.0 * 500)
        gain = evidence_of(counts_within(agreeing), 100.0, np.full(N_RADII, chance), family, 500)[0]
        assert gain <= bound + 1e-6 * abs(bound)


@each_family
def test_a_minimal_sample_is_no_evidence_and_everything_is_finite_evidence(family: TwoViewFamily) -> None:
    flat = np.full(N_RADII, 1e-3)
    assert evidence_of(counts_within(family.sample_size), 100.0, flat, family).max() < 0
    assert 0 < evidence_of(counts_within(100.0), 100.0, flat, family)[0] < np.inf


def test_what_is_as_dense_around_is_no_evidence() -> None:
    """Weights in proportion to the area, as of mismatches that crowd around true positions."""
    areas = np.diff(np.append(0.0, np.sqrt(2.0) ** (2.0 * np.arange(N_INDICES - 1))))
    counts = np.append(areas / areas.sum() * 300.0, 100.0)
    assert evidence_of(counts, 400.0, np.full(N_RADII, 1e-6)).max() < 0
    counts[N_RADII - 1 : -1] = 0.0
    assert evidence_of(counts, 400.0, np.full(N_RADII, 1e-6))[N_RADII - 2] > 0


# Radii and counts


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), unit=st.floats(1e-3, 1e3))
def test_radius_indices_equal_their_twin(seed: int, unit: float) -> None:
    """Up to the radii of the annuli around the largest."""
    radii = PARAMETERS.radii[0] * np.sqrt(2.0) ** np.arange(N_INDICES - 1)
    residuals = unit * np.random.default_rng(seed).lognormal(0.0, 2.0, (3, 40))
    found = Radii.of(unit, RADII.families, PARAMETERS).radius_indices(residuals**2)
    np.testing.assert_array_equal(found, naive.radius_indices(residuals, unit * radii))


def test_what_is_exactly_a_radius_away_lies_within_it_and_what_is_no_number_beyond_all() -> None:
    exact = RADII.radius_indices((PARAMETERS.radii[None] * UNIT) ** 2)
    assert exact[0].tolist() == list(range(N_RADII))
    last = N_INDICES - 1
    assert RADII.radius_indices(np.array([[0.0, np.nan, np.inf, 1e300]])).tolist() == [[0, last, last, last]]


def test_weights_are_counted_model_by_model_between_one_radius_and_the_next() -> None:
    rng = np.random.default_rng(0)
    indices, weights = rng.integers(0, N_INDICES, (5, 40)).astype(np.uint8), rng.random(40) * (rng.random(40) < 0.8)
    expected = np.array([np.bincount(row, weights, N_INDICES) for row in indices])
    expected[:, -1] = 0.0  # what lies beyond all annuli is not counted
    np.testing.assert_allclose(count_weights(indices, weights, N_INDICES), expected)
    assert count_weights(indices[:0], weights, N_INDICES).shape == (0, N_INDICES)


# Hypotheses


def shifts(*by: tuple[float, float]) -> np.ndarray:
    """Translations, as homographies (m, 9) of unit norm."""
    models = np.array([[1, 0, dx, 0, 1, dy, 0, 0, 1] for dx, dy in by], float).reshape(-1, 9)
    return models / np.linalg.norm(models, axis=1, keepdims=True)


def hypotheses_of(data: np.ndarray, models: np.ndarray, seed: int = 9) -> Hypotheses:
    """Homographies that may be structures; decoys are the correspondences, shuffled."""
    i, j = np.random.default_rng(seed).integers(0, len(data), (2, 400)) if len(data) else np.zeros((2, 0), int)
    planes = Models(models, np.zeros(len(models), np.uint8))
    return RADII.hypotheses(planes, data, np.hstack([data[i, :2], data[j, 2:]]))


def moved(n: int, shift: tuple[float, float], noise: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 600, (n, 2))
    return np.hstack([points, points + shift + noise * rng.normal(size=(n, 2))])


def strangers(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 600, (n, 4))


def extracted(
    hypotheses: Hypotheses, weights: np.ndarray | None = None, widest: int | None = None
) -> tuple[Structures, np.ndarray]:
    weights = np.ones(hypotheses.radius_indices.shape[1]) if weights is None else weights
    return extract(hypotheses, weights, RADII, selection.Tests(500, float(weights.sum())), widest)


def test_the_background_is_a_share_that_grows_by_the_law_of_the_family() -> None:
    found = hypotheses_of(strangers(200, 0), shifts((0, 0), (50, 0), (5000, 0)))
    assert ((found.background > 0) & (found.background <= 1)).all()
    np.testing.assert_allclose(found.background[:, 2:] / found.background[:, :-2], 2.0**PLANES.codimension)
    # No decoy is near the last one: it is little, and never nothing.
    assert found.background[2, -1] == found.background[:, -1].min()


def test_false_alarms_are_rarer_than_one_a_search() -> None:
    """Of 200 models tried in mismatches alone less than one is expected to be meaningful."""
    alarms = []
    for seed in range(30):
        by = np.random.default_rng(seed).uniform(-300, 300, (200, 2))
        hypotheses = hypotheses_of(strangers(150, 100 + seed), shifts(*map(tuple, by)), seed)
        alarms.append(len(meaningful(hypotheses, np.ones(150), RADII, 200)))
    assert np.mean(alarms) < 1.0


def test_meaningful_models_are_those_that_can_become_structures() -> None:
    data = np.vstack([moved(60, (50, 0), 0.5, 0), strangers(100, 1)])
    every = hypotheses_of(data, shifts((50, 0), (7, 7), (51, 0), (-90, 30)))
    kept = meaningful(every, np.ones(160), RADII, 500)
    np.testing.assert_array_equal(kept.models, every.models[[0, 2]])
    alone, among = (extracted(hypotheses)[0] for hypotheses in (kept, every))
    np.testing.assert_array_equal(alone.models, among.models)
    np.testing.assert_array_equal(alone.evidences, among.evidences)


# Structures


def test_two_translations_among_mismatches_are_two_structures_strongest_first() -> None:
    data = np.vstack([moved(40, (50, 0), 0.5, 0), moved(80, (0, 70), 0.5, 1), strangers(120, 2)])
    found, left = extracted(hypotheses_of(data, shifts((51, 1), (5, 5), (1, 69), (50, 1), (0, 70), (50, 0))))
    assert len(found) == 2
    assert found.evidences[0] > found.evidences[1] > 0
    np.testing.assert_allclose((found.models / found.models[:, 8:])[:, [2, 5]], [[0, 70], [50, 0]], atol=1.5)
    assert left[:120].mean() < 0.1
    assert left[120:].mean() > 0.9


def test_structures_are_sorted_by_evidence_though_one_hides_another_at_first() -> None:
    """The precise plane lies in the annulus of the noisy one, which has more matches and, once that is taken away, more evidence."""
    data = np.vstack([moved(45, (80, 0), 0.05, 0), moved(220, (50, 0), 8.0, 1), strangers(60, 2)])
    precise, noisy = shifts((80, 0), (50, 0))
    hidden = extracted(hypotheses_of(data, noisy[None]))[0].evidences.max(initial=0.0)
    found, _ = extracted(hypotheses_of(data, np.stack([precise, noisy])))
    assert hidden < found.evidences[1] < found.evidences[0]
    np.testing.assert_array_equal(found.models, [noisy, precise])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_what_a_structure_explains_is_taken_away_whole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    by, sizes = [tuple(shift) for shift in rng.uniform(-60, 60, (3, 2))], rng.integers(0, 60, 3)
    parts = [moved(int(n), shift, 1.0, seed + at) for at, (n, shift) in enumerate(zip(sizes, by, strict=True))]
    data = np.vstack([*parts, strangers(80, seed)])
    weights = rng.uniform(0.3, 1.0, len(data))
    found, left = extracted(hypotheses_of(data, shifts(*by)), weights)
    assert ((left == 0) | (left == weights)).all()
    within = np.sqrt(PLANES.squared_residuals(data, found.models)) <= found.tolerances[:, None] * (1 + 1e-9)
    np.testing.assert_array_equal(within.any(axis=0), left == 0)
    np.testing.assert_allclose(found.weights.sum(), weights.sum() - left.sum())
    assert len(np.unique(found.models, axis=0)) == len(found)
    assert (found.evidences > 0).all()
    assert (np.diff(found.evidences) <= 0).all()


def test_the_tolerance_grows_with_the_noise_up_to_the_widest_that_is_asked_for() -> None:
    tolerances = []
    for noise in (0.3, 1.0, 4.0):
        hypotheses = hypotheses_of(np.vstack([moved(150, (30, 30), noise, 0), strangers(100, 1)]), shifts((30, 30)))
        tolerances.append(extracted(hypotheses)[0].tolerances[0])
    assert tolerances[0] < tolerances[1] < tolerances[2]
    # A Rayleigh residual stays below 4 sigma but for one in 3000; the tolerance is a radius more, and radii go in steps of sqrt 2.
    assert tolerances[0] <= 4 * 0.3 * 2
    narrow, _ = extracted(hypotheses, widest=3)
    assert narrow.radius_indices.max(initial=0) <= 3


@pytest.mark.parametrize("n", [0, 1, 20, 200])
def test_unrelated_points_have_no_structure(n: int) -> None:
    for models in (shifts(), shifts((50, 0), (0, 50), (7, 7))):
        found, left = extracted(hypotheses_of(strangers(n, 2), models))
        assert (len(found), found.models.shape) == (0, (0, 9))
        np.testing.assert_array_equal(left, np.ones(n))


def crowding(n: int, shift: tuple[float, float], seed: int) -> np.ndarray:
    """Mismatches uniform on a disc of 60 pixels around their true places: twice as far as any radius reaches."""
    rng = np.random.default_rng(seed)
    length, angle = 60 * np.sqrt(rng.random(n)), 2 * np.pi * rng.random(n)
    offset = length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return moved(n, shift, 0.0, seed) + np.hstack([np.zeros((n, 2)), offset])


def test_a_crowd_alone_is_no_structure_and_a_precise_plane_in_it_is_one_no_wider_than_the_plane() -> None:
    crowd = crowding(400, (50, 0), 3)
    assert len(extracted(hypotheses_of(crowd, shifts((50, 0), (55, 0), (50, 12))))[0]) == 0
    found, left = extracted(hypotheses_of(np.vstack([crowd, moved(80, (50, 0), 0.3, 5)]), shifts((50, 0))))
    assert len(found) == 1
    assert found.tolerances[0] < 10 * 0.3
    assert left[400:].mean() < 0.1
    assert left[:400].mean() > 0.9
