"""Photographs as pages hold them: JPEG in data URIs."""

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
    """An image of a page.

    `address`: its URL, None: it is not shown. `width` and `height` are in pixels, before it was shrunk. `corner`:
    both coordinates of the outer corner of its first pixel, -0.5 where the centre of that pixel is the origin.
    """

    name: str
    address: str | None
    width: float
    height: float
    corner: float = -0.5


def data_address(image: NDArray[np.uint8], max_size: int) -> str:
    """Return an address that holds the image itself, as of `as_jpeg`."""
    return f"data:image/jpeg;base64,{base64.b64encode(as_jpeg(image, max_size)).decode('ascii')}"


def as_jpeg(image: NDArray[np.uint8], max_size: int) -> bytes:
    """Return the bytes of a JPEG file of an image (h, w, 3) in BGR whose longer side has at most `max_size` pixels."""
    scale = min(max_size, LARGEST_JPEG) / max(image.shape)
    shrunk: Any = image
    if scale < 1.0:
        size = [max(1, round(side * scale)) for side in image.shape[1::-1]]
        shrunk = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    return cv2.imencode(".jpg", shrunk, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1].tobytes()
