"""What the search for models finds on scenes whose answer is known, and that nothing there is to find does it no harm."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from rendering import Correspondences, desk_scene, draw_correspondences, facade_scene, plane_scene, rigid_scene

from ruzhash_cv import filter_points, sampson_distance, transfer_error
from ruzhash_cv.bank import Bank, Found, Structures, coordinate_rows
from ruzhash_cv.models import FUNDAMENTAL, HOMOGRAPHY, KINDS, Frame
from ruzhash_cv.places import PLACE_RADIUS, find_keypoints, find_places
from ruzhash_cv.residuals import pack_models
from ruzhash_cv.sampling import REJECTIONS
from ruzhash_cv.schedule import rounds
from ruzhash_cv.search import Gathered, Search
from ruzhash_cv.selection import FEWEST_NATS

BOTH = KINDS


@dataclass
class Searched:
    """Correspondences, the frame they were searched in, and what was found."""

    points1: np.ndarray
    points2: np.ndarray
    frame: Frame
    search: Search
    found: Found

    def residuals(self) -> np.ndarray:
        """Residuals in pixels to each structure, by the package's public functions."""
        rows = []
        for packed, code in zip(self.found.structures.packed, self.found.structures.kinds, strict=True):
            matrix = self.frame.leave(packed[:9].reshape(1, 3, 3), KINDS[code])[0]
            distance = transfer_error if code == HOMOGRAPHY else sampson_distance
            rows.append(distance(self.points1, self.points2, matrix))
        return np.array(rows)


def set_up(
    points1: np.ndarray, points2: np.ndarray, families: tuple[str, ...] = BOTH, *, seed: int = 0, n_jobs: int = 1
) -> tuple[Frame, Search]:
    """A search as the pipeline makes it."""
    frame = Frame.around(points1, points2)
    pairs = frame.enter(points1, points2)
    places = find_places(pairs, PLACE_RADIUS * frame.scale)
    return frame, Search(
        pairs, places, find_keypoints(pairs), frame.scale, families, np.random.default_rng(seed), n_jobs
    )


def run(
    points1: np.ndarray, points2: np.ndarray, families: tuple[str, ...] = BOTH, *, seed: int = 0, n_jobs: int = 1
) -> Searched:
    frame, search = set_up(points1, points2, families, seed=seed, n_jobs=n_jobs)
    return Searched(points1, points2, frame, search, search.run())


def of(drawn: Correspondences, families: tuple[str, ...] = BOTH, *, seed: int = 0, n_jobs: int = 1) -> Searched:
    return run(drawn.points1, drawn.points2, families, seed=seed, n_jobs=n_jobs)


@pytest.fixture(scope="module")
def facade() -> Correspondences:
    return draw_correspondences(facade_scene(3, rng=5), 400, mismatch_rate=0.4, noise=0.5, weights="even", rng=6)


@pytest.fixture(scope="module")
def searched(facade: Correspondences) -> Searched:
    return of(facade, ("homography",))


# What is found


def test_every_plane_is_a_structure(facade: Correspondences, searched: Searched) -> None:
    residuals, tolerances = searched.residuals(), searched.found.tolerances
    inside = residuals <= tolerances[:, None]
    for plane in (1, 2, 3):
        assert inside[:, facade.labels == plane].mean(axis=1).max() > 0.9
    assert inside[:, facade.labels == 0].any(axis=0).mean() < 0.1


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_one_plane_is_found_among_mismatches(rate: float) -> None:
    drawn = draw_correspondences(plane_scene(rng=1), 300, mismatch_rate=rate, noise=0.5, rng=2)
    result = of(drawn)
    assert result.found.structures.kinds[0] == HOMOGRAPHY
    strongest = result.residuals()[0] <= result.found.tolerances[0]
    assert strongest[drawn.labels > 0].mean() > 0.95
    assert strongest[drawn.labels == 0].mean() < 0.1


def test_a_rigid_scene_without_planes_is_one_fundamental_matrix() -> None:
    drawn = draw_correspondences(rigid_scene(rng=1), 300, mismatch_rate=0.3, noise=0.5, rng=2)
    result = of(drawn)
    assert result.found.structures.kinds[0] == FUNDAMENTAL
    strongest = result.residuals()[0] <= result.found.tolerances[0]
    assert strongest[drawn.labels > 0].mean() > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_structures_and_columns_are_of_the_families_asked_for(facade: Correspondences, kind: str) -> None:
    found = of(facade, (kind,)).found
    assert len(found.structures) > 0
    assert len(found.columns) > 0
    assert set(found.structures.kinds) | set(found.columns.kinds) == {KINDS.index(kind)}


def test_every_structure_has_enough_evidence(searched: Searched) -> None:
    assert searched.found.evidences.min() >= FEWEST_NATS


def test_a_noisier_plane_gets_a_wider_tolerance() -> None:
    tolerances = []
    for noise in (0.3, 3.0):
        drawn = draw_correspondences(plane_scene(rng=1), 300, mismatch_rate=0.3, noise=noise, rng=2)
        tolerances.append(of(drawn, ("homography",)).found.tolerances[0])
    assert tolerances[1] > 3 * tolerances[0]


def test_what_is_found_is_well_formed(searched: Searched) -> None:
    found = searched.found
    m, k = len(found.columns), len(found.structures)
    assert found.structures.packed.shape == (k, 18)
    assert found.columns.packed.shape == (m, 18)
    assert found.radii.shape == found.evidences.shape == found.tolerances.shape == (k,)
    assert found.significances.shape == (m,)
    assert ((found.significances > 0) & (found.significances <= 1)).all()
    assert np.isfinite(found.structures.packed).all()
    np.testing.assert_allclose(np.linalg.norm(found.structures.packed[:, :9], axis=1), 1.0)
    assert found.n_models >= m
    assert set(found.rejected) == set(REJECTIONS)


def test_columns_remember_the_places_that_made_them(searched: Searched) -> None:
    makers = searched.found.columns.makers[:, :4]
    assert np.isin(makers, searched.search.places).all()
    assert all(len(set(row)) == 4 for row in makers.tolist())
    assert (searched.found.columns.makers[:, 4:] == -1).all()
    assert (searched.found.structures.makers == -1).all()


def test_a_sparse_plane_under_objects_is_gleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some 40 matches of the desk span the image; those of four objects and mismatches are their neighbours."""
    scenes = [
        draw_correspondences(desk_scene(4, rng=seed), 350, mismatch_rate=0.4, noise=1.0, weights="even", rng=seed)
        for seed in (2, 11, 20, 41)
    ]

    def share_found() -> float:
        # The desk is the first body.
        residuals = [of(drawn, seed=seed).residuals()[:, drawn.labels == 1] for drawn in scenes for seed in range(3)]
        return float(np.mean([(rows.min(axis=0) < 6.0).mean() for rows in residuals]))

    gleaned = share_found()
    assert gleaned > 0.8
    monkeypatch.setattr("ruzhash_cv.search.MOST_GLEANINGS", 0)
    assert share_found() < gleaned - 0.2


def test_the_more_matches_are_left_over_the_more_samples_are_gleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1,000 matches 600 are mismatches, and three boxes on the desk have 15 to 26 each: 60 samples miss some of them."""
    drawn = draw_correspondences(desk_scene(3, rng=3), 1000, mismatch_rate=0.6, noise=2.0, rng=3)

    def share_found() -> float:
        masks = (filter_points(drawn.points1, drawn.points2, rng=seed).inlier_mask for seed in range(8))
        return float(np.mean([mask[drawn.labels > 0].mean() for mask in masks]))

    gleaned = share_found()
    assert gleaned > 0.93
    monkeypatch.setattr("ruzhash_cv.search.GLEANED_PER_MATCH", 0.1)
    assert share_found() < gleaned - 0.02


def test_rounds_go_on_until_a_plane_among_crowding_mismatches_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine of ten matches lie 10 to 50 px off: copies of the plane are found first, some of them in every round."""
    scenes = [
        draw_correspondences(plane_scene(rng=seed), 600, mismatch_rate=0.9, mismatches="nearby", rng=seed)
        for seed in range(6)
    ]

    def mean_f1() -> float:
        kept = [(filter_points(drawn.points1, drawn.points2).inlier_mask, drawn.labels > 0) for drawn in scenes]
        return float(np.mean([2 * (mask & true).sum() / (mask.sum() + true.sum()) for mask, true in kept]))

    found = mean_f1()
    assert found > 0.8
    monkeypatch.setattr("ruzhash_cv.schedule.MOST_ROUNDS", 2)
    assert mean_f1() < found - 0.2


@pytest.mark.parametrize("n", [60, 400])
def test_from_the_third_round_on_half_of_the_neighbourhood_samples_are_guided(n: int) -> None:
    schedule = [(turn, steps) for turn, (_, steps) in enumerate(rounds(("homography",), n))]
    assert len(schedule) == 5
    for turn, steps in schedule:
        local = [step for step in steps if step.sizes != (0,)]
        assert sum(step.n_samples for step in local) == 2**turn * min(240, 2 * n)
        assert [step.strictness for step in local] == ([0.0] if turn < 2 else [0.0, 6.0])
        assert len({step.n_samples for step in local}) == 1
        assert [step.strictness for step in steps if step.sizes == (0,)] == [1.0 if turn < 2 else 6.0]


def test_planes_come_before_fundamental_matrices() -> None:
    kinds = [(alone, {step.kind for step in steps}) for alone, steps in rounds(KINDS, 400)]
    assert kinds == [(True, {"homography"}), (False, {"fundamental"}), *[(False, set(KINDS))] * 4]


def test_planes_are_gleaned_after_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, glean = [], Search._glean
    monkeypatch.setattr(Search, "_glean", lambda search, *rest: rounds.append(1) or glean(search, *rest))
    points1, points2 = np.random.default_rng(0).uniform(0, 600, (2, 150, 2))
    run(points1, points2)
    assert len(rounds) == 5


@pytest.mark.parametrize(
    ("explained", "nats_per_vote", "planes_alone", "over"),
    [
        (0.6, 1.1, False, True),
        (0.6, 0.9, False, False),
        (0.4, 9.0, False, False),
        (0.6, 1.4, True, False),
        (0.0, 0.0, False, False),
    ],
)
def test_rounds_end_where_structures_explain_much_and_well(
    searched: Searched,
    monkeypatch: pytest.MonkeyPatch,
    explained: float,
    nats_per_vote: float,
    planes_alone: bool,
    over: bool,
) -> None:
    search, n = searched.search, len(searched.search.votes)
    monkeypatch.setattr(Search, "_is_plain", lambda *_: False)
    left = np.where(np.arange(n) < explained * n, 0.0, search.votes)
    nats = np.array([nats_per_vote * (search.votes.sum() - left.sum())])
    structures = Structures(Bank(), np.zeros(1, np.int64), nats, left, np.zeros(1))
    assert search._is_over(structures, Gathered(n, 10), planes_alone) is over


def test_guided_samples_prefer_what_agrees_with_its_neighbours(searched: Searched) -> None:
    search, quality = searched.search, np.linspace(0.0, 10.0, len(searched.search.pairs))
    even, strict = (search._guide(quality, strictness) / search.votes for strictness in (1.0, 6.0))
    assert (even > 0).all()
    assert (np.diff(even) > 0).all()
    # At the median a quarter, and strictly a forty-ninth.
    middle = len(quality) // 2
    np.testing.assert_allclose([even[middle], strict[middle]], [1 / 4, 1 / 49], rtol=1e-6)


# Where there is nothing to find


def test_points_that_agree_on_nothing_hold_no_structure() -> None:
    for seed in range(3):
        points1, points2 = np.random.default_rng(seed).uniform(0, 600, (2, 150, 2))
        assert len(run(points1, points2).found.structures) == 0


LINE = np.column_stack([np.linspace(0, 600, 60), np.linspace(0, 300, 60)])
DEGENERATE = {
    "one place": np.full((60, 2), 5.0),
    "a line": LINE,
    "two places": np.repeat([[0.0, 0.0], [500.0, 300.0]], 30, axis=0),
    "eight points": np.random.default_rng(0).uniform(0, 500, (8, 2)),
    "one point": np.zeros((1, 2)),
}


@pytest.mark.parametrize("families", [BOTH, ("homography",), ("fundamental",)], ids=["auto", *KINDS])
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_points_are_searched_in_vain_and_in_silence(name: str, families: tuple[str, ...]) -> None:
    points = DEGENERATE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = run(points, points + [7.0, 3.0], families)
    assert np.isfinite(result.found.structures.packed).all()
    assert set(result.found.structures.kinds) <= {KINDS.index(kind) for kind in families}
    if name not in ("a line", "eight points"):
        assert len(result.found.structures) == 0


def test_rejected_samples_are_counted() -> None:
    assert run(LINE, LINE + 3.0, ("homography",)).found.rejected["collinear"] > 0


# The same again


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_same_seed_finds_the_same_for_any_number_of_threads(facade: Correspondences, n_jobs: int) -> None:
    first, second = of(facade, seed=3).found, of(facade, seed=3, n_jobs=n_jobs).found
    for name in ("structures", "columns"):
        for part in ("packed", "kinds", "makers"):
            np.testing.assert_array_equal(getattr(getattr(first, name), part), getattr(getattr(second, name), part))
    for name in ("radii", "evidences", "significances"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert (first.rejected, first.n_models) == (second.rejected, second.n_models)


def test_another_seed_draws_other_samples(facade: Correspondences) -> None:
    first, second = of(facade, seed=3).found, of(facade, seed=4).found
    assert (
        first.columns.packed.shape != second.columns.packed.shape
        or (first.columns.packed != second.columns.packed).any()
    )


# Its services to the pipeline


def test_a_true_plane_weighs_much_and_a_chance_model_nothing(facade: Correspondences, searched: Searched) -> None:
    search = searched.search
    far = np.array([[[0.01, 0.0, 50.0], [0.0, 0.01, 50.0], [0.0, 0.0, 1.0]]])  # all points to one, far away
    true = searched.found.structures.packed[:1]
    packed = np.vstack([true, pack_models(far, HOMOGRAPHY)])
    bank = Bank(packed, np.zeros(2, np.uint8), np.full((2, 7), -1, np.int64))
    decoys = coordinate_rows(search.draw_decoys(200))
    weights, _, rows, others = search.weigh(bank, search.votes, coordinate_rows(search.pairs), search.places, decoys)
    assert weights[0] > 0.5
    assert weights[1] == 0.0
    assert rows.row_sums(weights).shape == (400,)
    assert others.row_sums(weights).shape == (decoys.shape[1],)
    own = facade.labels == np.argmax(np.bincount(facade.labels[searched.residuals()[0] < 2.0], minlength=4))
    assert rows.row_sums(weights)[own].mean() > 10 * rows.row_sums(weights)[facade.labels == 0].mean()


def test_decoys_pair_points_that_no_match_pairs(searched: Searched) -> None:
    search = searched.search
    decoys, pairs = search.draw_decoys(3000), search.pairs
    assert decoys.shape == (3000, 4)
    first, second = (
        np.abs(decoys[:, None, half] - pairs[None, :, half]).max(axis=2) for half in (slice(0, 2), slice(2, 4))
    )
    assert first.min(axis=1).max() == 0.0
    assert second.min(axis=1).max() == 0.0
    # Nowhere is a match that begins where a decoy begins and ends within 10 px of where it ends.
    assert not ((first < 1e-12) & (second < 10.0 * search.scale)).any()


def test_structures_found_in_a_subset_are_polished_with_all_correspondences() -> None:
    scene = plane_scene(rng=1)
    drawn = draw_correspondences(scene, 1500, mismatch_rate=0.2, noise=1.0, rng=2)
    exact = draw_correspondences(scene, 300, mismatch_rate=0.0, noise=0.0, rng=3)
    frame, everything = set_up(drawn.points1, drawn.points2, ("homography",))
    few = slice(0, 60)
    search = Search(
        everything.pairs[few], everything.places[few], find_keypoints(everything.pairs[few]), frame.scale,
        ("homography",), np.random.default_rng(0), 1,
    )  # fmt: skip
    found = search.run()

    def error() -> float:
        return float(np.mean(Searched(exact.points1, exact.points2, frame, search, found).residuals()[0]))

    before = error()
    search.polish(found, coordinate_rows(everything.pairs), everything.votes)
    assert error() < 0.5 * before


# Banks


def test_banks_are_taken_from_and_joined_row_by_row(searched: Searched) -> None:
    bank = searched.found.columns
    half = np.arange(len(bank)) % 2 == 0
    joined = Bank.join([bank.take(half), bank.take(~half)])
    assert len(joined) == len(bank)
    np.testing.assert_array_equal(joined.take(np.arange(half.sum())).packed, bank.packed[half])
    np.testing.assert_array_equal(joined.makers[half.sum() :], bank.makers[~half])
    assert len(Bank()) == len(Bank.join([Bank(), Bank()])) == 0
