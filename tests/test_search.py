"""What the search finds on scenes whose answer is known, what it costs at most, what leads it, and what it takes back."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rendering import Correspondences, desk_scene, draw_correspondences, facade_scene, plane_scene, rigid_scene
from stage_cases import found_in, mismatches, problem_of
from two_views import motion, plane, shifted_along_lines, two_planes

from ruzhash_cv.filtering import PARAMETERS, STAGES, families_of
from ruzhash_cv.problem import Problem
from ruzhash_cv.search import (
    Estimate,
    Selection,
    best_first,
    converged,
    drop_repetitions,
    find_structures,
    held_by,
    samples_wanted,
)
from ruzhash_cv.selection import MAX_STRUCTURES
from ruzhash_cv.stationary import find_stationary

MODELS = "auto", "homography", "fundamental"
each_model = pytest.mark.parametrize("model", MODELS)


def pairs_of(drawn: Correspondences) -> np.ndarray:
    return np.hstack([drawn.points1, drawn.points2])


def held(found: tuple[Estimate, Problem]) -> np.ndarray:
    """Tell which of all matches (n,) lie within each structure (k, n)."""
    estimate, problem = found
    return held_by(estimate.structures, problem)[:, problem.matches.where]


@pytest.fixture(scope="module")
def facade() -> Correspondences:
    return draw_correspondences(facade_scene(3, rng=5), 400, mismatch_rate=0.4, noise=0.5, weights="even", rng=6)


# What is found


def test_every_plane_is_a_structure(facade: Correspondences) -> None:
    inside = held(found_in(pairs_of(facade), "homography"))
    for label in (1, 2, 3):
        assert inside[:, facade.labels == label].mean(axis=1).max() > 0.85
    assert inside[:, facade.labels == 0].any(axis=0).mean() < 0.15


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_one_plane_is_found_among_mismatches(rate: float) -> None:
    drawn = draw_correspondences(plane_scene(rng=1), 300, mismatch_rate=rate, noise=0.5, rng=2)
    found = found_in(pairs_of(drawn))
    assert found[0].structures.family_ids[0] == 0
    assert held(found)[0, drawn.labels > 0].mean() > 0.95
    assert held(found)[0, drawn.labels == 0].mean() < 0.1


def test_a_rigid_scene_without_planes_is_one_fundamental_matrix() -> None:
    drawn = draw_correspondences(rigid_scene(rng=1), 300, mismatch_rate=0.3, noise=0.5, rng=2)
    found = found_in(pairs_of(drawn))
    assert found[0].structures.family_ids[0] == 1
    assert held(found)[0, drawn.labels > 0].mean() > 0.9


def test_a_sparse_plane_under_objects_is_found() -> None:
    """Some 40 matches of the desk span the image; those of four objects and mismatches are their neighbours."""
    shares = []
    for scene_seed in (2, 11, 20, 41):
        scene = desk_scene(4, rng=scene_seed)
        drawn = draw_correspondences(scene, 350, mismatch_rate=0.4, noise=1.0, weights="even", rng=scene_seed)
        # The desk is the first body.
        inside = [held(found_in(pairs_of(drawn), seed=seed))[:, drawn.labels == 1] for seed in range(3)]
        shares += [each.any(axis=0).mean() for each in inside]
    assert np.mean(shares) > 0.7


@each_model
def test_structures_are_of_the_families_admitted_strongest_first(facade: Correspondences, model: str) -> None:
    estimate, _ = found_in(pairs_of(facade), model)
    structures, families = estimate.structures, families_of(model)
    assert len(structures) > 0
    assert all(families.structural[family_id] for family_id in structures.family_ids)
    assert set(estimate.scores.columns.family_ids) <= set(range(len(families)))
    assert (np.diff(structures.evidences) <= 0).all()
    assert (structures.evidences > 0).all()
    np.testing.assert_allclose(np.linalg.norm(structures.models, axis=1), 1.0)
    assert estimate.overlapping.shape == (len(structures),) * 2


def test_the_same_seed_finds_the_same_and_another_draws_other_samples(facade: Correspondences) -> None:
    (first, _), (again, _), (other, _) = (found_in(pairs_of(facade), seed=seed) for seed in (3, 3, 4))
    for name in ("models", "radius_indices", "evidences"):
        np.testing.assert_array_equal(getattr(first.structures, name), getattr(again.structures, name))
    for name in ("of_matches", "of_decoys", "decoys"):
        np.testing.assert_array_equal(getattr(first.scores, name), getattr(again.scores, name))
    assert (first.pool.rejected, first.pool.n_models) == (again.pool.rejected, again.pool.n_models)
    assert first.scores.columns.models.tobytes() != other.scores.columns.models.tobytes()


# What leads it


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 40))
def test_what_looks_best_of_what_is_unexplained_is_sampled_most(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    unexplained = rng.uniform(0.2, 1.0, n) * (rng.random(n) < 0.7)
    proposal = best_first(unexplained, scores)
    assert np.isfinite(proposal).all()
    np.testing.assert_array_equal(proposal > 0, unexplained > 0)
    order = np.argsort(scores)
    order = order[unexplained[order] > 0]
    assert (np.diff(proposal[order] / unexplained[order]) < 0).all()


def test_at_the_median_a_match_is_proposed_by_its_own_weight() -> None:
    """(1 - q) / q is 1 at q = 1/2, 3 at the first quartile and 1/3 at the third."""
    proposal = best_first(np.full(100, 0.5), np.linspace(0.1, 0.9, 100))
    np.testing.assert_allclose(proposal[[24, 49, 74]], [1.5, 0.5, 0.5 / 3], rtol=1e-6)


def test_each_round_draws_as_many_samples_as_all_before_it() -> None:
    problem, _ = problem_of(mismatches(600))
    for family_id, first in ((0, PARAMETERS.plane_samples), (1, PARAMETERS.motion_samples)):
        wanted = [samples_wanted(problem, family_id, number) for number in range(PARAMETERS.max_rounds)]
        assert wanted == [first, *(first * 2**number for number in range(PARAMETERS.max_rounds - 1))]
    few, _ = problem_of(mismatches(20))
    assert samples_wanted(few, 0, 0) == 20


def test_rounds_go_on_until_a_plane_of_one_match_in_twenty_is_found() -> None:
    drawn = [draw_correspondences(plane_scene(rng=at), 600, mismatch_rate=0.95, noise=0.7, rng=at) for at in range(6)]

    def n_found(max_rounds: int) -> int:
        parameters = replace(PARAMETERS, max_rounds=max_rounds)
        inside = [held(found_in(pairs_of(each), "homography", parameters=parameters)) for each in drawn]
        return sum(
            bool(of[:, each.labels > 0].any(axis=0).mean() > 0.8) for of, each in zip(inside, drawn, strict=True)
        )

    assert n_found(PARAMETERS.max_rounds) >= 5
    assert n_found(1) <= 4


def test_a_plane_without_mismatches_takes_one_round_and_no_motion() -> None:
    for model in ("homography", "auto"):
        estimate, _ = found_in(plane(300, 0.5), model)
        assert estimate.pool.n_models <= PARAMETERS.plane_samples
        assert set(estimate.scores.columns.family_ids) == {0}


# What it costs at most


def crowd(n: int) -> np.ndarray:
    """Mismatches within 50 pixels of where a plane would have them."""
    rng = np.random.default_rng(0)
    points1 = rng.uniform(0, (1280, 960), (n, 2))
    length, angle = 50 * np.sqrt(rng.random(n)), 2 * np.pi * rng.random(n)
    return np.hstack([points1, points1 + 20.0 + length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])])


@each_model
@pytest.mark.parametrize("make", [mismatches, crowd], ids=["mismatches", "crowding mismatches"])
@pytest.mark.parametrize("n", [12, 1024])
def test_hard_matches_cost_no_more_models_than_all_rounds_have(make: Callable, n: int, model: str) -> None:
    estimate, problem = found_in(make(n), model)
    # Of seven points there may be three fundamental matrices.
    most = sum(
        (1 if family.is_plane else 3) * samples_wanted(problem, family_id, number)
        for family_id, family in enumerate(problem.families)
        for number in range(PARAMETERS.max_rounds)
    )
    assert 0 < estimate.pool.n_models <= most < 100_000
    assert len(estimate.structures) <= MAX_STRUCTURES


# Where there is nothing to find


@each_model
def test_points_that_agree_on_nothing_hold_no_structure(model: str) -> None:
    n_found = [len(found_in(mismatches(150, seed), model)[0].structures) for seed in range(6)]
    # Less than one false alarm is expected in each.
    assert np.mean(n_found) < 0.5


DEGENERATE = {
    "one place": np.full((60, 2), 5.0),
    "a line": np.column_stack([np.linspace(0, 600, 60), np.linspace(0, 300, 60)]),
    "two places": np.repeat([[0.0, 0.0], [500.0, 300.0]], 30, axis=0),
    "eight points": np.random.default_rng(0).uniform(0, 500, (8, 2)),
    "one point": np.zeros((1, 2)),
}


@each_model
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_points_are_searched_in_vain_and_in_silence(name: str, model: str) -> None:
    points = DEGENERATE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate, _ = found_in(np.hstack([points, points + [7.0, 3.0]]), model)
    assert np.isfinite(estimate.structures.models).all()
    assert ((estimate.scores.of_matches > 0) & (estimate.scores.of_matches <= 1)).all()
    if name not in ("a line", "eight points"):
        assert len(estimate.structures) == 0


# What did not move


def test_what_did_not_move_has_no_weight_beside_its_own_structure() -> None:
    still = np.random.default_rng(0).uniform([20, 20], [160, 60], (40, 2))
    data = np.vstack([motion(100, 0.5), np.hstack([still, still + np.random.default_rng(1).normal(0, 0.2, (40, 2))])])
    problem, _ = problem_of(data)
    stationary, moved = find_stationary(problem), problem.matches.where[:100]
    assert stationary.structure.stationary.tolist() == [True]
    rows = np.setdiff1d(np.arange(len(problem.matches)), moved)
    np.testing.assert_array_equal(stationary.others[rows], 0.0)
    np.testing.assert_array_equal(stationary.others[moved], problem.matches.weights[moved])
    nothing = find_stationary(problem_of(motion(100, 0.5))[0])
    assert len(nothing.structure) == 0


# What is taken back


@pytest.mark.parametrize("contested", [True, False])
def test_a_texture_repeated_in_one_direction_is_discarded_where_it_competes_for_keypoints(contested: bool) -> None:
    estimate, problem = found_in(np.hstack(shifted_along_lines(0, contested)))
    share = estimate.discarded[problem.matches.where][100:210].mean()
    assert (share > 0.5) == contested
    assert estimate.structures.family_ids.tolist() == [0 if contested else 1]


def with_repetitions() -> tuple[Estimate, Problem, np.random.Generator, np.ndarray]:
    """Return a plane and a repetition of it, found, and the distinct matches of the repetition."""
    data, weaker = two_planes(apart=False, n_contested=10)
    problem, rng = problem_of(data, stages=replace(STAGES, drop_repetitions=lambda estimate, *_: estimate))
    estimate = find_structures(problem, rng)
    return estimate, problem, rng, np.unique(problem.matches.where[weaker])


def rows_of(points: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Tell which of the points `of` are among `points`."""
    return np.array([(points == each).all(axis=1).any() for each in of])


def test_after_repetitions_are_dropped_decoys_are_made_of_what_the_others_do_not_hold() -> None:
    """The matches of the repetition are among it."""
    estimate, problem, rng, repeated = with_repetitions()
    remaining = drop_repetitions(estimate, problem, rng)
    assert (len(estimate.structures), len(remaining.structures)) == (2, 1)
    beyond = ~held_by(remaining.structures, problem)[0] & (problem.matches.weights > 0)
    n_first = round(PARAMETERS.n_decoys * beyond.sum() / (beyond.sum() + PARAMETERS.prior_matches))
    decoys, data = remaining.scores.decoys[:n_first], problem.matches.data
    for part in (slice(2), slice(2, 4)):
        lent = rows_of(decoys[:, part], data[:, part])
        # A keypoint of both planes is lent by either.
        assert rows_of(data[beyond][:, part], decoys[:, part]).all()
        assert lent[repeated].mean() > 0.9


def test_scores_without_repetitions_are_of_columns_that_speak_for_the_remaining_structures() -> None:
    estimate, problem, rng, repeated = with_repetitions()
    remaining = drop_repetitions(estimate, problem, rng)
    np.testing.assert_array_equal(remaining.scores.columns.models[-1:], remaining.structures.models)
    held, radius = held_by(remaining.structures, problem)[0], PARAMETERS.refit_radii[1] * problem.matches.unit
    for each, speaks_for_it in ((estimate, True), (remaining, False)):
        near = problem.families.squared_residuals(each.scores.columns, problem.matches.data) <= radius**2
        of_repeated = near[:, repeated].sum(axis=1) > near[:, held].sum(axis=1)
        assert of_repeated.any() == speaks_for_it
    before, after = (np.median(each.scores.of_matches[repeated]) for each in (estimate, remaining))
    assert after > 1.2 * before


# When it ends


@pytest.mark.parametrize(("n_mismatches", "as_good", "first_only", "ends"), [
    (200, False, False, True), (200, False, True, True),  # what is unexplained looks as decoys do
    (200, True, False, False), (200, True, True, False),  # it looks better, and is more than what is explained
    (60, True, False, True), (60, True, True, False),  # it is less; the first family alone explains all or another one is asked
])  # fmt: skip
def test_another_round_pays_while_much_is_unexplained_that_looks_better_than_decoys(
    n_mismatches: int, as_good: bool, first_only: bool, ends: bool
) -> None:
    estimate, problem = found_in(np.vstack([plane(100, 0.5), mismatches(n_mismatches)]), "homography")
    inside = held_by(estimate.structures, problem).any(axis=0)
    unexplained = np.where(inside, 0.0, problem.matches.weights)
    of_matches = np.where(inside | as_good, 0.1, 0.9)
    scores = replace(estimate.scores, of_matches=of_matches, of_decoys=np.linspace(0.5, 1.0, 1000))
    selection = Selection(estimate.structures, unexplained, estimate.discarded)
    assert converged(selection, scores, problem, first_only) == ends
    none = estimate.structures.take(np.zeros(0, int))
    nothing = replace(selection, structures=none, unexplained=problem.matches.weights)
    assert not converged(nothing, scores, problem, first_only)
