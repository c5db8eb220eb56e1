"""The focal length of one camera that took both images, and the pose with it."""

import numpy as np
import pytest
from posed_views import WALL, angles, on_plane, seen, towards, turned

from ruzhash_cv import Camera, CameraPose, FilterResult, filter_points
from ruzhash_cv.results import uncertainty
from ruzhash_cv.results.focal import spread_of

SIZE = 641, 481
#: A turn about an axis of its own, so that the optical axes do not meet: the matches show the focal length.
WIDE = turned(0.15, 0.3, 0.2), towards(-0.9, 0.4, 0.1)


def filtered(
    focal_length: float, pose: tuple[np.ndarray, np.ndarray] = WIDE, seed: int = 0, noise: float = 0.3
) -> FilterResult:
    """Return the result for 300 matches of one camera, with noise in pixels, and 60 mismatches."""
    rng, camera = np.random.default_rng(seed), np.array([[focal_length, 0, 320], [0, focal_length, 240], [0, 0, 1.0]])
    rays = np.column_stack([rng.uniform([-320, -240], [320, 240], (9000, 2)) / focal_length, np.ones(9000)])
    points = rays * rng.uniform(3.0, 8.0, (9000, 1))
    views = [seen(points, camera, *each) for each in ((np.eye(3), np.zeros(3)), pose)]
    within = np.flatnonzero(((views[1] > 0.0) & (views[1] < SIZE)).all(axis=1))[:300]
    return filter_points(
        *(
            np.vstack([view[within] + rng.normal(0, noise, (300, 2)), rng.uniform([0, 0], SIZE, (60, 2))])
            for view in views
        )
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("focal_length", [400.0, 700.0, 1400.0])
def test_the_focal_length_is_found_with_the_pose(focal_length: float, seed: int) -> None:
    pose = filtered(focal_length, seed=seed).camera_pose(image_size=SIZE)
    assert isinstance(pose.camera, Camera)
    assert pose.camera.matrix[0, 0] == pytest.approx(focal_length, rel=0.05)
    assert pose.camera.matrix[:2, 2].tolist() == [320.0, 240.0]
    assert max(angles(pose, WIDE)) < 1.5
    assert 0.0 < pose.focal_spread < 0.05
    assert pose.inliers[:300].mean() > 0.95


def test_the_pose_is_that_of_the_estimated_camera() -> None:
    result = filtered(700.0)
    pose = result.camera_pose(image_size=SIZE)
    given = result.camera_pose(pose.camera)
    assert isinstance(pose, CameraPose)
    assert given.camera is None
    assert given.focal_spread == 0.0
    for one, other in zip((*pose, pose.inliers, pose.points3d), (*given, given.inliers, given.points3d), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("ignore:points lie outside", "ignore:the matches show the focal length")
def test_a_plane_leaves_the_focal_length_near_the_guess() -> None:
    points = on_plane(WALL, 150, np.random.default_rng(0))
    camera = np.array([[800.0, 0, 320], [0, 800, 240], [0, 0, 1]])
    views = [seen(points, camera, np.eye(3), baseline) for baseline in (np.zeros(3), towards(1.0, 0.0, 0.0))]
    found = filter_points(*views).camera_pose(image_size=SIZE)
    assert found.camera.matrix[0, 0] == pytest.approx(1.2 * SIZE[0], rel=0.3)


@pytest.mark.parametrize("seed", range(3))
def test_a_focal_length_that_a_move_ahead_does_not_show_is_warned_of(seed: int) -> None:
    result = filtered(700.0, (turned(0.0, 0.01, 0.0), towards(0.0, 0.0, -1.0)), seed)
    with pytest.warns(UserWarning, match=r"show the focal length only to about \d+ %"):
        pose = result.camera_pose(image_size=SIZE)
    assert pose.focal_spread > 0.1


@pytest.mark.filterwarnings("ignore:a fundamental matrix", "ignore:the matches show the focal length only")
@pytest.mark.parametrize(
    ("size", "message"), [((321, 241), "points lie outside of images of 321 by 241"), ((1300, 1000), "first quarter")]
)
def test_an_image_size_that_is_not_the_points_is_warned_of(size: tuple[int, int], message: str) -> None:
    with pytest.warns(UserWarning, match=message):
        filtered(700.0).camera_pose(image_size=size)


def test_a_spread_is_that_of_the_likelihood() -> None:
    logarithms = np.random.default_rng(0).permutation(np.linspace(5.0, 9.0, 400))
    assert spread_of(logarithms, -0.5 * ((logarithms - 7.0) / 0.3) ** 2 - 4000.0) == pytest.approx(0.3, rel=1e-3)
    assert spread_of(logarithms, np.zeros(400)) == pytest.approx(4.0 / np.sqrt(12.0), rel=1e-3)


def test_precise_matches_have_a_spread_too() -> None:
    """Narrower than the last steps of the scan."""
    poses = [filtered(700.0, seed=seed, noise=0.02).camera_pose(image_size=SIZE) for seed in range(4)]
    off, spreads = (
        np.abs(np.log([pose.camera.matrix[0, 0] / 700.0 for pose in poses])),
        [pose.focal_spread for pose in poses],
    )
    assert np.sqrt(np.square(off).mean()) / 3.0 < np.median(spreads) < 0.01


def test_matches_whose_noise_is_alike_widen_the_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    result = filtered(700.0)
    spread = result.camera_pose(image_size=SIZE).focal_spread
    monkeypatch.setattr(uncertainty, "_INDEPENDENT", np.inf)
    # 300 matches inform as 300 / (1 + 300 / 500) independent ones.
    assert spread == pytest.approx(np.sqrt(1.6) * result.camera_pose(image_size=SIZE).focal_spread, rel=0.15)
