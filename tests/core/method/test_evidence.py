"""-ln NFA against its formula, and false alarms among mismatches; `test_search` has scenes."""

import math
from dataclasses import replace
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from stage_cases import Tabled, in_pixels, mismatches

from ruzhash_cv.core.families.base import Families, Models
from ruzhash_cv.core.method import evidence as stage
from ruzhash_cv.core.method.parameters import PARAMETERS
from ruzhash_cv.core.method.sampling import Problem
from ruzhash_cv.models import FundamentalMatrices, Homographies, TwoViewFamily

Array = np.ndarray
N_RADII, N_INDICES = PARAMETERS.n_radii, PARAMETERS.n_radius_indices
BOTH = Homographies(), FundamentalMatrices()
FAMILIES = Families(BOTH, (True, True))
#: The unit of the method in the pixels of these tests.
UNIT = 3.0
each_family = pytest.mark.parametrize("family", BOTH, ids=lambda family: family.name)


def evidence_by(counts: Array, total: float, background: Array, family: Any = BOTH[0], n_tried: int = 100) -> Array:
    no_indices = np.zeros((1, 0), np.uint8)
    one = stage.Candidates(np.zeros((1, 9)), np.array([BOTH.index(family)], np.uint8), no_indices, background[None])
    return stage.evidence(one, counts[None], total, stage.rules_of((4, 7), (2, 1), PARAMETERS), n_tried)[0]


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
    np.testing.assert_allclose(evidence_by(counts, total, background, family, n_tried), expected, atol=1e-9)


def counts_within(agreeing: float, total: float = 100.0) -> np.ndarray:
    """Weights of which `agreeing` lie within the smallest radius and none in the annuli."""
    counts = np.zeros(N_INDICES)
    counts[0], counts[-1] = agreeing, total - agreeing
    return counts


@each_family
@pytest.mark.parametrize("chance", [0.01, 0.1])
def test_evidence_never_exceeds_minus_the_logarithm_of_the_false_alarms(family: TwoViewFamily, chance: float) -> None:
    n = 100 - family.sample_size
    for agreeing in range(family.sample_size + 1, 101):
        bound = -stats.binom.logsf(agreeing - family.sample_size - 1, n, chance) - math.log(100.0 * 500)
        gain = evidence_by(counts_within(agreeing), 100.0, np.full(N_RADII, chance), family, 500)[0]
        assert gain <= bound + 1e-6 * abs(bound)


@each_family
def test_minimal_sample_has_no_evidence_and_all_matches_have_finite_evidence(family: TwoViewFamily) -> None:
    flat = np.full(N_RADII, 1e-3)
    assert evidence_by(counts_within(family.sample_size), 100.0, flat, family).max() < 0
    assert 0 < evidence_by(counts_within(100.0), 100.0, flat, family)[0] < np.inf


def test_matches_as_dense_in_the_annulus_are_not_evidence() -> None:
    """Weights in proportion to the area, as of mismatches that crowd around true positions."""
    areas = np.diff(np.append(0.0, np.sqrt(2.0) ** (2.0 * np.arange(N_INDICES - 1))))
    counts = np.append(areas / areas.sum() * 300.0, 100.0)
    assert evidence_by(counts, 400.0, np.full(N_RADII, 1e-6)).max() < 0
    counts[N_RADII - 1 : -1] = 0.0
    assert evidence_by(counts, 400.0, np.full(N_RADII, 1e-6))[N_RADII - 2] > 0


# Radii and counts


def candidates_of(squared: np.ndarray, n_decoys: int, unit: float = UNIT) -> stage.Candidates:
    """Candidates with squared residuals (m, n + n_decoys) of matches and decoys."""
    m, n = len(squared), squared.shape[1] - n_decoys
    families, data = Families((Tabled(squared),), (True,)), np.zeros((n, 4))
    problem = Problem(replace(in_pixels(data), unit=unit), np.zeros((n_decoys, 4)), families, PARAMETERS)
    return stage.candidates(Models.of_family(np.zeros((m, 9)), 0), data, problem)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), unit=st.floats(1e-3, 1e3))
def test_candidates_equal_their_twin(seed: int, unit: float) -> None:
    """Radius indices up to the radii of the annuli around the largest, and shares of decoys."""
    radii = unit * PARAMETERS.radii[0] * np.sqrt(2.0) ** np.arange(N_INDICES - 1)
    residuals = unit * np.random.default_rng(seed).lognormal(0.0, 2.0, (3, 140))
    found = candidates_of(residuals**2, 100, unit)
    np.testing.assert_array_equal(found.radius_indices, naive.radius_indices(residuals[:, :40], radii))
    within = (residuals[:, 40:, None] <= radii[:N_RADII]).sum(axis=1)
    law = (1.0 + within[:, -1:]) * (PARAMETERS.radii / PARAMETERS.radii[-1]) ** 2
    sure = within - PARAMETERS.background_errors * np.sqrt(within)
    np.testing.assert_allclose(found.background, np.maximum(law, sure) / 101.0)


def test_residual_equal_to_a_radius_is_within_it_and_nan_is_beyond_all() -> None:
    exact = candidates_of((PARAMETERS.radii[None] * UNIT) ** 2, 0).radius_indices
    assert exact[0].tolist() == list(range(N_RADII))
    found = candidates_of(np.array([[0.0, np.nan, np.inf, 1e300]]), 0).radius_indices
    assert found.tolist() == [[0, *[N_INDICES - 1] * 3]]


def test_weights_are_counted_model_by_model_between_one_radius_and_the_next() -> None:
    rng = np.random.default_rng(0)
    indices, weights = rng.integers(0, N_INDICES, (5, 40)).astype(np.uint8), rng.random(40) * (rng.random(40) < 0.8)
    expected = np.array([np.bincount(row, weights, N_INDICES) for row in indices])
    expected[:, -1] = 0.0  # what lies beyond all annuli is not counted
    alone = np.tile(np.arange(40), (2, 1))
    np.testing.assert_allclose(stage.count_weights(indices, weights, alone, N_INDICES), expected)
    assert stage.count_weights(indices[:0], weights, alone, N_INDICES).shape == (0, N_INDICES)


@pytest.mark.parametrize("seed", range(5))
def test_a_model_counts_matches_of_a_keypoint_as_one_the_nearest_first(seed: int) -> None:
    rng = np.random.default_rng(seed)
    indices, keypoints = rng.integers(0, N_INDICES - 1, (1, 60)).astype(np.uint8), rng.integers(0, 15, (2, 60))
    weights, used, expected = rng.choice([0.0, 0.5, 1.0], 60), np.zeros((2, 15)), np.zeros((1, N_INDICES))
    for match in np.argsort(indices[0], kind="stable"):
        ends = [0, 1], keypoints[:, match]
        counted = min(weights[match], 1.0 - used[ends].max())
        used[ends] += counted
        expected[0, indices[0, match]] += counted
    np.testing.assert_allclose(stage.count_weights(indices, weights, keypoints, N_INDICES), expected)


# Candidates


def among(data: np.ndarray, seed: int = 9) -> Problem:
    """Matches and their decoys, which are the matches, shuffled."""
    i, j = np.random.default_rng(seed).integers(0, len(data), (2, 400))
    return Problem(in_pixels(data), np.hstack([data[i, :2], data[j, 2:]]), FAMILIES, PARAMETERS)


def test_false_alarms_are_rarer_than_one_a_search() -> None:
    """Of 200 models tried in mismatches alone less than one is expected to be stage.meaningful."""
    alarms = []
    for seed in range(30):
        translations = np.random.default_rng(seed).uniform(-300, 300, (200, 2))
        matrices = np.array([[1, 0, dx, 0, 1, dy, 0, 0, 1] for dx, dy in translations])
        models = Models.of_family(matrices / np.linalg.norm(matrices, axis=1, keepdims=True), 0)
        problem = among(mismatches(150, 100 + seed), seed)
        alarms.append(len(stage.meaningful(stage.candidates(models, problem.matches.data, problem), problem, 200)))
    assert np.mean(alarms) < 1.0


def joint_evidence(chosen: Array, models: stage.Candidates, weights: Array, total: float, n_tried: int) -> float:
    """Return -ln NFA of structures (candidate, radius) together, by NumPy: the twin of a kernel's part."""
    remaining, counts, shares = weights.copy(), [np.zeros(0)], [np.zeros(0)]
    for item, radius in chosen:
        indices = models.radius_indices[item]
        within = np.bincount(indices, remaining, N_INDICES)[: radius + 1]
        size = FAMILIES.sample_sizes[models.family_ids[item]]
        counts.append(within * max(1.0 - size / max(within.sum(), 1e-9), 0.0))
        shares.append(np.diff(models.background[item, : radius + 1], prepend=0.0))
        remaining[indices <= radius + PARAMETERS.tolerance_steps] = 0.0
    n, alpha = np.concatenate(counts), np.maximum(np.concatenate(shares), 1e-9)
    n, alpha = np.append(n, max(total - n.sum(), 0.0)), np.append(alpha, max(1.0 - alpha.sum(), 1e-9))
    return float(n @ np.log(np.maximum(n, 1e-300) / total / alpha)) - len(chosen) * math.log(total * n_tried)


def test_joint_evidence_of_matches_in_one_ring_is_the_evidence_of_their_structure() -> None:
    indices = np.repeat(np.uint8([0, 99]), [44, 36])
    models = stage.Candidates(np.zeros((1, 9)), np.zeros(1, np.uint8), indices[None], np.full((1, N_RADII), 0.01))
    # A sample is left out of the matches of the structure.
    divergence = 0.5 * math.log(0.5 / 0.01) + 0.5 * math.log(0.5 / 0.99)
    joint = joint_evidence([(0, 3)], models, np.ones(80), 80.0, 100)
    assert joint == pytest.approx(80 * divergence - math.log(80 * 100))


def greedy(
    models: stage.Candidates, weights: Array, total: float, n_radii: int, problem: Problem
) -> tuple[list[Any], Array]:
    """Return structures of most evidence, each among the matches that none before has explained, and what is left of the weights."""
    structures, left = [], weights.copy()
    while n_radii > 0:
        gains = stage.evidence_of(models, left, problem, 200, total)[:, :n_radii]
        best, step = np.unravel_index(gains.argmax(), gains.shape)
        if gains[best, step] <= 0.0:
            break
        taken = models.radius_indices[best] <= step + PARAMETERS.tolerance_steps
        structures.append((gains[best, step], int(best), int(step), left[taken].sum()))
        left[taken] = 0.0
    return structures, left


def chosen(
    models: stage.Candidates, weights: Array, total: float, n_radii: int, problem: Problem
) -> tuple[list[Any], Array]:
    """Return evidence, candidate, radius and support of structures, and the weights that none explains: the twin of a kernel."""
    (wide, left), parts, remaining = greedy(models, weights, total, n_radii, problem), [], weights.copy()
    for structure in wide:
        _, item, radius, _ = structure
        held = models.radius_indices[item] <= radius + PARAMETERS.tolerance_steps
        own, remaining = np.where(held, remaining, 0.0), np.where(held, 0.0, remaining)
        given_way = [structure]
        if PARAMETERS.radii[radius] > 1.0 + 1e-9:
            narrow, rest = chosen(models, own, total, radius - 2, problem)
            before, after = (
                joint_evidence([of[1:3] for of in each], models, own, total, 200) for each in ([structure], narrow)
            )
            if after > before:
                given_way, left = narrow, left + rest
        parts += given_way
    return parts, left


def test_structures_are_chosen_as_their_twin_chooses_them() -> None:
    """Three narrow surfaces within a wide one, which sometimes gives way to them, and two beside it."""
    n_given_way, n_wide = 0, 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        surface, factor = rng.integers(0, 5, 120), 10.0 ** rng.uniform(-2.0, 0.0)
        narrow = np.where(np.arange(10)[:, None] % 5 == surface, rng.integers(0, 4, (10, 120)), N_INDICES - 1)
        wide = np.where(surface < 3, rng.integers(5, 10, (2, 120)), N_INDICES - 1)
        problem, weights = among(mismatches(120)), (rng.random(120) < 0.9) * 1.0
        shares = rng.uniform(0.05, 0.5, 12) * np.repeat([1.0, factor], [10, 2])
        models = stage.Candidates(
            np.zeros((12, 9)),
            rng.integers(0, 2, 12).astype(np.uint8),
            np.vstack([narrow, wide]).astype(np.uint8),
            np.outer(shares, (PARAMETERS.radii / PARAMETERS.radii[-1]) ** 2),
        )
        structures, left = stage.extract(models, weights, problem, 200)
        expected, unexplained = chosen(models, weights, weights.sum(), N_RADII, problem)
        radii = structures.tolerances / (PARAMETERS.tolerance_ratio * problem.matches.unit)
        found = zip(structures.evidences, radii, structures.support, strict=True)
        given = [
            (gain, PARAMETERS.radii[radius], support) for gain, _, radius, support in sorted(expected, reverse=True)
        ]
        np.testing.assert_allclose(list(found), given)
        np.testing.assert_array_equal(left, unexplained)
        n_wide += max(item for _, item, *_ in expected) > 9
        n_given_way += expected != greedy(models, weights, weights.sum(), N_RADII, problem)[0]
    assert n_wide > 5 < n_given_way
