"""Nearest neighbours among matches of surfaces, by points sorted along x."""

import cython
from cython import Py_ssize_t, cast, double, p_Py_ssize_t, uchar
from cython.cimports.libc.math import INFINITY

#: So many of a plane's matches show where it is, and so many companions keep a match from contradicting it.
N_NEAR = cython.declare(Py_ssize_t, 3)


def mark_contradicting(
    data: double[:, ::1], weights: double[::1], on: Py_ssize_t[:, ::1], points: double[:, :, ::1], off: Py_ssize_t[::1],
    same: double,
    reaches: double[:, ::1], contradict: uchar[::1],
):  # fmt: skip
    """Mark rows of data (n, d) that lie `off` a plane (m,) but among its matches `on` (2, k), and have jumped over these.

    Rows `on` are those of the plane's matches twice, sorted by x in the first and in the second image, at `points` (2, k, 2) there;
    rows `off` are sorted by x in the first. A match has jumped if in each image the matches of the plane that are the nearest in the
    other image all lie further away than the nearest there. It contradicts the plane unless as many matches `off` it, by weight, are
    within this distance in both images, but no duplicates, which are within the distance `same`. Overwrites `reaches` (2, m): squared
    distances of the N-th nearest.
    """
    item: Py_ssize_t
    near1: Py_ssize_t[3]
    near2: Py_ssize_t[3]
    with cython.nogil:
        for item in range(off.shape[0]):
            row = off[item]
            reaches[0, item] = find_nearest(data, on, points, 0, row, near1)
            reaches[1, item] = find_nearest(data, on, points, 1, row, near2)
            if (
                closest_of(data, 0, row, near2) > reaches[0, item]
                and closest_of(data, 1, row, near1) > reaches[1, item]
                and weight_beside(data, weights, off, item, same, reaches[0, item], reaches[1, item]) < N_NEAR
            ):
                contradict[row] = True


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def find_nearest(
    data: double[:, ::1], on: Py_ssize_t[:, ::1], points: double[:, :, ::1], image: Py_ssize_t, row: Py_ssize_t,
    nearest: p_Py_ssize_t,
) -> double:  # fmt: skip
    """Write the N rows that are nearest to a row in an image, and return the squared distance of the last."""
    low: Py_ssize_t = 0
    high: Py_ssize_t = on.shape[1]
    at: Py_ssize_t
    step: Py_ssize_t
    squares: double[3]
    for place in range(N_NEAR):
        squares[place], nearest[place] = INFINITY, -1
    x, y = data[row, 2 * image], data[row, 2 * image + 1]
    while low < high:
        at = (low + high) // 2
        if points[image, at, 0] < x:
            low = at + 1
        else:
            high = at
    for step in range(-1, 2, 2):
        at = low if step > 0 else low - 1
        while 0 <= at < on.shape[1]:
            dx, dy = points[image, at, 0] - x, points[image, at, 1] - y
            if dx * dx >= squares[N_NEAR - 1]:
                break
            square = dx * dx + dy * dy
            if square < squares[N_NEAR - 1]:
                place = N_NEAR - 1
                while place > 0 and squares[place - 1] > square:
                    squares[place], nearest[place] = squares[place - 1], nearest[place - 1]
                    place -= 1
                squares[place], nearest[place] = square, on[image, at]
            at += step
    return squares[N_NEAR - 1]


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def closest_of(data: double[:, ::1], image: Py_ssize_t, row: Py_ssize_t, others: p_Py_ssize_t) -> double:
    """Return the squared distance of the closest of N others to a row in an image."""
    square: double
    least: double = INFINITY
    for place in range(N_NEAR):
        other = cast(Py_ssize_t, others[place])
        if other >= 0:
            dx, dy = (
                data[other, 2 * image] - data[row, 2 * image],
                data[other, 2 * image + 1] - data[row, 2 * image + 1],
            )
            square = dx * dx + dy * dy
            if square < least:
                least = square
    return least


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def weight_beside(
    data: double[:, ::1], weights: double[::1], off: Py_ssize_t[::1], item: Py_ssize_t, same: double, reach1: double,
    reach2: double,
) -> double:  # fmt: skip
    """Return the weight of the rows `off`, sorted by x, within squared reaches of one in both images, but no duplicates of it."""
    at: Py_ssize_t
    step: Py_ssize_t
    weight = 0.0
    row = off[item]
    for step in range(-1, 2, 2):
        at = item + step
        while 0 <= at < off.shape[0]:
            other = off[at]
            dx, dy = data[other, 0] - data[row, 0], data[other, 1] - data[row, 1]
            if dx * dx > reach1:
                break
            du, dv = data[other, 2] - data[row, 2], data[other, 3] - data[row, 3]
            first, second = dx * dx + dy * dy, du * du + dv * dv
            if first <= reach1 and second <= reach2 and (first > same * same or second > same * same):
                weight += weights[other]
            at += step
    return weight


def count_own_neighbours(x: double[::1], y: double[::1], own: uchar[::1], same: double, counts: Py_ssize_t[::1]):
    """Add to `counts` (2,) how many of a structure's own points have a nearest point, and of how many it is own.

    A point no further away than `same` is none. Points are sorted by x.
    """
    at: Py_ssize_t
    other: Py_ssize_t
    nearest: Py_ssize_t
    step: Py_ssize_t
    with cython.nogil:
        for at in range(x.shape[0]):
            if not own[at]:
                continue
            nearest, least = -1, INFINITY
            for step in range(-1, 2, 2):
                other = at + step
                while 0 <= other < x.shape[0] and (x[other] - x[at]) * (x[other] - x[at]) < least:
                    dx, dy = x[other] - x[at], y[other] - y[at]
                    square = dx * dx + dy * dy
                    if square < least and square > same * same:
                        nearest, least = other, square
                    other += step
            if nearest >= 0:
                counts[0] += 1
                counts[1] += own[nearest]
