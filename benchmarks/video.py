"""Video of a moving camera: clips rendered from static scenes, ORB on whole pixels, and the matches of consecutive frames.

A camera of 640 by 480 pixels passes walls, walks towards them, or is moved through a store room by hand, a few pixels a frame.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path

import cv2
import matching
import numpy as np
import rendered
from cache import Arrays, stored
from matching import N_ORB, RATIO, detect, nearest
from problems import Cameras, Problem, first_seed
from rendering import Scene, look_at, render_shots
from rendering.pictures import with_truth
from rendering.scenes import Camera

SIZE, FOCAL, N_FRAMES = (640, 480), 550.0, 30
SHAKE = 0.003  # radians, between a frame and the path
TURN = 0.15  # radians, from the first frame to the last
#: Family and structures of `rendered.build`, and the camera's way from the first frame to the last: metres to the right, and ahead.
CLIPS = {
    "past walls": ("planes", 4, 12.0, 0.0),
    "towards walls": ("planes", 4, 0.0, 8.0),
    "store room": ("one rigid", 1, 1.2, 0.0),
}


def path(scene: Scene, right: float, ahead: float, seed: int, n_frames: int = N_FRAMES) -> list[Camera]:
    """Cameras along a line through the middle of the scene's two, turning slowly, with a hand's shake."""
    rng = np.random.default_rng([5, seed])
    middle = np.mean([-camera.R.T @ camera.t for camera in scene.cameras], axis=0)
    view = np.sum([camera.R[2] for camera in scene.cameras], axis=0)
    view /= np.linalg.norm(view)
    side = np.cross(view, [0.0, 0.0, 1.0])
    side /= np.linalg.norm(side)
    cameras = []
    # Ahead: from farther back to the middle, as there is a wall in front.
    for share in np.linspace(-0.5, 0.5, n_frames):
        eye = middle + share * right * side + (share - 0.5) * ahead * view
        aim = view - TURN * share * side + rng.normal(0, SHAKE, 3)
        cameras.append(look_at(eye, eye + aim, focal=FOCAL, size=SIZE, roll=rng.normal(0, SHAKE)))
    return cameras


def tracked(scene: Scene, cameras: list[Camera], seed: int) -> Arrays:
    """Matches of consecutive frames, (n, 4) on whole pixels, that choose each other and pass the ratio test; which of them are true."""
    frames = render_shots([(replace(scene, cameras=(camera, camera)), 0) for camera in cameras], rng=seed)
    sides = [detect(cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY), "orb", N_ORB) for frame in frames]
    arrays: Arrays = {}
    for number, ((one, two), views) in enumerate(zip(pairwise(sides), pairwise(cameras), strict=True)):
        found = nearest(one, two, "orb")
        pairs = found.pairs[found.mutual & (found.ratio < RATIO)]
        points = np.rint(np.hstack([one["keypoints"][pairs[:, 0]], two["keypoints"][pairs[:, 1]]]))
        truth = with_truth(replace(scene, cameras=views), frames[number], frames[number + 1])
        arrays[f"matches{number}"] = points
        arrays[f"true{number}"] = truth.labels(points[:, :2], points[:, 2:], tolerance=rendered.TRUE_WITHIN) >= 0
    return arrays


@lru_cache(maxsize=1)
def version() -> str:
    """Changes with the renderer, with the matcher and with this file, so that cached matches never outlive them."""
    sources = b"".join(Path(module).read_bytes() for module in (__file__, matching.__file__))
    return rendered.renderer_version() + hashlib.sha256(sources).hexdigest()[:6]


def video(half: str, per_cell: int = 1, n_frames: int = N_FRAMES) -> Iterator[Problem]:
    """Consecutive frames of every clip as problems of known cameras."""
    seed = first_seed(half)
    for clip, (family, structures, *way) in CLIPS.items():
        scene = rendered.build(family, structures, seed)
        cameras = path(scene, *way, seed, n_frames)
        slug = f"video_{clip.replace(' ', '_')}_{seed}_{n_frames}_{version()}_opencv{cv2.__version__}"
        arrays = stored(slug, partial(tracked, scene, cameras, seed))
        for number, (one, two) in enumerate(pairwise(cameras)):
            points, true = arrays[f"matches{number}"], arrays[f"true{number}"]
            R = two.R @ one.R.T
            known = Cameras(one.K, two.K, R, two.t - R @ one.t)
            labels, judged = true.astype(np.intp), np.ones(len(true), bool)
            name, settings = f"{clip} {number}", {"clip": clip}
            yield Problem(
                name, f"ORB video, {clip}", "fundamental", points[:, :2], points[:, 2:], labels, judged,
                cameras=known, settings=settings,
            )  # fmt: skip
