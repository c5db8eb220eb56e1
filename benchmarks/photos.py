"""Photographed pairs with ground truth: planes of which a homography is known, and rigid scenes with hand-made validation points.

Two sets of K. Lebeda, J. Matas, O. Chum, "Fixing the Locally Optimized RANSAC", BMVC 2012. They are not part of this repository:
`RUZHASH_CV_PHOTOGRAPHED` names the directory that holds `planes` and `rigid`; without it it is looked for beside AdelaideRMF's.
"""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import cv2
import numpy as np
from cache import Arrays, stored
from geometry import Matrix, Points, apply_homography, refit, sampson_distance
from matching import matches_of
from numpy.typing import NDArray
from problems import Problem
from scipy.io import loadmat

KINDS = {"planes": "homography", "rigid": "fundamental"}
TRUE_WITHIN = 5.0  # pixels: transfer error in the second image, or Sampson distance
N_FEATURES = 4000
FEWEST_TRUE = 10  # with fewer true matches a pair asks for nothing but luck
#: Pairs without given matches worth the name: too few, or not in the coordinates of the images.
DULL = "Brussels", "Dresden", "Leuven1", "Leuven2", "dino2", "temple1", "temple2"
UNUSABLE = {"planes": ("adam", "city"), "rigid": DULL}
_SHARED = Path(__file__).resolve().parents[2] / "shared"


def home() -> Path:
    """Where the photographs are."""
    if told := os.environ.get("RUZHASH_CV_PHOTOGRAPHED"):
        return Path(told)
    return Path(os.environ.get("RUZHASH_CV_DATA") or _SHARED / "adelaidermf").parent / "photographed"


def scene_names(scenes: str, half: str) -> list[str]:
    """Pairs of "planes" or "rigid": even places of the sorted names tune, odd ones judge; none where there are no photographs."""
    names = sorted(path.name.removesuffix("_vpts.mat") for path in (home() / scenes).glob("*_vpts.mat"))
    return names[::2] if half == "tune" else names[1::2]


def validation_points(stem: Path) -> tuple[Points, Points]:
    """The hand-made correspondences of a pair."""
    rows = loadmat(f"{stem}_vpts.mat")["validation"][0, 0]["pts"].T.astype(np.float64)
    return rows[:, :2] / rows[:, 2:3], rows[:, 3:5] / rows[:, 5:6]


def true_model(scenes: str, stem: Path) -> Matrix:
    """The homography that comes with a plane; of a rigid scene the fundamental matrix of its validation points."""
    if scenes == "planes":
        return np.linalg.inv(np.loadtxt(f"{stem}_model.txt"))
    model = refit("fundamental", *validation_points(stem))
    assert model is not None
    return model


def given(stem: Path) -> tuple[Points, Points] | None:
    """The matches that come with a pair, None where there are none; lines of another length are no matches."""
    path = Path(f"{stem}_pts.txt")
    if not path.exists() or stem.name in UNUSABLE[stem.parent.name]:
        return None
    rows = np.array([line.split() for line in path.read_text().splitlines() if len(line.split()) == 7], np.float64)
    return (rows[:, :2], rows[:, 3:5]) if len(rows) else None


def match_all(img1: NDArray[np.uint8], img2: NDArray[np.uint8]) -> Arrays:
    """SIFT and ORB with the ratio test, and SIFT's mutual nearest neighbours without it."""
    sift, mutual = matches_of(img1, img2, "sift", N_FEATURES)
    return {"sift": sift, "mutual": mutual, "orb": matches_of(img1, img2, "orb", N_FEATURES)[0]}


def images_of(scenes: str, name: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Both pictures of a pair, grey."""
    paths = [next((home() / scenes).glob(f"{name}{side}.*")) for side in "AB"]
    img1, img2 = (np.asarray(cv2.imread(str(path), cv2.IMREAD_GRAYSCALE), np.uint8) for path in paths)
    return img1, img2


def fresh(stem: Path, features: str) -> tuple[Points, Points]:
    """Matches of the photographs themselves: "sift", "orb" or "mutual"."""
    img1, img2 = images_of(stem.parent.name, stem.name)
    slug = f"photos_sizes_{stem.parent.name}_{stem.name}_{N_FEATURES}_opencv{cv2.__version__}"
    rows = stored(slug, partial(match_all, img1, img2))[features]
    return rows[:, :2], rows[:, 2:4]


def photos(scenes: str, features: str, half: str, fewest: int = FEWEST_TRUE) -> Iterator[Problem]:
    """Pairs of "planes" or "rigid" with "given", "sift", "orb" or "mutual" matches, as far as they have true ones.

    Off a labelled plane, likely true matches are not judged.
    """
    for name in scene_names(scenes, half):
        stem = home() / scenes / name
        points = given(stem) if features == "given" else fresh(stem, features)
        if points is None:
            continue
        model = true_model(scenes, stem)
        if scenes == "planes":
            error = np.linalg.norm(apply_homography(model, points[0]) - points[1], axis=1)
        else:
            error = sampson_distance(model, *points)
        labels = (error <= TRUE_WITHIN).astype(np.intp)
        if labels.sum() < fewest:
            continue
        judged, exact = np.ones(len(labels), bool), validation_points(stem)
        suite = f"{features} on photographed {scenes}"
        problem = Problem(name, suite, KINDS[scenes], *points, labels, judged, (model,), *exact)
        yield problem.with_off_plane_unjudged(images_of(scenes, name)) if scenes == "planes" else problem
