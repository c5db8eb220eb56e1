"""Builders of scenes from a seed: one plane, a facade of planes, a rigid heap of boxes, a desk of moving objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rendering import furnishings
from rendering.scenes import NO_MOTION, RNG, Array, Camera, Face, Scene, Texture, look_at
from ruzhash_cv.datasets.pairs import NO_FACE

SIZE = (800, 600)
ATTEMPTS = 200


def plane_scene(*, rng: RNG = 0) -> Scene:
    """Build one wall of repeated windows, seen twice under strong perspective: one plane."""
    generator = np.random.default_rng(rng)

    def build() -> Scene:
        columns, rows = int(generator.integers(7, 11)), int(generator.integers(5, 7))
        width, height = 2.6 * columns, 3.0 * rows
        texture = Texture("offices", furnishings.texture_seed(generator), columns, rows)
        wall = Face([-width / 2, 0.0, height], [width, 0.0, 0.0], [0.0, 0.0, -height], texture, plane=1)
        side = generator.choice([-1.0, 1.0])
        target = np.array([0.0, 0.0, 0.45 * height])
        angles = side * np.radians([generator.uniform(44, 58), generator.uniform(14, 30)])
        cameras = [
            _camera(
                [distance * np.sin(angle), -distance * np.cos(angle), generator.uniform(1.5, 3.0)],
                target + generator.normal(0, 0.6, 3) * [1, 0, 1],
                0.85,
                generator.normal(0, 0.02),
            )
            for angle, distance in zip(angles, width * generator.uniform(0.72, 0.85, 2), strict=True)
        ]
        return _static([wall], cameras, "plane", light=[-0.7 * side, -0.6, 0.7])

    return _first_accepted(build, least_share=0.3)


def facade_scene(n_planes: int = 4, *, rng: RNG = 0) -> Scene:
    """Build a terrace of houses round a paved square: `n_planes` - 1 walls at different angles, and the ground."""
    if not 2 <= n_planes <= 8:
        raise ValueError(f"`n_planes` must be from 2 to 8, got {n_planes}")
    generator = np.random.default_rng(rng)

    def build() -> Scene:
        walls, extent = furnishings.terrace(n_planes - 1, generator)
        texture = Texture("paving", furnishings.texture_seed(generator), 36, 32)
        ground = Face([-18.0, 12.0, 0.0], [36.0, 0.0, 0.0], [0.0, -32.0, 0.0], texture, plane=n_planes)
        distance = extent * generator.uniform(0.66, 0.74)
        swing = generator.choice([-1, 1]) * np.radians([generator.uniform(2, 10), generator.uniform(-12, -5)])
        cameras = [
            _camera(
                [distance * zoom * np.sin(angle), -distance * zoom * np.cos(angle), generator.uniform(3.6, 5.2)],
                [generator.normal(0, 0.5), 0.0, generator.uniform(3.8, 4.6)],
                0.8,
                generator.normal(0, 0.03),
            )
            for angle, zoom in zip(swing, generator.uniform(0.9, 1.1, 2), strict=True)
        ]
        return _static([*walls, ground], cameras, "plane", light=[generator.uniform(-0.8, 0.8), -0.6, 0.8])

    return _first_accepted(build, least_share=0.03)


def rigid_scene(*, rng: RNG = 0) -> Scene:
    """Build a store room packed with parcels: many small facets, none of which dominates.

    Homographies explain at most a seventh of what is seen each; one fundamental matrix explains everything.
    """
    generator = np.random.default_rng(rng)

    def build() -> Scene:
        faces = furnishings.store_room(generator)
        cameras = []
        for side in generator.choice([-1.0, 1.0]) * np.array([-1.0, 1.0]):
            eye = [side * generator.uniform(0.3, 0.5), generator.uniform(-3.1, -2.6), generator.uniform(2.0, 2.5)]
            target = [generator.normal(0, 0.06), 0.0, generator.uniform(0.45, 0.6)]
            cameras.append(_camera(eye, target, 0.95, generator.normal(0, 0.03)))
        light = [generator.uniform(-0.6, 0.6), -0.45, 1.0]
        return _without_hidden(_static(faces, cameras, "body", light=light, backdrop="hall"))

    return _first_accepted(build, least_share=0.5, most_of_plane=0.12)


def desk_scene(n_objects: int = 4, *, rng: RNG = 0) -> Scene:
    """Build a desk with papers, on which 1 to 5 books and boxes are moved independently between the shots.

    Label 1 is the desk, which is body 0, label b + 1 the object b.
    """
    if not 1 <= n_objects <= 5:
        raise ValueError(f"`n_objects` must be from 1 to 5, got {n_objects}")
    generator = np.random.default_rng(rng)

    def build() -> Scene:
        faces = furnishings.desk_top(generator)
        before, after = furnishings.object_places(n_objects, generator)
        rotations, translations = [np.eye(3)], [np.zeros(3)]
        for body in range(1, n_objects + 1):
            start, end = before[body - 1], after[body - 1]
            yaw = generator.uniform(-0.6, 0.6)
            turn = furnishings.turn_about_vertical(generator.choice([-1, 1]) * generator.uniform(0.15, 0.6))
            faces += furnishings.desk_object(int(generator.integers(4)), start, yaw, faces[-1].plane, body, generator)
            rotations.append(turn)
            translations.append(np.append(end, 0.0) - turn @ np.append(start, 0.0))
        cameras = [
            _camera(
                [side * generator.uniform(0.06, 0.16), generator.uniform(-0.72, -0.62), generator.uniform(0.68, 0.78)],
                [generator.normal(0, 0.01), generator.uniform(0.03, 0.06), 0.0],
                1.02,
                generator.normal(0, 0.04),
            )
            for side in generator.choice([-1.0, 1.0]) * np.array([-1.0, 1.0])
        ]
        light = np.array([generator.uniform(-0.9, 0.9), 0.55, 1.1])
        moved = (np.array(rotations), np.array(translations))
        return _without_hidden(Scene(tuple(faces), (cameras[0], cameras[1]), *moved, "body", light, "hall"))

    return _first_accepted(build, least_share=0.02)


def _camera(eye: list[float], target: ArrayLike, zoom: float, roll: float) -> Camera:
    """Return a camera whose focal length is `zoom` widths of the image."""
    return look_at(eye, target, focal=zoom * SIZE[0], size=SIZE, roll=roll)


def _static(faces: list[Face], cameras: list[Camera], structure: str, *, light: Any, backdrop: str = "sky") -> Scene:
    kind, light = "plane" if structure == "plane" else "body", np.asarray(light, dtype=np.float64)
    return Scene(tuple(faces), (cameras[0], cameras[1]), *NO_MOTION, kind, light, backdrop)


def _first_accepted(build: Callable[[], Scene], *, least_share: float, most_of_plane: float = 1.0) -> Scene:
    """Draw scenes until every structure is seen well enough in both images, and no plane owns too much."""
    for _ in range(ATTEMPTS):
        scene = build()
        structures, planes = (_shares(scene, of) for of in (scene.structure_of_face, scene.plane_of_face))
        if structures.min() >= least_share and planes.max() <= most_of_plane:
            return scene
    raise RuntimeError(f"no acceptable scene in {ATTEMPTS} attempts; this is a fault of the builder")


def _without_hidden(scene: Scene) -> Scene:
    """Drop the faces neither shot sees, and number the planes that remain from 1."""
    seen = np.union1d(*(np.unique(scene.face_map(shot)[0]) for shot in (0, 1)))
    kept = [scene.faces[i] for i in seen if i != NO_FACE]
    number = {plane: i + 1 for i, plane in enumerate(sorted({face.plane for face in kept}))}
    return replace(scene, faces=tuple(replace(face, plane=number[face.plane]) for face in kept))


def _shares(scene: Scene, labels: NDArray[np.int64]) -> Array:
    """Return the share of the image each label >= 1 fills, the smaller of the two shots."""
    shares = []
    for shot in (0, 1):
        ids, _ = scene.face_map(shot)
        seen = np.append(labels, np.zeros(65536 - len(labels), np.int64))[ids]
        shares.append(np.bincount(seen.ravel(), minlength=labels.max() + 1)[1:] / seen.size)
    return np.minimum(*shares)
