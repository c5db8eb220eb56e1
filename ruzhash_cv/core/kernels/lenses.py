"""Distortion of lenses as OpenCV has it, and its inverse.

`numbers` are k1, k2, p1, p2, k3, k4, k5, k6, s1, s2, s3, s4; `tilt` is the homography (9,) of a tilted sensor.
Points are x / z and y / z.
"""

import cython
from cython import Py_ssize_t, address, double, p_double
from cython.cimports.libc.math import NAN, fabs

#: Steps of OpenCV's own inverse, which Newton's steps begin after, and the largest one of these.
FIRST_STEPS = cython.declare(Py_ssize_t, 5)
LARGEST_STEP = cython.declare(double, 0.5)


def distort(
    points: double[:, ::1], numbers: double[::1], tilt: double[::1], distorted: double[:, ::1],
    slopes: double[:, :, ::1],
):  # fmt: skip
    """Write distorted points (n, 2) and their derivatives (n, 2, 2)."""
    with cython.nogil:
        for row in range(points.shape[0]):
            distort_one(
                points[row, 0], points[row, 1], address(numbers[0]), address(tilt[0]), address(distorted[row, 0]),
                address(slopes[row, 0, 0]),
            )  # fmt: skip


def undistort(
    wanted: double[:, ::1], numbers: double[::1], tilt: double[::1], level: double[::1], n_steps: Py_ssize_t,
    exact: double, largest_error: double,
    points: double[:, ::1],
):  # fmt: skip
    """Write the points (n, 2) that are distorted to those wanted, NaN if there are none or the image has folded over there.

    `level` is the inverse of `tilt`. Newton's steps end at errors of `exact` at most; if they do
    not arrive, errors are above `largest_error`.
    """
    row: Py_ssize_t
    good: cython.bint
    distorted: double[2]
    slopes: double[4]
    k: p_double = address(numbers[0])
    with cython.nogil:
        for row in range(wanted.shape[0]):
            u, v = wanted[row, 0], wanted[row, 1]
            w = 1.0 / (level[6] * u + level[7] * v + level[8])
            u0, v0 = (level[0] * u + level[1] * v + level[2]) * w, (level[3] * u + level[4] * v + level[5]) * w
            x, y, dx, dy, determinant = u0, v0, 0.0, 0.0, 0.0
            for _ in range(FIRST_STEPS):
                r = x * x + y * y
                inverse = (1.0 + r * (k[5] + r * (k[6] + r * k[7]))) / (1.0 + r * (k[0] + r * (k[1] + r * k[4])))
                if not inverse > 0.0:
                    x, y = u0, v0
                    break
                dx = 2.0 * k[2] * x * y + k[3] * (r + 2.0 * x * x) + r * (k[8] + r * k[9])
                dy = k[2] * (r + 2.0 * y * y) + 2.0 * k[3] * x * y + r * (k[10] + r * k[11])
                x, y = (u0 - dx) * inverse, (v0 - dy) * inverse
            for step in range(n_steps + 1):
                distort_one(x, y, k, address(tilt[0]), distorted, slopes)
                dx, dy = u - distorted[0], v - distorted[1]
                determinant = slopes[0] * slopes[3] - slopes[1] * slopes[2]
                if step == n_steps or not (fabs(dx) > exact or fabs(dy) > exact):
                    break
                x += clipped((slopes[3] * dx - slopes[1] * dy) / determinant)
                y += clipped((slopes[0] * dy - slopes[2] * dx) / determinant)
            good = fabs(dx) < largest_error and fabs(dy) < largest_error
            good = good and determinant > 0.0 and slopes[0] + slopes[3] > 0.0
            points[row, 0], points[row, 1] = x if good else NAN, y if good else NAN


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def clipped(step: double) -> double:
    """Return a step of at most `LARGEST_STEP` in either direction."""
    step = step if step < LARGEST_STEP else LARGEST_STEP
    return step if step > -LARGEST_STEP else -LARGEST_STEP


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def distort_one(
    x: double, y: double, k: p_double, tilt: p_double, distorted: p_double, slopes: p_double
) -> cython.void:
    """Write the distorted position of a point and its slopes, by OpenCV's model of lenses."""
    r = x * x + y * y
    below = 1.0 / (1.0 + r * (k[5] + r * (k[6] + r * k[7])))
    radial = (1.0 + r * (k[0] + r * (k[1] + r * k[4]))) * below
    # Derivatives by r, the squared radius.
    slope = (k[0] + r * (2.0 * k[1] + r * 3.0 * k[4]) - radial * (k[5] + r * (2.0 * k[6] + r * 3.0 * k[7]))) * below
    prism_x, prism_y = k[8] + 2.0 * r * k[9], k[10] + 2.0 * r * k[11]
    u = x * radial + 2.0 * k[2] * x * y + k[3] * (r + 2.0 * x * x) + r * (k[8] + r * k[9])
    v = y * radial + k[2] * (r + 2.0 * y * y) + 2.0 * k[3] * x * y + r * (k[10] + r * k[11])
    ux = radial + 2.0 * x * (x * slope + prism_x) + 2.0 * k[2] * y + 6.0 * k[3] * x
    uy = 2.0 * y * (x * slope + prism_x) + 2.0 * k[2] * x + 2.0 * k[3] * y
    vx = 2.0 * x * (y * slope + prism_y) + 2.0 * k[2] * x + 2.0 * k[3] * y
    vy = radial + 2.0 * y * (y * slope + prism_y) + 6.0 * k[2] * y + 2.0 * k[3] * x
    w = 1.0 / (tilt[6] * u + tilt[7] * v + tilt[8])
    distorted[0], distorted[1] = (tilt[0] * u + tilt[1] * v + tilt[2]) * w, (tilt[3] * u + tilt[4] * v + tilt[5]) * w
    a, b = (tilt[0] - distorted[0] * tilt[6]) * w, (tilt[1] - distorted[0] * tilt[7]) * w
    c, d = (tilt[3] - distorted[1] * tilt[6]) * w, (tilt[4] - distorted[1] * tilt[7]) * w
    slopes[0], slopes[1], slopes[2], slopes[3] = a * ux + b * vx, a * uy + b * vy, c * ux + d * vx, c * uy + d * vy
