"""Keypoints where photographs have none: on grids, on lines, in few places; what is kept of random matches is measured."""

from __future__ import annotations

from typing import Any

import numpy as np
from inputs import Array, Draw, apply
from laws import filtered
from targets import Target, check_result

import ruzhash_cv


def on_grid(draw: Draw, n: int) -> Array:
    """Return points (n, 2) on a grid, exactly or nearly."""
    step = draw.pick([5, 20, 40, 80])
    return np.round(draw.rng.uniform(0, 800, (n, 2)) / step) * step + draw.rng.normal(0, draw.pick([0, 0, 0.3]), (n, 2))


def on_lines(draw: Draw, n: int) -> Array:
    """Return points (n, 2) on evenly spaced lines, horizontal or vertical or through one place."""
    points, n_lines = draw.rng.uniform(0, 800, (n, 2)), draw.pick([1, 3, 20])
    kind = draw.pick(["rows", "columns", "fan"])
    if kind == "fan":
        angles, radii = np.pi * draw.rng.integers(n_lines, size=n) / n_lines, draw.rng.uniform(-400, 400, n)
        return 400 + radii[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    item, spacing = int(kind == "rows"), 800 / n_lines
    points[:, item] = np.round(points[:, item] / spacing) * spacing
    return points


def in_places(draw: Draw, n: int) -> Array:
    """Return points (n, 2) in few places, each with many keypoints."""
    places = draw.rng.uniform(0, 800, (draw.pick([2, 5, 30]), 2))
    return places[draw.rng.integers(len(places), size=n)] + draw.rng.normal(0, draw.pick([0, 1, 5]), (n, 2))


def on_circle(draw: Draw, n: int) -> Array:
    angles = draw.rng.uniform(0, 2 * np.pi, n)
    return 400 + 300 * np.column_stack([np.cos(angles), np.sin(angles)])


PLACES = on_grid, on_lines, in_places, on_circle


def checked(pairs: Array, draw: Draw) -> ruzhash_cv.FilterResult:
    result = filtered(pairs, **draw.some(model=draw.pick(("auto", "homography", "fundamental"))))
    check_result(result, len(pairs))
    return result


def random_matches(places: Any) -> Target:
    """Return the measure of random matches between keypoints: the evidence of what is found among them."""

    def target(draw: Draw) -> float:
        n = draw.pick([9, 20, 40, 60, 150])
        return checked(np.hstack([places(draw, n), places(draw, n)]), draw).evidence

    return target


def true_matches(draw: Draw) -> float:
    """Return the share that is kept of true matches of one plane."""
    n = draw.pick([20, 60, 150])
    first = draw.pick(PLACES)(draw, n)
    H = np.eye(3) + draw.rng.normal(0, 1, (3, 3)) * [[0.1, 0.1, 60], [0.1, 0.1, 60], [1e-5, 1e-5, 0]]
    return float(checked(np.hstack([first, apply(H, first)]), draw).inlier_mask.mean())


def shifted_texture(draw: Draw) -> float:
    """Return the share kept of matches of a grid that are whole periods off, a third of all."""
    n, step = draw.pick([60, 150, 300]), draw.pick([20, 40, 80])
    first = np.round(draw.rng.uniform(0, 800, (n, 2)) / step) * step
    second = first + [13.0, 7.0] + draw.rng.normal(0, 0.3, (n, 2))
    wrong = draw.rng.random(n) < 0.33
    second[wrong] += step * draw.rng.choice([-2, -1, 1, 2], (int(wrong.sum()), 1)) * draw.pick([[1, 0], [0, 1], [1, 1]])
    result = checked(np.hstack([first, second]), draw)
    return float(result.inlier_mask[wrong].mean()) if wrong.any() else 0.0


def single_models(draw: Draw) -> None:
    """One model of points that determine none, or many."""
    n = draw.pick([8, 20, 60])
    first = draw.pick(PLACES)(draw, n)
    second = draw.pick([first + 5.0, draw.pick(PLACES)(draw, n), np.repeat(first[:1], n, axis=0), first[::-1]])
    for function in (ruzhash_cv.find_homography, ruzhash_cv.find_fundamental_matrix):
        model, mask = function(first, second)
        assert mask.shape == (n, 1)
        assert model is None or np.isfinite(model).all()


GEOMETRY: dict[str, Target] = {
    **{f"random_{places.__name__}": random_matches(places) for places in PLACES},
    "true_matches": true_matches,
    "shifted_texture": shifted_texture,
    "single_models": single_models,
}
