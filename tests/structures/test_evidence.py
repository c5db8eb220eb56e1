"""Evidence against the formula, false alarms among mismatches, and the structures of scenes whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruzhash_cv.families.protocol import ModelFamily
from ruzhash_cv.structures import evidence as module
from ruzhash_cv.structures.evidence import (
    ANNULUS,
    DENSITY_RATIO,
    LEAST_VOTES,
    N_RADII,
    RADII,
    Candidates,
    Structures,
    count_votes,
    evidence,
    extract,
    meaningful,
    radius_steps,
)
from scipy import stats

from ruzhash_cv.families import FundamentalMatrices, Homographies

PLANES, MOTIONS = Homographies(), FundamentalMatrices()
BOTH: tuple[ModelFamily, ...] = (PLANES, MOTIONS)
N_STEPS = N_RADII + ANNULUS + 1
#: The length of the method in the pixels of these tests.
LENGTH = 3.0


def evidence_of(
    counts: np.ndarray, total: float, chance: np.ndarray, family: ModelFamily = PLANES, n_tried: int = 100
) -> np.ndarray:
    one = Candidates(np.zeros((1, 9)), np.zeros(1, np.uint8), np.zeros((1, 0), np.uint8), chance[None])
    return evidence(one, counts[None], total, [family], n_tried)[0]


def evidence_twin(counts: np.ndarray, total: float, chance: np.ndarray, family: ModelFamily, n_tried: int) -> list:
    """The module's formula, one radius after the other."""
    found = []
    for at in range(N_RADII):
        if at > module.WIDEST[family.codimension] - module.FINEST:
            found.append(-math.inf)
            continue
        within = counts[: at + 1].sum()
        around = counts[at + 1 : at + 1 + ANNULUS].sum()
        area = math.sqrt(2.0) ** (ANNULUS * family.codimension) - 1.0
        alpha = max(chance[at], DENSITY_RATIO * max(around, LEAST_VOTES) / area / total)
        alpha = min(alpha, 1.0 - 1e-9)
        n, c = total - family.sample_size, within - family.sample_size
        share, gain = min(c / n, 1.0 - 1e-9), 0.0
        if share > alpha:
            gain = n * (share * math.log(share / alpha) + (1.0 - share) * math.log((1.0 - share) / (1.0 - alpha)))
        found.append(gain - math.log(total * n_tried))
    return found


# Evidence


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(BOTH), st.integers(1, 10_000))
def test_evidence_equals_its_twin(seed: int, family: ModelFamily, n_tried: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 20, N_STEPS) * (rng.random(N_STEPS) < 0.6) * 1.0
    total = counts.sum() + 20.0
    chance = rng.uniform(1e-4, 0.5) * (RADII / RADII[-1]) ** family.codimension
    expected = evidence_twin(counts, total, chance, family, n_tried)
    np.testing.assert_allclose(evidence_of(counts, total, chance, family, n_tried), expected, atol=1e-9)


def counts_within(agreeing: float, total: float = 100.0) -> np.ndarray:
    """Votes of which `agreeing` lie within the smallest radius and none in the annuli."""
    counts = np.zeros(N_STEPS)
    counts[0], counts[-1] = agreeing, total - agreeing
    return counts


@settings(max_examples=40, deadline=None)
@given(agreeing=st.floats(30, 98), chance=st.floats(1e-3, 0.05))
def test_evidence_grows_with_agreement_and_shrinks_with_chance(agreeing: float, chance: float) -> None:
    flat = np.full(N_RADII, chance)
    gain = evidence_of(counts_within(agreeing), 100.0, flat)[0]
    assert evidence_of(counts_within(agreeing + 1), 100.0, flat)[0] > gain
    assert evidence_of(counts_within(agreeing), 100.0, 1.5 * flat)[0] < gain


@pytest.mark.parametrize("family", BOTH, ids=lambda family: family.name)
@pytest.mark.parametrize("chance", [0.01, 0.1])
def test_evidence_never_exceeds_minus_the_logarithm_of_the_exact_number_of_false_alarms(
    family: ModelFamily, chance: float
) -> None:
    n = 100 - family.sample_size
    for agreeing in range(family.sample_size + 1, 101):
        tail = stats.binom.logsf(agreeing - family.sample_size - 1, n, chance)
        bound = -tail - math.log(100.0 * 500)
        gain = evidence_of(counts_within(agreeing), 100.0, np.full(N_RADII, chance), family, 500)[0]
        assert gain <= bound + 1e-6 * abs(bound)


@settings(max_examples=20, deadline=None)
@given(st.floats(20, 90), st.integers(1, 1000), st.integers(2, 50))
def test_every_model_tried_costs(agreeing: float, n_tried: int, times: int) -> None:
    flat = np.full(N_RADII, 0.01)
    few, many = (evidence_of(counts_within(agreeing), 100.0, flat, n_tried=n) for n in (n_tried, times * n_tried))
    finite = np.isfinite(few)
    np.testing.assert_allclose((few - many)[finite], math.log(times))


@pytest.mark.parametrize("family", BOTH, ids=lambda family: family.name)
def test_a_minimal_sample_is_no_evidence(family: ModelFamily) -> None:
    assert evidence_of(counts_within(family.sample_size), 100.0, np.full(N_RADII, 1e-3), family).max() < 0


def test_everything_agreeing_is_finite_evidence() -> None:
    gains = evidence_of(counts_within(100.0), 100.0, np.full(N_RADII, 0.01))
    assert np.isfinite(gains[: N_RADII // 2]).all()
    assert gains[0] > 0


def test_what_is_as_dense_around_is_no_evidence() -> None:
    """Votes in proportion to the area, as of mismatches that crowd around true positions."""
    areas = np.diff(np.append(0.0, np.sqrt(2.0) ** (2.0 * np.arange(N_STEPS - 1))))
    counts = np.append(areas / areas.sum() * 300.0, 100.0)
    assert evidence_of(counts, 400.0, np.full(N_RADII, 1e-6)).max() < 0
    alone = counts.copy()
    alone[N_RADII - 1 : -1] = 0.0
    assert evidence_of(alone, 400.0, np.full(N_RADII, 1e-6))[N_RADII - 2] > 0


def test_lines_are_given_no_wider_radius_than_planes() -> None:
    counts, chance = counts_within(50.0), np.full(N_RADII, 0.01)
    widths = [int(np.isfinite(evidence_of(counts, 100.0, chance, family)).sum()) for family in (MOTIONS, PLANES)]
    assert 0 < widths[0] <= widths[1] == N_RADII


# Counting


def test_votes_are_counted_model_by_model_between_one_radius_and_the_next() -> None:
    rng = np.random.default_rng(0)
    steps, votes = rng.integers(0, N_STEPS, (5, 40)).astype(np.uint8), rng.random(40)
    counts = count_votes(steps, votes)
    for model in range(5):
        # What lies beyond all annuli is not counted.
        expected = np.bincount(steps[model], votes, N_STEPS)[:-1]
        np.testing.assert_allclose(counts[model], np.append(expected, 0.0))
    assert count_votes(steps[:0], votes).shape == (0, N_STEPS)


def test_what_has_no_residual_lies_beyond_all_annuli() -> None:
    steps = radius_steps(np.array([[0.0, np.nan, np.inf, 1e300]]), LENGTH)
    assert steps.tolist() == [[0, N_STEPS - 1, N_STEPS - 1, N_STEPS - 1]]


# Candidates


def shifts(*by: tuple[float, float]) -> np.ndarray:
    """Translations, as homographies (m, 9) of unit norm."""
    models = np.array([[1, 0, dx, 0, 1, dy, 0, 0, 1] for dx, dy in by], float).reshape(-1, 9)
    return models / np.linalg.norm(models, axis=1, keepdims=True)


def candidates_of(data: np.ndarray, models: np.ndarray, seed: int = 9) -> Candidates:
    """Homographies that may be structures; decoys are the correspondences, shuffled."""
    i, j = np.random.default_rng(seed).integers(0, len(data), (2, 400))
    return Candidates.of(PLANES, 0, models, data, np.hstack([data[i, :2], data[j, 2:]]), LENGTH)


def moved(n: int, shift: tuple[float, float], noise: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 600, (n, 2))
    return np.hstack([points, points + shift + noise * rng.normal(size=(n, 2))])


def mismatches(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 600, (n, 4))


def extracted(data: np.ndarray, models: np.ndarray, n_tried: int = 500) -> tuple[Structures, np.ndarray]:
    return extract(candidates_of(data, models), BOTH, np.ones(len(data)), n_tried)


def test_chance_is_a_share_that_grows_by_the_law_of_the_family() -> None:
    data = mismatches(200, 0)
    found = candidates_of(data, shifts((0, 0), (50, 0), (5000, 0)))
    assert ((found.chance > 0) & (found.chance <= 1)).all()
    np.testing.assert_allclose(found.chance[:, 2:] / found.chance[:, :-2], 2.0**PLANES.codimension)
    # No decoy is near the last one: chance is little, and never nothing.
    assert found.chance[2, -1] == found.chance[:, -1].min()


def test_candidates_are_taken_and_joined_row_by_row() -> None:
    data = moved(30, (10, 0), 1.0, 0)
    found = candidates_of(data, shifts((0, 0), (10, 0), (20, 0), (30, 0)))
    rows = np.array([2, 0])
    joined = Candidates.join([found.take(rows), found.take(rows[:0]), found.take(np.array([1, 3]))])
    assert len(joined) == 4
    for name in ("models", "codes", "steps", "chance"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(found, name)[[2, 0, 1, 3]])


def test_false_alarms_are_rarer_than_one_a_search() -> None:
    """Of 200 models tried in mismatches alone less than one is expected to be meaningful, and hardly ever one is found at all."""
    alarms = []
    for seed in range(30):
        by = np.random.default_rng(seed).uniform(-300, 300, (200, 2))
        data = mismatches(150, 100 + seed)
        found = meaningful(candidates_of(data, shifts(*map(tuple, by)), seed), BOTH, np.ones(150), 200)
        alarms.append(len(found))
    assert np.mean(alarms) < 1.0


def test_meaningful_models_are_those_that_can_become_structures() -> None:
    data = np.vstack([moved(60, (50, 0), 0.5, 0), mismatches(100, 1)])
    every = candidates_of(data, shifts((50, 0), (7, 7), (51, 0), (-90, 30)))
    kept = meaningful(every, BOTH, np.ones(160), 500)
    np.testing.assert_array_equal(kept.models, every.models[[0, 2]])
    alone, among = (extract(candidates, BOTH, np.ones(160), 500)[0] for candidates in (kept, every))
    np.testing.assert_array_equal(alone.models, among.models)
    np.testing.assert_array_equal(alone.evidences, among.evidences)


# Structures


def test_two_translations_among_mismatches_are_two_structures_strongest_first() -> None:
    data = np.vstack([moved(40, (50, 0), 0.5, 0), moved(80, (0, 70), 0.5, 1), mismatches(120, 2)])
    models = shifts((51, 1), (5, 5), (1, 69), (50, 1), (0, 70), (50, 0))
    found, left = extracted(data, models)
    assert len(found) == 2
    assert found.evidences[0] > found.evidences[1] > 0
    np.testing.assert_allclose((found.models / found.models[:, 8:])[:, [2, 5]], [[0, 70], [50, 0]], atol=1.5)
    assert left[:120].mean() < 0.1
    assert left[120:].mean() > 0.9


def test_structures_are_sorted_by_evidence_though_one_hides_another_at_first() -> None:
    """The precise plane lies in the annulus of the noisy one, which has more matches and, once that is taken away, more evidence."""
    data = np.vstack([moved(45, (80, 0), 0.05, 0), moved(220, (50, 0), 8.0, 1), mismatches(60, 2)])
    precise, noisy = shifts((80, 0), (50, 0))
    hidden = extracted(data, noisy[None])[0].evidences.max(initial=0.0)
    found, _ = extracted(data, np.stack([precise, noisy]))
    assert hidden < found.evidences[1] < found.evidences[0]
    np.testing.assert_array_equal(found.models, [noisy, precise])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_what_a_structure_explains_is_taken_away_whole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 60, 3)
    by = [tuple(shift) for shift in rng.uniform(-60, 60, (3, 2))]
    data = np.vstack(
        [moved(int(n), shift, 1.0, seed + at) for at, (n, shift) in enumerate(zip(sizes, by, strict=True))]
    )
    data, votes = np.vstack([data, mismatches(80, seed)]), rng.uniform(0.3, 1.0, int(sizes.sum()) + 80)
    found, left = extract(candidates_of(data, shifts(*by)), BOTH, votes, 500)
    assert ((left == 0) | (left == votes)).all()
    residuals = np.sqrt(PLANES.squared_residuals(data, found.models)) / LENGTH
    within = (residuals <= found.tolerances[:, None] * (1 + 1e-9)).any(axis=0)
    np.testing.assert_array_equal(within, left == 0)
    assert len(np.unique(found.models, axis=0)) == len(found)
    assert (found.evidences > 0).all()
    assert (np.diff(found.evidences) <= 0).all()


def test_the_radius_grows_with_the_noise() -> None:
    radii = []
    for noise in (0.3, 1.0, 4.0):
        data = np.vstack([moved(150, (30, 30), noise, 0), mismatches(100, 1)])
        radii.append(LENGTH * RADII[extracted(data, shifts((30, 30)))[0].steps[0]])
    assert radii[0] < radii[1] < radii[2]
    # A Rayleigh residual stays below 4 sigma but for one in 3000; radii go in steps of sqrt 2.
    assert radii[0] <= 4 * 0.3 * 2
    assert radii[2] >= 4.0


def test_unrelated_points_have_no_structure() -> None:
    found, left = extracted(mismatches(200, 2), shifts((50, 0), (0, 50), (7, 7)))
    assert len(found) == 0
    assert (left == 1).all()


@pytest.mark.parametrize("n", [0, 1, 20])
def test_without_candidates_there_is_no_structure(n: int) -> None:
    data = mismatches(n, 2)
    none = Candidates.of(PLANES, 0, np.zeros((0, 9)), data, data, LENGTH)
    found, left = extract(none, BOTH, np.ones(n), 1)
    assert (len(found), found.models.shape, left.shape) == (0, (0, 9), (n,))
    assert len(meaningful(none, BOTH, np.ones(n), 1)) == 0


def crowding(n: int, shift: tuple[float, float], seed: int) -> np.ndarray:
    """Mismatches uniform on a disc of 60 pixels around their true places: twice as far as any radius reaches."""
    rng = np.random.default_rng(seed)
    length, angle = 60 * np.sqrt(rng.random(n)), 2 * np.pi * rng.random(n)
    offset = length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return moved(n, shift, 0.0, seed) + np.hstack([np.zeros((n, 2)), offset])


def test_a_crowd_alone_is_no_structure() -> None:
    assert len(extracted(crowding(400, (50, 0), 3), shifts((50, 0), (55, 0), (50, 12)))[0]) == 0


def test_a_precise_plane_in_a_crowd_is_a_structure_no_wider_than_the_plane() -> None:
    data = np.vstack([crowding(400, (50, 0), 3), moved(80, (50, 0), 0.3, 5)])
    found, left = extracted(data, shifts((50, 0)))
    assert len(found) == 1
    assert LENGTH * found.tolerances[0] < 10 * 0.3
    assert left[400:].mean() < 0.1
    assert left[:400].mean() > 0.9


def test_structures_are_taken_row_by_row() -> None:
    data = np.vstack([moved(40, (50, 0), 0.5, 0), moved(80, (0, 70), 0.5, 1), mismatches(120, 2)])
    found, _ = extracted(data, shifts((50, 0), (0, 70)))
    one = found.take(np.array([1]))
    assert len(one) == 1
    np.testing.assert_array_equal(one.models[0], found.models[1])
    assert one.tolerances[0] == found.tolerances[1]
