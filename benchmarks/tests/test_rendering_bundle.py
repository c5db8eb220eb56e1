"""The pairs that ship with the package are what the renderer makes of their seeds."""

import numpy as np
import pytest
import rendering
from bundle_pairs import BUILDERS, SEQUENCES, save_pair

from ruzhash_cv.datasets import PAIR_NAMES, SEQUENCE_NAMES, load_pair, load_sequence


def test_every_bundled_pair_has_its_builder():
    assert tuple(BUILDERS) == PAIR_NAMES


@pytest.mark.parametrize("name", PAIR_NAMES)
def test_rendering_anew_reproduces_the_truth(name):
    pair, scene = load_pair(name), BUILDERS[name]()
    for shot, face_map in enumerate((pair.face_map1, pair.face_map2)):
        # A pixel centre exactly on an edge may fall either way with another compiler.
        assert (scene.face_map(shot)[0] != face_map).mean() < 1e-4
    np.testing.assert_allclose(scene.homographies(), pair.homographies, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scene.fundamental_matrices(), pair.fundamental_matrices, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(scene.plane_of_face, pair.plane_of_face)
    np.testing.assert_array_equal(scene.body_of_face, pair.body_of_face)
    assert scene.structure == pair.structure


def test_rendering_anew_reproduces_the_pictures():
    # Text is drawn differently by OpenCV 4 and 5, JPEG costs a few levels more.
    bundled = load_pair("plane")
    fresh = rendering.render_pair(BUILDERS["plane"](), name="plane")
    for one, two in ((bundled.img1, fresh.img1), (bundled.img2, fresh.img2)):
        assert np.abs(one.astype(float) - two).mean() < 5


def test_every_bundled_sequence_has_its_function():
    assert tuple(SEQUENCES) == SEQUENCE_NAMES


def test_rendering_a_sequence_anew_reproduces_its_pictures():
    for one, two in zip(load_sequence("walk"), SEQUENCES["walk"](), strict=True):
        assert np.abs(one.astype(float) - two).mean() < 5


def test_saved_pair_loads_as_it_was(tmp_path, monkeypatch):
    pair = load_pair("desk")
    save_pair(pair, tmp_path)
    monkeypatch.setattr("ruzhash_cv.datasets.pairs.data_folder", lambda: tmp_path)
    loaded = load_pair("desk")
    np.testing.assert_array_equal(loaded.face_map1, pair.face_map1)
    np.testing.assert_array_equal(loaded.homographies, pair.homographies)
