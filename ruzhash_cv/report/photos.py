"""Photographs as a page holds them: JPEG in a data URI."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

JPEG_QUALITY = 80
#: Pixels of a side.
LARGEST_JPEG = 65_500


@dataclass(frozen=True)
class Photo:
    """An image as a page holds it: its name, where it is (None: nowhere), and its size in pixels before it was shrunk."""

    name: str
    address: str | None
    width: int
    height: int


def photo_of(image: NDArray[np.uint8], name: str, max_size: int) -> Photo:
    """Return an image (h, w, 3) in BGR as JPEG whose longer side has at most `max_size` pixels."""
    height, width = image.shape[:2]
    encoded = base64.b64encode(as_jpeg(image, max_size)).decode("ascii")
    return Photo(name, f"data:image/jpeg;base64,{encoded}", width, height)


def as_jpeg(image: NDArray[np.uint8], max_size: int) -> bytes:
    """Return the bytes of a JPEG file."""
    height, width = image.shape[:2]
    scale = min(1.0, min(max_size, LARGEST_JPEG) / max(height, width))
    shrunk: Any = image
    if scale < 1.0:
        size = max(1, round(width * scale)), max(1, round(height * scale))
        shrunk = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return cv2.imencode(".jpg", shrunk, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1].tobytes()
