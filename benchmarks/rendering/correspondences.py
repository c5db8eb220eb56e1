"""Correspondences drawn from a scene without rendering it: exact truth in bulk, for benchmarks and tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rendering.scenes import RNG, Array, Scene
from ruzhash_cv.datasets.pairs import NO_FACE, transform

Ints = NDArray[np.int64]
POOL = 30000  # pixels of each structure that are tested for visibility
ROUNDS = 100  # attempts at finding a motif that is seen twice
PERIODS = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (2, 0), (-2, 0), (1, 1), (-1, 1), (1, -1)])
CLEAR = 10.0  # pixels; a mismatch lies at least this far from the true place


@dataclass(frozen=True, eq=False)
class Correspondences:
    """Correspondences with exact truth.

    `points1`, `points2` (n, 2): pixels, noise included. `labels` (n,): 0 is a mismatch; k >= 1 is plane k, or body k - 1 in a scene of
    bodies. `faces` (n,): face of the scene the point of image 1 lies on; also of mismatches. `homographies`: that of plane k in row
    k - 1. `fundamental_matrices`: that of body b in row b.
    """

    points1: Array
    points2: Array
    labels: Ints
    faces: Ints
    homographies: Array
    fundamental_matrices: Array


def draw_correspondences(
    scene: Scene,
    n_matches: int,
    *,
    mismatch_rate: float = 0.5,
    noise: float = 1.0,
    mismatches: str = "uniform",
    weights: str = "area",
    rng: RNG = 0,
) -> Correspondences:
    """Draw true correspondences on what both images see, and mismatches, in random order.

    A share `mismatch_rate` of `n_matches` is wrong; `noise` is the standard deviation of each coordinate in each image, pixels.
    `mismatches`: "uniform", places paired at random; "nearby", the true place displaced by 10 to 50 pixels; "repeated", displaced by
    whole periods of the texture, the same few all over a plane. `weights`: the share of each structure among the true ones, "area"
    that both images see, "even", or "uneven" (random, 5 to 60 %).
    """
    generator = np.random.default_rng(rng)
    views = _Views(scene, generator)
    shares = _shares(weights, views.areas, generator)
    n_false = round(n_matches * mismatch_rate)
    first, faces = views.draw(generator.multinomial(n_matches - n_false, shares), generator)
    if mismatches == "repeated":
        wrong1, sources, wrong2 = _periods_off(views, shares, n_false, generator)
    else:
        wrong1, sources = views.draw(generator.multinomial(n_false, shares), generator)
        displace = _anywhere if mismatches == "uniform" else _nearby
        wrong2 = displace(views.maps[1], transform(views.H[sources], wrong1), generator)
    points1 = np.concatenate([first, wrong1])
    points2 = np.concatenate([transform(views.H[faces], first), wrong2])
    labels = np.concatenate([scene.structure_of_face[faces], np.zeros(n_false, np.int64)])
    order = generator.permutation(n_matches)
    seen = ((points + generator.normal(0, noise, points.shape))[order] for points in (points1, points2))
    models = scene.plane_homographies(), scene.fundamental_matrices()
    return Correspondences(*seen, labels[order], np.concatenate([faces, sources])[order], *models)


def _seen(ids: NDArray[np.uint16], points: Array) -> Ints:
    """Return the face at each point (n, 2), NO_FACE outside the image."""
    height, width = ids.shape
    # A pixel at the horizon transfers to infinity, which is outside as well.
    x, y = np.rint(np.clip(np.nan_to_num(points, nan=-9.0), -9.0, max(width, height) + 9.0)).astype(np.int64).T
    inside = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    return np.where(inside, ids[np.where(inside, y, 0), np.where(inside, x, 0)], NO_FACE).astype(np.int64)


class _Views:
    """What both images of a scene show: for each structure, pixels of image 1 and how many there are."""

    def __init__(self, scene: Scene, rng: np.random.Generator) -> None:
        self.scene = scene
        self.maps = [scene.face_map(shot)[0] for shot in (0, 1)]
        self.H = scene.homographies()
        table = np.zeros(NO_FACE + 1, np.int64)
        table[: len(scene.faces)] = scene.structure_of_face
        structure = table[self.maps[0]].ravel()
        width = self.maps[0].shape[1]
        self.pools: list[Array] = []
        self.areas: list[float] = []
        for label in range(1, int(table.max()) + 1):
            pixels = np.flatnonzero(structure == label)
            tested = pixels[rng.integers(0, len(pixels), POOL)] if len(pixels) > POOL else pixels
            points = np.column_stack([tested % width, tested // width]).astype(np.float64)
            faces = self.maps[0].ravel()[tested].astype(np.int64)
            kept = _seen(self.maps[1], transform(self.H[faces], points)) == faces
            self.pools.append(points[kept])
            self.areas.append(len(pixels) * float(kept.mean()) if len(tested) else 0.0)

    def draw(self, counts: Ints, rng: np.random.Generator) -> tuple[Array, Ints]:
        """Return points of image 1 that image 2 shows too, `counts` of each structure, and their faces."""
        picked = [pool[rng.integers(0, len(pool), n)] for pool, n in zip(self.pools, counts, strict=True) if n]
        centres = np.concatenate([*picked, np.zeros((0, 2))])
        faces = _seen(self.maps[0], centres)
        shifted = centres + rng.uniform(-0.499, 0.499, centres.shape)
        # A shifted point may slip behind an edge in image 2; the pixel's centre does not.
        kept = _seen(self.maps[1], transform(self.H[faces], shifted)) == faces
        return np.where(kept[:, None], shifted, centres), faces


def _shares(weights: str, areas: list[float], rng: np.random.Generator) -> Array:
    """Return the share of each structure, zero if nothing of it is seen twice."""
    seen = np.array(areas) > 0
    if weights == "area":
        return np.array(areas) / np.sum(areas)
    share, k = seen.astype(float), int(seen.sum())
    if weights == "uneven" and k > 1:
        share[seen] = 1.0
        while share.max() > 0.6:
            share[seen] = 0.05 + (1 - 0.05 * k) * rng.dirichlet(np.full(k, 0.8))
    return np.asarray(share / share.sum())


def _anywhere(map2: NDArray[np.uint16], true2: Array, rng: np.random.Generator) -> Array:
    """Return random places on the faces of image 2, none near its true place."""
    rows, columns = np.nonzero(map2 != NO_FACE)
    drawn, left = np.zeros_like(true2), np.arange(len(true2))
    while len(left):
        pick = rng.integers(0, len(rows), len(left))
        drawn[left] = np.column_stack([columns[pick], rows[pick]]) + rng.uniform(-0.5, 0.5, (len(left), 2))
        left = left[np.linalg.norm(drawn[left] - true2[left], axis=1) < CLEAR]
    return drawn


def _nearby(map2: NDArray[np.uint16], true2: Array, rng: np.random.Generator) -> Array:
    """Return the true places displaced by 10 to 50 pixels in a random direction, inside the image."""
    drawn, left = np.zeros_like(true2), np.arange(len(true2))
    while len(left):
        angle, length = rng.uniform(0, 2 * np.pi, len(left)), rng.uniform(CLEAR, 50, len(left))
        drawn[left] = true2[left] + length[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        left = left[((drawn[left] < 0) | (drawn[left] > np.array(map2.shape[::-1]) - 1)).any(axis=1)]
    return drawn


def _periods_off(views: _Views, shares: Array, n_matches: int, rng: np.random.Generator) -> tuple[Array, Ints, Array]:
    """Return points of image 1, their faces, and where image 2 shows the same motif some periods away.

    Each plane has three shifts of its own, so that its mismatches agree with each other.
    """
    scene = views.scene
    planes = scene.plane_of_face
    common = rng.permuted(np.tile(PERIODS, (int(planes.max()) + 1, 1, 1)), axis=1)[:, :3]
    period = np.array([(1 / face.texture.columns, 1 / face.texture.rows) for face in scene.faces])
    to_face = np.linalg.inv(scene.face_to_pixel(0)).astype(np.float64)
    to_pixel = scene.face_to_pixel(1)
    found: list[tuple[Array, Ints, Array]] = []
    for _ in range(ROUNDS):
        points, faces = views.draw(rng.multinomial(2 * n_matches + 16, shares), rng)
        shift = common[planes[faces], rng.integers(0, 3, len(faces))] * period[faces]
        places = transform(to_pixel[faces], transform(to_face[faces], points) + shift)
        far = np.linalg.norm(places - transform(views.H[faces], points), axis=1) >= CLEAR
        kept = rng.permutation(np.flatnonzero(far & (_seen(views.maps[1], places) == faces)))
        found.append((points[kept], faces[kept], places[kept]))
        if sum(len(rows) for _, rows, _ in found) >= n_matches:
            merged = [np.concatenate(parts)[:n_matches] for parts in zip(*found, strict=True)]
            return merged[0], merged[1], merged[2]
    raise ValueError("the texture of the scene does not repeat within what is seen")
