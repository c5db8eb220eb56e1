"""One model for one threshold: counts, which never fall, and the choice among the models that hold nearly as many matches."""

from __future__ import annotations

from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage_cases import matches_of, mismatches
from two_views import MAKE, H, plane, random_fundamental_matrices, random_homographies

from ruzhash_cv import sampson_distance, transfer_error
from ruzhash_cv.consensus import Consensus, largest_consensus, precise
from ruzhash_cv.models.distances import FAMILIES
from ruzhash_cv.parameters import PARAMETERS

Array = np.ndarray
KINDS = {
    "homography": (random_homographies, transfer_error),
    "fundamental": (random_fundamental_matrices, sampson_distance),
}
each_kind = pytest.mark.parametrize("kind", KINDS)
seeds = given(st.integers(0, 2**32 - 1))


def consensus_of(data: Array, kind: str, threshold: float = 3.0) -> Consensus:
    """Return what counts models of matches (n, 4), the threshold in pixels."""
    matches = matches_of(data)
    repeats = np.bincount(matches.where, minlength=len(matches))
    return Consensus(FAMILIES[kind], matches, repeats, threshold * matches.frame.scale, PARAMETERS)


def in_pixels(consensus: Consensus, models: Array) -> Array:
    return consensus.family.to_pixels(models, *consensus.matches.frame.transforms()).reshape(-1, 3, 3)


def noisy(kind: str, seed: int, noise: float = 0.5) -> Array:
    """Return matches, a third of them mismatches."""
    return np.vstack([MAKE[kind](100, noise, seed % 1000), mismatches(50, seed)])


def samples(consensus: Consensus, rng: np.random.Generator, n: int = 100) -> Array:
    """Return models of minimal samples of all matches."""
    n_matches, size = len(consensus.matches), consensus.family.sample_size
    rows = np.array([rng.choice(n_matches, size, replace=False) for _ in range(n)])
    models, _ = consensus.family.solve(consensus.matches.data[rows])
    return np.asarray(models[np.isfinite(models).all(axis=1)])


# Counts and likelihoods


@each_kind
def test_counts_are_of_the_matches_given_in_pixels(kind: str) -> None:
    rng = np.random.default_rng(0)
    data = noisy(kind, 0)
    data = np.vstack([data, data[rng.integers(len(data), size=40)]])
    consensus = consensus_of(data, kind, threshold=2.5)
    assert len(consensus.matches) == 150
    models = samples(consensus, rng)
    distances = [KINDS[kind][1](data[:, :2], data[:, 2:], model) for model in in_pixels(consensus, models)]
    np.testing.assert_array_equal(consensus.counts(models), np.count_nonzero(np.array(distances) <= 2.5, axis=1))


@each_kind
def test_likelihoods_agree_with_a_loop_over_matches_and_scales(kind: str) -> None:
    consensus = consensus_of(noisy(kind, 1), kind)
    models = samples(consensus, np.random.default_rng(1), n=20)
    squared = consensus.family.squared_residuals(consensus.matches.data, models) / consensus.threshold**2
    expected = [naive.log_likelihood(row, consensus.matches.weights, consensus.family.codimension) for row in squared]
    np.testing.assert_allclose(consensus.likelihoods(models), expected, rtol=1e-9)


def test_a_match_without_a_residual_is_neither_counted_nor_likely() -> None:
    consensus = consensus_of(plane(50), "homography")
    nowhere = np.zeros((1, 9))
    assert consensus.counts(nowhere).tolist() == [0]
    assert consensus.likelihoods(nowhere).tolist() == [0.0]


@each_kind
def test_of_two_models_with_the_same_matches_the_more_precise_one_is_likelier(kind: str) -> None:
    consensus = consensus_of(MAKE[kind](100), kind)
    exact = consensus.family.fit(consensus.matches.data, np.ones((1, 100)))
    models = np.vstack([exact + 1e-4 * np.eye(9)[4], exact])
    assert (consensus.counts(models) == 100).all()
    np.testing.assert_array_equal(consensus.likeliest(models, 2), models[::-1])
    np.testing.assert_array_equal(consensus.largest(models, 2), models)  # the first one first


# What refits and samples lead to


@each_kind
@settings(max_examples=25, deadline=None)
@seeds
def test_no_model_given_has_more_matches_than_the_first_one_returned(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    consensus = consensus_of(noisy(kind, seed), kind)
    for models in (samples(consensus, rng), KINDS[kind][0](rng, 5).reshape(-1, 9)):
        found = largest_consensus(consensus, models, rng)
        assert consensus.counts(found)[0] >= consensus.counts(models).max()


@each_kind
def test_refits_recover_a_model_from_one_near_it(kind: str) -> None:
    consensus = consensus_of(np.vstack([MAKE[kind](100), mismatches(50)]), kind)
    true = consensus.matches.where[:100]
    exact = consensus.family.fit(consensus.matches.data[true], np.ones((1, 100)))
    near = exact + 1e-3 * np.random.default_rng(0).normal(size=9)
    found = consensus.refitted(near)
    np.testing.assert_array_equal(found[:1], near)
    errors = np.sqrt(consensus.family.squared_residuals(consensus.matches.data[true], found)).max(axis=1)
    assert errors[0] > 1e-4
    assert errors[-1] < 0.2 * errors[0]


@each_kind
def test_too_few_matches_within_the_threshold_leave_a_model_as_it_is(kind: str) -> None:
    consensus = consensus_of(mismatches(30), kind, threshold=1e-6)
    rng = np.random.default_rng(0)
    models = KINDS[kind][0](rng, 3).reshape(-1, 9)
    np.testing.assert_array_equal(consensus.refitted(models), np.tile(models, (1 + len(PARAMETERS.refit_radii), 1)))
    np.testing.assert_array_equal(consensus.optimised(models[0], rng), models[:1])


@each_kind
@pytest.mark.parametrize("shape", ["a line", "one place"])
def test_degenerate_matches_give_a_finite_model(kind: str, shape: str) -> None:
    points = (
        np.linspace([0, 0], [600, 300], 60) if shape == "a line" else np.random.default_rng(0).normal(0, 1e-3, (60, 2))
    )
    consensus = consensus_of(np.hstack([points, points + 7.0]), kind)
    rng = np.random.default_rng(0)
    found = largest_consensus(consensus, KINDS[kind][0](rng, 5).reshape(-1, 9), rng)
    assert np.isfinite(found).all()
    assert np.isfinite(precise(consensus, found)).all()


def test_a_sample_leads_to_more_matches_than_its_refits_do() -> None:
    gains = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        consensus = consensus_of(noisy("fundamental", seed, noise=1.5), "fundamental")
        best = consensus.largest(consensus.refitted(consensus.largest(samples(consensus, rng, 300), 12)), 1)[0]
        before, after = consensus.counts(np.vstack([best, consensus.optimised(best, rng)[0]]))
        assert after >= before
        gains.append(after - before)
    assert np.mean(gains) > 0.5


def test_of_motions_all_that_samples_lead_to_are_compared_and_of_planes_the_largest() -> None:
    n_optimised = {}
    for kind in KINDS:
        rng = np.random.default_rng(0)
        consensus = consensus_of(noisy(kind, 0), kind)
        found = largest_consensus(consensus, samples(consensus, rng), rng)
        assert consensus.counts(found[:1])[0] == consensus.counts(found).max()
        n_optimised[kind] = len(found) - PARAMETERS.n_refits
    refits = 1 + PARAMETERS.n_refits * (1 + len(PARAMETERS.refit_radii))
    assert n_optimised == {"homography": 1, "fundamental": refits}


# Which is returned


@each_kind
@settings(max_examples=25, deadline=None)
@seeds
def test_the_model_returned_has_nearly_the_most_matches_and_is_as_likely(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    consensus = consensus_of(noisy(kind, seed), kind)
    models = largest_consensus(consensus, samples(consensus, rng), rng)
    model = precise(consensus, models)[None]
    assert consensus.counts(model)[0] >= PARAMETERS.kept_share * consensus.counts(models)[0]
    assert consensus.likelihoods(model)[0] >= consensus.likelihoods(models[:1])[0]


@each_kind
def test_a_share_of_one_gives_the_most_matches(kind: str) -> None:
    strict = replace(consensus_of(noisy(kind, 3), kind), parameters=replace(PARAMETERS, kept_share=1.0))
    rng = np.random.default_rng(3)
    models = largest_consensus(strict, samples(strict, rng), rng)
    assert strict.counts(precise(strict, models)[None])[0] >= strict.counts(models)[0]


@each_kind
def test_mismatches_near_a_precise_model_do_not_bend_it(kind: str) -> None:
    """Thirty mismatches are up to 6 pixels off in one direction: a model between them and the matches has most of both."""
    rng = np.random.default_rng(0)
    data = np.vstack([MAKE[kind](200, 0.1), MAKE[kind](30, 0.1, seed=1) + rng.uniform(2, 6, (30, 1)) * [0, 0, 0, 1]])
    consensus = consensus_of(data, kind)
    found = largest_consensus(consensus, samples(consensus, rng, 300), rng)
    squared = consensus.family.squared_residuals(
        consensus.matches.data, np.vstack([found[0], precise(consensus, found)])
    )
    first, last = np.median(np.sqrt(squared[:, consensus.matches.where[:200]]), axis=1) / consensus.matches.frame.scale
    assert last < 0.2
    assert last <= first


def test_exact_matches_give_the_exact_homography() -> None:
    consensus = consensus_of(np.vstack([plane(60), mismatches(30)]), "homography")
    rng = np.random.default_rng(0)
    matrix = in_pixels(
        consensus, precise(consensus, largest_consensus(consensus, samples(consensus, rng, 300), rng))[None]
    )[0]
    np.testing.assert_allclose(matrix / matrix[2, 2], H, rtol=1e-6)
