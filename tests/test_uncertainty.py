"""Standard deviations of a pose are those of its errors."""

import numpy as np
import pytest
from posed_views import CAMERA1, CAMERA2, POSE, TURN, WALL, angles, filtered, on_plane, views

from ruzhash_cv import Camera
from ruzhash_cv.core.families.epipolar import EssentialMatrices
from ruzhash_cv.core.families.poses import placed
from ruzhash_cv.core.families.weighting import student
from ruzhash_cv.input.cameras import sight_of
from ruzhash_cv.results import uncertainty
from ruzhash_cv.results.pose import best_rotation
from ruzhash_cv.results.uncertainty import deviation_of_turn, deviations

Array = np.ndarray
NOISE, N_DRAWS = 0.5, 120


def rows(points: Array, pose: tuple[Array, Array], seed: int) -> Array:
    first, second = views(points, pose, seed, NOISE)
    sight = sight_of(first, second, (Camera(CAMERA1), Camera(CAMERA2)))
    return np.hstack([first, second, sight.rays1, sight.rays2])


@pytest.mark.parametrize("n", [30, 300])
def test_deviations_are_those_of_fits_to_other_noise(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncertainty, "_SHARED", 0.0)
    monkeypatch.setattr(uncertainty, "_INDEPENDENT", np.inf)
    points, family, errors, told = on_plane(WALL, n, np.random.default_rng(0), 0.4, 1.2), EssentialMatrices(), [], []
    start = np.cross(POSE[1], POSE[0].T).T.reshape(1, 9) / np.sqrt(2.0)
    for seed in range(N_DRAWS):
        data, law = rows(points, POSE, seed), student(1, 4.0)
        fitted, noise = family.reweighted(data, np.ones(n), start, np.full(1, 100.0), law, 8, np.zeros((0, 0), bool))
        squared = family.squared_residuals(data, fitted)
        rotation, translation, _ = placed(fitted, data, np.ones(n), squared, 100.0)
        errors.append(angles((rotation[0], translation[0]), POSE))
        told.append(deviations(rotation[0], translation[0], data, np.ones(n), float(noise[0]), 1.0))
    ratios = np.sqrt(np.mean(np.square(errors), axis=0) / np.mean(np.square(told), axis=0))
    # The standard deviation of a root mean square of so many errors of one direction is .065.
    np.testing.assert_allclose(ratios, 1.0, atol=0.25)


def test_the_deviation_of_a_turn_is_that_of_fits_to_other_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncertainty, "_SHARED", 0.0)
    monkeypatch.setattr(uncertainty, "_INDEPENDENT", np.inf)
    points, errors, told = on_plane(WALL, 100, np.random.default_rng(0)), [], []
    for seed in range(N_DRAWS):
        data = rows(points, TURN, seed)
        rotation = best_rotation(TURN[0], data, 2.0 * NOISE)
        errors.append(angles((rotation, POSE[1]), (TURN[0], POSE[1]))[0])
        told.append(deviation_of_turn(rotation, data, np.ones(100), NOISE, 1.0))
    assert np.sqrt(np.mean(np.square(errors)) / np.mean(np.square(told))) == pytest.approx(1.0, abs=0.25)


def test_what_matches_share_does_not_fall_with_their_number() -> None:
    data = rows(on_plane(WALL, 200, np.random.default_rng(0), 0.4, 1.2), POSE, 0)
    one, many = (np.array(deviations(*POSE, np.tile(data, (k, 1)), np.ones(200 * k), NOISE, 1.0)) for k in (1, 1000))
    assert (many < one).all()
    assert (many > 0.1 * one).all()


def test_noise_averages_out_as_that_of_500_matches_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncertainty, "_SHARED", 0.0)
    data = rows(on_plane(WALL, 250, np.random.default_rng(0), 0.4, 1.2), POSE, 0)
    few, many = (np.array(deviations(*POSE, np.tile(data, (k, 1)), np.ones(250 * k), NOISE, 1.0)) for k in (1, 1000))
    # n / (1 + n / 500) of 250 by law, most of which have a weight near 1, and of 250,000.
    np.testing.assert_allclose(many / few, np.sqrt(1.0 / 3.0), rtol=0.1)


def test_too_few_matches_show_nothing() -> None:
    data = rows(on_plane(WALL, 5, np.random.default_rng(0), 0.4, 1.2), POSE, 0)
    for n in (0, 5):
        assert np.isinf(deviations(*POSE, data[:n], np.ones(n), NOISE, 1.0)).all()
    assert np.isinf(deviation_of_turn(TURN[0], data[:0], np.ones(0), NOISE, 1.0))


def test_a_pose_says_how_sure_it_is() -> None:
    rng = np.random.default_rng(0)
    deep = filtered(views(on_plane(WALL, 200, rng, 0.4, 1.2)), cameras=(CAMERA1, CAMERA2)).camera_pose()
    assert 0.01 < deep.rotation_deviation < 0.3
    assert 0.01 < deep.direction_deviation < 1.0
    still = filtered(views(on_plane(WALL, 200, rng), TURN), cameras=(CAMERA1, CAMERA2)).camera_pose()
    assert not still.has_baseline
    assert 0.0 < still.rotation_deviation < 0.1
    assert np.isinf(still.direction_deviation)
