"""Rendered walls of one window over and over, seen at an angle, as SIFT and ORB with the ratio test or as mutual nearest neighbours.

Windows slip along their rows and columns, and slips pass for parallax.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import cv2
import numpy as np
import rendered
from cache import Arrays, stored
from matching import matches_of
from problems import Problem, first_seed
from rendering import Scene, facade_scene, look_at, plane_scene, render_pair
from rendering.furnishings import texture_seed
from rendering.layouts import SIZE
from rendering.scenes import NO_MOTION, Face, Texture

WINDOW, STOREY = 2.6, 3.0  # metres, as on the wall of `plane_scene`
FIRST_FACADE, N_FEATURES = 300, 4000  # seeds beside those of other suites
WAYS = "sift-ratio", "sift-mutual", "orb-ratio", "orb-mutual"


def terrace(seed: int) -> Scene:
    """A terrace of houses with one window all over each."""
    scene = facade_scene(4, rng=seed)
    faces = [face for face in scene.faces if face.texture.kind == "house"]
    offices = [replace(face, texture=replace(face.texture, kind="offices")) for face in faces]
    return replace(scene, faces=(*offices, *scene.faces[len(faces) :]))


def courtyard(seed: int) -> Scene:
    """Three walls at right angles and the pavement between them, seen from the open side towards one corner."""
    rng = np.random.default_rng(seed)
    columns, deep, rows = rng.integers([6, 5, 4], [9, 8, 6])
    width, depth, height, side = WINDOW * columns, WINDOW * deep, STOREY * rows, rng.choice([-1, 1])
    corners = np.array([[-1, 0, 0], [-1, 1, 0], [1, 1, 0], [1, 0, 0]]) * [width / 2, depth, 0] + [0, 0, height]
    walls = [
        Face(one, two - one, [0, 0, -height], Texture("offices", texture_seed(rng), int(n), int(rows)), plane)
        for plane, (one, two, n) in enumerate(zip(corners, corners[1:], (deep, columns, deep), strict=False), 1)
    ]
    paving = Texture("paving", texture_seed(rng), 36, 32)
    ground = Face([-width / 2, depth, 0], [width, 0, 0], [0, -2 * depth, 0], paving, plane=4)
    cameras = [
        look_at(
            [side * width * rng.uniform(0.15, 0.4), -depth * rng.uniform(0.3, 0.6), rng.uniform(1.6, 4)],
            [-side * width * rng.uniform(0.1, 0.3), depth, height * rng.uniform(0.35, 0.5)],
            focal=0.75 * SIZE[0], size=SIZE, roll=rng.normal(0, 0.02),
        )
        for _ in range(2)
    ]  # fmt: skip
    return Scene((*walls, ground), (cameras[0], cameras[1]), *NO_MOTION, "plane")


SCENES = {"wall": lambda seed: plane_scene(rng=seed), "terrace": terrace, "courtyard": courtyard}


def photograph(kind: str, seed: int) -> Arrays:
    """Both images of one scene, matched in all ways and judged."""
    pair, arrays = render_pair(SCENES[kind](seed), rng=seed), {}
    matches = [rows for features in ("sift", "orb") for rows in matches_of(pair.img1, pair.img2, features, N_FEATURES)]
    for way, rows in zip(WAYS, matches, strict=True):
        points = rows[:, :2], rows[:, 2:4]
        arrays |= {f"{way}1": points[0], f"{way}2": points[1]} | rendered.judged(pair, way, *points)
    return arrays


def facades(way: str, half: str, per_cell: int) -> Iterator[Problem]:
    """`per_cell` pairs of each kind of scene, matched in one of `WAYS`."""
    for kind in SCENES:
        for seed in range(first_seed(half) + FIRST_FACADE, first_seed(half) + FIRST_FACADE + per_cell):
            slug = f"facade_{kind}_{seed}_{rendered.renderer_version()}_opencv{cv2.__version__}"
            arrays = stored(slug, partial(photograph, kind, seed))
            fields = (arrays[f"{way}{field}"] for field in ("1", "2", "_labels", "_judged"))
            yield Problem(f"{kind} {seed}", f"facades, {way}", "homography", *fields)
