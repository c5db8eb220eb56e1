"""Planes and motions that go together: matrices through a plane and two matches, planes of a matrix."""

import cython
from cython import Py_ssize_t, address, double, p_double, uchar
from cython.cimports.libc.math import INFINITY, fabs, sqrt
from cython.cimports.ruzhash_cv.core.kernels import fit, residuals


def write_through_two(
    points: double[:, ::1], plane: double[::1], pairs: cython.longlong[:, ::1], models: double[:, ::1]
):
    """Write [e]_x H (n, 9), of unit norm, of a homography H (9,) and epipoles e: there the lines H x1, x2 of a pair of matches meet.

    Pairs (2, n) are of points of six coordinates (6, k).
    """
    line: double[3][2]
    with cython.nogil:
        for item in range(models.shape[0]):
            for side in range(2):
                row = pairs[side, item]
                x, y, z = points[0, row], points[1, row], points[2, row]
                u = plane[0] * x + plane[1] * y + plane[2] * z
                v = plane[3] * x + plane[4] * y + plane[5] * z
                w = plane[6] * x + plane[7] * y + plane[8] * z
                x, y, z = points[3, row], points[4, row], points[5, row]
                line[side][0], line[side][1], line[side][2] = v * z - w * y, w * x - u * z, u * y - v * x
            x = line[0][1] * line[1][2] - line[0][2] * line[1][1]
            y = line[0][2] * line[1][0] - line[0][0] * line[1][2]
            z = line[0][0] * line[1][1] - line[0][1] * line[1][0]
            model = address(models[item, 0])
            for k in range(3):
                model[k] = y * plane[6 + k] - z * plane[3 + k]
                model[3 + k] = z * plane[k] - x * plane[6 + k]
                model[6 + k] = x * plane[3 + k] - y * plane[k]
            fit.divide_by_norm(model, model)


def write_plane_equations(
    points: double[:, ::1], n_parts: Py_ssize_t, matrix: double[::1], epipole: double[::1], equations: double[:, ::1]
):
    """Write beta and weight of the equations x1 . v = beta (2, n) of matches for planes A - e v', from A (9,) and e (3,).

    Points are six coordinates (6, n). The weight is the squared distance that the second point moves by for a unit of x1 . v, in the
    first `n_parts` coordinates of it.
    """
    row: Py_ssize_t
    a, b, c, d, e, f = matrix[0], matrix[1], matrix[2], matrix[3], matrix[4], matrix[5]
    g, h, i, p, q, r = matrix[6], matrix[7], matrix[8], epipole[0], epipole[1], epipole[2]
    with cython.nogil:
        for row in range(points.shape[1]):
            x1, y1, z1 = points[0, row], points[1, row], points[2, row]
            x2, y2, z2 = points[3, row], points[4, row], points[5, row]
            u, v, w = a * x1 + b * y1 + c * z1, d * x1 + e * y1 + f * z1, g * x1 + h * y1 + i * z1
            # Crossed with the second point: what moves along its line, and where the plane's number would move it.
            dx, dy, dz = y2 * r - z2 * q, z2 * p - x2 * r, x2 * q - y2 * p
            along = (y2 * w - z2 * v) * dx + (z2 * u - x2 * w) * dy + (x2 * v - y2 * u) * dz
            square = dx * dx + dy * dy + dz * dz
            beta = along / (square if square > 1e-300 else 1e-300)
            u, v, w = u - beta * p, v - beta * q, w - beta * r
            depth = w * w if n_parts == 2 else u * u + v * v + w * w
            moved = dx * dx + dy * dy if n_parts == 2 else square
            equations[0, row], equations[1, row] = beta, moved / (depth if depth > 1e-300 else 1e-300)


def fit_planes(
    points: double[:, ::1], equations: double[:, ::1], own: uchar[:, ::1], matrix: double[::1], epipole: double[::1],
    planes: double[:, ::1],
):  # fmt: skip
    """Write planes (k, 9) of unit norm, A - e v', each of least squares of the equations (2, n) of the matches that it owns, (k, n)."""
    with cython.nogil:
        for item in range(planes.shape[0]):
            fit_plane(points, equations, own[item], matrix, epipole, address(planes[item, 0]))


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def fit_plane(
    points: double[:, ::1], equations: double[:, ::1], own: uchar[::1], matrix: double[::1], epipole: double[::1],
    plane: p_double,
) -> cython.void:  # fmt: skip
    """Write the homography (9,) of the plane that fits its `own` (n,) matches given the matrix of their motion."""
    row: Py_ssize_t
    v: double[3]
    xx = xy = yy = xz = yz = zz = bx = by = bz = 0.0
    for row in range(points.shape[1]):
        if own[row]:
            x, y, z, weight = points[0, row], points[1, row], points[2, row], equations[1, row]
            xx += weight * x * x
            xy += weight * x * y
            yy += weight * y * y
            xz += weight * x * z
            yz += weight * y * z
            zz += weight * z * z
            weight *= equations[0, row]
            bx += weight * x
            by += weight * y
            bz += weight * z
    shift = 1e-12 * (xx + yy + zz)
    # Cholesky's factor, and the two triangular systems.
    a = sqrt(xx + shift)
    b, c = xy / a, xz / a
    d = sqrt(yy + shift - b * b)
    e = (yz - b * c) / d
    f = sqrt(zz + shift - c * c - e * e)
    bx = bx / a
    by = (by - b * bx) / d
    bz = (bz - c * bx - e * by) / f
    v[2] = bz / f
    v[1] = (by - e * v[2]) / d
    v[0] = (bx - b * v[1] - c * v[2]) / a
    for i in range(3):
        for j in range(3):
            plane[3 * i + j] = matrix[3 * i + j] - epipole[i] * v[j]
    fit.divide_by_norm(plane, plane)


def write_planes_through(
    points: double[:, ::1], equations: double[:, ::1], triples: Py_ssize_t[:, ::1], least: double, matrix: double[::1],
    epipole: double[::1], planes: double[:, ::1],
) -> Py_ssize_t:  # fmt: skip
    """Write the planes (k, 9) of unit norm, A - e v', through three matches (m, 3) each, and return how many there are.

    Triples whose points x have a determinant of at most `least` make none. v is the sum of beta (y cross z) over det, where y and z are
    the points after x.
    """
    n: Py_ssize_t = 0
    i: Py_ssize_t
    det: double
    v: double[3]
    with cython.nogil:
        for item in range(triples.shape[0]):
            v[0] = v[1] = v[2] = det = 0.0
            for i in range(3):
                one, a, b = triples[item, i], triples[item, (i + 1) % 3], triples[item, (i + 2) % 3]
                x = points[1, a] * points[2, b] - points[2, a] * points[1, b]
                y = points[2, a] * points[0, b] - points[0, a] * points[2, b]
                z = points[0, a] * points[1, b] - points[1, a] * points[0, b]
                det = points[0, one] * x + points[1, one] * y + points[2, one] * z
                v[0] += equations[0, one] * x
                v[1] += equations[0, one] * y
                v[2] += equations[0, one] * z
            # Of what is not finite the comparison is false.
            if fabs(det) > least:
                for i in range(9):
                    planes[n, i] = matrix[i] - epipole[i // 3] * v[i % 3] / det
                fit.divide_by_norm(address(planes[n, 0]), address(planes[n, 0]))
                n += 1
    return n


def choose_planes(
    kind: Py_ssize_t, data: double[:, ::1], tried: double[:, ::1], limit: double, cut: double, median: double,
    fewest: Py_ssize_t, n_fits: Py_ssize_t, points: double[:, ::1], equations: double[:, ::1], matrix: double[::1],
    epipole: double[::1],
    agreement: double[:, ::1], totals: double[::1], room: double[:, ::1], left: uchar[::1], near: uchar[::1],
    planes: double[:, ::1],
) -> Py_ssize_t:  # fmt: skip
    """Write planes (k, 9) chosen greedily, each fitted in rounds to the matches near it that are `left` (n,), and return how many.

    The one of those `tried` (m, 9) with most agreement of the matches left, 1 - (r / limit)^2, is the next. Matches near a fit are
    within `cut` noise scales of those before, but at least within `limit` and at most within twice that. A plane has the `fewest`
    matches at least, and takes them away. Residuals are of a kind, of `data`. Overwrites `agreement` (m, n), `totals` (m,), `room`
    (2, n), `left` and `near` (n,).
    """
    n_planes: Py_ssize_t = 0
    n: Py_ssize_t = left.shape[0]
    n_left: Py_ssize_t = n
    with cython.nogil:
        for item in range(tried.shape[0]):
            residuals.write_residuals(kind, data, tried, item, address(agreement[item, 0]))
            totals[item] = 0.0
            for row in range(n):
                share = 1.0 - agreement[item, row] / (limit * limit)
                agreement[item, row] = share if share > 0.0 else 0.0
                totals[item] += agreement[item, row]
        for row in range(n):
            left[row] = True
        while n_planes < planes.shape[0] and n_left >= fewest and tried.shape[0] > 0:
            best, n_near = 0, 0
            for item in range(tried.shape[0]):
                best = item if totals[item] > totals[best] else best
            for row in range(n):
                near[row] = (left[row] != 0) & (agreement[best, row] > 0.0)
                n_near += near[row]
            for _ in range(n_fits):
                if n_near < fewest:
                    break
                fit_plane(points, equations, near, matrix, epipole, address(planes[n_planes, 0]))
                residuals.write_residuals(kind, data, planes, n_planes, address(room[0, 0]))
                reach, n_near = cut * sqrt(median_near(near, room) / median), 0
                reach = limit if reach < limit else reach
                reach = reach if reach < 2.0 * limit else 2.0 * limit
                for row in range(n):
                    near[row] = (left[row] != 0) & (room[0, row] <= reach * reach)
                    n_near += near[row]
            if n_near < fewest:
                break
            for row in range(n):
                left[row] -= near[row]
            for item in range(tried.shape[0]):
                for row in range(n):
                    if near[row]:
                        totals[item] -= agreement[item, row]
            n_left -= n_near
            n_planes += 1
    return n_planes


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def median_near(near: uchar[::1], room: double[:, ::1]) -> double:
    """Return the upper median of those squared residuals, the first row of `room`, that are near and finite; 0 if there are none."""
    n: Py_ssize_t = 0
    for row in range(near.shape[0]):
        room[1, n] = room[0, row]
        n += (near[row] != 0) & (room[0, row] < INFINITY)
    return residuals.nth_smallest(address(room[1, 0]), n, n // 2) if n > 0 else 0.0
