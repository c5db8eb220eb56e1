"""A street of office fronts that repeat one window, and views along it: exact cameras, and exact truth for every match."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from rendering import Scene, look_at, render_shots
from rendering.pictures import with_truth
from rendering.scenes import NO_MOTION, Camera, Face, Texture

from ruzhash_cv.datasets import ImagePair

Array = NDArray[np.float64]
SIZE, FOCAL = (800, 600), 680.0
N_FRONTS, COLUMNS, ROWS = 4, 6, 5
BAY, STOREY = 2.6, 3.0  # metres


def street(seed: int = 0) -> Scene:
    """Return fronts joined edge to edge, bent to and fro, and the pavement before them; other seeds paint and bend them otherwise."""
    rng = np.random.default_rng([1, seed])
    bends = rng.uniform(10, 30, N_FRONTS) if seed else np.full(N_FRONTS, 22.0)
    turns = np.radians(bends) * np.array([1, -1] * (N_FRONTS // 2))
    steps = BAY * COLUMNS * np.column_stack([np.cos(turns), np.sin(turns)])
    corners = np.vstack([np.zeros(2), np.cumsum(steps, axis=0)])
    corners -= corners.mean(axis=0)
    faces = []
    for number, (left, right) in enumerate(pairwise(corners)):
        texture = Texture("offices", 8 * (number + 1) + 100 * seed, COLUMNS, ROWS)
        edge, down = np.append(right - left, 0.0), np.array([0.0, 0.0, -STOREY * ROWS])
        faces.append(Face(np.append(left, STOREY * ROWS), edge, down, texture, plane=number + 1))
    width = float(np.ptp(corners[:, 0])) + 20
    ground = np.array([-width / 2, 8.0, 0.0]), np.array([width, 0.0, 0.0]), np.array([0.0, -26.0, 0.0])
    faces.append(Face(*ground, Texture("paving", 800 + seed), plane=N_FRONTS + 1))
    cameras = walk(2, seed)
    return Scene(tuple(faces), (cameras[0], cameras[1]), *NO_MOTION, "plane", np.array([-0.5, -0.6, 0.7]))


def walk(n_views: int, seed: int = 0) -> list[Camera]:
    """Return cameras along the street, looking left and right by turns."""
    rng, cameras = np.random.default_rng(seed), []
    for number, x in enumerate(np.linspace(-21, 21, n_views)):
        eye = [x, -15 + rng.normal(0, 0.5), rng.uniform(1.6, 3.0)]
        aim = x * 0.9 + (2.5 if number % 2 else -2.5) + rng.normal(0, 0.3)
        cameras.append(look_at(eye, [aim, 0.0, 5.5], focal=FOCAL, size=SIZE, roll=rng.normal(0, 0.02)))
    return cameras


def views(n_views: int, seed: int = 0) -> tuple[Scene, list[Camera], list[NDArray[np.uint8]]]:
    """Return the scene, its cameras and their pictures."""
    scene, cameras = street(seed), walk(n_views, seed)
    return scene, cameras, render_shots([(replace(scene, cameras=(camera, camera)), 0) for camera in cameras])


def true_pair(scene: Scene, camera1: Camera, camera2: Camera) -> ImagePair:
    """Return the truth about two views, without their pictures."""
    none = np.zeros((1, 1, 3), np.uint8)
    return with_truth(replace(scene, cameras=(camera1, camera2)), none, none, "street")
