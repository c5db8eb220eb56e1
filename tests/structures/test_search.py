"""What the search finds on scenes whose answer is known, what it costs at most, and what leads it."""

from __future__ import annotations

import copy
import warnings
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rendering import Correspondences, desk_scene, draw_correspondences, facade_scene, plane_scene, rigid_scene
from ruzhash_cv.families.solving import FAMILIES
from ruzhash_cv.families.two_view import squared_residuals
from ruzhash_cv.matchset import MatchSet
from ruzhash_cv.structures import search as module
from ruzhash_cv.structures.evidence import MOST_STRUCTURES
from ruzhash_cv.structures.search import (
    BRANCHES,
    MOST_ROUNDS,
    N_COLUMNS,
    N_DECOYS,
    N_TREES,
    PLANS,
    SIGNIFICANCE,
    SUBSAMPLE,
    Columns,
    Found,
    Scorer,
    Search,
    best_first,
    score,
)

from ruzhash_cv import RuzHashForest, filter_points
from ruzhash_cv.preferences import SATURATION, embed
from ruzhash_cv.sampling import REJECTIONS

PLANES, MOTIONS = FAMILIES["homography"], FAMILIES["fundamental"]
BOTH = PLANES, MOTIONS
#: Families to sample and families that may be structures, by the option `model`.
ASKED = {"auto": (BOTH, BOTH), "homography": ((PLANES,), (PLANES,)), "fundamental": (BOTH, (MOTIONS,))}
each_model = pytest.mark.parametrize("model", ASKED)
#: Of seven points there may be three fundamental matrices.
MOST_SOLUTIONS = {"homography": 1, "fundamental": 3}


def run(points1: np.ndarray, points2: np.ndarray, model: str = "auto", seed: int = 0, n_jobs: int = 1) -> Found:
    """Search as `filter_points` does."""
    matches = MatchSet.of(points1, points2)
    return Search(matches, *ASKED[model], np.random.default_rng(seed), n_jobs).run()


def residuals_of(found: Found, points1: np.ndarray, points2: np.ndarray) -> np.ndarray:
    """Residuals (k, n) of all matches to each structure, in units of its tolerance."""
    matches = MatchSet.of(points1, points2)
    structures = found.structures
    squared = squared_residuals(BOTH, structures.codes, structures.models, matches.data)
    return (np.sqrt(squared) / (structures.tolerances[:, None] * matches.length))[:, matches.where]


@pytest.fixture(scope="module")
def facade() -> Correspondences:
    return draw_correspondences(facade_scene(3, rng=5), 400, mismatch_rate=0.4, noise=0.5, weights="even", rng=6)


@pytest.fixture(scope="module")
def found(facade: Correspondences) -> Found:
    return run(facade.points1, facade.points2, "homography")


# What is found


def test_every_plane_is_a_structure(facade: Correspondences, found: Found) -> None:
    inside = residuals_of(found, facade.points1, facade.points2) <= 1.0
    for plane in (1, 2, 3):
        assert inside[:, facade.labels == plane].mean(axis=1).max() > 0.85
    assert inside[:, facade.labels == 0].any(axis=0).mean() < 0.15


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_one_plane_is_found_among_mismatches(rate: float) -> None:
    drawn = draw_correspondences(plane_scene(rng=1), 300, mismatch_rate=rate, noise=0.5, rng=2)
    result = run(drawn.points1, drawn.points2)
    assert result.structures.codes[0] == 0
    strongest = residuals_of(result, drawn.points1, drawn.points2)[0] <= 1.0
    assert strongest[drawn.labels > 0].mean() > 0.95
    assert strongest[drawn.labels == 0].mean() < 0.1


def test_a_rigid_scene_without_planes_is_one_fundamental_matrix() -> None:
    drawn = draw_correspondences(rigid_scene(rng=1), 300, mismatch_rate=0.3, noise=0.5, rng=2)
    result = run(drawn.points1, drawn.points2)
    assert result.structures.codes[0] == 1
    strongest = residuals_of(result, drawn.points1, drawn.points2)[0] <= 1.0
    assert strongest[drawn.labels > 0].mean() > 0.9


@each_model
def test_structures_are_of_the_families_admitted_and_columns_of_those_sampled(
    facade: Correspondences, model: str
) -> None:
    result = run(facade.points1, facade.points2, model)
    sampled, admitted = ASKED[model]
    assert len(result.structures) > 0
    assert {sampled[code] for code in result.structures.codes} <= set(admitted)
    assert set(result.scorer.columns.codes) <= set(range(len(sampled)))


def test_a_noisier_plane_gets_a_wider_tolerance() -> None:
    tolerances = []
    for noise in (0.3, 3.0):
        drawn = draw_correspondences(plane_scene(rng=1), 300, mismatch_rate=0.3, noise=noise, rng=2)
        tolerances.append(run(drawn.points1, drawn.points2, "homography").structures.tolerances[0])
    assert tolerances[1] > 3 * tolerances[0]


def test_what_is_found_is_well_formed(facade: Correspondences, found: Found) -> None:
    m, k, n = len(found.scorer.columns), len(found.structures), len(MatchSet.of(facade.points1, facade.points2))
    assert found.structures.models.shape == (k, 9)
    assert found.scorer.columns.models.shape == (m, 9)
    assert (np.diff(found.structures.evidences) <= 0).all()
    assert (found.structures.evidences > 0).all()
    assert (found.scorer.columns.weights >= 0).all()
    assert k <= m <= N_COLUMNS + k
    assert (found.scores.shape, found.null_scores.shape) == ((n,), (len(found.null),))
    assert 0 < len(found.null) <= N_DECOYS
    for models in (found.structures.models, found.scorer.columns.models):
        np.testing.assert_allclose(np.linalg.norm(models, axis=1), 1.0)
    assert set(found.rejected) == set(REJECTIONS)


def test_the_last_columns_are_the_structures_and_nobody_made_them(found: Found) -> None:
    k = len(found.structures)
    np.testing.assert_array_equal(found.scorer.columns.models[-k:], found.structures.models)
    assert (found.scorer.columns.members[-k:] == -1).all()


def test_columns_remember_the_duplicate_groups_they_were_sampled_from(facade: Correspondences, found: Found) -> None:
    matches = MatchSet.of(facade.points1, facade.points2)
    members = found.scorer.columns.members[: -len(found.structures), : PLANES.sample_size]
    assert np.isin(members, matches.groups).all()
    assert all(len(set(row)) == PLANES.sample_size for row in members.tolist())


def test_columns_of_several_families_are_joined_and_taken_row_by_row(facade: Correspondences) -> None:
    columns = run(facade.points1, facade.points2).scorer.columns
    half = np.arange(len(columns)) % 2 == 0
    joined = Columns.join([columns.take(half), columns.take(~half)])
    order = np.concatenate([np.flatnonzero(half), np.flatnonzero(~half)])
    for name in ("models", "codes", "weights", "members"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(columns, name)[order])
    fours = joined.take(np.flatnonzero(joined.codes == 0))
    assert joined.members.shape[1] == MOTIONS.sample_size
    assert (fours.members[:, PLANES.sample_size :] == -1).all()


def test_mismatches_look_worse_than_matches_of_structures(facade: Correspondences, found: Found) -> None:
    where = MatchSet.of(facade.points1, facade.points2).where
    scores = found.scores[where]
    assert np.median(scores[facade.labels == 0]) > np.quantile(scores[facade.labels > 0], 0.95)
    assert np.median(found.null_scores) > np.quantile(scores[facade.labels > 0], 0.95)


# What leads it


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 40))
def test_what_looks_best_of_what_is_left_is_sampled_most(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random(n)
    left = rng.uniform(0.2, 1.0, n) * (rng.random(n) < 0.7)
    guide = best_first(left, scores)
    assert guide.shape == (n,)
    assert np.isfinite(guide).all()
    np.testing.assert_array_equal(guide > 0, left > 0)
    order = np.argsort(scores)
    order = order[left[order] > 0]
    assert (np.diff(guide[order] / left[order]) < 0).all()


def test_at_the_median_a_match_has_the_weight_of_its_votes() -> None:
    """(1 - q) / q is 1 at q = 1/2, 3 at the first quartile and 1/3 at the third."""
    guide = best_first(np.full(100, 0.5), np.linspace(0.1, 0.9, 100))
    np.testing.assert_allclose(guide[[24, 49, 74]], [1.5, 0.5, 0.5 / 3], rtol=1e-6)


@pytest.mark.parametrize("free", [0.0, 4.0])
def test_a_model_s_weight_is_the_cubed_share_of_its_support_that_is_not_chance(free: float) -> None:
    """max(0, 1 - D / S)^3; how much single decoys prefer a model does not matter, only how many do."""
    rng = np.random.default_rng(0)
    search = Search(MatchSet.of(*strangers(90, 0)), BOTH, BOTH, rng, 1)
    votes, n_decoys = search._matches.votes, len(search._decoys)
    pairs = np.array([(support, near) for support in (0.0, 0.1, 0.3, 0.9) for near in (0, 20, 200)])
    sums, near, expected = pairs[:, 0] * votes.sum(), pairs[:, 1].astype(int), 0.37
    chance, mean = expected * (1 + near) / (1 + n_decoys), (sums - free) / votes.sum()
    weights = [(1.0 - c / s) ** SIGNIFICANCE if s > c else 0.0 for c, s in zip(chance, mean, strict=True)]
    assert 0 < np.count_nonzero(weights) < len(weights)
    np.testing.assert_allclose(search._significance(sums, near, expected, free), weights, rtol=1e-12)


def test_a_sparse_plane_under_objects_is_found() -> None:
    """Some 40 matches of the desk span the image; those of four objects and mismatches are their neighbours."""
    shares = []
    for scene_seed in (2, 11, 20, 41):
        drawn = draw_correspondences(
            desk_scene(4, rng=scene_seed), 350, mismatch_rate=0.4, noise=1.0, weights="even", rng=scene_seed
        )
        for seed in range(3):
            residuals = residuals_of(run(drawn.points1, drawn.points2, seed=seed), drawn.points1, drawn.points2)
            # The desk is the first body.
            shares.append((residuals[:, drawn.labels == 1] <= 1.0).any(axis=0).mean())
    assert np.mean(shares) > 0.7


def test_rounds_go_on_until_a_plane_of_one_match_in_twenty_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    scenes = [
        draw_correspondences(plane_scene(rng=seed), 600, mismatch_rate=0.95, noise=0.7, rng=seed) for seed in range(6)
    ]

    def n_found() -> int:
        masks = [filter_points(drawn.points1, drawn.points2, model="homography").inlier_mask for drawn in scenes]
        return sum(bool(mask[drawn.labels > 0].mean() > 0.8) for mask, drawn in zip(masks, scenes, strict=True))

    assert n_found() >= 5
    monkeypatch.setattr(module, "MOST_ROUNDS", 1)
    assert n_found() <= 4


# What it costs at most


def most_models(model: str, n: int) -> int:
    """The number of models sampled if every round is held and every sample has all its solutions."""
    families = ASKED[model][0]
    return sum(
        MOST_SOLUTIONS[family.name] * min(PLANS[family.codimension].n_samples, n) * 2 ** max(turn - 1, 0)
        for family in families
        for turn in range(MOST_ROUNDS)
    )


def crowd(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Mismatches within 50 pixels of where a plane would have them."""
    rng = np.random.default_rng(seed)
    points1 = rng.uniform(0, (1280, 960), (n, 2))
    length, angle = 50 * np.sqrt(rng.random(n)), 2 * np.pi * rng.random(n)
    return points1, points1 + 20.0 + length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])


def strangers(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    points1, points2 = np.random.default_rng(seed).uniform(0, (1280, 960), (2, n, 2))
    return points1, points2


@each_model
@pytest.mark.parametrize("make", [strangers, crowd], ids=["mismatches", "crowding mismatches"])
@pytest.mark.parametrize("n", [12, 300, 1024, 5000])
def test_hard_matches_cost_no_more_models_than_the_plan_has(make: Any, n: int, model: str) -> None:
    points1, points2 = make(n, 0)
    result = filter_points(points1, points2, model=model)
    assert 0 < result.n_models <= most_models(model, n)
    assert len(result.models) <= MOST_STRUCTURES


def test_each_round_draws_as_many_samples_as_all_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of mismatches all rounds are held."""
    counts = []
    for n_rounds in range(2, 5):
        monkeypatch.setattr(module, "MOST_ROUNDS", n_rounds)
        counts.append(run(*strangers(600, 0), "homography").n_models)
    np.testing.assert_allclose(np.divide(counts[1:], counts[:-1]), 2.0, atol=0.1)


def test_the_plan_does_not_grow_with_the_number_of_matches() -> None:
    assert most_models("auto", 5000) == most_models("auto", 10**6) < 100_000


def test_a_plane_without_mismatches_takes_one_round() -> None:
    drawn = draw_correspondences(plane_scene(rng=1), 300, mismatch_rate=0.0, noise=0.5, rng=2)
    result = run(drawn.points1, drawn.points2, "homography")
    assert result.n_models <= PLANS[2].n_samples
    # Where planes explain all, no motion is sampled.
    assert set(run(drawn.points1, drawn.points2).scorer.columns.codes) == {0}


# Where there is nothing to find


@each_model
def test_points_that_agree_on_nothing_hold_no_structure(model: str) -> None:
    n_found = [len(run(*strangers(150, seed), model).structures) for seed in range(6)]
    # Less than one false alarm is expected in each.
    assert np.mean(n_found) < 0.5


LINE = np.column_stack([np.linspace(0, 600, 60), np.linspace(0, 300, 60)])
DEGENERATE = {
    "one place": np.full((60, 2), 5.0),
    "a line": LINE,
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
        result = run(points, points + [7.0, 3.0], model)
    assert np.isfinite(result.structures.models).all()
    assert ((result.scores > 0) & (result.scores <= 1)).all()
    if name not in ("a line", "eight points"):
        assert len(result.structures) == 0


def test_rejected_samples_are_counted() -> None:
    assert run(LINE, LINE + 3.0, "homography").rejected["collinear"] > 0


# The same again


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_same_seed_finds_the_same_for_any_number_of_threads(facade: Correspondences, n_jobs: int) -> None:
    first, second = (run(facade.points1, facade.points2, seed=3, n_jobs=jobs) for jobs in (1, n_jobs))
    for room, names in (
        ("structures", ("models", "codes", "steps", "evidences")),
        ("scorer.columns", ("models", "weights", "members")),
    ):
        for name in names:
            np.testing.assert_array_equal(attrgetter(f"{room}.{name}")(first), attrgetter(f"{room}.{name}")(second))
    for name in ("scores", "null_scores", "null"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert (first.rejected, first.n_models) == (second.rejected, second.n_models)


def test_another_seed_draws_other_samples(facade: Correspondences) -> None:
    first, second = (run(facade.points1, facade.points2, seed=seed) for seed in (3, 4))
    assert first.scorer.columns.models.tobytes() != second.scorer.columns.models.tobytes()


# Scores


class Told:
    """Calls `score` and keeps its arguments, the generator as it was."""

    def __init__(self) -> None:
        self.arguments: tuple[Any, ...] = ()

    def __call__(self, *arguments: Any) -> tuple[np.ndarray, np.ndarray, Scorer]:
        self.arguments = copy.deepcopy(arguments)
        return score(*arguments)


def rows_of(scorer: Scorer, data: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The rows of a forest, from their formula."""
    columns = scorer.columns
    squared = squared_residuals(scorer.families, columns.codes, columns.models, data)
    sums = columns.weights[:, None] * embed(squared, scorer.length, groups, columns.members)
    return 1.0 - np.exp(-SATURATION * sums.T / scorer.most)


@each_model
@pytest.mark.parametrize("n", [60, 400])
def test_anomaly_scores_are_those_of_one_ruzhash_forest(monkeypatch: pytest.MonkeyPatch, n: int, model: str) -> None:
    """2^(-h / c) with h the mean path length in the trees, and c that expected of as many rows as a tree is grown on."""
    drawn = draw_correspondences(plane_scene(rng=3), n, mismatch_rate=0.4, noise=0.7, rng=4)
    told = Told()
    monkeypatch.setattr(module, "score", told)
    result = filter_points(drawn.points1, drawn.points2, model=model, rng=7)
    monkeypatch.undo()
    columns, matches, null, _, rng, _ = told.arguments
    searched = Search(MatchSet.of(drawn.points1, drawn.points2), *ASKED[model], np.random.default_rng(7), 1).run()
    np.testing.assert_array_equal(searched.scorer.columns.models, columns.models)
    np.testing.assert_array_equal(searched.null, null)

    forest = RuzHashForest(n_trees=N_TREES, subsample_size=SUBSAMPLE, branching_factor=BRANCHES, rng=rng)
    path_lengths = forest.fit_path_lengths(rows_of(searched.scorer, matches.data, matches.groups))
    psi = min(SUBSAMPLE, len(matches))
    c = np.log(psi) / np.log(BRANCHES)
    np.testing.assert_allclose(result.anomaly_scores, (2.0 ** (-path_lengths / c))[matches.where], rtol=2e-2)
    np.testing.assert_array_equal(result.anomaly_scores, searched.scores[matches.where])
    # Decoys are members of no sample, and train no tree.
    null_rows = rows_of(searched.scorer, null, np.full(len(null), -2))
    np.testing.assert_allclose(searched.null_scores, 2.0 ** (-forest.path_lengths(null_rows) / c), rtol=2e-2)


def test_matches_beyond_those_searched_are_scored_by_the_same_forest(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = draw_correspondences(plane_scene(rng=3), 1500, mismatch_rate=0.4, noise=0.7, rng=4)
    told = Told()
    monkeypatch.setattr(module, "score", told)
    result = filter_points(drawn.points1, drawn.points2)
    scores, _, scorer = score(*told.arguments)
    searched, everything = told.arguments[1], MatchSet.of(drawn.points1, drawn.points2)
    rows = {tuple(row): at for at, row in enumerate(searched.data)}
    others = np.array([tuple(row) not in rows for row in everything.data])
    expected = np.empty(len(everything))
    expected[~others] = [scores[rows[tuple(row)]] for row in everything.data[~others]]
    expected[others] = scorer.others(everything.data[others], everything.groups[others])
    assert others.sum() == len(everything) - len(searched) > 400
    np.testing.assert_array_equal(result.anomaly_scores, expected[everything.where])
