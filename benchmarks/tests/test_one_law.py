"""The prototype of the next method runs, and tells a plane from a rigid scene."""

from __future__ import annotations

import numpy as np
import pytest
from one_law import filter_points
from one_law.candidates import Candidates, Names
from one_law.mixture import mix
from one_law.parameters import Parameters
from rendering import draw_correspondences, facade_scene, plane_scene, rigid_scene


def drawn(scene, noise):
    return draw_correspondences(scene, 400, mismatch_rate=0.3, noise=noise, mismatches="uniform", rng=2)


def test_a_planar_scene_is_one_plane():
    matches = drawn(plane_scene(rng=1), 1.0)
    result, true = filter_points(matches.points1, matches.points2), matches.labels > 0
    assert result.first_kind == "homography"
    assert set(result.labels[result.inlier_mask]) == {0}
    assert result.inlier_mask[true].mean() > 0.95
    assert result.inlier_mask[~true].mean() < 0.05


@pytest.mark.parametrize(("scene", "n_surfaces"), [(rigid_scene(rng=1), 1), (facade_scene(5, rng=0), 4)])
def test_a_static_scene_with_depth_is_one_motion_with_surfaces(scene, n_surfaces):
    matches = drawn(scene, 0.5)
    result, true = filter_points(matches.points1, matches.points2), matches.labels > 0
    assert result.first_kind == "fundamental"
    assert result.first_noise < 1.0
    largest = np.bincount(result.motion_labels[true] + 1)[1:].argmax()
    assert (result.motion_labels[true] == largest).mean() > 0.9
    assert len(set(result.labels[result.motion_labels == largest])) == n_surfaces
    assert result.inlier_mask[~true].mean() < 0.1


def test_with_a_threshold_all_that_lies_within_it_is_kept():
    matches = drawn(plane_scene(rng=1), 0.5)
    result = filter_points(matches.points1, matches.points2, threshold=3.0)
    assert result.inlier_mask[matches.labels > 0].mean() > 0.98


def test_nothing_is_found_among_random_matches():
    rng = np.random.default_rng(0)
    result = filter_points(*rng.uniform(0, 500, (2, 100, 2)))
    assert not result.inlier_mask.any()
    assert (result.inlier_probabilities == 0).all()


def test_a_threshold_leaves_scales_of_at_most_a_third_of_it():
    numbers = Parameters().within(3.0)
    assert (numbers.finest_scale, numbers.n_plane_scales, numbers.n_motion_scales) == (1.0, 1, 1)
    assert Parameters().within(30.0).n_plane_scales == 3


def test_the_mixture_is_what_em_in_numpy_makes_of_it():
    rng = np.random.default_rng(3)
    near = rng.random((2, 30)) < 0.6
    candidates = Candidates.of(Names(0, np.arange(2), -1), near, 3, 1)
    candidates.ratios.values[:] = rng.exponential(2.0, len(candidates.ratios.values))
    weights = rng.uniform(0.2, 1.0, 30)
    found = mix(candidates, [0, 1], weights, Parameters())
    q = np.zeros((2, 3, 30))
    for item in range(2):
        q[item][:, candidates.rows_of(item)] = candidates.values_of(item)
    shares, rest = np.full((2, 3), 0.7 / 6), 0.3
    for _ in range(Parameters().n_mixture_steps):
        by_density = weights / (rest + np.einsum("ks,ksn->n", shares, q))
        shares, rest = shares * (q @ by_density) + Parameters().prior_matches, rest * by_density.sum() + 1.0
        total = rest + shares.sum()
        shares, rest = shares / total, rest / total
    density = rest + np.einsum("ks,ksn->n", shares, q)
    assert found.shares == pytest.approx(shares)
    assert found.log_likelihood == pytest.approx(weights @ np.log(density))
