"""Read pictures, detect keypoints and match them by OpenCV."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.foundation.arrays import Array, Rows
from ruzhash_cv.pipelines.files import UnusableFile, as_unusable

#: The strongest keypoints of an image, by kind of feature; brute-force matching of more takes minutes.
MOST_KEYPOINTS = {"sift": 10_000, "orb": 5_000}
#: Pixels; the longer side of an image in which features are looked for by default. SIFT takes about 0.2 GB a megapixel.
MAX_SIZE = 2400

Image: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True)
class Features:
    """Keypoints of a picture: points (n, 2) in pixels of the file, descriptors (n, d), a pixel's size where found."""

    points: Array
    descriptors: NDArray[np.uint8]
    pixel: float

    def __len__(self) -> int:
        return len(self.points)


def read_image(path: Path, *, turned: bool = True) -> Image:
    """Return a picture in colour, as it is stored or `turned` by its EXIF data; `UnusableFile` says what is wrong with the file."""
    # Not cv2.imread: it writes warnings of its own to stderr, and cannot open every name on Windows.
    with as_unusable(f"cannot read {path}"):
        contents = path.read_bytes()
    image: Any = None
    flags = cv2.IMREAD_COLOR if turned else cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    try:
        with silent_opencv():
            image = cv2.imdecode(np.frombuffer(contents, np.uint8), flags)
    except cv2.error as error:
        if "MAX_IMAGE_PIXELS" in str(error):
            raise UnusableFile(f"{path} has more pixels than OPENCV_IO_MAX_IMAGE_PIXELS allows") from None
    if image is None:
        raise UnusableFile(f"{path} is {'not a picture OpenCV can read' if len(contents) else 'empty'}")
    colours: Image = image
    return colours


@contextlib.contextmanager
def silent_opencv() -> Iterator[None]:
    """Keep OpenCV from logging: the caller reports in one line."""
    logging: Any = getattr(cv2.utils, "logging", cv2)  # in `cv2` itself before OpenCV 5
    level = logging.setLogLevel(0)
    try:
        yield
    finally:
        logging.setLogLevel(level)


def detect(
    image: NDArray[np.uint8], kind: str, max_size: int | None = None, mask: NDArray[np.uint8] | None = None
) -> Features:
    """Return the features of a picture, which is shrunk first if its longer side has more than `max_size` pixels.

    There are none where a `mask` (h, w) is 0.
    """
    height, width = image.shape[:2]
    ratio = 1.0 if max_size is None else min(1.0, max_size / max(height, width))
    if ratio < 1.0:
        size = max(1, round(ratio * width)), max(1, round(ratio * height))
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
        mask = None if mask is None else np.asarray(cv2.resize(mask, size, interpolation=cv2.INTER_NEAREST), np.uint8)
    detector = (cv2.SIFT if kind == "sift" else cv2.ORB).create(MOST_KEYPOINTS[kind])
    keypoints, descriptors = detector.detectAndCompute(image, mask)
    if len(keypoints) == 0:
        return Features(np.zeros((0, 2)), np.zeros((0, 1), np.uint8), 1.0 / ratio)
    # The centre of the first pixel is (0, 0), so that its corner is at -1/2, which shrinking leaves where it is.
    stretch = np.array([width / image.shape[1], height / image.shape[0]])
    points = (np.asarray(cv2.KeyPoint.convert(keypoints), np.float64) + 0.5) * stretch - 0.5
    return Features(points, descriptors.astype(np.uint8), 1.0 / ratio)  # SIFT's are whole numbers up to 255


def match(first: Features, second: Features, kind: str, ratio: float) -> Rows:
    """Return the index pairs (n, 2) that pass Lowe's ratio test, matched from the first picture to the second."""
    if len(first.points) == 0 or len(second.points) == 0:
        return np.zeros((0, 2), np.int64)
    number, norm = (np.float32, cv2.NORM_L2) if kind == "sift" else (np.uint8, cv2.NORM_HAMMING)
    rows = cv2.BFMatcher(norm).knnMatch(first.descriptors.astype(number), second.descriptors.astype(number), k=2)
    passed = [row[0] for row in rows if len(row) == 2 and row[0].distance < ratio * row[1].distance]
    return np.array([(kept.queryIdx, kept.trainIdx) for kept in passed], np.int64).reshape(-1, 2)
