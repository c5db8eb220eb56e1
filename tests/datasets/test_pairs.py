import cv2
import numpy as np
import pytest

from ruzhash_cv.datasets import PAIR_NAMES, data_folder, load_pair
from ruzhash_cv.datasets.pairs import NO_FACE, transform


@pytest.fixture(scope="module", params=PAIR_NAMES)
def pair(request):
    return load_pair(request.param)


def test_bundled_pairs_are_small():
    assert sum(path.stat().st_size for path in data_folder().iterdir()) < 3_000_000


def test_transfer_errors_are_zero_on_exact_points(pair):
    rows, columns = np.nonzero(pair.face_map1 != NO_FACE)
    pick = np.random.default_rng(0).integers(0, len(rows), 2000)
    points = np.column_stack([columns, rows])[pick].astype(float)
    faces = pair.face_map1[rows, columns][pick].astype(int)
    exact = transform(pair.homographies[faces], points)
    assert pair.transfer_errors(points, exact).max() < 1e-9
    near = pair.labels(points, exact)
    assert (near >= 0).all()
    assert (near == pair.structure_of_face[faces]).mean() > 0.98  # the rest lies on a border


def test_transfer_errors_are_the_distance_inside_a_face(pair):
    ids = pair.face_map1
    inner = (cv2.erode(ids, np.ones((7, 7))) == ids) & (cv2.dilate(ids, np.ones((7, 7))) == ids) & (ids != NO_FACE)
    rows, columns = np.nonzero(inner)
    points = np.column_stack([columns, rows])[::97].astype(float)
    moved = transform(pair.homographies[ids[rows, columns][::97]], points) + [3.0, -4.0]
    np.testing.assert_allclose(pair.transfer_errors(points, moved), 5.0)
    assert (pair.labels(points, moved, tolerance=4.9) == -1).all()
    assert (pair.labels(points, moved, tolerance=5.1) >= 0).all()


def test_points_off_every_face_have_infinite_error(pair):
    points = np.array([[-50.0, 3.0], [np.nan, 2.0], [1e9, 1e9]])
    assert np.isposinf(pair.transfer_errors(points, points)).all()
    assert (pair.labels(points, points) == -1).all()


def test_every_structure_has_sift_matches(pair):
    sift = cv2.SIFT_create()
    (kp1, d1), (kp2, d2) = (sift.detectAndCompute(image, None) for image in (pair.img1, pair.img2))
    good = [a for a, b in cv2.BFMatcher().knnMatch(d1, d2, k=2) if a.distance < 0.8 * b.distance]
    labels = pair.labels([kp1[m.queryIdx].pt for m in good], [kp2[m.trainIdx].pt for m in good])
    assert np.bincount(labels[labels >= 0], minlength=pair.structure_of_face.max() + 1).min() >= 15


def test_missing_picture_says_which(tmp_path, monkeypatch):
    monkeypatch.setattr("ruzhash_cv.datasets.pairs.data_folder", lambda: tmp_path)
    with pytest.raises(FileNotFoundError, match=r"desk1\.jpg is missing"):
        load_pair("desk")
