"""Pictures of a scene: painted faces in the light of a sun and the sky, and what a camera adds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from rendering.scenes import RNG, Array, Face, Scene, enlargement
from rendering.textures import PAINTERS, Image
from ruzhash_cv.datasets.pairs import NO_FACE, ImagePair

OVERSAMPLING = 2
SKY, HALL = (214.0, 190.0, 160.0), (70.0, 74.0, 78.0)


def paint(face: Face, texels: float) -> Image:
    """Return the texture of a face at `texels` per metre, (h, w, 3) BGR uint8; at most 2,400 on a side."""
    width, height = float(np.linalg.norm(face.edge_u)), float(np.linalg.norm(face.edge_v))
    texels = min(texels, 2400 / max(width, height))
    shape, texture = (max(8, round(height * texels)), max(8, round(width * texels))), face.texture
    rng = np.random.default_rng(texture.seed)
    return PAINTERS[texture.kind](*shape, texels, rng, columns=texture.columns, rows=texture.rows)


def render_shots(shots: Sequence[tuple[Scene, int]], *, rng: RNG = 0) -> list[Image]:
    """Take any number of pictures (BGR) of the same faces: a clip, or many views.

    `shots` are which shot (0 or 1) of which scene; the scenes have the same faces and differ in cameras and motions. Textures depend
    on the scene alone, noise and exposure on `rng`.
    """
    generator = np.random.default_rng(rng)
    faces = shots[0][0].faces
    maps = [scene.face_map(shot, scale=OVERSAMPLING)[0] for scene, shot in shots]
    backdrops = [HALL if scene.backdrop == "hall" else SKY for scene, _ in shots]
    canvases = [np.full((*ids.shape, 3), fill, np.uint8) for ids, fill in zip(maps, backdrops, strict=True)]
    matrices = [scene.face_to_pixel(shot) for scene, shot in shots]
    boxes = [_boxes(ids, len(faces)) for ids in maps]
    for i, face in enumerate(faces):
        seen = [k for k in range(len(shots)) if boxes[k][i] is not None]
        if not seen:
            continue
        picture = paint(face, max(_texels(face, i, maps[k], boxes[k][i], matrices[k][i]) for k in seen))
        for k in seen:
            lit = np.clip(picture * _light(*shots[k], i), 0, 255).astype(np.uint8)
            _lay(canvases[k], maps[k], boxes[k][i], i, lit, enlargement(OVERSAMPLING) @ matrices[k][i])
    sizes = [scene.cameras[shot].size for scene, shot in shots]
    return [_develop(canvas, size, generator) for canvas, size in zip(canvases, sizes, strict=True)]


def render_pair(scene: Scene, *, name: str = "", rng: RNG = 0) -> ImagePair:
    """Render a scene and attach its exact truth."""
    return with_truth(scene, *render_shots([(scene, 0), (scene, 1)], rng=rng), name)


def with_truth(scene: Scene, img1: Image, img2: Image, name: str = "") -> ImagePair:
    """Return the exact truth about two pictures of a scene."""
    maps, planes = (scene.face_map(shot)[0] for shot in (0, 1)), scene.plane_of_face
    models = scene.homographies(), scene.fundamental_matrices()
    return ImagePair(name, img1, img2, *maps, *models, planes, scene.body_of_face, scene.structure)


def _boxes(ids: NDArray[np.uint16], n_faces: int) -> list[Any]:
    """Return the slices (rows, columns) around each face in an id map, None where it is not seen."""
    return list(ndimage.find_objects(np.where(ids == NO_FACE, 0, ids.astype(np.int32) + 1), n_faces))


def _texels(face: Face, i: int, ids: NDArray[np.uint16], box: tuple[slice, slice], to_pixel: Array) -> float:
    """Return the texels per metre the closest visible part of a face asks for, somewhat more than one a subpixel."""
    area = float(np.linalg.norm(np.cross(face.edge_u, face.edge_v)))
    to_face = np.linalg.inv(enlargement(OVERSAMPLING) @ to_pixel)
    y, x = np.nonzero(ids[box][::3, ::3] == i)
    if len(x) == 0:
        return 1.0
    depth = to_face[2, 0] * (3 * x + box[1].start) + to_face[2, 1] * (3 * y + box[0].start) + to_face[2, 2]
    texel = area * abs(np.linalg.det(to_face)) / np.abs(depth) ** 3  # square metres in one subpixel
    return 1.2 / float(np.sqrt(texel.min()))


def _lay(
    canvas: Image, ids: NDArray[np.uint16], box: tuple[slice, slice], i: int, picture: Image, to_pixel: Array
) -> None:
    """Copy a texture to the pixels of its face, from the level of its pyramid that fits each pixel."""
    mask = ids[box] == i
    top, bottom, left, right = box[0].start, box[0].stop, box[1].start, box[1].stop
    height, width = picture.shape[:2]
    to_texel = np.array([[width, 0, -0.5], [0, height, -0.5], [0, 0, 1.0]])
    to_corner = np.array([[1.0, 0, -left], [0, 1.0, -top], [0, 0, 1.0]])
    matrix = to_corner @ to_pixel @ np.linalg.inv(to_texel)
    inverse = np.linalg.inv(matrix)
    x, y = np.arange(right - left), np.arange(bottom - top)[:, None]
    depth = np.maximum(np.abs(inverse[2, 0] * x + (inverse[2, 1] * y + inverse[2, 2])), 1e-12).astype(np.float32)
    level = 0.5 * np.log2(max(abs(np.linalg.det(inverse)), 1e-300)) - 1.5 * np.log2(depth) - 0.3
    level = np.where(mask, np.maximum(level, 0.0), 0.0).astype(np.float32)
    total = np.zeros((bottom - top, right - left, 3), np.float32)
    for k in range(int(level.max()) + 2):
        weight = np.where(mask, np.maximum(0, 1 - np.abs(level - k)), 0)
        if k and min(picture.shape[:2]) > 1:
            # A face seen from its edge asks for less than one pixel.
            picture = cv2.resize(picture, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA).astype(np.uint8)
        if weight.any():
            h, w = picture.shape[:2]
            scaled = matrix @ to_texel @ np.linalg.inv(np.array([[w, 0, -0.5], [0, h, -0.5], [0, 0, 1.0]]))
            size = (int(right - left), int(bottom - top))
            warped = cv2.warpPerspective(picture, scaled, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
            total += weight[..., None] * warped
    canvas[top:bottom, left:right][mask] = (total[mask] + 0.5).astype(np.uint8)


def _light(scene: Scene, shot: int, i: int) -> float:
    """Return the light on a face: the sun by its slope, and the open sky."""
    u, v, _ = scene.bases(shot)[i].T
    normal, sun = np.cross(u, v), scene.light / np.linalg.norm(scene.light)
    slope = abs(float(normal @ sun)) / float(np.linalg.norm(normal))
    return float((0.35 + 0.8 * slope) ** (1 / 2.2))  # textures are painted in display values


def _develop(canvas: Image, size: tuple[int, int], rng: np.random.Generator) -> Image:
    """Expose, shrink, blur a little, darken the corners and add the sensor's noise."""
    gain = rng.uniform(0.95, 1.05) * np.array([rng.uniform(0.98, 1.02), 1.0, rng.uniform(0.98, 1.02)])
    exposed: Any = cv2.resize(canvas * gain.astype(np.float32), size, interpolation=cv2.INTER_AREA)
    exposed = cv2.GaussianBlur(exposed, (0, 0), 0.45)
    width, height = size
    y, x = np.mgrid[:height, :width]
    radius = np.hypot(x - (width - 1) / 2, y - (height - 1) / 2) / np.hypot(width / 2, height / 2)
    exposed *= (1 - 0.16 * radius**2)[..., None]
    noise = rng.normal(0, 1, exposed.shape) * (1.2 + 0.012 * np.sqrt(np.maximum(exposed, 0)) * 4)
    return np.asarray(np.clip(np.rint(exposed + noise), 0, 255), dtype=np.uint8)
