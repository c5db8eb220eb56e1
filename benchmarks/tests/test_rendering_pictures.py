import numpy as np
from rendering import Scene, render_pair
from rendering.pictures import _lay
from rendering.scenes import look_at


def test_scene_without_faces_renders_its_backdrop():
    cameras = tuple(look_at([x, -5, 1], [0, 0, 1.5], focal=60, size=(64, 48)) for x in (0, 1))
    pair = render_pair(Scene((), cameras, np.eye(3)[None], np.zeros((1, 3)), "plane"))
    assert pair.img1.shape == (48, 64, 3)
    assert np.isposinf(pair.transfer_errors([[3.0, 3.0]], [[3.0, 3.0]])).all()


def test_a_face_smaller_than_a_pixel_has_its_mean_colour():
    """As a face seen from its edge: the pyramid ends at one pixel."""
    picture = np.zeros((4, 4, 3), np.uint8)
    picture[:, ::2] = 200
    canvas, ids = np.zeros((5, 5, 3), np.uint8), np.zeros((5, 5), np.uint16)
    _lay(canvas, ids, (slice(0, 5), slice(0, 5)), 0, picture, np.diag([1e-3, 1e-3, 1.0]))
    np.testing.assert_allclose(canvas, 100, atol=2)
