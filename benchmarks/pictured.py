"""Rendered and real image pairs as features and mutual nearest neighbours, with the truth about each match and the cameras."""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from pathlib import Path

import adelaide
import cv2
import matching
import numpy as np
import pose_worlds
import rendered
from cache import Arrays, stored
from geometry import Points
from matching import detect, nearest
from numpy.typing import NDArray
from pose_scenes import N_EXACT
from pose_worlds import MOTIONS, move
from problems import Cameras, Problem, first_seed
from rendering import Scene, draw_correspondences, render_pair
from rendering.scenes import NO_MOTION, Camera

from ruzhash_cv.datasets import fetch_adelaidermf

#: Scenes for poses: the family and the number of structures of `rendered.build`; all of them stand still here.
POSED = {"facade": ("planes", 4), "parcels": ("one rigid", 1), "desk": ("motions", 4)}


def matched(name: str, suite: str, arrays: Arrays, features: str, ratio: float | None = None) -> Problem:
    """The mutual nearest neighbours of one pair out of cached arrays, those that pass a ratio test where one is asked for."""
    kept = np.ones(len(arrays[f"{features}_ratio"]), bool) if ratio is None else arrays[f"{features}_ratio"] < ratio
    rows = *points_of(arrays, features), arrays[f"{features}_labels"], arrays[f"{features}_judged"]
    kind = "homography" if suite.endswith((" H", "plane", "planes")) else "fundamental"
    return Problem(name, suite, kind, *(row[kept] for row in rows))


def features_of(img1: NDArray[np.uint8], img2: NDArray[np.uint8]) -> Arrays:
    """Features of both images and their mutual nearest neighbours."""
    arrays: Arrays = {}
    for features in ("sift", "orb"):
        sides = detect(img1, features), detect(img2, features)
        for number, side in enumerate(sides, 1):
            arrays |= {f"{features}_{name}{number}": rows for name, rows in side.items()}
        pairs, ratio, mutual = nearest(*sides, features)
        arrays[f"{features}_pairs"], arrays[f"{features}_ratio"] = pairs[mutual], ratio[mutual]
    return arrays


def points_of(arrays: Arrays, features: str) -> tuple[Points, Points]:
    """Places of the matched keypoints."""
    pairs = arrays[f"{features}_pairs"]
    return arrays[f"{features}_keypoints1"][pairs[:, 0]], arrays[f"{features}_keypoints2"][pairs[:, 1]]


def worn(image: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """A picture in poor light: blurred, of less contrast, noisy. Rendered pictures match better than photographs otherwise."""
    dim = 40 + 0.5 * cv2.GaussianBlur(image, (0, 0), 1.2)
    return np.clip(dim + rng.normal(0, 10, image.shape), 0, 255).astype(np.uint8)


def moved(scene: Scene, motion: str, seed: int) -> Scene:
    """The scene standing still, seen a second time by the first camera moved."""
    rotations, translations = (np.repeat(part, len(scene.rotations), axis=0) for part in NO_MOTION)
    scene = replace(scene, rotations=rotations, translations=translations)
    camera, (ids, inverse) = scene.cameras[0], scene.face_map(0)
    depth = float(np.median(1 / inverse[ids < len(scene.faces)]))
    R, t = move(motion, depth, np.random.default_rng([len(motion), seed]))
    return replace(scene, cameras=(camera, Camera(camera.K, R @ camera.R, R @ camera.t + t, camera.size)))


def photograph(family: str, structures: int, seed: int, motion: str | None) -> Arrays:
    """Render a scene, detect, match and judge; `motion` None leaves moving objects moving."""
    scene = rendered.build(family, structures, seed)
    scene = scene if motion is None else moved(scene, motion, seed)
    pair = render_pair(scene, rng=seed)
    arrays = features_of(pair.img1, worn(pair.img2, np.random.default_rng(seed)))
    for features in ("sift", "orb"):
        arrays |= rendered.judged(pair, features, *points_of(arrays, features))
    exact = draw_correspondences(scene, N_EXACT, mismatch_rate=0.0, noise=0.0, rng=seed)
    one, two = scene.cameras
    R = two.R @ one.R.T
    # A rotation keeps the centre up to rounding.
    t = np.zeros(3) if motion == "rotation" else two.t - R @ one.t
    model = two.K @ R @ np.linalg.inv(one.K) if motion == "rotation" else exact.fundamental_matrices[0]
    cameras = {"K1": one.K, "K2": two.K, "R": R, "t": t, "model": model}
    return arrays | cameras | {"exact1": exact.points1, "exact2": exact.points2}


@lru_cache(maxsize=1)
def version() -> str:
    """Changes with the renderer, with the motions and with this file, so that cached matches never outlive them."""
    sources = b"".join(Path(module).read_bytes() for module in (__file__, pose_worlds.__file__, matching.__file__))
    return rendered.renderer_version() + hashlib.sha256(sources).hexdigest()[:6]


def pictured(family: str, structures: int, seed: int, motion: str | None = None) -> Arrays:
    """What :func:`photograph` makes, kept."""
    slug = f"pictured_{family.replace(' ', '_')}_{structures}_{seed}_{motion}"
    return stored(f"{slug}_{version()}_opencv{cv2.__version__}", partial(photograph, family, structures, seed, motion))


def posed(half: str, per_cell: int, ratio: float | None, features: str = "sift") -> Iterator[Problem]:
    """`per_cell` image pairs of each static scene and motion, their matches with or without a ratio test."""
    suite = f"rendered poses, {features}" + (" without ratio test" if ratio is None else "")
    for (scene, (family, structures)), motion, index in product(POSED.items(), MOTIONS, range(per_cell)):
        seed = first_seed(half) + index
        arrays = pictured(family, structures, seed, motion)
        found = matched(f"{scene} {motion} {seed}", suite, arrays, features, ratio)
        truth = {"cameras": Cameras(*(arrays[field] for field in ("K1", "K2", "R", "t"))), "models": (arrays["model"],)}
        exact = {"exact1": arrays["exact1"], "exact2": arrays["exact2"], "labels": (found.labels > 0).astype(int)}
        kind = "homography" if motion == "rotation" else "fundamental"
        yield replace(found, kind=kind, **truth, **exact)


def unfiltered(features: str, half: str, per_cell: int) -> Iterator[Problem]:
    """Mutual nearest neighbours of rendered scenes of all families, and of the images of AdelaideRMF."""
    for family, choices in rendered.STRUCTURES.items():
        for index in range(per_cell):
            seed, structures = first_seed(half) + index, choices[index % len(choices)]
            arrays = pictured(family, structures, seed)
            yield matched(str(seed), f"mutual {features} on rendered {family}", arrays, features)
    for name in adelaide.scene_names(half):
        scene = fetch_adelaidermf(name)
        # partial, not a lambda: a closure would see the loop's last scene.
        arrays = stored(f"mutual_sizes_{name}_opencv{cv2.__version__}", partial(features_of, scene.img1, scene.img2))
        labels, judged, _ = adelaide.judge_fresh(scene, *points_of(arrays, features))
        arrays |= {f"{features}_labels": labels, f"{features}_judged": judged}
        suite = f"mutual {features} on adelaidermf {scene.kind[0].upper()}"
        yield adelaide.fair(matched(name, suite, arrays, features))
