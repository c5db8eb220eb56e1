"""Image pairs that share nothing, that share a scene, that only look alike, and scenes behind an overlay; from a seed."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice, product

import cv2
import numpy as np
from geometry import Points, apply_homography
from matching import RATIO, detect, nearest
from photos import home
from pose_scenes import SIZE, draw
from pose_worlds import RIGID, turn
from problems import Problem, first_seed

N_STATIC, N_MOVING, N_WRONG = 60, 200, 85
OVERLAYS = ("logo", "watermark", "border")
STATIC_NOISE = 0.2  # pixels: keypoints of an overlay move with what is behind it
ALIKE = 0.7  # share of matches between look-alike windows, the others are at random
#: Numbers of matches of random points, those from which a row of the table begins, and SIFT features of a photograph.
SIZES, BUCKETS, N_FEATURES = (10, 20, 50, 100, 200, 500, 1000), (8, 30, 100, 300), 1500
#: First letters that the names of photographs of one place share, without the A or B at their end; those under several names.
PLACE, SAME = 5, {"graff": "graf", "wash": "shout", "zoom": "books"}


def bare(name: str, suite: str, points: tuple[Points, Points]) -> Problem:
    """A problem whose matches are all wrong."""
    wrong, n = np.intp(0), len(points[0])
    return Problem(name, suite, "fundamental", *points, np.repeat(wrong, n), np.ones(n, bool))


def related(half: str, count: int) -> Iterator[Problem]:
    """Two views of one scene, 10 to 80 % mismatches."""
    cells = [*product(RIGID, ("wide", "narrow", "forward", "rotation"))]
    for index in range(count):
        # 16 cells and 15 kinds of mismatches have no divisor in common, so that all meet.
        yield replace(draw(*cells[index % len(cells)], first_seed(half) + index), suite="related")


def unrelated(half: str, count: int) -> Iterator[Problem]:
    """One view of each of two scenes, with keypoints where these have texture, paired at random."""
    for index in range(count):
        seed = first_seed(half) + index
        rng = np.random.default_rng([1, seed])
        one, two = (draw(RIGID[rng.integers(4)], "wide", seed + shift) for shift in (0, 1))
        n = min(len(one.points1), len(two.points2))
        yield bare(str(seed), "unrelated", (rng.permutation(one.points1)[:n], rng.permutation(two.points2)[:n]))


def bucket(n: int) -> str:
    """The range of numbers of matches that a pair is counted in."""
    return f"{max([least for least in BUCKETS if least <= n], default=0)} or more matches"


def random_points(half: str, count: int) -> Iterator[Problem]:
    """Points at random in two images."""
    rng = np.random.default_rng(first_seed(half))
    for index, n in enumerate(islice(cycle(SIZES), count)):
        points = rng.uniform(0, [*SIZE, *SIZE], (n, 4))
        yield bare(str(index), f"random points, {bucket(n)}", (points[:, :2], points[:, 2:]))


def unrelated_photographs(half: str, count: int) -> Iterator[Problem]:
    """SIFT matches of photographs of different places, drawn at random: by the ratio test, and by mutual choice."""
    paths, rng = sorted(file for file in home().rglob("*") if file.suffix in (".jpg", ".png")), np.random.default_rng(1)
    # The names of photographs of one place begin with the same letters; three places have two names.
    places = [SAME.get(place, place) for place in (path.stem[:-1][:PLACE].lower() for path in paths)]
    sides = [detect(cv2.imread(str(path)), "sift", N_FEATURES) for path in paths]
    for index in range(count if len(set(places)) > 1 else 0):
        one, two = rng.choice(len(sides), 2, replace=False)
        while places[one] == places[two]:
            one, two = rng.choice(len(sides), 2, replace=False)
        found = nearest(sides[one], sides[two], "sift")
        pairs = found.pairs[found.mutual if index % 2 else found.ratio < RATIO]
        points = sides[one]["keypoints"][pairs[:, 0]], sides[two]["keypoints"][pairs[:, 1]]
        yield bare(str(index), f"unrelated photographs, {bucket(len(pairs))}", points)


def look_alike(half: str, count: int) -> Iterator[Problem]:
    """Two buildings with the same windows in rows of their own: what one window shows lies on any one of the other's."""
    for index in range(count):
        rng = np.random.default_rng([2, first_seed(half) + index])
        motif, sides = rng.uniform(-0.35, 0.35, (12, 2)), []
        for _ in range(2):
            columns, rows = rng.integers(5, 10), rng.integers(3, 6)
            grid = np.stack(np.mgrid[:columns, :rows], axis=-1).reshape(-1, 2) - [(columns - 1) / 2, (rows - 1) / 2]
            windows = grid * rng.uniform([1, 1], [1.6, 1.6])
            places = (windows[:, None] + motif).reshape(-1, 2)
            H = np.diag([1, 1, 1 / 600]) @ turn(*rng.uniform(-35, 35, 2), rng.normal(0, 3))
            H[:, 2] += [0, 0, np.abs(places).max() * rng.uniform(1.8, 2.4) / 600]
            sides.append((apply_homography(H, places) + SIZE / 2).reshape(len(windows), 12, 2))
        # Mutual neighbours: no window is matched twice.
        n_windows = min(len(side) for side in sides)
        points = [rng.permutation(side)[:n_windows].reshape(-1, 2) for side in sides]
        n = min(len(points[0]), int(rng.integers(80, 400)))
        kept = rng.permutation(len(points[0]))[:n]
        wrong = rng.random(n) > ALIKE
        second = points[1][kept]
        second[wrong] = rng.permutation(second[wrong])
        noise = rng.normal(0, 0.7, (2, n, 2))
        yield bare(str(first_seed(half) + index), "alike", (points[0][kept] + noise[0], second + noise[1]))


def overlaid(half: str, per_kind: int) -> Iterator[Problem]:
    """A moving scene of 200 matches, 60 static ones in three patterns, 85 mismatches."""
    for kind in OVERLAYS:
        for index in range(per_kind):
            seed = first_seed(half) + index
            rng = np.random.default_rng([3, OVERLAYS.index(kind), seed])
            pair = draw(RIGID[index % 4], ("wide", "forward")[index // 4 % 2], seed)
            if kind == "logo":
                places = rng.uniform([30, 520], [170, 570], (N_STATIC, 2))
            elif kind == "watermark":
                places = SIZE / 2 + rng.uniform(-1, 1, (N_STATIC, 2)) * [280, 60]
            else:
                places = rng.uniform(0, SIZE, (N_STATIC, 2))
                places[:, 1] = rng.choice([25.0, SIZE[1] - 25.0], N_STATIC) + rng.normal(0, 1.0, N_STATIC)
            yield mix(kind, pair, places, N_MOVING, rng)


def still(half: str, count: int) -> Iterator[Problem]:
    """A camera that did not move: 260 static matches all over, nothing else but mismatches."""
    for index in range(count):
        rng = np.random.default_rng([4, first_seed(half) + index])
        pair = draw(RIGID[index % 4], "wide", first_seed(half) + index)
        n = N_STATIC + N_MOVING
        places = pair.exact1[rng.integers(0, len(pair.exact1), n)] + rng.uniform(-2, 2, (n, 2))
        yield mix("still camera", pair, places, 0, rng)


def mix(kind: str, pair: Problem, static: Points, n_moving: int, rng: np.random.Generator) -> Problem:
    """Exact matches of the pair with noise of half a pixel (1), static ones (2), mismatches (0); in random order."""
    rows = rng.choice(len(pair.exact1), n_moving, replace=False)
    wrong = rng.uniform(0, SIZE, (2, N_WRONG, 2))
    sides = []
    for exact, other in zip((pair.exact1, pair.exact2), wrong, strict=True):
        moving = exact[rows] + rng.normal(0, 0.5, (n_moving, 2))
        sides.append(np.vstack([moving, static + rng.normal(0, STATIC_NOISE, static.shape), other]))
    labels = np.repeat([1, 2, 0], [n_moving, len(static), N_WRONG])
    order = rng.permutation(len(labels))
    points = {"points1": sides[0][order], "points2": sides[1][order], "labels": labels[order]}
    return replace(pair, suite=f"overlay, {kind}", judged=np.ones(len(labels), bool), **points)
