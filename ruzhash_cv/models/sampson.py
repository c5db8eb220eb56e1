"""Fundamental matrices fitted to pixels: the 8-point algorithm, and steps of Gauss and Newton to least Sampson distances, of rank 2."""

from __future__ import annotations

from typing import Any

import numpy as np

from ruzhash_cv._kernels import jit
from ruzhash_cv.models.linear import factorise, normaliser, substitute, write_least_vector

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
def write_fit(
    points: Any, rows: Any, weights: Any, n: int, kind: int, model: Any, gram: Any, factor: Any, vectors: Any
) -> None:
    """Write a fit of rank 2 to n weighted rows as the first of the vectors.

    Fits by reweighting do not end at least distances, as gradients change with the model too (Chojnacki et al., "On the fitting of
    surfaces to data with covariances", PAMI 2000). Steps of Gauss and Newton do.
    """
    fitted, started, slope, gradient = vectors[0], vectors[1], vectors[2], vectors[3]
    if kind == DISTANCES:
        a, b, c, d, e, f, g, h, _ = model
        for at in range(n):
            x1, y1, x2, y2 = points[0, rows[at]], points[1, rows[at]], points[2, rows[at]], points[3, rows[at]]
            p, q = a * x1 + b * y1 + c, d * x1 + e * y1 + f
            r, s = a * x2 + d * y2 + g, b * x2 + e * y2 + h
            weight = weights[at] / (p * p + q * q + r * r + s * s)
            weights[at] = weight if abs(weight) < np.inf else 0.0
    s1, t1, u1 = normaliser(points, 0, rows, weights, n)
    s2, t2, u2 = normaliser(points, 2, rows, weights, n)
    for j in range(9):
        started[j], slope[j] = model[j], 0.0
        for k in range(9):
            gram[j, k] = 0.0
    _carry(started, 1.0 / s1, -t1 / s1, -u1 / s1, 1.0 / s2, -t2 / s2, -u2 / s2)
    a, b, c, d, e, f, g, h, i = started
    square1, square2 = s1 * s1, s2 * s2
    for at in range(n):
        weight, share1, share2, error, p, q, r, s = weights[at], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        x1, y1 = s1 * points[0, rows[at]] + t1, s1 * points[1, rows[at]] + u1
        x2, y2 = s2 * points[2, rows[at]] + t2, s2 * points[3, rows[at]] + u2
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
    if kind == STEP:
        _factorise_without_scale(gram, started, factor)
        substitute(factor, slope)
        norm = 0.0
        for k in range(9):
            fitted[k] = started[k] - slope[k]
            norm += fitted[k] * fitted[k]
        norm = 1.0 / np.sqrt(norm)
        for k in range(9):
            fitted[k] *= norm
    else:
        for j in range(9):
            for k in range(9):
                factor[j, k] = gram[j, k]
        write_least_vector(factor, fitted)
    write_rank_two(fitted, gram, factor, started, slope)
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
        norm += model[k] * model[k] + model[3 + k] * model[3 + k] + model[6 + k] * model[6 + k]
    norm = 1.0 / np.sqrt(norm)
    for k in range(9):
        model[k] *= norm


@jit
def _factorise_without_scale(gram: Any, model: Any, factor: Any) -> None:
    """Write the factor of a form that no longer leaves the length of a model free, and has an inverse."""
    trace = 0.0
    for k in range(9):
        trace += gram[k, k]
    for j in range(9):
        for k in range(9):
            factor[j, k] = gram[j, k] + trace * model[j] * model[k]
    factorise(factor)


@jit
def write_rank_two(model: Any, gram: Any, factor: Any, cofactors: Any, step: Any) -> None:
    """Overwrite a model f, near the least vector of a form G, with the one of rank 2 whose error f'Gf is least.

    A step of least cost to det F = 0 is along G^-1 times the gradient of det F, its cofactors (Kanatani and Sugaya, "Compact
    fundamental matrix computation", IPSJ 2010). What two steps leave goes with the smallest singular triplet, F (1 - v v').
    """
    _factorise_without_scale(gram, model, factor)
    for _ in range(2):
        determinant = along = 0.0
        for i in range(3):
            for j in range(3):
                k, m, o, q = 3 * ((i + 1) % 3), 3 * ((i + 2) % 3), (j + 1) % 3, (j + 2) % 3
                cofactors[3 * i + j] = step[3 * i + j] = model[k + o] * model[m + q] - model[k + q] * model[m + o]
        substitute(factor, step)
        for k in range(9):
            determinant += cofactors[k] * model[k] / 3.0
            along += cofactors[k] * step[k]
        share = determinant / along
        if not abs(share) < np.inf:
            break
        for k in range(9):
            model[k] -= share * step[k]
    square, epipole = factor[:3, :3], step[:3]
    for i in range(3):
        for j in range(3):
            square[i, j] = model[i] * model[j] + model[3 + i] * model[3 + j] + model[6 + i] * model[6 + j]
    write_least_vector(square, epipole)
    for k in range(0, 9, 3):
        along = model[k] * epipole[0] + model[k + 1] * epipole[1] + model[k + 2] * epipole[2]
        for j in range(3):
            model[k + j] -= along * epipole[j]
