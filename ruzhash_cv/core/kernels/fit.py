"""Residuals of models of two views, what is summed over them, and fits of pixels: homographies and fundamental matrices.

Where a kernel takes `kinds` (m,), `points` and `models` (m, 9), it computes the residuals of each model by its kind and keeps none of
them: transfer errors or Sampson distances of points (4, n) or rays (6, n). Of the kind `GIVEN` they are rows of `points` (m, n).
"""

import cython
from cython import Py_ssize_t, address, double, p_double, p_Py_ssize_t, uchar
from cython.cimports.libc.math import INFINITY, fabs, sqrt

#: What residuals are.
GIVEN = cython.declare(Py_ssize_t, -1)
OF_PLANE = cython.declare(Py_ssize_t, 0)
OF_MOTION = cython.declare(Py_ssize_t, 1)
RAYS_OF_PLANE = cython.declare(Py_ssize_t, 2)
RAYS_OF_MOTION = cython.declare(Py_ssize_t, 3)
#: What a fit is: of a homography; of the equations x2' F x1 = 0, of these divided by gradients, or a step of Gauss and Newton.
TRANSFORM = cython.declare(Py_ssize_t, 0)
EQUATIONS = cython.declare(Py_ssize_t, 1)
DISTANCES = cython.declare(Py_ssize_t, 2)
STEP = cython.declare(Py_ssize_t, 3)
#: Inverse iteration stops here at the latest; on degenerate data any vector of a null space will do.
MOST_ITERATIONS = cython.declare(Py_ssize_t, 40)
#: Noise that is less, in units or tolerances, is the rounding of exact matches.
EXACT = cython.declare(double, 1e-6)


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


def write_preferences(
    kinds: Py_ssize_t[::1], points: double[:, ::1], models: double[:, ::1], limit: double, falloff: double,
    n_scales: Py_ssize_t, groups: Py_ssize_t[::1], sample_groups: Py_ssize_t[:, ::1], weights: double[::1],
    near: Py_ssize_t[::1], room: double[:, ::1], preferences: cython.float[:, ::1], sums: double[::1],
):  # fmt: skip
    """Write preferences (m, n), and their sums (m,) by weights (n,).

    Each noise scale is a third of the one before, from a limit of squared residuals and 1 / (2 s^2) of the widest scale s on.
    Overwrites `near` (n,) and `room` (2, n + 1).
    """
    with cython.nogil:
        for item in range(models.shape[0]):
            sums[item] = preferences_of(
                kinds[item], points, models, item, limit, falloff, n_scales, groups, sample_groups[item], weights, near,
                address(room[0, 0]), address(room[1, 0]), preferences[item],
            )  # fmt: skip


def rank_preferences(
    kinds: Py_ssize_t[::1], points: cython.float[:, ::1], models: double[:, ::1], limit: double, falloff: double,
    n_scales: Py_ssize_t, groups: Py_ssize_t[::1], sample_groups: Py_ssize_t[:, ::1], weights: double[::1],
    near: Py_ssize_t[::1], room: cython.float[:, ::1], preferences: cython.float[:, ::1], sums: double[::1],
):  # fmt: skip
    """Write preferences and their sums in single precision, see `write_preferences`: six digits, in half of the time."""
    with cython.nogil:
        for item in range(models.shape[0]):
            sums[item] = preferences_of(
                kinds[item], points, models, item, limit, falloff, n_scales, groups, sample_groups[item], weights, near,
                address(room[0, 0]), address(room[1, 0]), preferences[item],
            )  # fmt: skip


@cython.locals(one=Real, two=Real, three=Real, four=Real, five=Real, six=Real, seven=Real)
@cython.locals(value=Real, factor=Real, end=Real, z=Real, cubed=Real)
@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def preferences_of(
    kind: Py_ssize_t, points: Real[:, ::1], models: double[:, ::1], item: Py_ssize_t, limit: double, falloff: double,
    n_scales: Py_ssize_t, groups: Py_ssize_t[::1], sample_groups: Py_ssize_t[::1], weights: double[::1],
    near: Py_ssize_t[::1], values: cython.pointer[Real], terms: cython.pointer[Real], preferences: cython.float[::1],
) -> double:  # fmt: skip
    """Write the preferences (n,) for a model, and return their sum by weights.

    Residuals within the limit are gathered without a branch first: they are few, and exponentials take most of the time.
    """
    row: Py_ssize_t
    n_made: Py_ssize_t
    n_near: Py_ssize_t = 0
    total: double = 0.0
    factor, end = -falloff / 16.0, limit
    # Constants of the precision: a literal is a double.
    one, two, three, four, five, six, seven = 1, 2, 3, 4, 5, 6, 7
    write_residuals(kind, points, models, item, values)
    for row in range(weights.shape[0]):
        preferences[row] = 0.0
        # Those within the limit take the places of those before them.
        value = values[row]
        near[n_near], values[n_near] = row, value
        n_near += value <= end
    for at in range(n_near):
        # exp(x), x <= 0, to eight digits, by plain arithmetic, which the compiler makes vectors of: the sixteenth power of
        # exp(x / 16), the first eight terms of its series.
        z = factor * values[at]
        z = one + z * (
            one
            + z / two * (one + z / three * (one + z / four * (one + z / five * (one + z / six * (one + z / seven)))))
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
        for member in range(sample_groups.shape[0]):
            n_made += groups[row] == sample_groups[member]
        if n_made == 0:
            preferences[row] = values[at] / n_scales
            total += weights[row] * preferences[row]
    return total


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


# Motions of a plane


def write_unit_norm(models: double[:, ::1], scaled: double[:, ::1]):
    """Write models (m, 9) divided by their Euclidean norms; a zero model becomes NaN."""
    with cython.nogil:
        for item in range(models.shape[0]):
            divide_by_norm(address(models[item, 0]), address(scaled[item, 0]))


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def divide_by_norm(model: p_double, scaled: p_double) -> cython.void:
    """Write a model (9,) divided by its norm."""
    norm = 0.0
    for k in range(9):
        norm += model[k] * model[k]
    norm = sqrt(norm)
    for k in range(9):
        scaled[k] = model[k] / norm


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
            divide_by_norm(model, model)


# Planes of a motion


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
    divide_by_norm(plane, plane)


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
                divide_by_norm(address(planes[n, 0]), address(planes[n, 0]))
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
            write_residuals(kind, data, tried, item, address(agreement[item, 0]))
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
                write_residuals(kind, data, planes, n_planes, address(room[0, 0]))
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
    return nth_smallest(address(room[1, 0]), n, n // 2) if n > 0 else 0.0


# Linear algebra of fits


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def solve(
    gram: double[:, ::1], model: p_double, vector: p_double, factor: double[:, ::1], n: Py_ssize_t,
    n_iterations: Py_ssize_t,
) -> cython.void:  # fmt: skip
    """Overwrite a vector b with the solution x of (G + tr(G) f f') x = b, by Cholesky's factor.

    Of a form G that leaves the length of a model f free the sum has an inverse. A share of the trace that rounding would hide is added
    as well, so that any matrix has one. With iterations the vector becomes a unit eigenvector of the smallest eigenvalue, whatever it
    was, by inverse iteration.
    """
    i: Py_ssize_t
    j: Py_ssize_t
    k: Py_ssize_t
    trace = 0.0
    for i in range(n):
        trace += gram[i, i]
    shift = 1e-13 * trace + 1e-300
    for i in range(n):
        for j in range(i + 1):
            total = gram[i, j] + trace * model[i] * model[j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if j < i:
                factor[i, j] = total * factor[j, j]
            else:
                # The inverse is on the diagonal.
                factor[i, i] = 1.0 / sqrt(total + shift if total > 0.0 else shift)
        # Any start that is not orthogonal to the answer: unequal entries, so that symmetry cannot make it so.
        factor[n, i] = 1.0 + 0.37 * i - 0.11 * i * i
        if n_iterations > 0:
            vector[i] = factor[n, i]
    for iteration in range(n_iterations if n_iterations > 0 else 1):
        norm = along = 0.0
        for i in range(n):
            total = vector[i]
            for k in range(i):
                total -= factor[i, k] * vector[k]
            vector[i] = total * factor[i, i]
        for i in range(n - 1, -1, -1):
            total = vector[i]
            for k in range(i + 1, n):
                total -= factor[k, i] * vector[k]
            vector[i] = total * factor[i, i]
            norm += vector[i] * vector[i]
        if n_iterations > 0:
            norm = 1.0 / sqrt(norm)
            for i in range(n):
                vector[i] *= norm
                along += vector[i] * factor[n, i]
                factor[n, i] = vector[i]
            if iteration > 0 and fabs(along) > 1.0 - 1e-14:
                break


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.returns((double, double, double))
def similarity(points: double[:, ::1], image: Py_ssize_t, rows: p_Py_ssize_t, weights: p_double, n: Py_ssize_t):
    """Return s, t, u of the similarity (s x + t, s y + u) that normalises n weighted pixels (Hartley and Zisserman, 4.4.4).

    It brings the centroid to 0, and the root mean square distance from it to sqrt(2). Rows of `points` from `image` on are x and y.
    """
    row: Py_ssize_t
    total = sum_x = sum_y = sum_squares = 0.0
    for at in range(n):
        row, weight = rows[at], weights[at]
        x, y = points[image, row], points[image + 1, row]
        total += weight
        sum_x += weight * x
        sum_y += weight * y
        sum_squares += weight * (x * x + y * y)
    mean_x, mean_y = sum_x / total, sum_y / total
    spread = sum_squares / total - mean_x * mean_x - mean_y * mean_y
    s: double = sqrt(2.0 / (spread if spread > 1e-300 else 1e-300))
    return s, -s * mean_x, -s * mean_y


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_transform(
    points: double[:, ::1], rows: p_Py_ssize_t, weights: p_double, n: Py_ssize_t, model: p_double,
    room: double[:, :, ::1], fitted: p_double,
) -> cython.void:  # fmt: skip
    """Write the direct linear transform of n weighted rows, reweighted by the depths that a model gives the first points.

    The equations (x2 h3 - h1) x1 = 0 and (y2 h3 - h2) x1 = 0 have sums of products x1 x1' times 1, x2, y2 and x2^2 + y2^2.
    """
    products: double[9]
    # Six each of a factor; eight are whole vectors of a processor.
    sums: double[8][4]
    gram = room[0]
    for at in range(n):
        row = rows[at]
        depth = model[6] * points[0, row] + model[7] * points[1, row] + model[8]
        weight = weights[at] / (depth * depth)
        weights[at] = weight if fabs(weight) < INFINITY else 0.0
    s1, t1, u1 = similarity(points, 0, rows, weights, n)
    s2, t2, u2 = similarity(points, 2, rows, weights, n)
    products[6] = products[7] = 0.0
    for i in range(4):
        for j in range(8):
            sums[i][j] = 0.0
    for at in range(n):
        row, weight = rows[at], weights[at]
        x, y = s1 * points[0, row] + t1, s1 * points[1, row] + u1
        u, v = s2 * points[2, row] + t2, s2 * points[3, row] + u2
        products[0], products[1], products[2] = x * x, x * y, y * y
        products[3], products[4], products[5] = x, y, 1.0
        square = u * u + v * v
        for j in range(8):
            product = weight * products[j]
            sums[0][j] += product
            sums[1][j] += product * u
            sums[2][j] += product * v
            sums[3][j] += product * square
    for i in range(3):
        for j in range(3):
            of = i + j if i < 2 and j < 2 else (3 + i if i < j else 3 + j)
            gram[i, j] = gram[3 + i, 3 + j] = sums[0][of]
            gram[3 + i, j], gram[6 + i, 6 + j] = 0.0, sums[3][of]
            gram[6 + i, j], gram[6 + i, 3 + j] = -sums[1][of], -sums[2][of]
    for k in range(9):
        products[k] = 0.0
    solve(gram, products, fitted, room[1], 9, MOST_ITERATIONS)
    # T2^-1 H T1
    for k in range(0, 9, 3):
        fitted[k + 2] += fitted[k] * t1 + fitted[k + 1] * u1
        fitted[k], fitted[k + 1] = s1 * fitted[k], s1 * fitted[k + 1]
    for k in range(3):
        fitted[k] = (fitted[k] - t2 * fitted[6 + k]) / s2
        fitted[3 + k] = (fitted[3 + k] - u2 * fitted[6 + k]) / s2
    divide_by_norm(fitted, fitted)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_matrix(
    kind: Py_ssize_t, points: double[:, ::1], rows: p_Py_ssize_t, weights: p_double, n: Py_ssize_t, model: p_double,
    room: double[:, :, ::1], fitted: p_double,
) -> cython.void:  # fmt: skip
    """Write a fit of a kind, of rank 2, to n weighted rows.

    Fits by equations do not end at least distances, as gradients change with the model too (Chojnacki et al., "On the fitting of
    surfaces to data with covariances", PAMI 2000). Steps of Gauss and Newton do.
    """
    started: double[9]
    slope: double[9]
    # Nine each; twelve are whole vectors of a processor.
    gradient: double[12]
    sums: double[12][9]
    gram, factor = room[0], room[1]
    if kind == DISTANCES:
        divide_by_gradients(points, rows, weights, n, model)
    s1, t1, u1 = similarity(points, 0, rows, weights, n)
    s2, t2, u2 = similarity(points, 2, rows, weights, n)
    for j in range(9):
        started[j], slope[j] = model[j], 0.0
        for k in range(12):
            sums[j][k] = 0.0
    for k in range(9, 12):
        gradient[k] = 0.0
    carry(started, 1.0 / s1, -t1 / s1, -u1 / s1, 1.0 / s2, -t2 / s2, -u2 / s2)
    a, b, c, d, e, f = started[0], started[1], started[2], started[3], started[4], started[5]
    g, h, last = started[6], started[7], started[8]
    square1, square2 = s1 * s1, s2 * s2
    for at in range(n):
        row, weight, share1, share2, error, p, q, r, s = rows[at], weights[at], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        x1, y1 = s1 * points[0, row] + t1, s1 * points[1, row] + u1
        x2, y2 = s2 * points[2, row] + t2, s2 * points[3, row] + u2
        if kind == STEP:
            p, q = a * x1 + b * y1 + c, d * x1 + e * y1 + f
            r, s = a * x2 + d * y2 + g, b * x2 + e * y2 + h
            error = x2 * p + y2 * q + g * x1 + h * y1 + last
            square = square2 * (p * p + q * q) + square1 * (r * r + s * s)
            share1, share2, weight = square1 * error / square, square2 * error / square, weight / square
        # Sampson's correction moves the second point by (-dx, -dy), the first one to (u, v).
        dx, dy, u, v = share2 * p, share2 * q, x1 - share1 * r, y1 - share1 * s
        gradient[0], gradient[1], gradient[2] = x2 * u - dx * x1, x2 * v - dx * y1, x2 - dx
        gradient[3], gradient[4], gradient[5] = y2 * u - dy * x1, y2 * v - dy * y1, y2 - dy
        gradient[6], gradient[7], gradient[8] = u, v, 1.0
        if fabs(weight) < INFINITY:
            # Of a symmetric matrix only the lower triangle is read.
            for j in range(4):
                scaled = weight * gradient[j]
                slope[j] += scaled * error
                for k in range(4):
                    sums[j][k] += scaled * gradient[k]
            for j in range(4, 8):
                scaled = weight * gradient[j]
                slope[j] += scaled * error
                for k in range(8):
                    sums[j][k] += scaled * gradient[k]
            slope[8] += weight * error
            for k in range(12):
                sums[8][k] += weight * gradient[k]
    for j in range(9):
        for k in range(j + 1):
            gram[j, k] = sums[j][k]
    if kind == STEP:
        solve(gram, started, slope, factor, 9, 0)
        for k in range(9):
            fitted[k] = started[k] - slope[k]
        divide_by_norm(fitted, fitted)
    else:
        solve(gram, slope, fitted, factor, 9, MOST_ITERATIONS)  # all errors are 0, and so is the slope
    make_rank_two(fitted, gram, factor)
    carry(fitted, s1, t1, u1, s2, t2, u2)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def divide_by_gradients(
    points: double[:, ::1], rows: p_Py_ssize_t, weights: p_double, n: Py_ssize_t, model: p_double
) -> cython.void:
    """Divide weights of rows by the squared gradients of x2' F x1 there."""
    a, b, c, d, e, f, g, h = model[0], model[1], model[2], model[3], model[4], model[5], model[6], model[7]
    for at in range(n):
        row = rows[at]
        x1, y1, x2, y2 = points[0, row], points[1, row], points[2, row], points[3, row]
        p, q = a * x1 + b * y1 + c, d * x1 + e * y1 + f
        r, s = a * x2 + d * y2 + g, b * x2 + e * y2 + h
        weight = weights[at] / (p * p + q * q + r * r + s * s)
        weights[at] = weight if fabs(weight) < INFINITY else 0.0


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def carry(model: p_double, s1: double, t1: double, u1: double, s2: double, t2: double, u2: double) -> cython.void:
    """Overwrite F with T2' F T1, of unit norm, of similarities (s x + t, s y + u)."""
    for k in range(0, 9, 3):
        model[k + 2] += model[k] * t1 + model[k + 1] * u1
        model[k], model[k + 1] = s1 * model[k], s1 * model[k + 1]
    for k in range(3):
        model[6 + k] += t2 * model[k] + u2 * model[3 + k]
        model[k], model[3 + k] = s2 * model[k], s2 * model[3 + k]
    divide_by_norm(model, model)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def make_rank_two(model: p_double, gram: double[:, ::1], factor: double[:, ::1]) -> cython.void:
    """Overwrite a model f, near the least vector of a form G, with the one of rank 2 whose error f'Gf is least.

    A step of least cost to det F = 0 is along G^-1 times the gradient of det F, its cofactors (Kanatani and Sugaya, "Compact
    fundamental matrix computation", IPSJ 2010). What two steps leave goes with the epipole v, F (1 - v v'): the cofactors are
    multiples of v in rows.
    """
    best: Py_ssize_t = 0
    cofactors: double[9]
    step: double[9]
    for n_steps in range(3):
        for k in range(9):
            i, j = k // 3, k % 3
            above, below, one, other = 3 * ((i + 1) % 3), 3 * ((i + 2) % 3), (j + 1) % 3, (j + 2) % 3
            cofactors[k] = model[above + one] * model[below + other] - model[above + other] * model[below + one]
            step[k] = cofactors[k]
        if n_steps == 2:
            break
        solve(gram, model, step, factor, 9, 0)
        determinant = along = 0.0
        for k in range(9):
            determinant += cofactors[k] * model[k] / 3.0
            along += cofactors[k] * step[k]
        share = determinant / along
        if not fabs(share) < INFINITY:
            share = 0.0
        for k in range(9):
            model[k] -= share * step[k]
    square = 0.0
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


# Weights by residuals


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.returns((Py_ssize_t, double, double))
def weigh(
    squared: p_double, given: p_double, n_all: Py_ssize_t, limit: double, width: double, median: double, floor: double,
    rows: p_Py_ssize_t, weights: p_double, work: p_double,
):  # fmt: skip
    """Write rows and their weights by a law; return how many there are, what weight supports a fit, and the noise scale.

    `given` are weights of matches. Of the law `AS_GIVEN` they are the weights, and a fit needs no support. Of others the rows are those
    within the limit, and beyond any limit are infinite residuals. The noise scale is estimated by the upper median. Squared residuals
    below the floor count as the floor.
    """
    n: Py_ssize_t = 0
    bound, support, noise = limit * limit, 0.0, 0.0
    if width < 0.0:
        for row in range(n_all):
            rows[n], weights[n] = row, given[row]
            n += given[row] != 0.0
        return n, INFINITY, noise
    if not bound < INFINITY:
        bound = 1.7e308
    for row in range(n_all):
        rows[n], work[n] = row, squared[row] if squared[row] > floor else floor
        n += squared[row] <= bound
    if width > 0.0 and n > 0:
        noise = sqrt(nth_smallest(work, n, n // 2) / median)
    scale = noise if noise > EXACT * limit else EXACT * limit
    spread = width * scale * scale
    if spread < 1e-300:
        spread = 1e-300
    for at in range(n):
        row = rows[at]
        if width > 0.0:
            weights[at] = given[row] * spread / (spread + (squared[row] if squared[row] > floor else floor))
            support += given[row]
        else:
            share = 1.0 - squared[row] / bound
            weights[at] = given[row] * (share * share) if share > 0.0 else 0.0
            support += weights[at]
    return n, support, noise


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
