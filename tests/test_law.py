"""The law of distances: scales, shares, and how probable it is that a match belongs to each structure."""

from __future__ import annotations

from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruzhash_cv.filtering import PARAMETERS
from ruzhash_cv.law import (
    Components,
    Limits,
    ScoreLaw,
    _probability_kernel,
    _ratio_kernel,
    _share_kernel,
    tail_shares,
)

POINT, LINE = 2, 1
UNIT = PARAMETERS.unit
SIZE = 1000.0  # of the square in which mismatches lie


def components_of(tolerances: list[float], codimensions: list[int], decoys: np.ndarray) -> Components:
    return Components.of(Limits(np.array(tolerances), np.array(codimensions)), decoys, UNIT, PARAMETERS)


def far(k: int) -> np.ndarray:
    """Distances of decoys that are nowhere near."""
    return np.full((999, k), 1e6)


def drawn(codimension: int, n_true: int, n_wrong: int, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Distances (n, 1) of true matches, and of mismatches anywhere in a square whose middle the structure is."""
    wrong = rng.uniform(-SIZE / 2, SIZE / 2, (n_wrong, codimension))
    both = np.vstack([rng.normal(0, noise, (n_true, codimension)), wrong])
    return np.linalg.norm(both, axis=1)[:, None]


def ratios_of(components: Components, distances: np.ndarray) -> np.ndarray:
    """Return the ratios where only distances are known."""
    return components.ratios(distances, np.ones_like(distances))


def probabilities_of(components: Components, distances: np.ndarray, at: np.ndarray | None = None) -> np.ndarray:
    """Return the probabilities of matches, or of others `at` some distances, by the shares among the matches."""
    ratios = ratios_of(components, distances)
    shares = components.shares(ratios, np.ones(len(distances)))
    return components.probabilities(ratios if at is None else ratios_of(components, at), shares, distances.shape[1])


# Scales


def test_scales_are_three_times_each_other_up_to_the_tolerance_and_beyond_any_tolerance() -> None:
    """Of planes tolerances are up to 24 px, of motions up to 8.5 px."""
    for tolerance, codimension, true, crowd in (
        (0.75, POINT, [1 / 3], [27, 81]),
        (3.0, POINT, [1 / 3, 1, 3], [27, 81]),
        (24.0, POINT, [1 / 3, 1, 3, 9], [27, 81]),
        (1e-9, LINE, [1 / 3], [9, 27]),
        (8.4, LINE, [1 / 3, 1, 3], [9, 27]),
        (30.0, LINE, [1 / 3, 1, 3, 9, 27], [81, 243]),
    ):
        found = components_of([tolerance], [codimension], far(1))
        np.testing.assert_allclose(found.scales[found.true], true)
        np.testing.assert_allclose(found.scales[~found.true], crowd)
        assert (found.structures == 0).all()


def test_scales_do_not_depend_on_rounding_of_the_unit() -> None:
    for shift in (-1e-12, 0.0, 1e-12):
        found = Components.of(Limits(np.array([9.0 + shift]), np.array([POINT])), far(1), UNIT, PARAMETERS)
        assert found.true.sum() == 4
        third = Components.of(Limits(np.array([3.0 + shift]), np.array([POINT])), far(1), UNIT / 3, PARAMETERS)
        np.testing.assert_allclose(third.scales * 3.0, found.scales)


@pytest.mark.parametrize(("codimension", "volume"), [(POINT, np.pi * 81.0**2), (LINE, 2 * 27.0)])
def test_heights_are_densities_over_that_of_decoys_within_the_widest_scale(codimension: int, volume: float) -> None:
    decoys = np.append(np.full(99, 1e6), np.linspace(0.0, volume**0.5, 100) if codimension == LINE else np.zeros(100))
    found = components_of([5.0], [codimension], decoys[:, None])
    n_within = int((decoys <= found.scales[-1]).sum())
    anywhere = (1 + n_within) / 200 / volume
    np.testing.assert_allclose(found.heights, (2 * np.pi * found.scales**2) ** (-codimension / 2) / anywhere)


# Kernels and their twins


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.sampled_from([0, 1, 7, 40]))
def test_kernels_are_their_twins(seed: int, k: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 8))
    distances, weights = rng.exponential(4.0, (n, k)), rng.random(n)
    distances[rng.random((n, k)) < 0.1] = np.inf
    distances[rng.random((n, k)) < 0.1] = 0.0
    structures, scales, heights = rng.integers(0, k, m), 3.0 ** rng.integers(-2, 3, m), rng.exponential(100.0, m)
    true, start = rng.random(m) < 0.6, rng.dirichlet(np.ones(m + 1))
    ratios, shares, found = np.empty((m, n)), start.copy(), np.zeros((n, k))
    told = rng.exponential(2.0, (n, k))
    _ratio_kernel(distances, told, (structures, scales, heights, true), ratios)
    np.testing.assert_allclose(ratios, naive.ratios(distances, told, structures, scales, heights, true), rtol=1e-12)
    _share_kernel(ratios, weights, 5, 0.1, shares)
    np.testing.assert_allclose(shares, naive.shares(ratios, weights, 5, 0.1, start), rtol=1e-9)
    _probability_kernel(ratios, shares, (structures, true), found)
    expected = naive.probabilities(ratios, shares, structures, true, k)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)


# What comes out


@pytest.mark.parametrize("codimension", [POINT, LINE])
@pytest.mark.parametrize("noise", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("n_wrong", [100, 4000])
def test_probabilities_are_those_of_the_mixture_that_matches_are_drawn_from(
    codimension: int, noise: float, n_wrong: int
) -> None:
    rng, n_true = np.random.default_rng(0), 400
    distances = drawn(codimension, n_true, n_wrong, noise, rng)
    decoys = drawn(codimension, 0, 20_000, noise, rng)
    found = components_of([4 * noise], [codimension], decoys)
    probabilities = probabilities_of(found, distances)[:, 0]
    density = n_true * np.exp(-((distances[:, 0] / noise) ** 2) / 2) / (2 * np.pi * noise**2) ** (codimension / 2)
    expected = density / (density + n_wrong / SIZE**codimension)
    assert abs(probabilities[:n_true] - expected[:n_true]).mean() < 0.03
    assert probabilities[n_true:].sum() < 1.3 * expected[n_true:].sum() + 5
    # As many true ones are expected as there are.
    assert abs(probabilities.sum() - n_true) < 4 * np.sqrt(n_true)


def test_a_crowd_around_a_structure_makes_its_matches_less_probable() -> None:
    rng = np.random.default_rng(1)
    true = drawn(POINT, 100, 1000, 1.0, rng)
    crowd = np.linalg.norm(rng.normal(0, 27.0, (3000, 2)), axis=1)[:, None]
    found = components_of([4.0], [POINT], drawn(POINT, 0, 5000, 1.0, rng))
    at = np.array([[3.0]])
    alone, among = (probabilities_of(found, distances, at)[0, 0] for distances in (true, np.vstack([true, crowd])))
    assert among < alone - 0.2
    shares = found.shares(ratios_of(found, np.vstack([true, crowd])), np.ones(4100))
    # N(0, 27^2 I) is one of the components.
    assert abs(shares[:-1][~found.true].sum() - 3000 / 4100) < 0.03


def test_each_match_belongs_to_one_structure_at_most() -> None:
    rng = np.random.default_rng(2)
    one, other = rng.normal(0, 1, (2, 200, 2))
    both = np.vstack([one, other + [40.0, 0.0], rng.uniform(-500, 500, (500, 2))])
    distances = np.column_stack([np.linalg.norm(both, axis=1), np.linalg.norm(both - [40.0, 0.0], axis=1)])
    found = components_of([4.0, 4.0], [POINT, POINT], far(2))
    probabilities = probabilities_of(found, distances)
    assert (probabilities >= 0).all()
    assert probabilities.sum(axis=1).max() <= 1 + 1e-12
    assert (probabilities[:200, 0] > 0.9).mean() > 0.95
    assert (probabilities[200:400, 1] > 0.9).mean() > 0.95


def test_few_or_weightless_matches_and_no_decoys_give_probabilities() -> None:
    for n in (0, 1, 3):
        found = components_of([4.0], [POINT], np.zeros((0, 1)))
        ratios = ratios_of(found, np.zeros((n, 1)))
        shares = found.shares(ratios, np.zeros(n))
        assert (shares > 0).all()
        assert abs(shares.sum() - 1) < 1e-12
        assert (found.probabilities(ratios, shares, 1) >= 0).all()


def test_the_finest_scale_is_a_third_of_the_narrowest_of_a_preference() -> None:
    finer = replace(PARAMETERS, n_scales=PARAMETERS.n_scales + 1)
    found = Components.of(Limits(np.array([3.0]), np.array([POINT])), far(1), UNIT, finer)
    np.testing.assert_allclose(found.scales[found.true], [1 / 9, 1 / 3, 1, 3])


# Scores

SCORES = st.lists(st.sampled_from([0.1, 0.25, 0.5, 0.75, 1.0]), max_size=12).map(np.array)


@given(SCORES, SCORES)
def test_shares_count_the_decoys_that_score_as_well(scores: np.ndarray, decoys: np.ndarray) -> None:
    expected = [(1 + sum(decoy <= score for decoy in decoys)) / (1 + len(decoys)) for score in scores]
    np.testing.assert_array_equal(tail_shares(scores, np.sort(decoys)), expected)


def law_of(n_true: int, n_wrong: int, exponent: float, rng: np.random.Generator) -> ScoreLaw:
    """A law of decoys whose scores are uniform, of mismatches like them, and of true matches of the density a p^(a - 1)."""
    scores = np.append(rng.random(n_true) ** (1.0 / exponent), rng.random(n_wrong))
    return ScoreLaw.of(rng.random(5000), scores, np.ones(n_true + n_wrong))


@pytest.mark.parametrize("exponent", [0.3, 0.5])
def test_the_exponent_of_scores_is_that_they_are_drawn_by(exponent: float) -> None:
    rng = np.random.default_rng(0)
    assert abs(law_of(2000, 1000, exponent, rng).exponent - exponent) < 0.08
    at = np.array([0.02, 0.1, 1.0])
    expected = exponent * at ** (exponent - 1)
    np.testing.assert_allclose(law_of(4000, 500, exponent, rng).ratios(at), expected, rtol=0.35)


def test_scores_like_those_of_decoys_tell_hardly_anything() -> None:
    law = law_of(0, 500, 1.0, np.random.default_rng(1))
    np.testing.assert_allclose(law.ratios(np.linspace(0.05, 1.0, 20)), 1.0, atol=0.2)


def test_few_decoys_tell_little_and_none_nothing() -> None:
    for n_decoys, most in ((0, 1.01), (3, 2.0), (30, 8.0)):
        law = ScoreLaw.of(np.full(n_decoys, 0.9), np.full(200, 0.1), np.ones(200))
        assert 0.99 <= law.ratios(np.array([0.1]))[0] <= most
    assert np.isfinite(ScoreLaw.of(np.zeros(0), np.zeros(0), np.zeros(0)).ratios(np.zeros(1))).all()


def test_what_else_is_told_counts_for_true_matches_and_not_for_a_crowd() -> None:
    distances, told = np.full((2, 1), 0.5), np.array([[3.0], [0.3]])
    found = components_of([3.0], [LINE], np.linspace(0, 500, 999)[:, None])
    ratios, plain = found.ratios(distances, told), ratios_of(found, distances)
    np.testing.assert_allclose(ratios[found.true], plain[found.true] * told[:, 0])
    np.testing.assert_array_equal(ratios[~found.true], plain[~found.true])
