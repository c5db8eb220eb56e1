"""Evidence, the greedy cover and the extraction of structures, against plain twins and constructed scenes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from ruzhash_cv.models import HOMOGRAPHY
from ruzhash_cv.residuals import pack_models
from ruzhash_cv.structures import (
    CONTRASTS,
    FREE,
    N_RADII,
    RADII,
    RING,
    WIDEST,
    Contrast,
    best_radius,
    count_votes,
    cover_kernel,
    evidence,
    extract_kernel,
)


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
        if not gains.max() > 0:
            break
        chosen.append(int(np.argmax(gains)))
        left *= 1 - np.minimum(0.5, rows[:, chosen[-1]])
    return chosen


@pytest.mark.parametrize("n", [1, 2, 30])
@pytest.mark.parametrize("m", [1, 3, 20])
def test_cover_equals_its_twin(n: int, m: int) -> None:
    rng = np.random.default_rng(n + m)
    dense = (rng.random((n, m)) * (rng.random((n, m)) < 0.3)).astype(np.float32)
    columns, votes, significance = sparse.csc_array(dense), rng.uniform(0.2, 1, n), rng.random(m)
    for wanted in (1, 5, m + 3):
        chosen = cover_kernel(columns.indptr, columns.indices, columns.data, votes, votes @ dense, significance, wanted)
        assert chosen.tolist() == cover_twin(dense.astype(np.float64), votes, significance, wanted)


def test_cover_of_nothing_is_empty() -> None:
    columns = sparse.csc_array(np.zeros((4, 3), np.float32))
    assert len(cover_kernel(columns.indptr, columns.indices, columns.data, np.ones(4), np.zeros(3), np.ones(3), 2)) == 0


#: One pixel in a frame where 600 of them are 3.
PIXEL = 0.005


def extract(
    pairs: np.ndarray,
    shifts: list[tuple[float, float]],
    fewest_nats: float = 20.0,
    contrasts: tuple[Contrast, ...] = CONTRASTS,
) -> tuple[np.ndarray, ...]:
    """Extract structures among the given translations, all in pixels; decoys are the pairs, shuffled."""
    pairs = PIXEL * pairs
    matrices = np.array([[[1, 0, PIXEL * dx], [0, 1, PIXEL * dy], [0, 0, 1]] for dx, dy in shifts], float)
    rng = np.random.default_rng(9)
    decoys = np.hstack([pairs[rng.integers(0, len(pairs), 400), :2], pairs[rng.integers(0, len(pairs), 400), 2:]])
    return extract_kernel(
        np.ascontiguousarray(pairs.T), np.ones(len(pairs)), np.ascontiguousarray(decoys.T),
        pack_models(matrices, HOMOGRAPHY), np.zeros(len(matrices), np.uint8),
        PIXEL, np.array([1.5, 1.5]), np.array(WIDEST), np.array(contrasts), fewest_nats, 8,
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
            image = found @ [*(PIXEL * np.array(point)), 1]
            np.testing.assert_allclose(image[:2] / image[2] / PIXEL - point, shift, atol=1.0)
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
    points = np.random.default_rng(2).uniform(0, 600, (4, 20))
    found = extract_kernel(
        points, np.ones(20), points, packed, np.zeros(0, np.uint8), 1.0,
        np.ones(2), np.array(WIDEST), np.array(CONTRASTS), 20.0, 8,
    )  # fmt: skip
    assert len(found[0]) == 0


def test_votes_are_counted_between_one_radius_and_the_next() -> None:
    """A shift has residuals that are known exactly; a residual of exactly a radius lies within it."""
    scale = 0.01
    distances = np.concatenate([[0.0, 0.3], RADII, 1.1 * RADII, [1e9]]) * scale
    points = np.zeros((4, len(distances)))
    points[2] = distances
    votes, steps = np.random.default_rng(0).random(len(distances)), np.empty(len(distances), np.uint8)
    packed, kinds = pack_models(np.eye(3)[None], HOMOGRAPHY), np.zeros(1, np.uint8)
    counts = count_votes(points, votes, packed, kinds, 0, RADII[0] * scale, steps)
    expected = np.searchsorted(RADII * scale * (1 + 1e-9), distances)
    np.testing.assert_array_equal(steps, expected)
    np.testing.assert_allclose(counts[:-1], np.bincount(expected, votes)[:-1])
    assert counts[-1] == 0


def best_radius_twin(
    counts: np.ndarray, total: float, kind: int, chance: float, contrast: Contrast
) -> tuple[float, int]:
    power = 2 if kind == HOMOGRAPHY else 1
    best = (0.0, 0)
    for at in range(WIDEST[kind]):
        within = counts[: at + 1].sum() - FREE[kind]
        # The ring reaches RING steps of sqrt(2) further: its area, or width, in units of what lies within the radius.
        ring = np.sqrt(2) ** (RING * power) - 1
        around = contrast[0][kind] * (0.05 + counts[at + 1 : at + 1 + RING].sum()) / ring / total
        # The crowd reaches to 32 px.
        crowd = contrast[1][kind] * counts[at + 1 : 13].sum() / ((32 / RADII[at]) ** power - 1) / total
        share = min(max(chance * (RADII[at] / 32.0) ** power, around, crowd), 0.9)
        if within > 0:
            gain = evidence(within, total - FREE[kind], share)
            best = max(best, (gain, at), key=lambda found: found[0])
    return best


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32),
    st.sampled_from([0, 1]),
    st.floats(1e-4, 0.5),
    st.sampled_from([*CONTRASTS, ((1.5, 1.5), (1.0, 1.0))]),
)
def test_the_best_radius_equals_its_twin(seed: int, kind: int, chance: float, contrast: Contrast) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 20, N_RADII + 1) * (rng.random(N_RADII + 1) < 0.6) * 1.0
    total = counts.sum() + 30.0
    found = best_radius(counts, total, kind, chance, np.array(WIDEST), np.array(contrast))
    expected = best_radius_twin(counts, total, kind, chance, contrast)
    assert found[0] == pytest.approx(expected[0], abs=1e-9)
    assert found[1] == expected[1]


def crowding(n: int, shift: tuple[float, float], seed: int) -> np.ndarray:
    """Mismatches uniform on a disc of 60 pixels around their true places."""
    rng = np.random.default_rng(seed)
    length, angle = 60 * np.sqrt(rng.random(n)), 2 * np.pi * rng.random(n)
    offset = length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return moved(n, shift, 0.0, seed) + np.hstack([np.zeros((n, 2)), offset])


def test_a_dense_spot_of_a_crowd_is_no_structure_beside_one_that_stands_out() -> None:
    """Twelve matches within 4 pixels and none in the ring around, in a crowd of which a spot that size holds two on average."""
    crowd, spot, true = crowding(500, (50, 0), 3), moved(12, (65, 0), 1.5, 4), moved(80, (50, 0), 0.3, 5)
    off = np.hypot(*(crowd[:, 2:] - crowd[:, :2] - (65, 0)).T)
    pairs, shifts = np.vstack([crowd[off > 8], spot, true]), [(65.0, 0.0), (50.0, 0.0)]
    ring_alone = tuple((ring, (0.0, 0.0)) for ring, _ in CONTRASTS)
    assert len(extract(pairs, shifts, contrasts=ring_alone)[0]) == 2
    packed = extract(pairs, shifts)[0]
    assert len(packed) == 1
    assert packed[0, 2] / packed[0, 8] == pytest.approx(50 * PIXEL, abs=0.3 * PIXEL)


def test_where_nothing_is_three_times_as_dense_as_its_ring_less_is_asked() -> None:
    pairs = np.vstack([crowding(700, (50, 0), 3), moved(70, (50, 0), 3.5, 5)])
    assert len(extract(pairs, [(50.0, 0.0)], contrasts=CONTRASTS[:1])[0]) == 0
    packed, _, steps, _, left = extract(pairs, [(50.0, 0.0)], contrasts=CONTRASTS[:2])
    assert len(packed) == 1
    # The radius ends where the noise does.
    assert RADII[steps[0]] <= 3 * 3.5
    assert left[700:].mean() < 0.1


def test_less_is_asked_only_where_nothing_stands_out() -> None:
    """A plane of noisy matches in a crowd is a structure alone, and none beside a precise one."""
    noisy, other = np.vstack([crowding(700, (50, 0), 3), moved(70, (50, 0), 3.5, 5)]), moved(200, (-200, 300), 0.3, 6)
    assert len(extract(noisy, [(50.0, 0.0), (-200.0, 300.0)])[0]) == 1
    packed = extract(np.vstack([noisy, other]), [(50.0, 0.0), (-200.0, 300.0)])[0]
    assert len(packed) == 1
    assert packed[0, 2] / packed[0, 8] == pytest.approx(-200 * PIXEL, abs=PIXEL)


def test_at_last_a_spot_of_a_crowd_is_a_structure() -> None:
    crowd, spot = crowding(500, (50, 0), 3), moved(12, (65, 0), 1.5, 4)
    off = np.hypot(*(crowd[:, 2:] - crowd[:, :2] - (65, 0)).T)
    pairs = np.vstack([crowd[off > 8], spot])
    assert len(extract(pairs, [(65.0, 0.0)], contrasts=CONTRASTS[:2])[0]) == 0
    assert len(extract(pairs, [(65.0, 0.0)])[0]) == 1


def test_the_radius_of_a_later_level_is_by_the_first_contrasts() -> None:
    pairs = np.vstack([crowding(700, (50, 0), 3), moved(90, (50, 0), 5.5, 5)])
    assert len(extract(pairs, [(50.0, 0.0)], contrasts=CONTRASTS[:1])[0]) == 0
    both, later = (extract(pairs, [(50.0, 0.0)], contrasts=levels)[2] for levels in (CONTRASTS[:2], CONTRASTS[1:2]))
    assert both[0] < later[0]
