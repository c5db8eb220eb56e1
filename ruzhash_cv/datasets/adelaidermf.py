"""AdelaideRMF: 38 image pairs with hand-labelled SIFT matches, several planes or several motions in each.

The dataset has no redistribution licence, so nothing of it ships with the package: a scene is read from a directory the
user names, or fetched once into the user's cache. Every byte is checked against the SHA-256 sums in
``adelaidermf_checksums.csv`` before it is decoded.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat

from ruzhash_cv.foundation.extras import host

Kind: TypeAlias = Literal["homography", "fundamental"]

# fmt: off
HOMOGRAPHY_SCENES: tuple[str, ...] = (
    "barrsmith", "bonhall", "bonython", "elderhalla", "elderhallb", "hartley", "johnsona", "johnsonb", "ladysymon",
    "library", "napiera", "napierb", "neem", "nese", "oldclassicswing", "physics", "sene", "unihouse", "unionhouse",
)
"""The 19 static scenes with several planes."""

FUNDAMENTAL_SCENES: tuple[str, ...] = (
    "biscuit", "biscuitbook", "biscuitbookbox", "boardgame", "book", "breadcartoychips", "breadcube",
    "breadcubechips", "breadtoy", "breadtoycar", "carchipscube", "cube", "cubebreadtoychips", "cubechips", "cubetoy",
    "dinobooks", "game", "gamebiscuit", "toycubecar",
)
"""The 19 scenes with several rigid motions."""
# fmt: on

ADELAIDERMF_NAMES: tuple[str, ...] = tuple(sorted(HOMOGRAPHY_SCENES + FUNDAMENTAL_SCENES))
"""All 38 scenes, sorted."""

ENVIRONMENT_VARIABLE = "RUZHASH_CV_DATA"
_CHECKSUMS = Path(__file__).with_name("adelaidermf_checksums.csv")
# No .mat file of these two can be had any more.
_SCENES_IN_PARTS = ("johnsona", "johnsonb")


class DatasetError(OSError):
    """A dataset file is missing, corrupt or cannot be downloaded; the message says which and what to do."""


@dataclass(frozen=True, eq=False)
class AdelaideScene:
    """One AdelaideRMF pair with its labelled correspondences.

    Attributes
    ----------
    name : str
        Name of the scene.
    kind : {"homography", "fundamental"}
        Whether the structures are planes of a static scene or rigid motions.
    points1, points2 : ndarray of float64, shape (n, 2)
        Pixel coordinates (x, y) of the correspondences in the first and the second image. Rows may repeat.
    labels : ndarray of int64, shape (n,)
        -1 for a mismatch, k >= 0 for a match on structure k. The files have 0 and k + 1.
    img1, img2 : ndarray of uint8, shape (h, w, 3)
        The two images in OpenCV's channel order, BGR.
    """

    name: str
    kind: Kind
    points1: NDArray[np.float64] = field(repr=False)
    points2: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    img1: NDArray[np.uint8] = field(repr=False)
    img2: NDArray[np.uint8] = field(repr=False)


def fetch_adelaidermf(name: str, *, data_home: str | os.PathLike[str] | None = None) -> AdelaideScene:
    """Load one AdelaideRMF scene, downloading it the first time.

    A file is looked for in `data_home`, then in the directory named by the environment variable ``RUZHASH_CV_DATA``,
    then in the user's cache. A file found in none of them is downloaded into the cache; the first two are only read. The cache needs
    the extra ``datasets``.

    Parameters
    ----------
    name : str
        One of `ADELAIDERMF_NAMES`, for example ``"barrsmith"``.
    data_home : path-like, optional
        Directory that holds the files as published (``barrsmith.mat``, ...).

    Returns
    -------
    AdelaideScene

    Raises
    ------
    ValueError
        If there is no scene of that name.
    ImportError
        A file is in neither directory, and pooch, which downloads it, is not installed.
    DatasetError
        If a file is corrupt, or missing and the download fails. The message names the file, its address and the
        directories that were searched. It is an `OSError`.

    Notes
    -----
    Cite Wong, Chin, Yu, Suter, *Dynamic and hierarchical multi-structure geometric model fitting*, ICCV 2011, where
    results on these scenes are shown.

    Examples
    --------
    >>> from ruzhash_cv.datasets import fetch_adelaidermf
    >>> scene = fetch_adelaidermf("barrsmith")  # doctest: +SKIP
    >>> scene.points1.shape, scene.kind  # doctest: +SKIP
    ((241, 2), 'homography')
    """
    if name not in ADELAIDERMF_NAMES:
        close = difflib.get_close_matches(str(name), ADELAIDERMF_NAMES, n=3)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "ADELAIDERMF_NAMES lists them all"
        raise ValueError(f"`name` must be one of the 38 AdelaideRMF scenes, got {name!r}; {hint}")
    given = [Path(home).expanduser() for home in (data_home, os.environ.get(ENVIRONMENT_VARIABLE)) if home]
    checksums = _read_checksums()
    data: NDArray[Any]
    labels: NDArray[Any]
    if name in _SCENES_IN_PARTS:
        parts = [name + suffix for suffix in (".csv", "_gt.csv", "_img1.png", "_img2.png")]
        table, truth, first, second = (_obtain(checksums[part], given) for part in parts)
        data = np.loadtxt(io.BytesIO(table), delimiter=",")
        labels = np.loadtxt(io.BytesIO(truth), delimiter=",")
        img1, img2 = (cv2.imdecode(np.frombuffer(png, np.uint8), cv2.IMREAD_COLOR) for png in (first, second))
    else:
        file = io.BytesIO(_obtain(checksums[f"{name}.mat"], given))
        contents = loadmat(file)  # type: ignore[arg-type]  # the stubs know paths only
        data, labels = contents["data"], contents["label"]
        img1, img2 = _as_bgr(contents["img1"]), _as_bgr(contents["img2"])
    return AdelaideScene(
        name,
        "homography" if name in HOMOGRAPHY_SCENES else "fundamental",
        np.ascontiguousarray(data[0:2].T, dtype=np.float64),
        np.ascontiguousarray(data[3:5].T, dtype=np.float64),
        np.ravel(labels).astype(np.int64) - 1,
        np.asarray(img1, dtype=np.uint8),
        np.asarray(img2, dtype=np.uint8),
    )


def _as_bgr(image: NDArray[np.uint8]) -> NDArray[Any]:
    """Return a MATLAB image, RGB or grey (boardgame, dinobooks), in OpenCV's channel order."""
    return cv2.cvtColor(image, cv2.COLOR_GRAY2BGR if image.ndim == 2 else cv2.COLOR_RGB2BGR)


def _read_checksums() -> dict[str, dict[str, str]]:
    """Return the published files by name: "file", "bytes", "sha256", "url"."""
    with _CHECKSUMS.open(newline="", encoding="utf-8") as lines:
        return {row["file"]: row for row in csv.DictReader(lines)}


def _obtain(entry: dict[str, str], given: Sequence[Path]) -> bytes:
    """Return the verified contents of a file, from the first directory that has it, from the cache or from its address."""
    for path in (directory / entry["file"] for directory in given):
        if path.is_file():
            contents = path.read_bytes()
            if hashlib.sha256(contents).hexdigest() != entry["sha256"]:
                raise DatasetError(f"AdelaideRMF file {path} is corrupt: remove it or replace it by {entry['url']}")
            return contents
    pooch, shown = host("pooch", "datasets"), sys.stderr is not None and sys.stderr.isatty()
    cache, known_hash = Path(pooch.os_cache("ruzhash_cv")) / "adelaidermf", f"sha256:{entry['sha256']}"
    try:
        fetched = pooch.retrieve(entry["url"], known_hash, fname=entry["file"], path=cache, progressbar=shown)
    except (OSError, ValueError) as error:  # requests' errors are OSErrors, a wrong sum is a ValueError
        searched = ", ".join(str(directory) for directory in [*given, cache])
        raise DatasetError(
            f"AdelaideRMF file {entry['file']} is in none of the directories searched ({searched}) and could not be "
            f"downloaded from {entry['url']} ({error}). To place it by hand, save it in one of these directories, or in one that "
            f"`data_home` or ${ENVIRONMENT_VARIABLE} names"
        ) from error
    return Path(fetched).read_bytes()
