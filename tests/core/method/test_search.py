"""What `filter_points` finds on scenes whose answer is known, what it costs at most, and what leads the search."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from drawn_scenes import desk_scene, plane_scene
from hypothesis import given, settings
from hypothesis import strategies as st
from rendering import draw_correspondences
from result_rows import structures
from stage_cases import matches_of, mismatches
from two_views import motion, plane

from ruzhash_cv import FilterResult, filter_points
from ruzhash_cv.core.method.evidence import MAX_STRUCTURES
from ruzhash_cv.core.method.parameters import PARAMETERS, Parameters
from ruzhash_cv.core.method.sampling import REJECTIONS, Problem, decoys_of_matches, decoys_of_unexplained
from ruzhash_cv.core.method.scene import Structures
from ruzhash_cv.core.method.search import Tried, best_first, has_more, search, settled, smallest_structure
from ruzhash_cv.filtering import Options, families_of, run

MODELS = "auto", "homography", "fundamental"
each_model = pytest.mark.parametrize("model", MODELS)


def filtered(data: np.ndarray, model: str = "auto", parameters: Parameters = PARAMETERS, seed: int = 0) -> FilterResult:
    return run(data[:, :2], data[:, 2:], families_of(model), parameters, Options(), np.random.default_rng(seed))


def tried(data: np.ndarray, model: str, **changed: Any) -> Tried:
    """Return what the search tries on matches (n, 4)."""
    return search(problem_of(data, model, **changed), np.random.default_rng(0))[2]


def problem_of(data: np.ndarray, model: str, **changed: Any) -> Problem:
    rng, matches, parameters = np.random.default_rng(0), matches_of(data), replace(PARAMETERS, **changed)
    return Problem(matches, decoys_of_matches(matches, parameters, rng), families_of(model), parameters)


# What is found


def test_a_sparse_plane_under_objects_is_found() -> None:
    """Some 40 matches of the desk span the image; those of four objects and mismatches are their neighbours."""
    shares = []
    for scene_seed in (2, 11, 20, 41):
        scene = desk_scene(4, rng=scene_seed)
        drawn = draw_correspondences(scene, 350, mismatch_rate=0.4, noise=1.0, weights="even", rng=scene_seed)
        # The desk is the first body.
        results = [filter_points(drawn.points1, drawn.points2, rng=seed) for seed in range(3)]
        shares += [result.inlier_mask[drawn.labels == 1].mean() for result in results]
    assert np.mean(shares) > 0.7


# What leads it


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 40))
def test_the_best_of_the_unexplained_matches_are_sampled_most(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    unexplained = rng.uniform(0.2, 1.0, n) * (rng.random(n) < 0.7)
    proposal = best_first(unexplained, scores)
    assert np.isfinite(proposal).all()
    np.testing.assert_array_equal(proposal > 0, unexplained > 0)
    order = np.argsort(scores)
    order = order[unexplained[order] > 0]
    assert (np.diff(proposal[order] / unexplained[order]) < 0).all()


def test_at_the_median_a_match_is_proposed_by_its_weight() -> None:
    """(1 - q) / q is 1 at q = 1/2, 3 at the first quartile and 1/3 at the third."""
    proposal = best_first(np.full(100, 0.5), np.linspace(0.1, 0.9, 100))
    np.testing.assert_allclose(proposal[[24, 49, 74]], [1.5, 0.5, 0.5 / 3], rtol=1e-6)


def test_a_plane_of_one_match_in_twenty_takes_several_rounds() -> None:
    drawn = [draw_correspondences(plane_scene(rng=at), 600, mismatch_rate=0.95, noise=0.7, rng=at) for at in range(6)]
    n_found = []
    for most in (1, PARAMETERS.max_rounds):
        parameters = replace(PARAMETERS, max_rounds=most)
        masks = (filtered(np.hstack([of.points1, of.points2]), "homography", parameters).inlier_mask for of in drawn)
        n_found.append(sum(mask[of.labels > 0].mean() > 0.8 for mask, of in zip(masks, drawn, strict=True)))
    assert n_found[0] <= 4 < 5 <= n_found[1]


@pytest.mark.parametrize("seed", range(3))
def test_facets_some_pixels_apart_are_not_one_wide_plane(seed: int) -> None:
    """A homography within 14 px of all 400 matches has more evidence than that of any facet."""
    rng = np.random.default_rng(seed)
    first, wrong = rng.uniform([0, 0], [900, 600], (400, 2)), rng.uniform([0, 0, 0, 0], [900, 600, 900, 600], (100, 4))
    facet = (first[:, 0] // 180).astype(int)
    slopes = np.array([0.0, 0.02, -0.02, 0.03, -0.02])[facet] * (first[:, 1] - 300)
    second = first + np.c_[40 + 12 * np.array([0, 1, 0, 1.4, -0.2])[facet], slopes] + rng.normal(0, 0.3, (400, 2))
    result = filtered(np.vstack([np.hstack([first, second]), wrong]), "homography", seed=seed)
    assert result.inlier_mask[:400].mean() > 0.99
    assert max(motion.noise_scale for motion in result.motions) < 1.0


def test_a_plane_without_mismatches_takes_one_round_and_no_motion() -> None:
    for model in ("homography", "auto"):
        assert tried(plane(300, 0.5), model).n_models <= PARAMETERS.plane_samples


def test_unexplained_matches_are_sampled_alone_only_if_they_lie_closer_together_than_decoys() -> None:
    rng = np.random.default_rng(0)
    first = rng.uniform((100, 700), (220, 800), (25, 2))
    moved = np.hstack([first, first + [300.0, -80.0] + rng.normal(0, 0.5, (25, 2))])
    for data, more in ((mismatches(100), False), (np.vstack([mismatches(100), moved]), True)):
        problem, done = problem_of(data, "homography"), Tried(PARAMETERS)
        decoys = decoys_of_unexplained(problem.matches, problem.matches.weights, PARAMETERS, rng)
        given = problem.matches.weights, problem.matches.weights, decoys, problem, rng
        assert has_more(done, Structures.none(), *given) == more
        assert (done.n_samples[0] > 0) == more


@pytest.mark.parametrize(
    ("explained", "before", "best", "ends"),
    [
        (10.0, 10.0, 0.9, True),  # a tenth is explained, and the others score as decoys do
        (10.0, 10.0, 0.1, False),
        (30.0, 30.0, 0.1, True),  # a good share is explained
        (10.0, 9.0, 0.9, False),  # more than a round earlier
        (0.0, 0.0, 0.9, False),
    ],
)
def test_a_search_settles_if_nothing_is_new_and_much_is_explained_or_all_but_mismatches(
    explained: float, before: float, best: float, ends: bool
) -> None:
    problem = problem_of(mismatches(100), "homography")
    unexplained = (np.arange(100) >= explained).astype(float)
    scores = SimpleNamespace(of_matches=np.full(100, best), of_decoys=np.linspace(0.5, 1.0, 100))
    assert settled(explained, before, unexplained, scores, problem) == ends


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
    data = make(n)
    # Each round draws as many samples as all before it; of seven points there may be three fundamental matrices.
    n_first = min(PARAMETERS.plane_samples, n) + 3 * min(PARAMETERS.motion_samples, n)
    assert 0 < tried(data, model).n_models <= n_first * 2 ** (PARAMETERS.max_rounds - 1)
    assert len(structures(filtered(data, model))) <= MAX_STRUCTURES


@each_model
@pytest.mark.parametrize("confidence", [None, 0.99])
@pytest.mark.parametrize("most", [1, 150, 1000])
def test_no_family_has_more_samples_than_asked(most: int, confidence: float | None, model: str) -> None:
    done = tried(mismatches(200), model, max_samples=most, confidence=confidence)
    assert max(done.n_samples.values()) <= most
    assert len(done.n_samples) == len(families_of(model))
    if confidence is not None:
        assert done.ended == f"{most} samples of a family are the most"


def test_with_a_confidence_the_search_does_not_give_up() -> None:
    data = mismatches(300)
    gave_up, went_on = tried(data, "auto"), tried(data, "auto", max_samples=20_000, confidence=0.9)
    assert gave_up.ended == "nothing is found, and matches score as mismatches do"
    assert went_on.n_rounds > gave_up.n_rounds


@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.99])
def test_the_search_ends_when_the_smallest_structure_was_sampled(confidence: float) -> None:
    """A round draws as many samples as all before it, and with more models tried the smallest structure is larger."""
    data = mismatches(60)
    done = tried(data, "homography", max_samples=10**6, confidence=confidence)
    problem = problem_of(data, "homography")
    share = smallest_structure(done, problem, 0) / problem.matches.weights.sum()
    wanted = np.log1p(-confidence) / np.log1p(-(share**4))
    assert "matches of one structure were sampled with confidence" in str(done.ended)
    assert wanted <= done.n_samples[0] <= 4 * wanted


def test_the_smallest_structure_is_the_least_that_chance_does_not_explain() -> None:
    data = mismatches(200)
    problem, done = problem_of(data, "homography"), tried(data, "homography")
    smallest = smallest_structure(done, problem, 0)
    family, n = problem.families[0], 200 - 4.0
    radius = problem.parameters.radii[problem.parameters.plane_widest_radius - problem.parameters.finest_radius]
    squared = family.squared_residuals(problem.decoys, done.columns.matrices)
    share = (1 + np.median((squared <= (radius * problem.matches.unit) ** 2).sum(axis=1))) / (1 + len(problem.decoys))

    def evidence(c: float) -> float:
        return float(c * np.log(c / n / share) + (n - c) * np.log((1 - c / n) / (1 - share)) - np.log(n * done.n))

    assert evidence(smallest - 4) > 0.0 >= evidence(smallest - 5)


# If there is nothing to find


@each_model
def test_points_that_agree_on_nothing_hold_no_structure(model: str) -> None:
    # Less than one false alarm is expected in each.
    assert np.mean([len(filtered(mismatches(150, seed), model).motions) for seed in range(6)]) < 0.5


DEGENERATE = {
    "one place": np.full((60, 2), 5.0),
    "a line": np.column_stack([np.linspace(0, 600, 60), np.linspace(0, 300, 60)]),
    "two places": np.repeat([[0.0, 0.0], [500.0, 300.0]], 30, axis=0),
    "eight points": np.random.default_rng(0).uniform(0, 500, (8, 2)),
    "one point": np.zeros((1, 2)),
}


@each_model
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_points_give_no_structure_and_no_warning(name: str, model: str) -> None:
    points = DEGENERATE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = filtered(np.hstack([points, points + [7.0, 3.0]]), model)
    assert all(np.isfinite(structure.matrix).all() for structure in structures(result))
    assert ((result.anomaly_scores > 0) & (result.anomaly_scores <= 1)).all()
    if name not in ("a line", "eight points"):
        assert len(result.motions) == 0
    if name == "a line" and model == "homography":
        assert tried(np.hstack([points, points + [7.0, 3.0]]), model).rejected[REJECTIONS.index("collinear")] > 0


def test_matches_beyond_those_searched_are_scored_as_the_others_are() -> None:
    data = np.vstack([motion(700, 0.5), mismatches(300)])
    scores = filtered(data, parameters=replace(PARAMETERS, max_searched=400)).anomaly_scores
    assert len(np.unique(scores)) > 500
    assert np.median(scores[700:]) > np.quantile(scores[:700], 0.9)
