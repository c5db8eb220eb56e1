import numpy as np
import pytest
import rendering
from drawn_scenes import desk_scene, facade_scene, plane_scene, rigid_scene
from rendering.rasters import clip_polygon, fill_faces
from rendering.scenes import look_at

from ruzhash_cv.datasets.pairs import NO_FACE, transform

BUILDERS = {"plane": plane_scene, "rigid": rigid_scene}
BUILDERS |= {"facade": lambda rng: facade_scene(4, rng=rng), "desk": lambda rng: desk_scene(3, rng=rng)}


@pytest.fixture(scope="module", params=list(BUILDERS))
def scene(request):
    return BUILDERS[request.param](rng=0)


def world_points(scene, shot, rng):
    """The same random points of every face at a shot, straight from the definition: (n_faces, 20, 3)."""
    places = np.random.default_rng(rng).uniform(0, 1, (20, 2))
    points = []
    for face in scene.faces:
        still = face.origin + places[:, :1] * face.edge_u + places[:, 1:] * face.edge_v
        points.append(still @ scene.rotations[face.body].T + scene.translations[face.body] if shot else still)
    return np.array(points)


def in_front(camera, points):
    return (points @ camera.R.T + camera.t)[..., 2] > 0.1


def seen_pixels(ids, count=500, rng=0):
    rows, columns = np.nonzero(ids != NO_FACE)
    pick = np.random.default_rng(rng).integers(0, len(rows), count)
    points = np.column_stack([columns, rows])[pick].astype(float)
    return points, ids[rows[pick], columns[pick]].astype(int)


def test_homography_agrees_with_projecting_the_points(scene):
    one, two = (world_points(scene, shot, 1) for shot in (0, 1))
    for face, H in enumerate(scene.homographies()):
        kept = in_front(scene.cameras[0], one[face]) & in_front(scene.cameras[1], two[face])
        pixels = scene.cameras[0].project(one[face][kept])
        expected = scene.cameras[1].project(two[face][kept])
        near = (np.abs(pixels) < 5000).all(axis=1) & (np.abs(expected) < 5000).all(axis=1)
        np.testing.assert_allclose(transform(H, pixels[near]), expected[near], atol=1e-5)


def test_epipolar_residual_is_zero_on_exact_points_of_each_body(scene):
    points, faces = seen_pixels(scene.face_map(0)[0])
    x1 = np.column_stack([points, np.ones(len(points))])
    x2 = np.column_stack([transform(scene.homographies()[faces], points), np.ones(len(points))])
    F = scene.fundamental_matrices()[scene.body_of_face[faces]]
    lines = np.einsum("nij,nj->ni", F, x1)
    distances = np.abs((x2 * lines).sum(axis=1)) / np.linalg.norm(lines[:, :2], axis=1)
    assert distances.max() < 1e-6


def test_epipolar_residual_is_not_zero_for_another_body():
    scene = desk_scene(3, rng=7)
    points, faces = seen_pixels(scene.face_map(0)[0], 5000)
    moving = scene.body_of_face[faces] > 0
    x1 = np.column_stack([points, np.ones(len(points))])[moving]
    x2 = transform(scene.homographies()[faces[moving]], points[moving])
    lines = x1 @ scene.fundamental_matrices()[0].T
    distances = np.abs((x2 * lines[:, :2]).sum(axis=1) + lines[:, 2]) / np.linalg.norm(lines[:, :2], axis=1)
    assert np.median(distances) > 3


def test_fundamental_matrices_have_rank_two(scene):
    values = np.linalg.svd(scene.fundamental_matrices(), compute_uv=False)
    assert (values[:, 2] < 1e-12 * values[:, 0]).all()


def test_faces_of_one_plane_share_its_homography(scene):
    H, planes = scene.homographies(), scene.plane_of_face
    assert sorted(set(planes.tolist())) == list(range(1, planes.max() + 1))
    np.testing.assert_allclose(H, scene.plane_homographies()[planes - 1], rtol=1e-6, atol=1e-9)


def test_inverse_depth_is_the_depth_of_the_face_in_the_map(scene):
    for shot in (0, 1):
        ids, inverse_depth = scene.face_map(shot)
        points, faces = seen_pixels(ids)
        place = transform(np.linalg.inv(scene.face_to_pixel(shot))[faces], points)
        world = np.einsum("nij,nj->ni", scene.bases(shot)[faces], np.column_stack([place, np.ones(len(place))]))
        depth = (world @ scene.cameras[shot].R.T + scene.cameras[shot].t)[:, 2]
        x, y = points.astype(int).T
        np.testing.assert_allclose(inverse_depth[y, x], 1 / depth, rtol=1e-9)
        assert ((place > -1e-9) & (place < 1 + 1e-9)).all()


def test_same_seed_gives_the_same_scene():
    one, two = rendering.plane_scene(rng=3), rendering.plane_scene(rng=np.random.default_rng(3))
    assert [face.texture for face in one.faces] == [face.texture for face in two.faces]
    np.testing.assert_array_equal(one.homographies(), two.homographies())


def test_no_plane_of_the_rigid_scene_fills_a_seventh_of_what_is_seen():
    for seed in range(3):
        scene = rigid_scene(rng=seed)
        for shot in (0, 1):
            ids, _ = scene.face_map(shot)
            shares = np.bincount(scene.plane_of_face[ids[ids != NO_FACE]]) / (ids != NO_FACE).sum()
            assert shares.max() < 1 / 7


@pytest.mark.parametrize("n_planes", [2, 5, 8])
def test_facade_shows_every_plane(n_planes):
    scene = facade_scene(n_planes, rng=2)
    ids, _ = scene.face_map(0)
    assert set(scene.plane_of_face[np.unique(ids[ids != NO_FACE])].tolist()) == set(range(1, n_planes + 1))


@pytest.mark.parametrize("n_objects", [1, 5])
def test_desk_has_its_objects_as_bodies(n_objects):
    scene = desk_scene(n_objects, rng=2)
    assert len(scene.rotations) == n_objects + 1
    assert set(scene.body_of_face.tolist()) == set(range(n_objects + 1))
    np.testing.assert_allclose(scene.rotations[0], np.eye(3))


def test_facade_refuses_nine_planes():
    with pytest.raises(ValueError, match="`n_planes` must be from 2 to 8, got 9"):
        facade_scene(9)


def test_desk_refuses_six_objects():
    with pytest.raises(ValueError, match="`n_objects` must be from 1 to 5, got 6"):
        desk_scene(6)


def test_look_at_puts_the_target_in_the_centre():
    camera = look_at([1.0, -5.0, 2.0], [0.3, 0.1, 0.7], focal=500, size=(641, 481), roll=0.3)
    np.testing.assert_allclose(camera.project([[0.3, 0.1, 0.7]]), [[320.0, 240.0]])
    np.testing.assert_allclose(np.linalg.det(camera.R), 1.0)


def naive_fill(polygons, keys, size):
    """Readable twin of the z-buffer."""
    width, height = size
    ids = np.full((height, width), NO_FACE, np.uint16)
    nearest = np.full((height, width), -np.inf)
    for i, polygon in enumerate(polygons):
        after = np.roll(polygon, -1, axis=0)
        side = np.sign((polygon[:, 0] * after[:, 1] - after[:, 0] * polygon[:, 1]).sum())
        for y in range(height):
            for x in range(width):
                (dx, dy), (x0, y0) = (after - polygon).T, polygon.T
                cross = dx * (y - y0) - dy * (x - x0)
                key = keys[i] @ [x, y, 1]
                if (side * cross >= 0).all() and key >= nearest[y, x]:
                    ids[y, x], nearest[y, x] = i, key
    return ids, nearest


def test_fill_faces_agrees_with_its_naive_twin():
    rng = np.random.default_rng(0)
    for _ in range(5):
        polygons = []
        for _ in range(6):
            angle = np.sort(rng.uniform(0, 2 * np.pi, rng.integers(3, 7)))[:: rng.choice([-1, 1])]
            circle = np.column_stack([np.cos(angle), np.sin(angle)])
            polygons.append(rng.uniform(0, 24, 2) + rng.uniform(3, 12) * circle)
        keys = np.column_stack([rng.normal(0, 0.01, (6, 2)), rng.uniform(1, 2, 6)])
        ids, nearest = fill_faces(polygons, keys, (25, 21))
        expected_ids, expected_nearest = naive_fill(polygons, keys, (25, 21))
        np.testing.assert_array_equal(ids, expected_ids)
        np.testing.assert_allclose(nearest, expected_nearest)


def test_fill_faces_of_nothing_is_empty():
    ids, nearest = fill_faces([], np.zeros((0, 3)), (4, 3))
    assert ids.shape == (3, 4)
    assert (ids == NO_FACE).all()
    assert np.isneginf(nearest).all()


def test_clip_polygon_keeps_the_side_asked_for():
    square = np.array([[0.0, 0], [2, 0], [2, 2], [0, 2]])
    clipped = clip_polygon(square, np.array([1.0, 0, 0]), 0.5)
    assert clipped[:, 0].min() == 0.5
    assert len(clip_polygon(square, np.array([1.0, 0, 0]), 3.0)) == 0
