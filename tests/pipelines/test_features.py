"""Pictures and features: what cannot be read gets one line, and shrunken pictures keep their keypoints' places."""

from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from ruzhash_cv.datasets import load_pair
from ruzhash_cv.pipelines.features import detect, read_image
from ruzhash_cv.pipelines.files import UnusableFile

IMAGE = load_pair("desk").img2


def test_keypoints_of_a_shrunk_picture_keep_their_places() -> None:
    image = np.full((301, 403, 3), 40, np.uint8)
    centres = np.array([[60, 50], [340, 60], [200, 240], [120, 170]])
    for x, y in centres.tolist():
        cv2.circle(image, (x, y), 12, (230, 230, 230), -1)
    # OpenCV's SIFT is a quarter of a pixel off, of a pixel of the picture it sees.
    bias = nearest(detect(image, "sift").points, centres) - centres
    for size in (403, 360, 202):
        features = detect(image, "sift", size)
        assert features.pixel == pytest.approx(403 / size)
        assert np.abs(nearest(features.points, centres) - centres - features.pixel * bias).max() < 0.1, size


def nearest(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return points[np.linalg.norm(points[:, None] - centres, axis=2).argmin(axis=0)]


def test_a_truncated_picture_is_refused_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    contents = cv2.imencode(".bmp", IMAGE)[1].tobytes()
    (tmp_path / "half.bmp").write_bytes(contents[: len(contents) // 2])
    logging: Any = getattr(cv2.utils, "logging", cv2)  # in `cv2` itself before OpenCV 5
    level = logging.getLogLevel()
    with pytest.raises(UnusableFile, match=r"half\.bmp is not a picture OpenCV can read"):
        read_image(tmp_path / "half.bmp")
    assert (capfd.readouterr().err, logging.getLogLevel()) == ("", level)
