"""Homographies of pixels: symmetric transfer errors, and the direct linear transform that has least of these."""

from __future__ import annotations

from typing import Any

import numpy as np

from ruzhash_cv._kernels import jit
from ruzhash_cv.models.linear import FIRST, MOST_ITERATIONS, SECOND, similarity, solve


@jit
def write_squared_errors(points: Any, models: Any, squared: Any) -> None:
    """Write the larger of the squared errors in both images; loops without branches over (4, n) compile to vector instructions."""
    for item in range(len(models)):
        a, b, c, d, e, f, g, h, i = models[item]
        # The inverse up to scale, which exists for a singular one too.
        j, k, m = e * i - f * h, c * h - b * i, b * f - c * e
        n, o, p = f * g - d * i, a * i - c * g, c * d - a * f
        q, r, s = d * h - e * g, b * g - a * h, a * e - b * d
        for row in range(points.shape[1]):
            x1, y1, x2, y2 = points[0, row], points[1, row], points[2, row], points[3, row]
            w = 1.0 / (g * x1 + h * y1 + i)
            dx, dy = (a * x1 + b * y1 + c) * w - x2, (d * x1 + e * y1 + f) * w - y2
            there = dx * dx + dy * dy
            w = 1.0 / (q * x2 + r * y2 + s)
            dx, dy = (j * x2 + k * y2 + m) * w - x1, (n * x2 + o * y2 + p) * w - y1
            back = dx * dx + dy * dy
            # A comparison with NaN is false: what has no image in one of the images is infinitely far.
            there = there if there < np.inf else np.inf
            back = back if back < np.inf else np.inf
            squared[item, row] = back if back > there else there


@jit
def write_transform(points: Any, rows: Any, weights: Any, n: int, model: Any, room: Any, fitted: Any) -> None:
    """Write the direct linear transform of n weighted rows, reweighted by the depths that a model gives the first points.

    The equations (x2 h3 - h1) x1 = 0 and (y2 h3 - h2) x1 = 0 have sums of products x1 x1' times 1, x2, y2 and x2^2 + y2^2.
    """
    gram, factor, sums, products = room[0], room[1], room[2], room[3, 0]
    for at in range(n):
        row = rows[at]
        depth = model[6] * points[0, row] + model[7] * points[1, row] + model[8]
        weight = weights[at] / (depth * depth)
        weights[at] = weight if abs(weight) < np.inf else 0.0
    s1, t1, u1 = similarity(points, FIRST, rows, weights, n)
    s2, t2, u2 = similarity(points, SECOND, rows, weights, n)
    for i in range(4):
        for j in range(6):
            sums[i, j] = 0.0
    for at in range(n):
        row, weight = rows[at], weights[at]
        x, y = s1 * points[0, row] + t1, s1 * points[1, row] + u1
        u, v = s2 * points[2, row] + t2, s2 * points[3, row] + u2
        products[0], products[1], products[2] = x * x, x * y, y * y
        products[3], products[4], products[5] = x, y, 1.0
        for j in range(6):
            product = weight * products[j]
            sums[0, j] += product
            sums[1, j] += product * u
            sums[2, j] += product * v
            sums[3, j] += product * (u * u + v * v)
    for i in range(3):
        for j in range(3):
            of = i + j if i < 2 and j < 2 else (3 + i if i < j else 3 + j)
            gram[i, j] = gram[3 + i, 3 + j] = sums[0, of]
            gram[3 + i, j], gram[6 + i, 6 + j] = 0.0, sums[3, of]
            gram[6 + i, j], gram[6 + i, 3 + j] = -sums[1, of], -sums[2, of]
    for k in range(9):
        products[k] = 0.0
    solve(gram, products, fitted, factor, MOST_ITERATIONS)
    # T2^-1 H T1
    norm = 0.0
    for k in range(0, 9, 3):
        fitted[k + 2] += fitted[k] * t1 + fitted[k + 1] * u1
        fitted[k], fitted[k + 1] = s1 * fitted[k], s1 * fitted[k + 1]
    for k in range(3):
        fitted[k] = (fitted[k] - t2 * fitted[6 + k]) / s2
        fitted[3 + k] = (fitted[3 + k] - u2 * fitted[6 + k]) / s2
    for k in range(9):
        norm += fitted[k] * fitted[k]
    for k in range(9):
        fitted[k] /= np.sqrt(norm)
