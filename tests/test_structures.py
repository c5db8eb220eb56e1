"""Evidence, the greedy cover and the extraction of structures, against plain twins and constructed scenes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from ruzhash_cv.models import HOMOGRAPHY
from ruzhash_cv.residuals import pack_models
from ruzhash_cv.structures import CONTRAST, RADII, WIDEST, cover_kernel, evidence, extract_kernel


@settings(max_examples=80, deadline=None)
@given(agreeing=st.integers(0, 99), chance=st.floats(1e-4, 0.9))
def test_evidence_is_the_log_likelihood_ratio_of_two_binomials(agreeing: int, chance: float) -> None:
    expected = 0.0
    if agreeing / 100 > chance:
        counts = stats.binom.logpmf(agreeing, 100, [agreeing / 100, chance])
        expected = counts[0] - counts[1]
    assert evidence(float(agreeing), 100.0, chance) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(agreeing=st.floats(10, 98), chance=st.floats(1e-3, 0.05))
def test_evidence_grows_with_agreement_and_shrinks_with_chance(agreeing: float, chance: float) -> None:
    gain = evidence(agreeing, 100.0, chance)
    assert gain >= 0
    assert evidence(agreeing + 1, 100.0, chance) > gain
    assert evidence(agreeing, 100.0, 1.5 * chance) < gain


def test_everything_agreeing_is_finite_evidence() -> None:
    assert np.isfinite(evidence(100.0, 100.0, 0.01))
    assert evidence(0.0, 100.0, 0.01) == 0.0


def cover_twin(rows: np.ndarray, votes: np.ndarray, significance: np.ndarray, n_wanted: int) -> list[int]:
    left, chosen = votes.copy(), []
    while len(chosen) < n_wanted:
        gains = (left @ rows) * significance
        gains[chosen] = -1
        if not gains.max() > 1e-12:
            break
        chosen.append(int(np.argmax(gains)))
        left *= 1 - np.minimum(0.5, rows[:, chosen[-1]])
    return chosen


@pytest.mark.parametrize("n", [1, 2, 30])
@pytest.mark.parametrize("m", [1, 3, 20])
def test_cover_equals_its_twin(n: int, m: int) -> None:
    rng = np.random.default_rng(n + m)
    dense = (rng.random((n, m)) * (rng.random((n, m)) < 0.3)).astype(np.float32)
    rows, votes, significance = sparse.csr_array(dense), rng.uniform(0.2, 1, n), rng.random(m)
    for wanted in (1, 5, m + 3):
        chosen = cover_kernel(rows.indptr, rows.indices, rows.data, votes, significance, wanted)
        assert chosen.tolist() == cover_twin(dense.astype(np.float64), votes, significance, wanted)


def test_cover_of_nothing_is_empty() -> None:
    rows = sparse.csr_array(np.zeros((4, 3), np.float32))
    assert len(cover_kernel(rows.indptr, rows.indices, rows.data, np.ones(4), np.ones(3), 2)) == 0


def extract(pairs: np.ndarray, shifts: list[tuple[float, float]], fewest_nats: float = 20.0) -> tuple[np.ndarray, ...]:
    """Extract structures among the given translations; decoys are the pairs, shuffled."""
    matrices = np.array([[[1, 0, dx], [0, 1, dy], [0, 0, 1]] for dx, dy in shifts], float)
    rng = np.random.default_rng(9)
    decoys = np.hstack([pairs[rng.integers(0, len(pairs), 400), :2], pairs[rng.integers(0, len(pairs), 400), 2:]])
    return extract_kernel(
        pairs, np.ones(len(pairs)), decoys, pack_models(matrices, HOMOGRAPHY), np.zeros(len(matrices), np.uint8),
        1.0, np.array([1.5, 1.5]), np.array(WIDEST), np.array(CONTRAST), fewest_nats, 8,
    )  # fmt: skip


def moved(n: int, shift: tuple[float, float], noise: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 600, (n, 2))
    return np.hstack([points, points + shift + noise * rng.normal(size=(n, 2))])


def test_two_translations_among_mismatches_are_two_structures_strongest_first() -> None:
    pairs = np.vstack(
        [moved(40, (50, 0), 0.5, 0), moved(80, (0, 70), 0.5, 1), np.random.default_rng(2).uniform(0, 600, (120, 4))]
    )
    packed, kinds, steps, gains, left = extract(pairs, [(51, 1), (5, 5), (1, 69), (50, 1)])
    assert len(packed) == len(kinds) == len(steps) == 2
    assert gains[0] > gains[1] > 20
    first, second = (model[:9].reshape(3, 3) / model[8] for model in packed)
    for found, shift in ((first, (0, 70)), (second, (50, 0))):
        for point in ([100, 100], [500, 400]):
            np.testing.assert_allclose((found @ [*point, 1])[:2] / (found @ [*point, 1])[2] - point, shift, atol=1.0)
    assert left[:120].mean() < 0.1
    assert left[120:].mean() > 0.9


def test_the_radius_grows_with_the_noise() -> None:
    radii = []
    for noise in (0.3, 1.0, 4.0):
        pairs = np.vstack([moved(150, (30, 30), noise, 0), np.random.default_rng(1).uniform(0, 600, (100, 4))])
        radii.append(RADII[extract(pairs, [(30, 30)])[2][0]])
    assert radii[0] < radii[1] < radii[2]
    # A Rayleigh residual stays below 4 sigma but for one in 3000.
    assert radii[0] <= 4 * 0.3 * 2
    assert radii[2] >= 4.0


def test_unrelated_points_have_no_structure() -> None:
    pairs = np.random.default_rng(2).uniform(0, 600, (200, 4))
    packed, _, _, gains, left = extract(pairs, [(50, 0), (0, 50), (7, 7)])
    assert len(packed) == len(gains) == 0
    assert (left == 1).all()


def test_without_candidates_there_is_no_structure() -> None:
    packed = np.zeros((0, 18))
    pairs = np.random.default_rng(2).uniform(0, 600, (20, 4))
    found = extract_kernel(
        pairs,
        np.ones(20),
        pairs,
        packed,
        np.zeros(0, np.uint8),
        1.0,
        np.ones(2),
        np.array(WIDEST),
        np.array(CONTRAST),
        20.0,
        8,
    )
    assert len(found[0]) == 0
