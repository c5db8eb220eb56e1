"""What scenes are furnished with: walls in a row, boxes in stacks, a desk and the things on it."""

from __future__ import annotations

import numpy as np

from rendering.scenes import Array, Face, Texture


def texture_seed(rng: np.random.Generator) -> int:
    """Return the seed of a texture, a multiple of 8.

    A box counts its faces from it; painters take their colours from seed // 8, so that the faces share them.
    """
    return int(rng.integers(1, 2**20)) * 8


def turn_about_vertical(angle: float) -> Array:
    """Return the rotation about the vertical."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def terrace(n_walls: int, rng: np.random.Generator) -> tuple[list[Face], float]:
    """Return walls joined edge to edge at different headings, centred on the origin, and how wide they are."""
    columns = rng.integers(2, 4, n_walls) + (2 if n_walls < 4 else 0) + (2 if n_walls < 2 else 0)
    widths = 2.2 * columns
    headings = np.radians(rng.uniform(14, 40, n_walls)) * np.where(np.arange(n_walls) % 2, 1, -1)
    headings *= rng.choice([-1, 1])
    steps = widths[:, None] * np.column_stack([np.cos(headings), np.sin(headings)])
    corners = np.vstack([np.zeros(2), np.cumsum(steps, axis=0)])
    corners -= (corners.max(axis=0) + corners.min(axis=0)) / 2
    walls = []
    for i in range(n_walls):
        rows = int(rng.integers(3, 5))
        height = 2.6 * rows + rng.uniform(0.2, 1.0)
        edge = np.append(corners[i + 1] - corners[i], 0.0)
        texture = Texture("house", texture_seed(rng), int(columns[i]), rows)
        origin = np.append(corners[i], height)
        walls.append(Face(origin, edge, np.array([0.0, 0.0, -height]), texture, plane=i + 1))
    return walls, float(np.ptp(corners[:, 0])) + 4.0


def box_faces(
    centre: Array, size: Array, yaw: float, bottom: float, kinds: tuple[str, str, str], plane: int, body: int, seed: int
) -> list[Face]:
    """Return top and sides of an upright box; `kinds` are the painters of top, long and short sides."""
    w, d, h = size
    x, y, z = np.diag([w, d, h])
    turn = turn_about_vertical(yaw)
    middle = np.array([centre[0], centre[1], bottom + h])
    pieces = [  # corner at the top left of the picture, its two edges
        ((-x + y) / 2, x, -y, kinds[0]),
        ((-x - y) / 2, x, -z, kinds[1]),
        ((x - y) / 2, y, -z, kinds[2]),
        ((x + y) / 2, -x, -z, kinds[1]),
        ((-x + y) / 2, -y, -z, kinds[2]),
    ]
    return [
        Face(turn @ corner + middle, turn @ u, turn @ v, Texture(kind, seed + i), plane + 1 + i, body)
        for i, (corner, u, v, kind) in enumerate(pieces)
    ]


def store_room(rng: np.random.Generator) -> list[Face]:
    """Return stacks of upright boxes on a grid of cells, at any heading, the back rows higher."""
    floor = Face([-6.0, 5.0, 0.0], [12.0, 0.0, 0.0], [0.0, -10.0, 0.0], Texture("concrete", texture_seed(rng)), plane=1)
    faces, cell = [floor], 0.56
    for row in range(7):
        for column in range(-4, 5):
            centre = np.array([column + 0.5 * (row % 2), row - 2.5]) * cell + rng.uniform(-0.03, 0.03, 2)
            level = 0.0
            size = rng.uniform([0.36, 0.3, 0.16], [0.5, 0.42, 0.42])
            for _ in range(1 + int(rng.integers(0, 3)) + row // 3):
                kinds = ("parcel",) * 3 if rng.random() < 0.45 else ("carton",) * 3
                yaw = rng.uniform(-0.8, 0.8)
                faces += box_faces(centre, size, yaw, level, kinds, faces[-1].plane, 0, texture_seed(rng))
                level += size[2]
                centre = centre + rng.uniform(-0.02, 0.02, 2)
                size = np.append(size[:2] * rng.uniform(0.76, 0.97, 2), rng.uniform(0.14, 0.36))
    return faces


def desk_top(rng: np.random.Generator) -> list[Face]:
    """Return the desk and the papers that lie on it, all in plane 1."""
    faces = [Face([-1.2, 1.1, 0.0], [2.4, 0.0, 0.0], [0.0, -1.7, 0.0], Texture("wood", texture_seed(rng)), plane=1)]
    for column in (-1, 0, 1):
        for row in (-1, 0, 1):
            centre = np.array([0.3 * column, 0.05 + 0.27 * row, 0.0]) + np.append(rng.uniform(-0.06, 0.06, 2), 0.0)
            turn = turn_about_vertical(rng.uniform(-0.7, 0.7))
            u, v = turn @ [0.16, 0.0, 0.0], turn @ [0.0, -0.226, 0.0]
            kind = "page" if rng.random() < 0.7 else "cover"
            faces.append(Face(centre - (u + v) / 2, u, v, Texture(kind, texture_seed(rng)), plane=1))
    return faces


def object_places(n_objects: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return where objects of 27 cm across stand before and after, no two of them in one place."""
    while True:
        before = rng.uniform([-0.36, -0.2], [0.36, 0.3], (n_objects, 2))
        step = rng.uniform(0.04, 0.1, n_objects)[:, None]
        angle = rng.uniform(0, 2 * np.pi, n_objects)
        after = before + step * np.column_stack([np.cos(angle), np.sin(angle)])
        # An object may not stand where another was, either: it would cover the same pixels.
        far = [np.linalg.norm(a[:, None] - b[None], axis=2) > 0.25 for a, b in ((before, before), (after, after))]
        if all((gap | np.eye(n_objects, dtype=bool)).all() for gap in far):
            return before, after


def desk_object(kind: int, centre: Array, yaw: float, plane: int, body: int, rng: np.random.Generator) -> list[Face]:
    """Return one thing to move: a book, a flat box, a parcel or a standing carton."""
    kinds = [("cover", "pages", "pages"), ("carton",) * 3, ("parcel",) * 3, ("carton",) * 3]
    sizes = [(0.16, 0.22, 0.03), (0.2, 0.15, 0.05), (0.21, 0.15, 0.09), (0.13, 0.1, 0.15)]
    size = np.array(sizes[kind]) * rng.uniform(0.92, 1.08, 3)
    top, long, short = kinds[kind]
    return box_faces(centre, size, yaw, 0.0, (top, long, short), plane, body, texture_seed(rng))
