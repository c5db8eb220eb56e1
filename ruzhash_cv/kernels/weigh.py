"""What weighs models: evidence, preferences, covers, densities, likelihoods; and groups of duplicates."""

import cython
from cython.cimports.libc.math import INFINITY, exp, fabs, log

#: Squared scales beyond which a density is 0: exp(-40) is less than rounding.
NEGLIGIBLE = cython.declare(cython.double, 81.0)


def follow_leaders(
    data: cython.double[:, ::1],
    radius: cython.double,
    rows: cython.Py_ssize_t[::1],
    spans: cython.Py_ssize_t[:, :, ::1],
    groups: cython.Py_ssize_t[::1],
):
    """Group rows around leaders; all neighbours of a row are among `rows` in its `spans`, or before it."""
    row: cython.Py_ssize_t
    leader: cython.Py_ssize_t
    span: cython.Py_ssize_t
    at: cython.Py_ssize_t
    item: cython.Py_ssize_t
    near: cython.bint
    n_groups: cython.Py_ssize_t = 0
    with cython.nogil:
        for leader in range(groups.shape[0]):
            if groups[leader] >= 0:
                continue
            groups[leader] = n_groups
            for span in range(spans.shape[0]):
                for at in range(spans[span, 0, leader], spans[span, 1, leader]):
                    row = rows[at]
                    if groups[row] < 0:
                        near = True
                        for item in range(4):
                            near = near and fabs(data[row, item] - data[leader, item]) <= radius
                        if near:
                            groups[row] = n_groups
            n_groups += 1


def index_radii(ratios: cython.longlong[:, ::1], last: cython.longlong, indices: cython.uchar[:, ::1]):
    """Powers of sqrt 2 in a residual are powers of two in its square: the exponent in the bits of a double is the index."""
    item: cython.Py_ssize_t
    row: cython.Py_ssize_t
    with cython.nogil:
        for item in range(ratios.shape[0]):
            for row in range(ratios.shape[1]):
                # Infinity and NaN have the largest exponent.
                index = ((ratios[item, row] >> 52) & 2047) - 1022
                index = index if index > 0 else 0
                indices[item, row] = index if index < last else last


def write_evidence(
    counts: cython.double[:, ::1],
    total: cython.double,
    background: cython.double[:, ::1],
    family_ids: cython.uchar[::1],
    sizes: cython.double[::1],
    densities: cython.double[::1],
    widest: cython.Py_ssize_t[::1],
    annulus_steps: cython.Py_ssize_t,
    min_annulus_weight: cython.double,
    log_tests: cython.double,
    gains: cython.double[:, ::1],
):
    """Write -ln NFA (m, n_radii)."""
    family: cython.Py_ssize_t
    item: cython.Py_ssize_t
    step: cython.Py_ssize_t
    with cython.nogil:
        for item in range(counts.shape[0]):
            family = family_ids[item]
            n = total - sizes[family]
            n = n if n > 1e-9 else 1e-9
            within, around = -sizes[family], 0.0
            for step in range(annulus_steps):
                around += counts[item, step]
            for step in range(gains.shape[1]):
                within += counts[item, step]
                around += counts[item, step + annulus_steps] - counts[item, step]
                dense = densities[family] * (around if around > min_annulus_weight else min_annulus_weight)
                alpha = background[item, step] if background[item, step] > dense else dense
                alpha = alpha if alpha < 1.0 - 1e-9 else 1.0 - 1e-9
                share = within / n if within / n < 1.0 - 1e-9 else 1.0 - 1e-9
                gain = 0.0
                if share > alpha:
                    gain = n * (share * log(share / alpha) + (1.0 - share) * log((1.0 - share) / (1.0 - alpha)))
                gains[item, step] = gain - log_tests if step <= widest[family] else -INFINITY


def write_counts(
    indices: cython.uchar[:, ::1],
    weights: cython.double[::1],
    room: cython.Py_ssize_t[:, ::1],
    counts: cython.double[:, ::1],
):
    """Rows that have weight are listed once, and for each model those of them within its annuli, without branches to predict."""
    item: cython.Py_ssize_t
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    n_near: cython.Py_ssize_t
    n_weighted: cython.Py_ssize_t = 0
    last: cython.Py_ssize_t = counts.shape[1] - 1
    with cython.nogil:
        for row in range(weights.shape[0]):
            room[0, n_weighted] = row
            n_weighted += weights[row] != 0.0
        for item in range(indices.shape[0]):
            n_near = 0
            for at in range(n_weighted):
                room[1, n_near] = room[0, at]
                n_near += indices[item, room[0, at]] < last
            for at in range(n_near):
                counts[item, indices[item, room[1, at]]] += weights[room[1, at]]


def write_preferences(
    squared: cython.double[:, ::1],
    limit: cython.double,
    falloff: cython.double,
    n_scales: cython.Py_ssize_t,
    groups: cython.Py_ssize_t[::1],
    sample_groups: cython.Py_ssize_t[:, ::1],
    weights: cython.double[::1],
    near: cython.Py_ssize_t[::1],
    room: cython.double[:, ::1],
    preferences: cython.float[:, ::1],
    sums: cython.double[::1],
    n_decoys: cython.double[::1],
):
    """Write preferences, their sums, and the counts of decoys.

    Each noise scale is a third of the one before, from a limit of squared residuals and 1 / (2 s^2) of the widest scale s on.
    Residuals within the limit are gathered without a branch first: they are few, and exponentials take most of the time.
    """
    item: cython.Py_ssize_t
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    member: cython.Py_ssize_t
    n_near: cython.Py_ssize_t
    n_made: cython.Py_ssize_t
    beyond: cython.Py_ssize_t
    n: cython.Py_ssize_t = weights.shape[0]
    values: cython.p_double = cython.address(room[0, 0])
    terms: cython.p_double = cython.address(room[1, 0])
    with cython.nogil:
        for item in range(squared.shape[0]):
            n_near, beyond, total = 0, 0, 0.0
            for row in range(n):
                preferences[item, row] = 0.0
                near[n_near], values[n_near] = row, squared[item, row]
                n_near += squared[item, row] <= limit
            for row in range(n, squared.shape[1]):
                beyond += squared[item, row] <= limit
            for at in range(n_near):
                # exp(x), x <= 0, to eight digits, by plain arithmetic, which the compiler makes vectors of: the sixteenth power of
                # exp(x / 16), the first eight terms of its series.
                z = -falloff / 16.0 * values[at]
                z = 1.0 + z * (1.0 + z / 2 * (1.0 + z / 3 * (1.0 + z / 4 * (1.0 + z / 5 * (1.0 + z / 6 * (1.0 + z / 7))))))
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
            sums[item], n_decoys[item] = total, beyond


def cover(
    preferences: cython.float[:, ::1],
    weights: cython.double[::1],
    left: cython.double[::1],
    bounds: cython.double[::1],
    computed: cython.Py_ssize_t[::1],
    heap: cython.Py_ssize_t[::1],
    chosen: cython.Py_ssize_t[::1],
) -> cython.Py_ssize_t:
    """A model's sum only ever falls: what was last known of it bounds it, and only the largest bounds are summed again.

    The queue is the bounds, after how many choices each was computed, and a heap of models by these.
    """
    row: cython.Py_ssize_t
    best: cython.Py_ssize_t
    at: cython.Py_ssize_t
    child: cython.Py_ssize_t
    one: cython.Py_ssize_t
    other: cython.Py_ssize_t
    n_chosen: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = left.shape[0]
    with cython.nogil:
        while n_chosen < chosen.shape[0] and bounds[heap[0]] > 0.0:
            best = heap[0]
            if computed[best] == n_chosen:
                chosen[n_chosen], bounds[best] = best, -1.0
                n_chosen += 1
                for row in range(n):
                    left[row] /= 1.0 + preferences[best, row]
            else:
                # Four sums, none of which waits for the others.
                a = b = c = d = 0.0
                for row in range(0, n - 3, 4):
                    a += left[row] * preferences[best, row]
                    b += left[row + 1] * preferences[best, row + 1]
                    c += left[row + 2] * preferences[best, row + 2]
                    d += left[row + 3] * preferences[best, row + 3]
                for row in range(n // 4 * 4, n):
                    a += left[row] * preferences[best, row]
                bounds[best], computed[best] = ((a + b) + (c + d)) * weights[best], n_chosen
            at, child = 0, 1
            while child < heap.shape[0]:
                one = heap[child]
                if child + 1 < heap.shape[0]:
                    other = heap[child + 1]
                    if bounds[other] > bounds[one] or (bounds[other] == bounds[one] and other < one):
                        child, one = child + 1, other
                if bounds[one] < bounds[best] or (bounds[one] == bounds[best] and best < one):
                    break
                heap[at], at, child = one, child, 2 * child + 1
            heap[at] = best
    return n_chosen


def write_densities(
    distances: cython.double[:, ::1],
    structures: cython.Py_ssize_t[::1],
    motions: cython.Py_ssize_t[::1],
    across: cython.double[::1],
    along: cython.double[::1],
    heights: cython.double[::1],
    ratios: cython.double[:, ::1],
):
    """Write the ratios (m, n) of densities of components to that of mismatches anywhere, from distances (n, k)."""
    structure: cython.Py_ssize_t
    motion: cython.Py_ssize_t
    item: cython.Py_ssize_t
    row: cython.Py_ssize_t
    with cython.nogil:
        for item in range(structures.shape[0]):
            structure, motion = structures[item], motions[item]
            for row in range(distances.shape[0]):
                distance = distances[row, structure]
                ratio = distance / along[item]
                square = ratio * ratio
                if motion >= 0:
                    off = distances[row, motion]
                    square = distance * distance - off * off
                    ratio = off / across[item]
                    square = ratio * ratio + (square if square > 0.0 else 0.0) / (along[item] * along[item])
                ratios[item, row] = heights[item] * exp(-0.5 * square) if square < NEGLIGIBLE else 0.0


def write_likelihoods(
    squared: cython.double[:, ::1],
    weights: cython.double[::1],
    widest: cython.double,
    codimension: cython.Py_ssize_t,
    n_steps: cython.Py_ssize_t,
    prior: cython.double,
    near: cython.Py_ssize_t[::1],
    terms: cython.double[:, ::1],
    likelihoods: cython.double[::1],
):
    """Write log-likelihoods (m,) of models with three noise scales, whose shares EM estimates for each model."""
    item: cython.Py_ssize_t
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    n_near: cython.Py_ssize_t
    height = 3.0 if codimension == 1 else 9.0
    with cython.nogil:
        for item in range(squared.shape[0]):
            n_near, x, y, z = 0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0
            for row in range(squared.shape[1]):
                ratio = 0.5 * squared[item, row] / (widest * widest)
                if ratio < 12.0 and weights[row] > 0.0:
                    # Each scale is a third of the one before: its exponential is the ninth power.
                    wide = exp(-ratio)
                    middle = wide * wide * wide
                    middle = middle * middle * middle
                    narrow = middle * middle * middle
                    narrow = narrow * narrow * narrow
                    near[n_near], terms[n_near, 0] = row, height * wide
                    terms[n_near, 1], terms[n_near, 2] = height * height * middle, height * height * height * narrow
                    n_near += 1
            for _ in range(n_steps):
                a = b = c = prior
                for at in range(n_near):
                    wide, middle, narrow, weight = terms[at, 0], terms[at, 1], terms[at, 2], weights[near[at]]
                    total = 1.0 + x * wide + y * middle + z * narrow
                    a += weight * x * wide / total
                    b += weight * y * middle / total
                    c += weight * z * narrow / total
                total = a + b + c
                x, y, z = a / total, b / total, c / total
            likelihood = 0.0
            for at in range(n_near):
                total = 1.0 + x * terms[at, 0] + y * terms[at, 1] + z * terms[at, 2]
                likelihood += weights[near[at]] * log(total)
            likelihoods[item] = likelihood
