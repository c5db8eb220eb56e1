"""Epipolar lines: how far matches lie across and along them, and how keypoints and neighbours lie on them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from one_law.densities import ninth_power
from one_law.parameters import Parameters
from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.matches import MatchSet

_ROOT = 2.5066282746310002
_FAR = 1e6  # px: further away is no place


def lines_of(matches: MatchSet, model: Array) -> tuple[Array, Array]:
    """Return squared distances (n,) across the lines of a matrix, twice Sampson's in px^2, and their directions (n, 2) in image 2."""
    across, directions = np.empty(len(matches)), np.empty((len(matches), 2))
    _epipolar_kernel(matches.data, model, across, directions)
    return across / matches.frame.scale**2, directions


def along_lines(matches: MatchSet, plane: Array, directions: Array) -> Array:
    """Return how far along the lines (n,), px, second points lie from where a plane puts them."""
    along = np.empty(len(matches))
    _along_kernel(matches.data, plane, directions, along)
    return along / matches.frame.scale


def line_crowding(matches: MatchSet, model: Array, rows: Rows, parameters: Parameters) -> tuple[float, float]:
    """Return the densities per px of other keypoints near the lines of some matches, and in a wider strip around these.

    Windows in columns crowd on lines along the columns: a mismatch is there more often than anywhere.
    """
    p, scale, n = parameters, matches.frame.scale, len(matches)
    rows = rows[:: max(1, len(rows) // p.most_lines)]
    lines = np.hstack([matches.data[rows, :2], np.ones((len(rows), 1))]) @ model.reshape(3, 3).T
    stride = max(1, n // p.most_keypoints)
    second, numbers = (np.ascontiguousarray(each[::stride]) for each in (matches.data[:, 2:], matches.keypoints[1]))
    counts, widths = np.zeros(3), np.array([p.near_line * scale, p.around_line * scale])
    _crowding_kernel(lines, second, numbers, matches.keypoints[1, rows], widths, counts)
    near, around, total = counts
    return near / max(total, 1.0) / (2 * p.near_line), around / max(total, 1.0) / (2 * p.around_line)


def neighbours(matches: MatchSet, parameters: Parameters) -> Rows:
    """Return the nearest matches (n, k) in the first image, more than are asked as some do not count."""
    k = min(3 * parameters.relief_neighbours, len(matches))
    return np.asarray(cKDTree(matches.data[:, :2]).query(matches.data[:, :2], k)[1], np.int64).reshape(len(matches), k)


class Along(NamedTuple):
    """Places (n,) of matches along their lines in px, how well each agrees with the lines (0 to 1), and the scales."""

    places: Array
    agreement: Array
    scales: Array


class Same(NamedTuple):
    """Duplicate groups (n,) and keypoints (2, n): a match is not its own neighbour."""

    groups: Rows
    keypoints: Rows


class Relief(NamedTuple):
    """How neighbours are asked: how many, how well they agree at least, the share that lies anywhere, and its density per px."""

    n_neighbours: int
    agreement: float
    floor: float
    anywhere: float


def relief_density(matches: MatchSet, near: Rows, along: Along, relief: Relief) -> Array:
    """Return the density (n,), per px, of each match's place along its line: as its neighbours in the first image lie, or anywhere."""
    out = np.full(len(along.places), relief.anywhere)
    _relief_kernel(near, along, Same(matches.groups, matches.keypoints), relief, out)
    return out


@jit
def _epipolar_kernel(points: Any, matrix: Any, across: Any, directions: Any) -> None:
    a, b, c, d, e, f, g, h, i = matrix
    for row in range(len(points)):
        x1, y1, x2, y2 = points[row]
        p, q = a * x1 + b * y1 + c, d * x1 + e * y1 + f
        r, s = a * x2 + d * y2 + g, b * x2 + e * y2 + h
        error = x2 * p + y2 * q + g * x1 + h * y1 + i
        squared = 2.0 * error * error / (p * p + q * q + r * r + s * s + 1e-300)
        across[row] = squared if squared < _FAR * _FAR else _FAR * _FAR
        norm = np.sqrt(p * p + q * q) + 1e-300
        directions[row, 0], directions[row, 1] = -q / norm, p / norm


@jit
def _along_kernel(points: Any, homography: Any, directions: Any, along: Any) -> None:
    a, b, c, d, e, f, g, h, i = homography
    for row in range(len(points)):
        x, y = points[row, 0], points[row, 1]
        w = 1.0 / (g * x + h * y + i)
        dx, dy = points[row, 2] - (a * x + b * y + c) * w, points[row, 3] - (d * x + e * y + f) * w
        place = dx * directions[row, 0] + dy * directions[row, 1]
        along[row] = place if abs(place) < _FAR else _FAR


@jit
def _crowding_kernel(lines: Any, second: Any, keypoints: Any, own: Any, widths: Any, counts: Any) -> None:
    for item in range(len(lines)):
        a, b, c = lines[item]
        norm = np.sqrt(a * a + b * b) + 1e-300
        for row in range(len(second)):
            if keypoints[row] != own[item]:
                distance = abs(a * second[row, 0] + b * second[row, 1] + c) / norm
                counts[0] += distance < widths[0]
                counts[1] += distance < widths[1]
                counts[2] += 1


@jit
def _relief_kernel(near: Any, along: Any, same: Any, relief: Any, out: Any) -> None:
    places, agrees, groups, keypoints = along.places, along.agreement, same.groups, same.keypoints
    wide = along.scales[0]
    for row in range(len(near)):
        density, weight, found = 0.0, 0.0, 0
        for other in near[row]:
            if found == relief.n_neighbours:
                break
            if groups[other] == groups[row] or agrees[other] < relief.agreement:
                continue
            if keypoints[0, other] == keypoints[0, row] or keypoints[1, other] == keypoints[1, row]:
                continue
            found += 1
            weight += agrees[other]
            apart = (places[other] - places[row]) ** 2
            if apart < 9.0 * wide * wide:
                term = np.exp(-0.5 * apart / (wide * wide))
                for scale in along.scales:
                    density += agrees[other] * term / (_ROOT * scale * len(along.scales))
                    term = ninth_power(term)
        if found > 0:
            out[row] = relief.floor * relief.anywhere + (1.0 - relief.floor) * density / weight
