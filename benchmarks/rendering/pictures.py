"""Pictures of a scene: painted faces, sun and sky light with soft shadows, and what a camera adds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from rendering import buildings, prints, textures
from rendering.rasters import fill_faces
from rendering.scenes import RNG, Array, Face, Scene, enlargement
from rendering.textures import Image
from ruzhash_cv.datasets.pairs import NO_FACE, ImagePair

OVERSAMPLING = 2
LIGHT_MAP = 600  # texels across a shadow map

Painter = Callable[..., Image]
PAINTERS: dict[str, Painter] = {
    "house": buildings.house,
    "offices": buildings.offices,
    "paving": buildings.paving,
    "wood": textures.wood,
    "concrete": textures.concrete,
    "cover": prints.cover,
    "pages": prints.pages,
    "page": prints.page,
    "parcel": prints.parcel,
    "carton": prints.carton,
}


def paint(face: Face, texels: float) -> Image:
    """Return the texture of a face at `texels` per metre, (h, w, 3) BGR uint8; at most 2,400 on a side."""
    width, height = float(np.linalg.norm(face.edge_u)), float(np.linalg.norm(face.edge_v))
    texels = min(texels, 2400 / max(width, height))
    shape = (max(8, round(height * texels)), max(8, round(width * texels)))
    texture = face.texture
    options: dict[str, int] = {}
    if texture.kind in ("house", "offices"):
        options = {"columns": texture.columns, "rows": texture.rows}
    if texture.kind == "carton":
        options = {"palette": texture.seed // 8}
    return PAINTERS[texture.kind](*shape, texels, np.random.default_rng(texture.seed), **options)


def render(scene: Scene, *, rng: RNG = 0) -> tuple[Image, Image]:
    """Take both pictures of a scene, BGR; textures depend on the scene alone, noise and exposure on `rng`."""
    img1, img2 = render_shots([(scene, 0), (scene, 1)], rng=rng)
    return img1, img2


def render_shots(shots: Sequence[tuple[Scene, int]], *, rng: RNG = 0) -> list[Image]:
    """Take any number of pictures (BGR) of the same faces: a clip, or many views.

    `shots` are which shot (0 or 1) of which scene; the scenes have the same faces and differ in cameras and motions.
    """
    generator = np.random.default_rng(rng)
    faces = shots[0][0].faces
    maps = [scene.face_map(shot, scale=OVERSAMPLING)[0] for scene, shot in shots]
    canvases = [_backdrop(*taken) for taken in shots]
    matrices = [scene.face_to_pixel(shot) for scene, shot in shots]
    boxes = [_boxes(ids, len(faces)) for ids in maps]
    for i, face in enumerate(faces):
        seen = [k for k in range(len(shots)) if boxes[k][i] is not None]
        if not seen:
            continue
        picture = paint(face, max(_texels(face, i, maps[k], boxes[k][i], matrices[k][i]) for k in seen))
        for k in seen:
            _lay(canvases[k], maps[k], boxes[k][i], i, picture, enlargement(OVERSAMPLING) @ matrices[k][i])
    return [
        _develop(canvas, _light(*taken, ids), taken[0].cameras[taken[1]].size, generator)
        for canvas, taken, ids in zip(canvases, shots, maps, strict=True)
    ]


def render_pair(scene: Scene, *, name: str = "", rng: RNG = 0) -> ImagePair:
    """Render a scene and attach its exact truth."""
    return with_truth(scene, *render(scene, rng=rng), name)


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


def _backdrop(scene: Scene, shot: int) -> Image:
    """Return what lies behind everything: a sky with clouds by direction, or the dim end of a hall."""
    camera = scene.cameras[shot]
    width, height = (side * OVERSAMPLING for side in camera.size)
    y, x = np.mgrid[:height:4, :width:4]
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ np.linalg.inv(enlargement(OVERSAMPLING) @ camera.K).T @ camera.R
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    rise = np.clip(rays[..., 2:], 0, 1)
    if scene.backdrop == "hall":
        colours = np.array([62.0, 66, 70]) + 60 * np.clip(rays[..., 2:] + 0.5, 0, 1)
    else:
        clouds = _sky()
        u = (rays[..., 0] / (rays[..., 2] + 0.35) * 160 + 512).astype(np.float32)
        v = (rays[..., 1] / (rays[..., 2] + 0.35) * 160 + 512).astype(np.float32)
        cover = np.clip(cv2.remap(clouds, u, v, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT) * 0.45, 0, 0.85)
        blue = np.array([232.0, 212, 190]) * (1 - rise) + np.array([205.0, 150, 92]) * rise
        colours = blue + (np.array([246.0, 244, 242]) - blue) * cover[..., None]
        azimuth = np.arctan2(rays[..., 0], rays[..., 1])
        ridge = 0.045 + 0.012 * np.sin(5 * azimuth) + 0.008 * np.sin(17 * azimuth + 1) + 0.003 * np.sin(71 * azimuth)
        colours[rays[..., 2] < ridge] = (138.0, 140, 122)  # woods in the haze
        asphalt = np.array([112.0, 114, 116]) + 30 * np.exp(20 * np.minimum(rays[..., 2:], 0))
        colours = np.where(rays[..., 2:] < 0, asphalt, colours)
    return np.asarray(cv2.resize(colours.astype(np.float32), (width, height)).clip(0, 255).astype(np.uint8))


@lru_cache(maxsize=1)
def _sky() -> NDArray[np.float32]:
    return textures.blobs(1024, 1024, 180, np.random.default_rng(1), 5)


def _normals(scene: Scene, shot: int) -> Array:
    """Return the unit normals of the faces towards the camera, shape (n_faces, 3)."""
    bases = scene.bases(shot)
    normals = np.cross(bases[:, :, 1], bases[:, :, 0])
    camera = scene.cameras[shot]
    eye = -camera.R.T @ camera.t
    middle = bases.sum(axis=2)  # roughly; any point of the plane serves
    away = ((eye - middle) * normals).sum(axis=1) < 0
    normals = np.where(away[:, None], -normals, normals)
    return np.asarray(normals / np.linalg.norm(normals, axis=1, keepdims=True))


def _light(scene: Scene, shot: int, ids: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return the light at each subpixel as a factor per channel: a sun with a soft shadow, and the open sky."""
    seen, inverse_depth = scene.face_map(shot)
    step = 2
    seen, inverse_depth = seen[::step, ::step], inverse_depth[::step, ::step]
    camera = scene.cameras[shot]
    y, x = np.mgrid[: seen.shape[0], : seen.shape[1]] * step
    rays = np.stack([x, y, np.ones_like(x)], axis=-1) @ np.linalg.inv(camera.K).T
    solid = seen != NO_FACE
    if not solid.any():
        return np.ones((*ids.shape, 3), np.float32)
    points = (rays[solid] / inverse_depth[solid][:, None] - camera.t) @ camera.R
    normals = np.vstack([_normals(scene, shot), np.zeros((1, 3))])
    here = normals[np.minimum(seen[solid], len(normals) - 1)]
    sun = scene.light / np.linalg.norm(scene.light)
    sunlit = np.zeros(len(points))
    for k in range(3):
        jitter = sun + 0.05 * np.array([np.cos(2.4 * k), np.sin(2.4 * k), 0.0])
        sunlit += _lit(scene, shot, points, here, jitter / np.linalg.norm(jitter)) / 3
    sky, weight = np.zeros(len(points)), 0.0
    for k in range(7):
        angle, rise = 2.4 * k, 0.18 + 0.75 * k / 6
        d = np.array([np.cos(angle) * (1 - rise**2) ** 0.5, np.sin(angle) * (1 - rise**2) ** 0.5, rise])
        sky += np.maximum(here @ d, 0.12) * _lit(scene, shot, points, here, d)
        weight += rise
    layers = np.ones((*seen.shape, 2), np.float32)
    layers[solid] = np.column_stack([sunlit, sky / weight])
    layers = cv2.resize(cv2.GaussianBlur(layers, (0, 0), 1.6), ids.shape[::-1])
    slope = np.append(np.maximum(normals[:-1] @ sun, 0), 0).astype(np.float32)
    direct = 0.95 * slope[np.minimum(ids, len(slope) - 1)] * layers[..., 0]
    open_sky = 0.18 + 0.42 * layers[..., 1]
    light = cv2.merge([direct * warm + open_sky * cool for warm, cool in ((0.86, 1.0), (0.95, 0.96), (1.0, 0.9))])
    light[ids == NO_FACE] = 1.0
    return np.asarray(cv2.pow(light, 1 / 2.2), dtype=np.float32)  # textures are painted in display values


def _lit(scene: Scene, shot: int, points: Array, normals: Array, direction: Array) -> Array:
    """Return 1 where points see the light from `direction`, else 0, shape (n,), by a shadow map."""
    right = np.cross(direction, [0.0, 0.31, 0.95])
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(direction, right)])
    flat = points @ axes.T
    low, span = flat.min(axis=0), float(np.ptp(flat, axis=0).max()) + 1e-6
    scale = (LIGHT_MAP - 3) / span
    bases = scene.bases(shot)
    onto = np.concatenate([axes @ bases * scale, np.zeros((len(bases), 1, 3))], axis=1)
    onto[:, :2, 2] -= low * scale - 1
    onto[:, 2] = [0.0, 0.0, 1.0]
    edge_on = np.abs(np.linalg.det(onto)) < 1e-6
    onto[edge_on] = np.eye(3)
    keys = np.einsum("j,njk,nkl->nl", direction, bases, np.linalg.inv(onto))
    polygons = [
        np.zeros((0, 2)) if thin else face.outline @ matrix[:2, :2].T + matrix[:2, 2]
        for face, matrix, thin in zip(scene.faces, onto, edge_on, strict=True)
    ]
    _, nearest = fill_faces(polygons, keys, (LIGHT_MAP, LIGHT_MAP))
    column, row = np.rint((flat - low) * scale + 1).astype(np.intp).T
    slack = 2.0 / scale / np.maximum(np.abs(normals @ direction), 0.15)
    return np.asarray((points @ direction >= nearest[row, column] - slack).astype(np.float64))


def _develop(canvas: Image, light: NDArray[np.float32], size: tuple[int, int], rng: np.random.Generator) -> Image:
    """Expose, shrink, blur a little, darken the corners and add the sensor's noise."""
    gain = rng.uniform(0.95, 1.05) * np.array([rng.uniform(0.98, 1.02), 1.0, rng.uniform(0.98, 1.02)])
    exposed: Any = cv2.resize(canvas * light * gain.astype(np.float32), size, interpolation=cv2.INTER_AREA)
    exposed = cv2.GaussianBlur(exposed, (0, 0), 0.45)
    width, height = size
    y, x = np.mgrid[:height, :width]
    radius = np.hypot(x - (width - 1) / 2, y - (height - 1) / 2) / np.hypot(width / 2, height / 2)
    exposed *= (1 - 0.16 * radius**2)[..., None]
    noise = rng.normal(0, 1, exposed.shape) * (1.2 + 0.012 * np.sqrt(np.maximum(exposed, 0)) * 4)
    return np.asarray(np.clip(np.rint(exposed + noise), 0, 255), dtype=np.uint8)
