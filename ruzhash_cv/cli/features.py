"""Features and matches of two pictures that a user named, or why there are none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.cli.common import RATIO, InputError
from ruzhash_cv.pipelines.features import MAX_SIZE, Features, detect, match

Image: TypeAlias = NDArray[np.uint8]

#: Grey levels between an image's darkest and its brightest hundredth. SIFT's own threshold on the contrast of a keypoint is about 3.
LOW_CONTRAST = 30


def match_images(
    images: Sequence[Image],
    names: Sequence[object],
    kind: str = "sift",
    ratio: float = RATIO,
    max_size: int = MAX_SIZE,
    masks: Sequence[Image | None] = (None, None),
) -> tuple[Features, Features, NDArray[np.int64]]:
    """Return the features of both images and the index pairs (n, 2) of the matches that pass the ratio test."""
    found = []
    for image, name, mask in zip(images, names, masks, strict=True):
        found.append(detect(image, kind, max_size, mask))
        if len(found[-1]) == 0:
            raise InputError(f"no {kind.upper()} keypoints in image {name}: {_reason(image, mask)}")
    return found[0], found[1], match(found[0], found[1], kind, ratio)


def _reason(image: Image, mask: Image | None) -> str:
    """Return what about an image may be why it has no keypoints."""
    if mask is not None and not mask.any():
        return "its mask is black all over"
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    seen = grey if mask is None else grey[mask > 0]
    low, high = np.percentile(seen, [1, 99])
    where = "" if mask is None else " where its mask is not black"
    if seen.min() == seen.max():
        return f"it is blank{where}"
    if high - low < LOW_CONTRAST:
        return f"its contrast is low{where}, most of it between {low:.0f} and {high:.0f} of 255 grey levels; stretch it first"
    return f"nothing stands out{where} in its {image.shape[1]} x {image.shape[0]} pixels"
