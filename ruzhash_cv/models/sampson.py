"""Fundamental matrices fitted to pixels: the 8-point algorithm, and steps of Gauss and Newton to least Sampson distances, of rank 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from ruzhash_cv._kernels import ZERO, jit
from ruzhash_cv.models.linear import FIRST, MOST_ITERATIONS, NO_ITERATIONS, SECOND, similarity, solve

#: What a fit is: of the equations x2' F x1 = 0, of these divided by the gradients of a model, or a step of Gauss and Newton from it.
EQUATIONS, DISTANCES, STEP = 1, 2, 3


@jit
def write_squared_distances(points: Any, models: Any, squared: Any) -> None:
    """Write squared Sampson distances; loops without branches over rows of coordinates (4, n) compile to vector instructions."""
    for item in range(len(models)):
        a, b, c, d, e, f, g, h, i = models[item]
        for row in range(points.shape[1]):
            x1, y1, x2, y2 = points[0, row], points[1, row], points[2, row], points[3, row]
            p, q = a * x1 + b * y1 + c, d * x1 + e * y1 + f
            r, s = a * x2 + d * y2 + g, b * x2 + e * y2 + h
            numerator = x2 * p + y2 * q + g * x1 + h * y1 + i
            # The last term: both points in the epipoles satisfy any F, 0 / 0; no evidence for the match, but no distance either.
            error = numerator * numerator / (p * p + q * q + r * r + s * s + 1e-300)
            # A comparison with NaN is false: what is not finite is infinitely far.
            squared[item, row] = error if error < np.inf else np.inf


@jit
def write_matrix(kind: int, points: Any, rows: Any, weights: Any, n: int, model: Any, room: Any, fitted: Any) -> None:
    """Write a fit of a kind, of rank 2, to n weighted rows.

    Fits by equations do not end at least distances, as gradients change with the model too (Chojnacki et al., "On the fitting of
    surfaces to data with covariances", PAMI 2000). Steps of Gauss and Newton do.
    """
    gram, factor, work = room[0], room[1], room[2]
    started, slope, gradient = room[3, 0], room[3, 1], room[3, 2]
    if kind == DISTANCES:
        a, b, c, d, e, f, g, h, _ = model
        for at in range(n):
            row = rows[at]
            x1, y1, x2, y2 = points[0, row], points[1, row], points[2, row], points[3, row]
            p, q = a * x1 + b * y1 + c, d * x1 + e * y1 + f
            r, s = a * x2 + d * y2 + g, b * x2 + e * y2 + h
            weight = weights[at] / (p * p + q * q + r * r + s * s)
            weights[at] = weight if abs(weight) < np.inf else 0.0
    s1, t1, u1 = similarity(points, FIRST, rows, weights, n)
    s2, t2, u2 = similarity(points, SECOND, rows, weights, n)
    for j in range(9):
        started[j], slope[j] = model[j], 0.0
        for k in range(9):
            gram[j, k] = 0.0
    _carry(started, 1.0 / s1, -t1 / s1, -u1 / s1, 1.0 / s2, -t2 / s2, -u2 / s2)
    a, b, c, d, e, f, g, h, i = started
    square1, square2 = s1 * s1, s2 * s2
    for at in range(n):
        row, weight, share1, share2, error, p, q, r, s = rows[at], weights[at], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        x1, y1 = s1 * points[0, row] + t1, s1 * points[1, row] + u1
        x2, y2 = s2 * points[2, row] + t2, s2 * points[3, row] + u2
        if kind == STEP:
            p, q = a * x1 + b * y1 + c, d * x1 + e * y1 + f
            r, s = a * x2 + d * y2 + g, b * x2 + e * y2 + h
            error = x2 * p + y2 * q + g * x1 + h * y1 + i
            square = square2 * (p * p + q * q) + square1 * (r * r + s * s)
            share1, share2, weight = square1 * error / square, square2 * error / square, weight / square
        # Sampson's correction moves the second point by (-dx, -dy), the first one to (u, v).
        dx, dy, u, v = share2 * p, share2 * q, x1 - share1 * r, y1 - share1 * s
        gradient[0], gradient[1], gradient[2] = x2 * u - dx * x1, x2 * v - dx * y1, x2 - dx
        gradient[3], gradient[4], gradient[5] = y2 * u - dy * x1, y2 * v - dy * y1, y2 - dy
        gradient[6], gradient[7], gradient[8] = u, v, 1.0
        if abs(weight) < np.inf:
            for j in range(9):
                scaled = weight * gradient[j]
                slope[j] += scaled * error
                for k in range(9):
                    gram[j, k] += scaled * gradient[k]
    norm = 0.0
    if kind == STEP:
        solve(gram, started, slope, factor, NO_ITERATIONS)
        for k in range(9):
            fitted[k] = started[k] - slope[k]
            norm += fitted[k] * fitted[k]
        for k in range(9):
            fitted[k] /= np.sqrt(norm)
    else:
        solve(gram, slope, fitted, factor, MOST_ITERATIONS)  # all errors are 0, and so is the slope
    write_rank_two(fitted, gram, factor, work)
    _carry(fitted, s1, t1, u1, s2, t2, u2)


@jit
def _carry(model: Any, s1: float, t1: float, u1: float, s2: float, t2: float, u2: float) -> None:
    """Overwrite F with T2' F T1, of unit norm, of similarities (s x + t, s y + u)."""
    norm = 0.0
    for k in range(0, 9, 3):
        model[k + 2] += model[k] * t1 + model[k + 1] * u1
        model[k], model[k + 1] = s1 * model[k], s1 * model[k + 1]
    for k in range(3):
        model[6 + k] += t2 * model[k] + u2 * model[3 + k]
        model[k], model[3 + k] = s2 * model[k], s2 * model[3 + k]
    for k in range(9):
        norm += model[k] * model[k]
    for k in range(9):
        model[k] /= np.sqrt(norm)


@jit
def write_rank_two(model: Any, gram: Any, factor: Any, work: Any) -> None:
    """Overwrite a model f, near the least vector of a form G, with the one of rank 2 whose error f'Gf is least.

    A step of least cost to det F = 0 is along G^-1 times the gradient of det F, its cofactors (Kanatani and Sugaya, "Compact
    fundamental matrix computation", IPSJ 2010). What two steps leave goes with the epipole v, F (1 - v v'): the cofactors are
    multiples of v in rows.
    """
    cofactors, step = work[0], work[1]
    for n_steps in range(3):
        for k in range(9):
            i, j = k // 3, k % 3
            above, below, one, other = 3 * ((i + 1) % 3), 3 * ((i + 2) % 3), (j + 1) % 3, (j + 2) % 3
            cofactors[k] = model[above + one] * model[below + other] - model[above + other] * model[below + one]
            step[k] = cofactors[k]
        if n_steps == 2:
            break
        solve(gram, model, step, factor, NO_ITERATIONS)
        determinant = along = 0.0
        for k in range(9):
            determinant += cofactors[k] * model[k] / 3.0
            along += cofactors[k] * step[k]
        share = determinant / along
        if not abs(share) < np.inf:
            share = 0.0
        for k in range(9):
            model[k] -= share * step[k]
    best, square = ZERO, 0.0
    for k in range(0, 9, 3):
        length = cofactors[k] * cofactors[k] + cofactors[k + 1] * cofactors[k + 1] + cofactors[k + 2] * cofactors[k + 2]
        if length > square:
            best, square = k, length
    if square > 0.0:
        for k in range(0, 9, 3):
            along = (
                model[k] * cofactors[best] + model[k + 1] * cofactors[best + 1] + model[k + 2] * cofactors[best + 2]
            ) / square
            for j in range(3):
                model[k + j] -= along * cofactors[best + j]
