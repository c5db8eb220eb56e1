"""Scenes of textured planar faces on rigid bodies, seen by two cameras, and their exact two-view geometry.

The world is in metres with z up; pixel (0, 0) is the centre of the first pixel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rendering.rasters import clip_polygon, fill_faces

Array = NDArray[np.float64]
RNG: TypeAlias = int | np.random.Generator | None
UNIT_SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
NEAREST_DEPTH = 0.05  # metres; faces are cut here, before they pass the camera's centre
NO_MOTION = (np.eye(3)[None], np.zeros((1, 3)))  # the static world alone


@dataclass(frozen=True, eq=False)
class Camera:
    """A pinhole camera, x ~ K (R X + t): `K` in pixels, `R` from world to camera, `t` in metres, `size` the width and height."""

    K: Array
    R: Array
    t: Array
    size: tuple[int, int] = (800, 600)

    def project(self, points: ArrayLike) -> Array:
        """Return the pixels (n, 2) of world points (n, 3); points behind the camera give no sensible pixel."""
        rays = (np.asarray(points, dtype=np.float64) @ self.R.T + self.t) @ self.K.T
        return rays[:, :2] / rays[:, 2:]


def look_at(
    eye: ArrayLike, target: ArrayLike, *, focal: float, size: tuple[int, int] = (800, 600), roll: float = 0.0
) -> Camera:
    """Return a camera at `eye` (metres) with `target` in the image centre; `focal` in pixels, `roll` about the view in radians."""
    centre = np.asarray(eye, dtype=np.float64)
    forward = np.asarray(target, dtype=np.float64) - centre
    forward = forward / np.linalg.norm(forward)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right = right / np.linalg.norm(right)
    down = np.cross(forward, right)
    turn = np.array([[np.cos(roll), -np.sin(roll), 0.0], [np.sin(roll), np.cos(roll), 0.0], [0.0, 0.0, 1.0]])
    R = turn @ np.stack([right, down, forward])
    K = np.array([[focal, 0.0, (size[0] - 1) / 2], [0.0, focal, (size[1] - 1) / 2], [0.0, 0.0, 1.0]])
    return Camera(K, R, -R @ centre, size)


@dataclass(frozen=True)
class Texture:
    """What is painted on a face: the name of a painter, its seed, and how often its motif repeats across the face."""

    kind: str
    seed: int = 0
    columns: int = 4
    rows: int = 4


@dataclass(frozen=True, eq=False)
class Face:
    """A convex polygon in a plane: the points ``origin + a edge_u + b edge_v`` with (a, b) inside `outline`.

    `origin`, `edge_u`, `edge_v` (3,): top left corner of the texture, its top edge and its left edge, in metres. `plane`: from 1;
    coplanar faces of one body may share it. `body`: 0 is the static world. `outline` (m, 2): convex, in units of the two edges.
    """

    origin: ArrayLike
    edge_u: ArrayLike
    edge_v: ArrayLike
    texture: Texture
    plane: int
    body: int = 0
    outline: Array = field(default_factory=UNIT_SQUARE.copy)

    @property
    def basis(self) -> Array:
        """The 3x3 matrix that takes (a, b, 1) to the world."""
        return np.stack([self.edge_u, self.edge_v, self.origin], axis=1)


@dataclass(frozen=True, eq=False)
class Scene:
    """Faces, two cameras and how each body moves between the two shots.

    A point X of body b at the first shot is at ``rotations[b] @ X + translations[b]`` at the second; body 0 does not move.
    `structure`: each plane (homographies) or each body (fundamental matrices). `light`: direction towards the sun or lamp.
    `backdrop`: "sky" or "hall".
    """

    faces: tuple[Face, ...]
    cameras: tuple[Camera, Camera]
    rotations: Array
    translations: Array
    structure: Literal["plane", "body"]
    light: Array = field(default_factory=lambda: np.array([-0.4, -0.5, 0.75]))
    backdrop: str = "sky"

    @property
    def plane_of_face(self) -> NDArray[np.int64]:
        """Number of the plane of each face, from 1, shape (n_faces,)."""
        return np.array([face.plane for face in self.faces], dtype=np.int64)

    @property
    def body_of_face(self) -> NDArray[np.int64]:
        """Number of the body of each face, from 0, shape (n_faces,)."""
        return np.array([face.body for face in self.faces], dtype=np.int64)

    @property
    def structure_of_face(self) -> NDArray[np.int64]:
        """Label of the structure of each face, from 1: its plane, or its body + 1, shape (n_faces,)."""
        return self.plane_of_face if self.structure == "plane" else self.body_of_face + 1

    def bases(self, shot: int) -> Array:
        """Return the world bases of the faces at a shot (0 or 1), shape (n_faces, 3, 3)."""
        bases = np.array([face.basis for face in self.faces]).reshape(-1, 3, 3)
        if shot == 0:
            return bases
        body = self.body_of_face
        moved: Array = self.rotations[body] @ bases
        moved[:, :, 2] += self.translations[body]
        return moved

    def face_to_pixel(self, shot: int) -> Array:
        """Return the 3x3 matrices that take (a, b, 1) of each face to homogeneous pixels, shape (n_faces, 3, 3)."""
        camera = self.cameras[shot]
        rigid = camera.R @ self.bases(shot)
        rigid[:, :, 2] += camera.t
        pixels: Array = camera.K @ rigid
        return pixels

    def homographies(self) -> Array:
        """Return the exact homography of each face, image 1 -> image 2 in pixels, H[2, 2] = 1, (n_faces, 3, 3)."""
        H = self.face_to_pixel(1) @ np.linalg.inv(self.face_to_pixel(0))
        return np.asarray(H / H[:, 2:, 2:])

    def plane_homographies(self) -> Array:
        """Return the exact homography of plane k in row k - 1, shape (n_planes, 3, 3)."""
        _, first = np.unique(self.plane_of_face, return_index=True)
        return self.homographies()[first]

    def fundamental_matrices(self) -> Array:
        """Return the exact fundamental matrix of body b in row b, in pixels, unit norm, shape (n_bodies, 3, 3)."""
        one, two = self.cameras
        matrices = []
        for rotation, translation in zip(self.rotations, self.translations, strict=True):
            R = two.R @ rotation @ one.R.T
            x, y, z = two.R @ translation + two.t - R @ one.t
            cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
            F = np.linalg.inv(two.K).T @ cross @ R @ np.linalg.inv(one.K)
            matrices.append(F / np.linalg.norm(F))
        return np.array(matrices)

    def face_map(self, shot: int, *, scale: int = 1) -> tuple[NDArray[np.uint16], Array]:
        """Return which face is seen at each pixel of a shot, `NO_FACE` where none is, and the inverse depth there, 1 / metres or -inf.

        The image is enlarged by `scale`: pixel x becomes the `scale` pixels around ``scale x + (scale - 1) / 2``.
        """
        width, height = self.cameras[shot].size
        to_pixel = enlargement(scale) @ self.face_to_pixel(shot)
        inverse: Array = np.linalg.inv(to_pixel).astype(np.float64)
        polygons = []
        for face, matrix in zip(self.faces, to_pixel, strict=True):
            # The third coordinate of (a, b, 1) in the camera is its depth.
            outline = face.outline
            if (outline @ matrix[2, :2]).min() + matrix[2, 2] < NEAREST_DEPTH:
                outline = clip_polygon(outline, matrix[2], NEAREST_DEPTH)
            corners = outline @ matrix[:, :2].T + matrix[:, 2]
            polygons.append(corners[:, :2] / corners[:, 2:])
        # (a, b, 1) = depth * inverse @ (x, y, 1), so the last row gives the inverse depth.
        return fill_faces(polygons, inverse[:, 2], (width * scale, height * scale))


def enlargement(scale: int) -> Array:
    """Return the 3x3 matrix from pixels to those of an image `scale` times as large, centres on centres."""
    shift = (scale - 1) / 2
    return np.array([[scale, 0.0, shift], [0.0, scale, shift], [0.0, 0.0, 1.0]])
