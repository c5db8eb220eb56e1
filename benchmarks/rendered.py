"""Rendered scenes with exact truth: correspondences drawn from them, and SIFT or ORB on their images."""

import hashlib
import zlib
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import product
from pathlib import Path

import cv2
import numpy as np
from adelaide import match_both
from cache import Arrays, stored
from geometry import Points
from numpy.typing import NDArray
from problems import Problem, first_seed
from rendering import Scene, desk_scene, draw_correspondences, facade_scene, plane_scene, render_pair, rigid_scene

from ruzhash_cv.datasets import pairs

RATES = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
WEIGHTS = ("area", "even", "uneven")  # how true matches are shared among structures
MISMATCHES = ("uniform", "nearby")
# Repeated mismatches agree with each other: beyond half of the matches the wrong structures are the larger ones.
REPEATED_RATES = RATES[:4]
VARIED = {
    "one plane": ("one plane", 1), "three planes": ("planes", 3), "one rigid motion": ("one rigid", 1), "two motions": ("motions", 2),
    "two motions seen through each other": ("", 0),
}  # fmt: skip
N_VARIED, VARIED_RATES, FIRST_VARIED = 300, (0.2, 0.4, 0.6), 700
CELLS = {"one plane": (0.05, 0.1, 0.2), "one rigid": (0.1, 0.2)}  # shares of true matches
CELL_SIZES, CELL_SCENES, FIRST_CELL = (300, 1000), 4, 900
FEW_TRUE = ((15, 300), (50, 1000))
NOISE = (0.3, 3.0)  # pixels, log-uniform
N_MATCHES = (50, 5000)  # log-uniform, but at least FEWEST true ones for each structure
FEWEST = 20
STRUCTURES = {"one plane": (1,), "planes": tuple(range(2, 9)), "one rigid": (1,), "motions": (2, 3, 4, 5)}
TRUE_WITHIN, FALSE_BEYOND = 3.0, 10.0  # pixels from the exact place; between the two a match does not count


@lru_cache(maxsize=64)
def build(family: str, structures: int, seed: int) -> Scene:
    """One scene of a family."""
    if family == "one plane":
        return plane_scene(rng=seed)
    if family == "planes":
        return facade_scene(structures, rng=seed)
    if family == "one rigid":
        return rigid_scene(rng=seed)
    return desk_scene(structures - 1, rng=seed)  # the desk itself is a motion


def drawn(family: str, half: str, per_cell: int) -> Iterator[Problem]:
    """`per_cell` problems for each mismatch rate, with uniform and with nearby mismatches."""
    cells = [(rate, way) for rate in RATES for way in MISMATCHES]
    for index in range(per_cell * len(cells)):
        rate, way = cells[index % len(cells)]
        yield draw(family, rate, way, first_seed(half) + index)


def repeated(half: str, per_cell: int) -> Iterator[Problem]:
    """`per_cell` problems of each family and mismatch rate, matched one or two periods of the texture off."""
    for family in STRUCTURES:
        for index in range(per_cell * len(REPEATED_RATES)):
            rate = REPEATED_RATES[index % len(REPEATED_RATES)]
            yield draw(family, rate, "repeated", first_seed(half) + index)


def varied(half: str, per_cell: int) -> Iterator[Problem]:
    """`per_cell` scenes of each kind: 300 matches, 1 px of noise, 20 to 60 % of them wrong."""
    for kind, (family, structures) in VARIED.items():
        for index in range(per_cell):
            seed, rate = first_seed(half) + FIRST_VARIED + index, VARIED_RATES[index % len(VARIED_RATES)]
            if structures:
                scene = build(family, structures, seed)
                found = draw_correspondences(scene, N_VARIED, mismatch_rate=rate, noise=1.0, rng=seed)
                points, labels = (found.points1, found.points2), found.labels
            else:
                points, labels = transparent(seed, rate)
            yield Problem(str(seed), kind, "fundamental", *points, labels, np.ones(N_VARIED, bool))


def mostly_wrong(half: str, per_cell: int) -> Iterator[Problem]:
    """Scenes of one plane or rigid motion among mostly mismatches, a suite for each number of matches and share of true ones."""
    for family, shares in CELLS.items():
        kind = "homography" if family == "one plane" else "fundamental"
        for n, share, index in product(CELL_SIZES, shares, range(CELL_SCENES * per_cell)):
            seed = first_seed(half) + FIRST_CELL + index
            found = draw_correspondences(build(family, 1, seed), n, mismatch_rate=1 - share, noise=1.0, rng=seed)
            suite, points = f"{family}, {share:.0%} of {n:,} true", (found.points1, found.points2)
            yield Problem(str(seed), suite, kind, *points, found.labels, np.ones(n, bool))


def few_true(half: str, per_cell: int) -> Iterator[Problem]:
    """Planes with few true matches, a suite for each of `FEW_TRUE`."""
    for (n_true, n), index in product(FEW_TRUE, range(6 * per_cell)):
        seed = first_seed(half) + index
        found = draw_correspondences(plane_scene(rng=seed), n, mismatch_rate=1 - n_true / n, noise=0.7, rng=seed)
        points, suite = (found.points1, found.points2), f"{n_true} true of {n:,}"
        yield Problem(str(seed), suite, "homography", *points, found.labels, np.ones(n, bool))


def transparent(seed: int, rate: float) -> tuple[tuple[Points, Points], NDArray[np.intp]]:
    """Matches of two rigid motions that fill the same part of the image, and their labels."""
    rng, views = np.random.default_rng(seed), []
    for n in (N_VARIED - N_VARIED // 2, N_VARIED // 2):
        X = rng.uniform([-1.5, -1.2, 3.0], [1.5, 1.2, 6.0], (n, 3))
        Y = X @ cv2.Rodrigues(rng.normal(0, 0.08, 3))[0].T + rng.uniform(-0.5, 0.5, 3)
        views.append(400 + 800 * np.hstack([X[:, :2] / X[:, 2:], Y[:, :2] / Y[:, 2:]]))
    order = rng.permutation(N_VARIED)
    pairs = np.vstack(views)[order] + rng.normal(0, 1 / np.sqrt(2), (N_VARIED, 4))
    n_wrong = int(rate * N_VARIED)
    pairs[:n_wrong, 2:] = rng.uniform(0, 800, (n_wrong, 2))
    labels = np.where(order < N_VARIED - N_VARIED // 2, 1, 2)
    labels[:n_wrong] = 0
    return (pairs[:, :2], pairs[:, 2:]), labels


def draw(family: str, rate: float, way: str, seed: int) -> Problem:
    """One problem; noise, number of matches and of structures come from the seed."""
    # crc32, as str hashes differ between processes.
    rng = np.random.default_rng([zlib.crc32(family.encode()), seed])
    choices = STRUCTURES[family]
    structures = choices[seed % len(choices)]
    noise = float(np.exp(rng.uniform(*np.log(NOISE))))
    fewest = max(N_MATCHES[0], FEWEST * structures / (1 - rate))
    n_matches = int(np.exp(rng.uniform(np.log(fewest), np.log(N_MATCHES[1]))))

    def make() -> Arrays:
        scene = build(family, structures, seed)
        options = {"mismatch_rate": rate, "noise": noise, "mismatches": way, "weights": rng.choice(WEIGHTS)}
        found = draw_correspondences(scene, n_matches, **options, rng=rng)
        return {"points1": found.points1, "points2": found.points2, "labels": found.labels} | truth(scene, seed)

    slug = f"{family.replace(' ', '_')}_{structures}_{seed}_{way}_{rate}_{n_matches}_{noise:.3f}"
    arrays = stored(f"{slug}_{renderer_version()}", make)
    judged = np.ones(len(arrays["labels"]), dtype=bool)
    suite = f"repeated texture, {family}" if way == "repeated" else family
    return problem(f"{seed} {way} {rate}", suite, arrays, judged)


def truth(scene: Scene, seed: int) -> Arrays:
    """The exact matrices of a scene and noise-free correspondences to judge refitted models by."""
    exact = draw_correspondences(scene, 500, mismatch_rate=0.0, noise=0.0, rng=seed)
    models = exact.homographies if scene.structure == "plane" else exact.fundamental_matrices
    return {"exact1": exact.points1, "exact2": exact.points2, "models": models}


def problem(name: str, suite: str, arrays: Arrays, judged: NDArray[np.bool_]) -> Problem:
    """A problem out of cached arrays."""
    kind = "homography" if suite.endswith(("one plane", "planes")) else "fundamental"
    fields = {field: arrays[field] for field in ("points1", "points2", "labels", "exact1", "exact2")}
    return Problem(name, suite, kind, judged=judged, models=tuple(arrays["models"]), **fields)


@lru_cache(maxsize=1)
def renderer_version() -> str:
    """Changes whenever the renderer or the judge of its pictures does, so that cached matches never outlive them."""
    sources = [*sorted((Path(__file__).parent / "rendering").glob("*.py")), Path(pairs.__file__)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def judged(pair: pairs.ImagePair, features: str, *points: Points) -> Arrays:
    """Labels of matches of a pair, and which of them count: where no face is seen there is no truth, and the error is infinite."""
    error, labels = pair.transfer_errors(*points), pair.labels(*points, tolerance=TRUE_WITHIN) + 1
    counts = (error <= TRUE_WITHIN) | ((error > FALSE_BEYOND) & np.isfinite(error))
    return {f"{features}_labels": labels, f"{features}_judged": counts}


def photograph(family: str, structures: int, seed: int) -> Arrays:
    """Both images of one scene matched with SIFT and with ORB, and judged."""
    scene = build(family, structures, seed)
    pair = render_pair(scene, rng=seed)
    arrays = match_both(pair.img1, pair.img2) | truth(scene, seed)
    for features in ("sift", "orb"):
        arrays |= judged(pair, features, arrays[f"{features}1"], arrays[f"{features}2"])
    return arrays


def pictures(features: str, half: str, per_cell: int) -> Iterator[Problem]:
    """`per_cell` image pairs of each family and number of structures, at least four of a family."""
    for family, choices in STRUCTURES.items():
        for index in range(per_cell * max(len(choices), 4)):
            seed, structures = first_seed(half) + index, choices[index % len(choices)]
            slug = f"{family.replace(' ', '_')}_{structures}_{seed}_{renderer_version()}_opencv{cv2.__version__}"
            arrays = stored(slug, partial(photograph, family, structures, seed))
            for field, name in (("points1", "1"), ("points2", "2"), ("labels", "_labels")):
                arrays[field] = arrays[f"{features}{name}"]
            yield problem(str(seed), f"{features} on rendered {family}", arrays, arrays[f"{features}_judged"])
