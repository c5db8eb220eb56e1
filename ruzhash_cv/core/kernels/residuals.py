"""Residuals of models of two views, and what is summed over them: costs, preferences, rows of a forest and candidates.

Where a kernel takes `kinds` (m,), `points` and `models` (m, 9), it computes the residuals of each model by its kind and keeps none of
them: transfer errors or Sampson distances of points (4, n) or rays (6, n). Of the kind `GIVEN` they are rows of `points` (m, n).
"""

import cython
from cython import Py_ssize_t, address, double, p_double, p_Py_ssize_t, uchar
from cython.cimports.libc.math import INFINITY, sqrt

#: What residuals are.
GIVEN = cython.declare(Py_ssize_t, -1)
OF_PLANE = cython.declare(Py_ssize_t, 0)
OF_MOTION = cython.declare(Py_ssize_t, 1)
RAYS_OF_PLANE = cython.declare(Py_ssize_t, 2)
RAYS_OF_MOTION = cython.declare(Py_ssize_t, 3)


@cython.locals(a=Real, b=Real, c=Real, d=Real, e=Real, f=Real, g=Real, h=Real, i=Real)
@cython.locals(j=Real, k=Real, m=Real, n=Real, o=Real, p=Real, q=Real, r=Real, s=Real)
@cython.locals(one=Real, w=Real, dx=Real, dy=Real, there=Real, back=Real)
@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_squared_errors(points: Real[:, ::1], model: p_double, squared: cython.pointer[Real]) -> cython.void:
    """Write the larger of the squared errors in both images; loops without branches over (4, n) compile to vector instructions."""
    row: Py_ssize_t
    a, b, c, d, e, f, g, h, i = model[0], model[1], model[2], model[3], model[4], model[5], model[6], model[7], model[8]
    # The inverse up to scale, which exists for a singular one too.
    j, k, m = e * i - f * h, c * h - b * i, b * f - c * e
    n, o, p = f * g - d * i, a * i - c * g, c * d - a * f
    q, r, s = d * h - e * g, b * g - a * h, a * e - b * d
    one = 1
    for row in range(points.shape[1]):
        x1, y1, x2, y2 = points[0, row], points[1, row], points[2, row], points[3, row]
        w = one / (g * x1 + h * y1 + i)
        dx, dy = (a * x1 + b * y1 + c) * w - x2, (d * x1 + e * y1 + f) * w - y2
        there = dx * dx + dy * dy
        w = one / (q * x2 + r * y2 + s)
        dx, dy = (j * x2 + k * y2 + m) * w - x1, (n * x2 + o * y2 + p) * w - y1
        back = dx * dx + dy * dy
        # A comparison with NaN is false: what has no image in one of the images is infinitely far.
        there = there if there < INFINITY else INFINITY
        back = back if back < INFINITY else INFINITY
        squared[row] = back if back > there else there


@cython.locals(a=Real, b=Real, c=Real, d=Real, e=Real, f=Real, g=Real, h=Real, i=Real)
@cython.locals(p=Real, q=Real, r=Real, s=Real, numerator=Real, error=Real, least=Real)
@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_squared_distances(points: Real[:, ::1], model: p_double, squared: cython.pointer[Real]) -> cython.void:
    """Write squared Sampson distances (n,) of pixels to a fundamental matrix, a model (9,)."""
    a, b, c, d, e, f, g, h, i = model[0], model[1], model[2], model[3], model[4], model[5], model[6], model[7], model[8]
    # Both points in the epipoles satisfy any F, 0 / 0; no evidence for the match, but no distance either.
    least = 1e-300
    for row in range(points.shape[1]):
        x1, y1, x2, y2 = points[0, row], points[1, row], points[2, row], points[3, row]
        p, q = a * x1 + b * y1 + c, d * x1 + e * y1 + f
        r, s = a * x2 + d * y2 + g, b * x2 + e * y2 + h
        numerator = x2 * p + y2 * q + g * x1 + h * y1 + i
        error = numerator * numerator / (p * p + q * q + r * r + s * s + least)
        # A comparison with NaN is false: what is not finite is infinitely far.
        squared[row] = error if error < INFINITY else INFINITY


@cython.locals(a=Real, b=Real, c=Real, d=Real, e=Real, f=Real, g=Real, h=Real, i=Real)
@cython.locals(p=Real, q=Real, r=Real, s=Real, t=Real, u=Real, numerator=Real, error=Real, least=Real)
@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_squared_ray_distances(rays: Real[:, ::1], model: p_double, squared: cython.pointer[Real]) -> cython.void:
    """Write squared Sampson distances (n,) of rays to an essential matrix, a model (9,)."""
    a, b, c, d, e, f, g, h, i = model[0], model[1], model[2], model[3], model[4], model[5], model[6], model[7], model[8]
    least = 1e-300
    for row in range(rays.shape[1]):
        x1, y1, z1, x2, y2, z2 = rays[0, row], rays[1, row], rays[2, row], rays[3, row], rays[4, row], rays[5, row]
        p, q, r = a * x1 + b * y1 + c * z1, d * x1 + e * y1 + f * z1, g * x1 + h * y1 + i * z1
        s, t, u = a * x2 + d * y2 + g * z2, b * x2 + e * y2 + h * z2, c * x2 + f * y2 + i * z2
        numerator = x2 * p + y2 * q + z2 * r
        error = numerator * numerator / (p * p + q * q + r * r + s * s + t * t + u * u + least)
        squared[row] = error if error < INFINITY else INFINITY


@cython.locals(a=Real, b=Real, c=Real, d=Real, e=Real, f=Real, g=Real, h=Real, i=Real)
@cython.locals(j=Real, k=Real, m=Real, n=Real, o=Real, p=Real, q=Real, r=Real, s=Real)
@cython.locals(u=Real, v=Real, w=Real, dx=Real, dy=Real, dz=Real, sign=Real, there=Real, back=Real)
@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_squared_turns(rays: Real[:, ::1], model: p_double, squared: cython.pointer[Real]) -> cython.void:
    """Write squared transfer errors (n,) of rays to a homography, a model (9,)."""
    row: Py_ssize_t
    a, b, c, d, e, f, g, h, i = model[0], model[1], model[2], model[3], model[4], model[5], model[6], model[7], model[8]
    j, k, m = e * i - f * h, c * h - b * i, b * f - c * e
    n, o, p = f * g - d * i, a * i - c * g, c * d - a * f
    q, r, s = d * h - e * g, b * g - a * h, a * e - b * d
    # Of either sign; the one that keeps what is before the camera there has a positive determinant.
    sign = 1.0 if a * j + b * n + c * q > 0.0 else -1.0
    for row in range(rays.shape[1]):
        x1, y1, z1, x2, y2, z2 = rays[0, row], rays[1, row], rays[2, row], rays[3, row], rays[4, row], rays[5, row]
        u, v, w = a * x1 + b * y1 + c * z1, d * x1 + e * y1 + f * z1, g * x1 + h * y1 + i * z1
        dx, dy, dz = v * z2 - w * y2, w * x2 - u * z2, u * y2 - v * x2
        there = (dx * dx + dy * dy + dz * dz) / (u * u + v * v + w * w)
        there = there if (there < INFINITY) & (sign * (u * x2 + v * y2 + w * z2) > 0) else INFINITY
        u, v, w = j * x2 + k * y2 + m * z2, n * x2 + o * y2 + p * z2, q * x2 + r * y2 + s * z2
        dx, dy, dz = v * z1 - w * y1, w * x1 - u * z1, u * y1 - v * x1
        back = (dx * dx + dy * dy + dz * dz) / (u * u + v * v + w * w)
        # A comparison with NaN is false: what has no image is infinitely far, as is what points away.
        back = back if (back < INFINITY) & (u * x1 + v * y1 + w * z1 > 0) else INFINITY
        squared[row] = back if back > there else there


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_residuals(
    kind: Py_ssize_t, points: Real[:, ::1], models: double[:, ::1], item: Py_ssize_t, squared: cython.pointer[Real]
) -> cython.void:
    """Write the squared residuals of a model of a kind."""
    if kind == OF_PLANE:
        write_squared_errors(points, address(models[item, 0]), squared)
    elif kind == OF_MOTION:
        write_squared_distances(points, address(models[item, 0]), squared)
    elif kind == RAYS_OF_PLANE:
        write_squared_turns(points, address(models[item, 0]), squared)
    elif kind == RAYS_OF_MOTION:
        write_squared_ray_distances(points, address(models[item, 0]), squared)
    else:
        for row in range(points.shape[1]):
            squared[row] = points[item, row]


def squared_residuals(kinds: Py_ssize_t[::1], points: double[:, ::1], models: double[:, ::1], squared: double[:, ::1]):
    """Write the squared residuals (m, n) of models of several kinds."""
    with cython.nogil:
        for item in range(models.shape[0] if squared.shape[1] > 0 else 0):
            write_residuals(kinds[item], points, models, item, address(squared[item, 0]))


# What is summed over residuals


def costs_at_reaches(
    kinds: Py_ssize_t[::1], points: double[:, ::1], models: double[:, ::1], weights: double[::1], reaches: double[::1],
    squared: double[::1], costs: double[:, ::1],
):  # fmt: skip
    """Write truncated costs (m, k), weighted sums of min(r^2 / reach^2, 1) for each of some reaches (k,). Overwrites `squared` (n,)."""
    with cython.nogil:
        for item in range(models.shape[0]):
            write_residuals(kinds[item], points, models, item, address(squared[0]))
            for at in range(reaches.shape[0]):
                square = reaches[at] * reaches[at]
                # Four sums, none of which waits for the others.
                a = b = c = d = 0.0
                for row in range(0, weights.shape[0] - 3, 4):
                    a += weights[row] * (squared[row] if squared[row] < square else square)
                    b += weights[row + 1] * (squared[row + 1] if squared[row + 1] < square else square)
                    c += weights[row + 2] * (squared[row + 2] if squared[row + 2] < square else square)
                    d += weights[row + 3] * (squared[row + 3] if squared[row + 3] < square else square)
                for row in range(weights.shape[0] // 4 * 4, weights.shape[0]):
                    a += weights[row] * (squared[row] if squared[row] < square else square)
                costs[item, at] = ((a + b) + (c + d)) / square


@cython.locals(one=cython.float, two=cython.float, three=cython.float, four=cython.float, five=cython.float)
@cython.locals(six=cython.float, seven=cython.float, factor=cython.float, end=cython.float, value=cython.float)
@cython.locals(z=cython.float, cubed=cython.float)
def write_preferences(
    kinds: Py_ssize_t[::1], points: cython.float[:, ::1], models: double[:, ::1], limit: double, falloff: double,
    n_scales: Py_ssize_t, groups: Py_ssize_t[::1], sample_groups: Py_ssize_t[:, ::1], weights: double[::1],
    near: Py_ssize_t[::1], room: cython.float[:, ::1], preferences: cython.float[:, ::1], sums: double[::1],
):  # fmt: skip
    """Write preferences (m, n), and their sums (m,) by weights (n,), in single precision: six digits, in half of the time.

    Each noise scale is a third of the one before, from a limit of squared residuals and 1 / (2 s^2) of the widest scale s on.
    Residuals within the limit are gathered without a branch first: they are few, and exponentials take most of the time. Overwrites
    `near` (n,) and `room` (2, n + 1).
    """
    row: Py_ssize_t
    n_made: Py_ssize_t
    n_near: Py_ssize_t
    total: double
    values: cython.pointer[cython.float] = address(room[0, 0])
    terms: cython.pointer[cython.float] = address(room[1, 0])
    factor, end = -falloff / 16.0, limit
    # Constants of the precision: a literal is a double.
    one, two, three, four, five, six, seven = 1, 2, 3, 4, 5, 6, 7
    with cython.nogil:
        for item in range(models.shape[0]):
            n_near, total = 0, 0.0
            write_residuals(kinds[item], points, models, item, values)
            for row in range(weights.shape[0]):
                preferences[item, row] = 0.0
                # Those within the limit take the places of those before them.
                value = values[row]
                near[n_near], values[n_near] = row, value
                n_near += value <= end
            for at in range(n_near):
                # exp(x), x <= 0, by plain arithmetic, which the compiler makes vectors of: the sixteenth power of exp(x / 16), the
                # first eight terms of its series.
                z = factor * values[at]
                z = one + z * (
                    one
                    + z
                    / two
                    * (one + z / three * (one + z / four * (one + z / five * (one + z / six * (one + z / seven)))))
                )
                z = z * z * (z * z)
                values[at] = terms[at] = z * z * (z * z)
            for _ in range(n_scales - 1):
                for at in range(n_near):
                    # Each scale's term is the ninth power of the one before: one exponential for all.
                    cubed = terms[at] * terms[at] * terms[at]
                    terms[at] = cubed * cubed * cubed
                    values[at] += terms[at]
            for at in range(n_near):
                row, n_made = near[at], 0
                for member in range(sample_groups.shape[1]):
                    n_made += groups[row] == sample_groups[item, member]
                if n_made == 0:
                    preferences[item, row] = values[at] / n_scales
                    total += weights[row] * preferences[item, row]
            sums[item] = total


def count_within(
    kinds: Py_ssize_t[::1], points: double[:, ::1], models: double[:, ::1], limit: double,
    squared: double[::1], counts: Py_ssize_t[::1],
):  # fmt: skip
    """Count the squared residuals of each model (m,) that are within a limit. Overwrites `squared` (n,)."""
    with cython.nogil:
        for item in range(models.shape[0]):
            counts[item] = n_within(kinds[item], points, models, item, limit, address(squared[0]))


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def n_within(
    kind: Py_ssize_t, points: double[:, ::1], models: double[:, ::1], item: Py_ssize_t, limit: double, squared: p_double
) -> Py_ssize_t:
    """Return how many matches lie within a limit of a model; overwrites `squared` (n,) with their squared residuals."""
    n: Py_ssize_t = 0
    write_residuals(kind, points, models, item, squared)
    for row in range(points.shape[1]):
        n += squared[row] <= limit
    return n


def write_rows(
    preferences: cython.float[:, ::1], weights: double[::1], saturation: double, largest: double,
    sums: double[::1], rows: cython.float[:, ::1],
) -> double:  # fmt: skip
    """Write rows (n, m) of a forest, 1 - exp(-s w p / L) of preferences p (m, n) and weights w (m,), and return L.

    That is the largest weighted sum of a row, unless `largest` is given. Overwrites `sums` (n,). Further columns stay as they are.
    """
    item: Py_ssize_t
    row: Py_ssize_t
    n: Py_ssize_t = rows.shape[0]
    with cython.nogil:
        if not largest > 0.0:
            largest = 1e-30
            for row in range(n):
                sums[row] = 0.0
            for item in range(weights.shape[0]):
                for row in range(n):
                    sums[row] += weights[item] * preferences[item, row]
            for row in range(n):
                largest = sums[row] if sums[row] > largest else largest
        for item in range(weights.shape[0]):
            factor = -saturation * weights[item] / largest / 16.0
            for row in range(n):
                # The exponential is that of `write_preferences`, which has its digits from -32 on; beyond it a row has 1.
                z = max(factor * preferences[item, row], -2.0)
                z = 1.0 + z * (
                    1.0 + z / 2 * (1.0 + z / 3 * (1.0 + z / 4 * (1.0 + z / 5 * (1.0 + z / 6 * (1.0 + z / 7)))))
                )
                z = z * z * (z * z)
                sums[row] = 1.0 - z * z * (z * z)
            for row in range(n):
                rows[row, item] = sums[row]
    return largest


def choose_models(
    kinds: Py_ssize_t[::1], decoys: double[:, ::1], models: double[:, ::1], limit: double, chances: double[::1],
    total: double, preferences: cython.float[:, ::1],
    sums: double[::1], left: double[::1], squared: double[::1], room: double[:, ::1], places: Py_ssize_t[:, ::1],
    weights: double[::1], chosen: Py_ssize_t[::1],
) -> Py_ssize_t:  # fmt: skip
    """Choose models greedily by their weighted sums of preferences (m, n), write their weights, and return how many there are.

    A model's weight is 1 - c (1 + D) / S with c of its `chances` (m,), D of the decoys within the limit, and S, the mean preference of
    all matches, of its `sums` (m,) over the `total`. What a model prefers fully counts half for the next, in `left` (n,). A sum only
    ever falls, and decoys only lower a weight: what was last known of both is a bound, and only the largest are computed again.
    Overwrites `sums`, `left`, `squared` (N,), `room` (2, m) and `places` (3, m).
    """
    row: Py_ssize_t
    best: Py_ssize_t
    n_chosen: Py_ssize_t = 0
    n: Py_ssize_t = left.shape[0]
    m: Py_ssize_t = models.shape[0]
    if m == 0:
        return 0
    # Models in a heap by the bounds of their weighted sums, after how many choices each was computed, and whether with decoys.
    heap: p_Py_ssize_t = address(places[0, 0])
    computed: p_Py_ssize_t = address(places[1, 0])
    compared: p_Py_ssize_t = address(places[2, 0])
    bounds: p_double = address(room[0, 0])
    shares: p_double = address(room[1, 0])
    with cython.nogil:
        for item in range(m):
            heap[item], computed[item], compared[item] = item, -1, False
            shares[item] = sums[item] / total if sums[item] / total > 1e-12 else 1e-12
            weight = 1.0 - chances[item] / shares[item]
            weights[item] = weight if weight > 0.0 else 0.0
            # A little more, so that by rounding too none is less than a sum is.
            bounds[item] = sums[item] * weights[item] * (1.0 + 1e-9)
        for item in range(m // 2 - 1, -1, -1):
            sift(heap, bounds, item, m)
        while n_chosen < chosen.shape[0] and bounds[heap[0]] > 0.0:
            best = heap[0]
            if computed[best] != n_chosen:
                # Four sums, none of which waits for the others.
                a = b = c = d = 0.0
                for row in range(0, n - 3, 4):
                    a += left[row] * preferences[best, row]
                    b += left[row + 1] * preferences[best, row + 1]
                    c += left[row + 2] * preferences[best, row + 2]
                    d += left[row + 3] * preferences[best, row + 3]
                for row in range(n // 4 * 4, n):
                    a += left[row] * preferences[best, row]
                sums[best] = (a + b) + (c + d)
                bounds[best], computed[best] = sums[best] * weights[best], n_chosen
            elif not compared[best]:
                n_near = n_within(kinds[best], decoys, models, best, limit, address(squared[0]))
                weight = 1.0 - chances[best] * (1.0 + n_near) / shares[best]
                weights[best], compared[best] = weight if weight > 0.0 else 0.0, True
                bounds[best] = sums[best] * weights[best]
            else:
                chosen[n_chosen], bounds[best] = best, -1.0
                n_chosen += 1
                for row in range(n):
                    left[row] /= 1.0 + preferences[best, row]
            sift(heap, bounds, 0, m)
    return n_chosen


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def sift(heap: p_Py_ssize_t, bounds: p_double, at: Py_ssize_t, m: Py_ssize_t) -> cython.void:
    """Move an item down a heap of m to its place: the largest bound is first, of equal ones the lower number."""
    item: Py_ssize_t = heap[at]
    child: Py_ssize_t = 2 * at + 1
    while child < m:
        one = heap[child]
        if child + 1 < m:
            other = heap[child + 1]
            if bounds[other] > bounds[one] or (bounds[other] == bounds[one] and other < one):
                child, one = child + 1, other
        if bounds[one] < bounds[item] or (bounds[one] == bounds[item] and item < one):
            break
        heap[at], at, child = one, child, 2 * child + 1
    heap[at] = item


def write_candidates(
    kinds: Py_ssize_t[::1], points: double[:, ::1], models: double[:, ::1], least: double, laws: double[:, ::1],
    family_ids: uchar[::1], n_errors: double,
    near: Py_ssize_t[:, ::1], squared: double[::1], counts: double[::1], indices: uchar[:, ::1],
    background: double[:, ::1],
):  # fmt: skip
    """Write the index (m, n) of the smallest radius that holds each match, and the shares (m, n_radii) of decoys within radii.

    Squared radii are powers of two times `least`; beyond all is the last index. The decoys follow the matches in `points`. Within the
    largest radius they are counted. Within smaller ones they are as many as the law (n_radii,) of the model's family says, or as are
    there for sure, by `n_errors` standard errors. Overwrites `near` (2, n + N), `squared` (n + N,) and `counts` (n_indices,).
    """
    n_near: Py_ssize_t
    n: Py_ssize_t = indices.shape[1]
    last: Py_ssize_t = counts.shape[0] - 1
    widest: double = least
    for _ in range(last - 1):
        widest *= 2.0
    with cython.nogil:
        for item in range(models.shape[0]):
            write_residuals(kinds[item], points, models, item, address(squared[0]))
            n_near = 0
            for row in range(points.shape[1]):
                # Those within take the places of those before them.
                value = squared[row]
                near[0, n_near], near[1, n_near], squared[n_near] = row, 0, value
                n_near += value < widest
            bound = least
            for _ in range(last):
                for at in range(n_near):
                    near[1, at] += squared[at] >= bound
                bound = 2.0 * bound
            for row in range(n):
                indices[item, row] = last
            for step in range(last + 1):
                counts[step] = 0.0
            for at in range(n_near):
                row, index = near[0, at], near[1, at]
                if row < n:
                    indices[item, row] = index
                else:
                    counts[index] += 1.0
            within = 0.0
            for step in range(background.shape[1]):
                within += counts[step]
            largest, within = within, 0.0
            for step in range(background.shape[1]):
                within += counts[step]
                # One decoy more, so that the share is never 0.
                by_law = (1.0 + largest) * laws[family_ids[item], step]
                sure = within - n_errors * sqrt(within)
                background[item, step] = (by_law if by_law > sure else sure) / (points.shape[1] - n + 1.0)


def write_medians(squared: double[:, ::1], work: double[::1], medians: double[::1]):
    """Write the upper medians (m,) of those squared residuals (m, n) that are finite. Overwrites `work` (n,)."""
    n: Py_ssize_t
    with cython.nogil:
        for item in range(squared.shape[0]):
            n = 0
            for row in range(squared.shape[1]):
                work[n] = squared[item, row]
                n += squared[item, row] < INFINITY
            if n > 0:
                medians[item] = nth_smallest(address(work[0]), n, n // 2)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def nth_smallest(values: p_double, n: Py_ssize_t, nth: Py_ssize_t) -> double:
    """Return the number of that rank among the first n, which are reordered (Hoare, "Algorithm 65: find", CACM 1961).

    Those below a pivot are gathered without a branch; where the rank is above them, those equal to it as well.
    """
    low: Py_ssize_t = 0
    high: Py_ssize_t = n
    middle: Py_ssize_t
    while high - low > 1:
        pivot, middle = values[(low + high) // 2], low
        for at in range(low, high):
            value = values[at]
            values[at], values[middle] = values[middle], value
            middle += value < pivot
        if nth < middle:
            high = middle
            continue
        low = middle
        for at in range(low, high):
            value = values[at]
            values[at], values[low] = values[low], value
            low += value <= pivot
        if nth < low:
            return pivot
    return values[nth]
