"""Decoys where mismatches stand, displaced matches as far as asked, and scores of all of them."""

from __future__ import annotations

import numpy as np
import pytest
from rendering import draw_correspondences, plane_scene

from ruzhash_cv.bank import Found, coordinate_rows
from ruzhash_cv.models import Frame
from ruzhash_cv.places import find_keypoints, find_places
from ruzhash_cv.scoring import N_DECOYS, N_DISPLACED, Scorer, displace, draw_null
from ruzhash_cv.search import Search


def searched(zoom: float = 1.0, n: int = 300, rate: float = 0.4) -> tuple[Search, Found, np.ndarray, np.ndarray]:
    drawn = draw_correspondences(plane_scene(rng=0), n, mismatch_rate=rate, noise=0.5, rng=0)
    first, second = drawn.points1, zoom * drawn.points2
    frame = Frame.around(first, second)
    pairs = frame.enter(first, second)
    places = find_places(pairs, frame.scale)
    search = Search(pairs, places, find_keypoints(pairs), frame.scale, ("homography",), np.random.default_rng(0), 1)
    found = search.run()
    return search, found, pairs, found.residuals(coordinate_rows(pairs))


@pytest.mark.parametrize("zoom", [0.3, 1.0, 3.0])
def test_displaced_matches_lie_between_one_tolerance_and_the_reach(zoom: float) -> None:
    search, found, pairs, residuals = searched(zoom)
    displaced = displace(search, found, pairs, residuals, 3.0)
    distances = found.residuals(coordinate_rows(displaced)) / (search.scale * found.tolerances)
    assert (distances > 1.0).all()
    assert (distances.min(axis=1) <= 3.0).all()
    assert N_DISPLACED / 3 < len(displaced) <= N_DISPLACED


def test_nothing_is_displaced_where_nothing_belongs_to_a_structure() -> None:
    search, found, pairs, residuals = searched()
    assert displace(search, found, pairs, np.full_like(residuals, np.inf), 3.0).shape == (0, 4)


@pytest.mark.parametrize("n_beyond", [0, 1, 2, 100])
def test_the_null_has_all_its_decoys_however_few_look_like_mismatches(n_beyond: int) -> None:
    search, found, pairs, residuals = searched()
    residuals = np.zeros_like(residuals)
    residuals[:n_beyond] = np.inf
    assert len(draw_null(search, found, pairs, residuals)) == N_DECOYS


def test_decoys_stand_where_mismatches_stand() -> None:
    """All matches in a corner belong to the structure, the others do not: hardly a decoy starts in the corner."""
    search, found, pairs, residuals = searched(n=2000)
    corner = pairs[:, 0] < np.quantile(pairs[:, 0], 0.3)
    decoys = draw_null(search, found, pairs, np.where(corner[:, None], 0.0, np.full_like(residuals, np.inf)))
    assert np.mean(decoys[:, 0] < pairs[corner, 0].max()) < 0.1


def test_matches_of_the_structures_look_better_than_decoys() -> None:
    search, found, pairs, residuals = searched()
    scorer = Scorer(search, found)
    scores = scorer.fit(coordinate_rows(pairs), residuals, search.places)
    null, nothing = (scorer.score(decoys) for decoys in (draw_null(search, found, pairs, residuals), pairs[:0]))
    assert (len(scores), len(null), len(nothing)) == (300, N_DECOYS, 0)
    own = (residuals <= search.scale * found.tolerances).any(axis=1)
    assert scores[own].max() < np.quantile(null, 0.1)


def test_what_agrees_with_nothing_is_less_anomalous_the_nearer_it_lies_to_a_structure() -> None:
    """Matches of the plane pushed ever further off it, beyond the reach of all preferences."""
    search, found, pairs, residuals = searched(rate=0.1)
    scorer = Scorer(search, found)
    scorer.fit(coordinate_rows(pairs), residuals, search.places)
    own = pairs[(residuals <= search.scale * found.tolerances).any(axis=1)]
    medians = []
    for pixels in (100.0, 200.0, 400.0):
        medians.append(np.median(scorer.score(own + [0.0, 0.0, 0.0, pixels * search.scale])))
    assert medians == sorted(medians)
    assert medians[0] < 0.99 * medians[2]
