"""Write the page of a pair to a file. Bokeh is imported when it is needed."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ruzhash_cv.drawing.canvas import as_bgr, check_result
from ruzhash_cv.foundation.extras import host
from ruzhash_cv.foundation.validation import check_int
from ruzhash_cv.input.correspondences import Keypoints, Matches, look_up
from ruzhash_cv.report.numbers import pair_as_dict
from ruzhash_cv.report.photos import Photo, data_address
from ruzhash_cv.results.result import FilterResult


def write_html(
    path: str | PathLike[str],
    img1: NDArray[Any] | None,
    kp1: Keypoints,
    img2: NDArray[Any] | None,
    kp2: Keypoints,
    matches: Matches | None,
    result: FilterResult,
    *,
    ratio: float | None = None,
    names: tuple[str, str] = ("image 1", "image 2"),
    max_size: int = 1600,
) -> None:
    """Write an HTML page that shows every match: one file, which opens in any browser, offline.

    Zoom or pan one image, and the other one follows the matches in view. Colours show motion and plane, as in `draw_structures`, the
    probability or the residual. Sliders and switches hide matches by these. Hovering shows a match's values, and a click shows crops
    around it in both images, with the position that its motion or plane predicts. Needs the extra ``html``.

    Parameters
    ----------
    path : path
        The file to write, e.g. ``"matches.html"``.
    img1, kp1, img2, kp2, matches, ratio
        As for `draw_matches`.
    result : FilterResult
        The result of these matches.
    names : tuple of two str
        Names of the images; the page's title has them without their folders.
    max_size : int, default 1600
        Longer side of the images in the page, in pixels: larger images are shrunk. All numbers refer to the original pixels.

    Returns
    -------
    None

    Raises
    ------
    ImportError
        Bokeh is not installed.
    IndexError, TypeError, ValueError
        The message names the argument, what it must be and what arrived.

    Notes
    -----
    The residual is the distance from the match's motion or plane, or from the nearest one if it has none: the transfer error of a
    homography, or the Sampson distance of a fundamental matrix.

    Examples
    --------
    >>> from ruzhash_cv import filter_points
    >>> points = np.random.default_rng(0).uniform(0, 480, (60, 2))
    >>> image, moved = np.full((480, 640), 90, np.uint8), points + [40.0, 5.0]
    >>> write_html("matches.html", image, points, image, moved, None, filter_points(points, moved))  # doctest: +SKIP
    """
    if not isinstance(path, (str, PathLike)):
        raise TypeError(f"`path` must be the path of a file, got {type(path).__name__}")
    images = as_bgr(img1, "img1"), as_bgr(img2, "img2")
    pairs = look_up(kp1, kp2, matches, ratio, ("kp1", "kp2"), filtered=True)
    check_result(result, len(pairs))
    max_size = check_int(max_size, "max_size", at_least=32)
    host("bokeh", "html")
    from ruzhash_cv.report.pages import pair_page

    photos = [
        Photo(str(name), data_address(image, max_size), image.shape[1], image.shape[0])
        for image, name in zip(images, names, strict=True)
    ]
    page = pair_page(pair_as_dict(photos, pairs.points1, pairs.points2, result))
    Path(path).write_text(page, encoding="utf-8")
