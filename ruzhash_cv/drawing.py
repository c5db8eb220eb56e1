"""Pictures of matches: kept and flagged, or coloured by anomaly score, on the two images side by side."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv._validation import check_int
from ruzhash_cv.correspondences import Keypoints, Matches, as_correspondences

# BGR. Kept is light and flagged dark, crosses against dots: they stay apart without red-green vision and in print.
_KEPT = (130, 225, 90)
_FLAGGED = (35, 25, 255)
_BACKGROUND = (28, 28, 28)
_TEXT = (235, 235, 235)
_LEAST_WIDTH = 640  # smaller pairs are enlarged to about this
_SHIFT = 4  # bits of sub-pixel position in OpenCV's line drawing
_FAR = 2.0**20  # beyond, fixed-point coordinates would overflow


def draw_matches(
    img1: NDArray[Any],
    kp1: Keypoints,
    img2: NDArray[Any],
    kp2: Keypoints,
    matches: Matches,
    result_or_mask: Any,
    *,
    ratio: float | None = None,
    max_width: int | None = 2400,
) -> NDArray[np.uint8]:
    """Draw kept matches in green and, on top of them, flagged mismatches in red.

    The photographs are toned down so that the lines stand out; thickness and opacity follow the size of the picture and
    the number of matches. A strip below the images counts both kinds.

    Parameters
    ----------
    img1, img2 : ndarray of uint8, shape (h, w), (h, w, 3) or (h, w, 4)
        Grey, BGR or BGRA; they may differ in size.
    kp1, kp2, matches
        As for `filter_matches`. Matches whose position is not finite, and knnMatch rows without a match, are left out.
    result_or_mask : FilterResult, or array_like of shape (n,) or (n, 1)
        Anything with an attribute ``inlier_mask``, or the mask itself: bool or OpenCV's uint8, non-zero = keep.
    ratio : float, optional
        The `ratio` given to `filter_matches`: rows that fail the ratio test are left out.
    max_width : int or None, default 2400
        Largest width of the picture in pixels: large photographs are shrunk to it, small images (together narrower than
        640 px) enlarged. None keeps the images' own pixels.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
        BGR, `img1` on the left, `img2` on the right, the caption below.

    Raises
    ------
    TypeError, ValueError
        The message names the argument, what it must be and what arrived.

    Examples
    --------
    >>> import numpy as np
    >>> from ruzhash_cv.drawing import draw_matches
    >>> img1, img2 = np.full((480, 640, 3), 90, np.uint8), np.full((480, 640), 120, np.uint8)
    >>> kp1, kp2 = np.array([[100, 100], [200, 300]]), np.array([[110, 100], [20, 40]])
    >>> draw_matches(img1, kp1, img2, kp2, [[0, 0], [1, 1]], [True, False]).shape
    (520, 1280, 3)
    """
    pair = _lay_out(img1, img2, max_width)
    ends1, ends2, visible = _ends(pair, kp1, kp2, matches, ratio)
    mask = _as_mask(getattr(result_or_mask, "inlier_mask", result_or_mask), len(visible))
    kept, flagged = visible & mask, visible & ~mask
    canvas = pair.canvas
    style = _Style(canvas.shape[1], int(kept.sum()), int(flagged.sum()))
    return canvas
