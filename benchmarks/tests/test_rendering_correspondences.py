import numpy as np
import pytest
from drawn_scenes import desk_scene, facade_scene, rigid_scene
from rendering import draw_correspondences

from ruzhash_cv.datasets.pairs import transform


@pytest.fixture(scope="module")
def facade():
    return facade_scene(4, rng=5)


def errors(scene, drawn):
    return np.linalg.norm(transform(scene.homographies()[drawn.faces], drawn.points1) - drawn.points2, axis=1)


def test_true_correspondences_lie_on_their_plane_exactly_without_noise(facade):
    drawn = draw_correspondences(facade, 400, mismatch_rate=0.5, noise=0, rng=1)
    true = drawn.labels > 0
    exact = transform(drawn.homographies[drawn.labels[true] - 1], drawn.points1[true])
    np.testing.assert_allclose(drawn.points2[true], exact, atol=1e-6)


def test_true_correspondences_of_bodies_satisfy_their_fundamental_matrix():
    drawn = draw_correspondences(desk_scene(3, rng=1), 400, mismatch_rate=0.2, noise=0, weights="even", rng=1)
    true = drawn.labels > 0
    x1, x2 = (np.column_stack([p[true], np.ones(true.sum())]) for p in (drawn.points1, drawn.points2))
    lines = np.einsum("nij,nj->ni", drawn.fundamental_matrices[drawn.labels[true] - 1], x1)
    assert (np.abs((x2 * lines).sum(axis=1)) / np.linalg.norm(lines[:, :2], axis=1)).max() < 1e-6


@pytest.mark.parametrize("kind", ["uniform", "nearby", "repeated"])
def test_mismatches_are_as_many_as_asked_and_clear_of_the_truth(facade, kind):
    drawn = draw_correspondences(facade, 300, mismatch_rate=0.3, noise=0, mismatches=kind, rng=2)
    false = drawn.labels == 0
    assert false.sum() == 90
    assert errors(facade, drawn)[false].min() >= 10 - 1e-9
    if kind == "nearby":
        assert errors(facade, drawn)[false].max() <= 50 + 1e-9


@pytest.mark.parametrize("kind", ["uniform", "nearby", "repeated"])
def test_points_lie_inside_the_images(kind):
    scene = rigid_scene(rng=1)
    drawn = draw_correspondences(scene, 500, mismatch_rate=0.5, noise=0, mismatches=kind, rng=2)
    for points in (drawn.points1, drawn.points2):
        assert points.min() >= -0.5
        assert (points <= np.array(scene.cameras[0].size) - 0.5).all()


def test_repeated_mismatches_are_whole_periods_off(facade):
    drawn = draw_correspondences(facade, 300, mismatch_rate=0.9, noise=0, mismatches="repeated", rng=2)
    false = drawn.labels == 0
    faces = drawn.faces[false]
    to_faces = [np.linalg.inv(facade.face_to_pixel(shot))[faces] for shot in (0, 1)]
    places = [transform(H, of[false]) for H, of in zip(to_faces, (drawn.points1, drawn.points2), strict=True)]
    repeats = np.array([(face.texture.columns, face.texture.rows) for face in facade.faces])[faces]
    periods = (places[1] - places[0]) * repeats
    np.testing.assert_allclose(periods, np.rint(periods), atol=1e-6)
    for plane in np.unique(facade.plane_of_face[faces]):
        assert len(np.unique(np.rint(periods[facade.plane_of_face[faces] == plane]), axis=0)) <= 3


def test_noise_has_the_deviation_asked_for(facade):
    clean, noisy = (draw_correspondences(facade, 4000, mismatch_rate=0.1, noise=s, rng=3) for s in (0.0, 1.5))
    for one, two in ((clean.points1, noisy.points1), (clean.points2, noisy.points2)):
        # The relative error of a deviation from 8,000 numbers is below 1 %; 5 % is beyond five of those.
        assert abs((two - one).std() / 1.5 - 1) < 0.05


def test_uneven_weights_stay_between_their_bounds(facade):
    for seed in range(5):
        drawn = draw_correspondences(facade, 4000, mismatch_rate=0.0, weights="uneven", rng=seed)
        shares = np.bincount(drawn.labels, minlength=5)[1:] / 4000
        assert shares.min() > 0.03
        assert shares.max() < 0.64


def test_same_seed_gives_the_same_correspondences(facade):
    one, two = (draw_correspondences(facade, 100, rng=9) for _ in range(2))
    np.testing.assert_array_equal(one.points1, two.points1)
    np.testing.assert_array_equal(one.points2, two.points2)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_all_or_no_mismatches_are_allowed(facade, rate):
    drawn = draw_correspondences(facade, 20, mismatch_rate=rate, rng=0)
    assert (drawn.labels == 0).mean() == rate
