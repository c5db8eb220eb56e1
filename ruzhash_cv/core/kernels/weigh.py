"""What weighs models: evidence, densities, likelihoods; and groups of duplicates."""

import cython
from cython import Py_ssize_t, address, cast, double, p_double, uchar, ulonglong
from cython.cimports.libc.math import INFINITY, exp, fabs, floor, log

#: Squared scales beyond which a density is 0: exp(-40) is less than rounding.
NEGLIGIBLE = cython.declare(double, 81.0)


def follow_leaders(
    data: double[:, ::1], radius: double, one: Py_ssize_t, two: Py_ssize_t,
    leaders: Py_ssize_t[::1], following: Py_ssize_t[::1], groups: Py_ssize_t[::1],
):  # fmt: skip
    """Write groups (n,) of rows (n, d) around leaders: a row joins the first leader within the radius in four coordinates, or leads.

    Leaders are looked up in cells of two coordinates, `one` and `two`, by a hash table: `leaders`, of a power of two of -1s, has the
    last leader of a cell, and `following` (n,), which is overwritten, the one before each.
    """
    near: cython.bint
    last: ulonglong = leaders.shape[0] - 1
    n_groups: Py_ssize_t = 0
    # A little more, so that by rounding too all within the radius are in neighbouring cells.
    size: double = radius * (1.0 + 1e-9)
    with cython.nogil:
        for row in range(groups.shape[0]):
            first = groups.shape[0]
            x, y = cell_of(data[row, one] / size), cell_of(data[row, two] / size)
            for beside in range(-1, 2):
                for above in range(-1, 2):
                    leader = leaders[slot_of(x + beside, y + above, last)]
                    while leader >= 0:
                        near = leader < first
                        for item in range(4):
                            near = near and fabs(data[row, item] - data[leader, item]) <= radius
                        if near:
                            first = leader
                        leader = following[leader]
            if first < groups.shape[0]:
                groups[row] = groups[first]
            else:
                groups[row], slot = n_groups, slot_of(x, y, last)
                following[row], leaders[slot] = leaders[slot], row
                n_groups += 1


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def cell_of(place: double) -> cython.longlong:
    """Return the number of a cell; places where numbers have no digits behind the point share one."""
    return cast(cython.longlong, floor(place)) if fabs(place) < 1e15 else 0


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def slot_of(x: cython.longlong, y: cython.longlong, last: ulonglong) -> Py_ssize_t:
    """Return the slot of a hash table in which two whole numbers belong."""
    key: ulonglong = cast(ulonglong, x) * cast(ulonglong, 0x9E3779B97F4A7C15)
    key = (key ^ (key >> 29) ^ cast(ulonglong, y)) * cast(ulonglong, 0xBF58476D1CE4E5B9)
    return (key ^ (key >> 32)) & last


def write_evidence(
    counts: double[:, ::1], total: double, background: double[:, ::1], family_ids: uchar[::1], sizes: double[::1],
    densities: double[::1], widest: Py_ssize_t[::1], annulus_steps: Py_ssize_t, min_annulus_weight: double,
    log_tests: double, gains: double[:, ::1],
):  # fmt: skip
    """Write -ln NFA (m, n_radii) of models by weights in annuli, `counts` (m, n_indices), and the `background` (m, n_radii).

    A family's `sizes` are those of samples, its `densities` what an annulus of `annulus_steps` around says of unrelated matches.
    """
    with cython.nogil:
        for item in range(counts.shape[0]):
            family = family_ids[item]
            write_gains(
                counts[item], total, background[item], sizes[family], densities[family], widest[family], annulus_steps,
                min_annulus_weight, log_tests, gains[item],
            )  # fmt: skip


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_gains(
    counts: double[::1], total: double, background: double[::1], size: double, density: double, widest: Py_ssize_t,
    annulus_steps: Py_ssize_t, min_annulus_weight: double, log_tests: double, gains: double[::1],
) -> cython.void:  # fmt: skip
    """Write -ln NFA (n_radii,) of a model."""
    n = total - size
    n = n if n > 1e-9 else 1e-9
    within, around = -size, 0.0
    for step in range(annulus_steps):
        around += counts[step]
    for step in range(gains.shape[0]):
        within += counts[step]
        around += counts[step + annulus_steps] - counts[step]
        dense = density * (around if around > min_annulus_weight else min_annulus_weight)
        alpha = background[step] if background[step] > dense else dense
        alpha = alpha if alpha < 1.0 - 1e-9 else 1.0 - 1e-9
        share = within / n if within / n < 1.0 - 1e-9 else 1.0 - 1e-9
        gain = 0.0
        if share > alpha:
            gain = n * (share * log(share / alpha) + (1.0 - share) * log((1.0 - share) / (1.0 - alpha)))
        gains[step] = gain - log_tests if step <= widest else -INFINITY


def write_counts(
    indices: uchar[:, ::1], weights: double[::1], keypoints: Py_ssize_t[:, ::1],
    room: Py_ssize_t[:, ::1], used: double[:, ::1], worths: double[::1], counts: double[:, ::1],
):  # fmt: skip
    """Write the counts (m, n_indices) of matches with weights (n,) between the radii of models; those beyond all are not counted.

    A model counts matches of one of the `keypoints` (2, n) as one at most, the nearest first. Overwrites `room` (4, n) and `worths`
    (n,); `used`, of the keypoints of both images, is 0 and becomes 0 again.
    """
    with cython.nogil:
        n_weighted, n_crowded = list_weighted(weights, keypoints, room, used, worths)
        for item in range(indices.shape[0]):
            count(indices[item], weights, keypoints, n_weighted, n_crowded, room, used, worths, counts[item])


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.returns((Py_ssize_t, Py_ssize_t))
def list_weighted(
    weights: double[::1], keypoints: Py_ssize_t[:, ::1],
    room: Py_ssize_t[:, ::1], used: double[:, ::1], worths: double[::1],
):  # fmt: skip
    """List the rows that have weight, and those of them at crowded keypoints; return how many there are of both."""
    n_weighted: Py_ssize_t = 0
    n_crowded: Py_ssize_t = 0
    for row in range(weights.shape[0]):
        worths[row] = weights[row]
        used[0, keypoints[0, row]] += weights[row]
        used[1, keypoints[1, row]] += weights[row]
        room[0, n_weighted] = row
        n_weighted += weights[row] != 0.0
    for at in range(n_weighted):
        row = room[1, n_crowded] = room[0, at]
        n_crowded += used[0, keypoints[0, row]] > 1.0 + 1e-9 or used[1, keypoints[1, row]] > 1.0 + 1e-9
    used[:] = 0.0
    return n_weighted, n_crowded


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def count(
    indices: uchar[::1], weights: double[::1], keypoints: Py_ssize_t[:, ::1], n_weighted: Py_ssize_t,
    n_crowded: Py_ssize_t, room: Py_ssize_t[:, ::1], used: double[:, ::1], worths: double[::1], counts: double[::1],
) -> cython.void:  # fmt: skip
    """Write the counts (n_indices,) of a model. Rows are listed without branches to predict; few are at crowded keypoints."""
    place: double = 0.0
    n_near: Py_ssize_t = 0
    n_shared: Py_ssize_t = 0
    last: Py_ssize_t = counts.shape[0] - 1
    counts[:] = 0.0
    for at in range(n_crowded):
        row = room[2, n_shared] = room[1, at]
        n_shared += indices[row] < last
    # Sorted by radius: from numbers of rows to places.
    for at in range(n_shared):
        counts[indices[room[2, at]]] += 1.0
    for index in range(last):
        counts[index], place = place, place + counts[index]
    for at in range(n_shared):
        row = room[2, at]
        room[3, cast(Py_ssize_t, counts[indices[row]])] = row
        counts[indices[row]] += 1.0
    for at in range(n_shared):
        row = room[3, at]
        one, two = keypoints[0, row], keypoints[1, row]
        left = 1.0 - (used[0, one] if used[0, one] > used[1, two] else used[1, two])
        worths[row] = weights[row] if weights[row] < left + 1e-9 else left
        used[0, one] += worths[row]
        used[1, two] += worths[row]
    counts[:] = 0.0
    for at in range(n_weighted):
        room[3, n_near] = room[0, at]
        n_near += indices[room[0, at]] < last
    for at in range(n_near):
        counts[indices[room[3, at]]] += worths[room[3, at]]
    for at in range(n_shared):
        row = room[2, at]
        used[0, keypoints[0, row]] = used[1, keypoints[1, row]] = 0.0
        worths[row] = weights[row]


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def choose_structures(
    indices: uchar[:, ::1], background: double[:, ::1], family_ids: uchar[::1], total: double, sizes: double[::1],
    densities: double[::1], widest: Py_ssize_t[::1], annulus_steps: Py_ssize_t, min_annulus_weight: double,
    log_tests: double, n_radii: Py_ssize_t, tolerance_steps: Py_ssize_t,
    keypoints: Py_ssize_t[:, ::1], room: Py_ssize_t[:, ::1], used: double[:, ::1], worths: double[::1],
    counts: double[:, ::1], gains: double[::1], tops: double[::1], radii: Py_ssize_t[::1], taken: Py_ssize_t[::1],
    left: double[::1], chosen: double[:, ::1],
) -> Py_ssize_t:  # fmt: skip
    """Write the evidence, candidate, radius and support (4,) of structures, chosen greedily by evidence, and return how many there are.

    The weights `left` (n,) of the matches that each explains become 0. Radii are the first `n_radii`. Overwrites `counts`
    (m, n_indices), `gains` (all radii,), `tops` and `radii` (m,), and `taken` (n,); for `room`, `used` and `worths` see `write_counts`.
    """
    support: double
    at: Py_ssize_t
    best: Py_ssize_t
    row: Py_ssize_t
    n_chosen: Py_ssize_t = 0
    n_taken: Py_ssize_t = 0
    m: Py_ssize_t = indices.shape[0]
    last: Py_ssize_t = counts.shape[1] - 1
    while n_chosen < chosen.shape[0] and m > 0:
        best = 0
        n_weighted, n_crowded = list_weighted(left, keypoints, room, used, worths)
        for item in range(m):
            at = 0
            while at < n_taken and indices[item, taken[at]] == last:
                at += 1
            if n_chosen == 0 or at < n_taken:
                count(indices[item], left, keypoints, n_weighted, n_crowded, room, used, worths, counts[item])
                family, tops[item], radii[item] = family_ids[item], 0.0, 0
                write_gains(
                    counts[item], total, background[item], sizes[family], densities[family], widest[family],
                    annulus_steps, min_annulus_weight, log_tests, gains,
                )  # fmt: skip
                for step in range(n_radii):
                    if gains[step] > tops[item]:
                        radii[item], tops[item] = step, gains[step]
            if tops[item] > tops[best]:
                best = item
        if not tops[best] > 0.0:
            break
        support = 0.0
        n_taken = 0
        for index in range(radii[best] + tolerance_steps + 1):
            support += counts[best, index]
        for row in range(left.shape[0]):
            taken[n_taken] = row
            if left[row] != 0.0 and indices[best, row] <= radii[best] + tolerance_steps:
                left[row] = 0.0
                n_taken += 1
        chosen[n_chosen, 0], chosen[n_chosen, 1] = tops[best], best
        chosen[n_chosen, 2], chosen[n_chosen, 3] = radii[best], support
        n_chosen += 1
    return n_chosen


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def keep_held(indices: uchar[::1], reach: Py_ssize_t, weights: double[::1], held: double[::1]) -> cython.void:
    """Write the weights (n,) of matches within a reach, and 0 for the others."""
    for row in range(weights.shape[0]):
        held[row] = weights[row] if indices[row] <= reach else 0.0


@cython.ccall
@cython.exceptval(check=False)
@cython.nogil
def joint_evidence(
    indices: uchar[:, ::1], background: double[:, ::1], family_ids: uchar[::1], sizes: double[::1], chosen: double[:, ::1],
    begin: Py_ssize_t, end: Py_ssize_t, tolerance_steps: Py_ssize_t, total: double, log_tests: double, left: double[::1],
    counts: double[:, ::1],
) -> double:  # fmt: skip
    """Return -ln NFA of some of the `chosen` structures (k, 4) together, among matches with weights `left` (n,).

    The law of how many matches lie between one radius and the next of each is multinomial: a narrow radius within a plane is no gain.
    Overwrites the weights, and the `counts` of the structures.
    """
    kept: double
    share: double
    evidence: double = 0.0
    n_within: double = 0.0
    shares_within: double = 0.0
    for at in range(begin, end):
        item, radius = cast(Py_ssize_t, chosen[at, 1]), cast(Py_ssize_t, chosen[at, 2])
        counts[item, :] = 0.0
        for row in range(left.shape[0]):
            counts[item, indices[item, row]] += left[row]
            left[row] = left[row] if indices[item, row] > radius + tolerance_steps else 0.0
        kept, before = 0.0, 0.0
        for step in range(radius + 1):
            kept += counts[item, step]
        # A model fits its sample whatever it is.
        kept = 1.0 - sizes[family_ids[item]] / kept if kept > sizes[family_ids[item]] else 0.0
        for step in range(radius + 1):
            share = background[item, step] - before
            share = share if share > 1e-9 else 1e-9
            if kept * counts[item, step] > 0.0:
                evidence += kept * counts[item, step] * log(kept * counts[item, step] / total / share)
            n_within += kept * counts[item, step]
            shares_within += share
            before = background[item, step]
    share = 1.0 - shares_within if 1.0 - shares_within > 1e-9 else 1e-9
    if total > n_within:
        evidence += (total - n_within) * log((total - n_within) / total / share)
    return evidence - (end - begin) * log_tests


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def extract_at(
    level: Py_ssize_t, indices: uchar[:, ::1], background: double[:, ::1], family_ids: uchar[::1], total: double,
    sizes: double[::1], densities: double[::1], widest: Py_ssize_t[::1], annulus_steps: Py_ssize_t,
    min_annulus_weight: double, log_tests: double, n_radii: Py_ssize_t, tolerance_steps: Py_ssize_t,
    unit_radius: Py_ssize_t, n_narrower: Py_ssize_t, keypoints: Py_ssize_t[:, ::1], room: Py_ssize_t[:, ::1],
    used: double[:, ::1], worths: double[::1], counts: double[:, ::1], gains: double[::1], tops: double[::1],
    radii: Py_ssize_t[::1], taken: Py_ssize_t[::1], weights: double[:, :, ::1], chosen: double[:, :, ::1],
    parts: double[:, :, ::1],
) -> Py_ssize_t:  # fmt: skip
    """Write the structures among the matches of a level to its `parts`, and return how many there are, see `extract`."""
    row: Py_ssize_t
    n_chosen: Py_ssize_t
    n_narrow: Py_ssize_t
    n_parts: Py_ssize_t = 0
    given, left, below = weights[level, 0], weights[level, 1], level + 1
    left[:] = given
    n_chosen = choose_structures(
        indices, background, family_ids, total, sizes, densities, widest, annulus_steps, min_annulus_weight, log_tests,
        n_radii, tolerance_steps, keypoints, room, used, worths, counts, gains, tops, radii, taken, left, chosen[level],
    )  # fmt: skip
    for at in range(n_chosen):
        item, radius = cast(Py_ssize_t, chosen[level, at, 1]), cast(Py_ssize_t, chosen[level, at, 2])
        parts[level, n_parts] = chosen[level, at]
        n_parts += 1
        if radius > unit_radius:
            own, reach = weights[below, 0], radius + tolerance_steps
            keep_held(indices[item], reach, given, own)
            n_narrow = extract_at(
                below, indices, background, family_ids, total, sizes, densities, widest, annulus_steps,
                min_annulus_weight, log_tests, radius - n_narrower + 1, tolerance_steps, unit_radius, n_narrower, keypoints,
                room, used, worths, counts, gains, tops, radii, taken, weights, chosen, parts,
            )  # fmt: skip
            keep_held(indices[item], reach, given, own)
            wide = joint_evidence(
                indices, background, family_ids, sizes, chosen[level], at, at + 1, tolerance_steps, total, log_tests, own, counts,
            )  # fmt: skip
            keep_held(indices[item], reach, given, own)
            narrow = joint_evidence(
                indices, background, family_ids, sizes, parts[below], 0, n_narrow, tolerance_steps, total, log_tests, own, counts,
            )  # fmt: skip
            if narrow > wide:
                n_parts -= 1
                parts[level, n_parts : n_parts + n_narrow] = parts[below, :n_narrow]
                n_parts += n_narrow
                for row in range(left.shape[0]):
                    left[row] += weights[below, 1, row]
        for row in range(given.shape[0]):
            given[row] = given[row] if indices[item, row] > radius + tolerance_steps else 0.0
    return n_parts


def extract(
    indices: uchar[:, ::1], background: double[:, ::1], family_ids: uchar[::1], total: double, sizes: double[::1],
    densities: double[::1], widest: Py_ssize_t[::1], annulus_steps: Py_ssize_t, min_annulus_weight: double,
    log_tests: double, n_radii: Py_ssize_t, tolerance_steps: Py_ssize_t, unit_radius: Py_ssize_t, n_narrower: Py_ssize_t,
    keypoints: Py_ssize_t[:, ::1], room: Py_ssize_t[:, ::1], used: double[:, ::1], worths: double[::1],
    counts: double[:, ::1], gains: double[::1], tops: double[::1], radii: Py_ssize_t[::1], taken: Py_ssize_t[::1],
    weights: double[:, :, ::1], chosen: double[:, :, ::1], parts: double[:, :, ::1],
) -> Py_ssize_t:  # fmt: skip
    """Write structures, see `choose_structures`, to `parts[0]`, and return how many there are.

    A structure wider than `unit_radius` gives way to structures among its matches that are narrower by `n_narrower` radii, if these
    have more evidence together; so do they in turn, one level further down. `weights[0, 0]` (n,) are those of the matches,
    `weights[0, 1]` become those that no structure explains. Overwrites the other `weights` (levels, 2, n), `chosen`
    (levels, most, 4) and `parts` (levels, n, 4).
    """
    n: Py_ssize_t
    with cython.nogil:
        n = extract_at(
            0, indices, background, family_ids, total, sizes, densities, widest, annulus_steps, min_annulus_weight,
            log_tests, n_radii, tolerance_steps, unit_radius, n_narrower, keypoints, room, used, worths, counts, gains,
            tops, radii, taken, weights, chosen, parts,
        )  # fmt: skip
    return n


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_densities(
    squares: p_double, offs: p_double, across: double, along: double, height: double, narrowings: p_double,
    peaks: p_double, n: Py_ssize_t, densities: p_double,
) -> cython.void:  # fmt: skip
    """Write a component's densities at squared distances from a structure, of which `offs` are across its motion's lines.

    `across` and `along` are inverse squares of scales, `height` is the density at distance 0. Of each match they are multiplied by
    `narrowings` and `peaks`.
    """
    for row in range(n):
        beside = squares[row] - offs[row] if squares[row] > offs[row] else 0.0
        square = (offs[row] * across + beside * along) * narrowings[row]
        # exp(-square / 2) to ten digits, by plain arithmetic, which the compiler makes vectors of: the 256th power of
        # exp(-square / 512), the first nine terms of its series.
        z = -square / 512.0
        z = 1.0 + z * (
            1.0 + z / 2 * (1.0 + z / 3 * (1.0 + z / 4 * (1.0 + z / 5 * (1.0 + z / 6 * (1.0 + z / 7 * (1.0 + z / 8))))))
        )
        z = z * z * (z * z)
        z = z * z * (z * z)
        z = z * z * (z * z)
        z = z * z * (z * z)
        densities[row] = height * peaks[row] * z if square < NEGLIGIBLE else 0.0


def estimate_shares(
    squares: double[:, ::1], weights: double[::1], structures: Py_ssize_t[::1], motions: Py_ssize_t[::1],
    across: double[::1], along: double[::1], heights: double[::1], powers: Py_ssize_t[::1], precisions: double[:, ::1],
    n_steps: Py_ssize_t, prior: double,
    ends: Py_ssize_t[::1], rows: Py_ssize_t[::1], ratios: double[::1], room: double[:, ::1], shares: double[::1],
):  # fmt: skip
    """Improve shares (m + 1,) of components, the last that of mismatches anywhere, by steps of EM, from squared distances (k, n).

    Ratios of densities to that of mismatches anywhere are computed once; most are 0, and not kept. Scales `across` and `along` are
    inverse squares; for `precisions` and `powers` see `write_probabilities`. Overwrites `ends` (m,), `rows` and `ratios` (n m + 1,) and
    `room` (2, n).
    """
    row: Py_ssize_t
    at: Py_ssize_t
    end: Py_ssize_t = 0
    n: Py_ssize_t = weights.shape[0]
    m: Py_ssize_t = structures.shape[0]
    with cython.nogil:
        for item in range(m):
            write_densities(
                address(squares[structures[item], 0]), address(squares[motions[item], 0]), across[item], along[item], heights[item],
                address(precisions[2 if powers[item] > 0 else 0, 0]), address(precisions[powers[item], 0]), n, address(room[0, 0]),
            )  # fmt: skip
            for row in range(n):
                rows[end], ratios[end] = row, room[0, row]
                end += room[0, row] > 0.0
            ends[item] = end
        for _ in range(n_steps):
            for row in range(n):
                room[0, row] = shares[m]
            begin = 0
            for item in range(m):
                for at in range(begin, ends[item]):
                    room[0, rows[at]] += shares[item] * ratios[at]
                begin = ends[item]
            anywhere = 0.0
            for row in range(n):
                room[1, row] = weights[row] / room[0, row]
            for row in range(n):
                anywhere += room[1, row]
            begin, total = 0, 0.0
            for item in range(m):
                of_item = 0.0
                for at in range(begin, ends[item]):
                    of_item += ratios[at] * room[1, rows[at]]
                begin = ends[item]
                shares[item] = shares[item] * of_item + prior
                total += shares[item]
            shares[m] = shares[m] * anywhere + prior
            total += shares[m]
            for item in range(m + 1):
                shares[item] /= total


def write_probabilities(
    squares: double[:, ::1], structures: Py_ssize_t[::1], motions: Py_ssize_t[::1], across: double[::1],
    along: double[::1], heights: double[::1], powers: Py_ssize_t[::1], precisions: double[:, ::1], shares: double[::1],
    room: double[:, ::1], probabilities: double[:, ::1],
):  # fmt: skip
    """Write the probabilities (n, k) of structures for matches with squared distances (k, n), by Bayes' rule from shares (m + 1,).

    Scales are inverse squares. `precisions` (3, n) are the powers 0 to 2 of how precise each match is. Components of matches have
    `powers` (m,) of 1 or 2 of it, their number of coordinates; those of mismatches have 0. Matches are taken in blocks of the size of
    `room` (2, block), which is overwritten.
    """
    m: Py_ssize_t = structures.shape[0]
    with cython.nogil:
        for block in range((probabilities.shape[0] + room.shape[1] - 1) // room.shape[1]):
            begin = block * room.shape[1]
            n = probabilities.shape[0] - begin if probabilities.shape[0] - begin < room.shape[1] else room.shape[1]
            for row in range(n):
                room[1, row] = shares[m]
                for item in range(probabilities.shape[1]):
                    probabilities[begin + row, item] = 0.0
            for item in range(m):
                write_densities(
                    address(squares[structures[item], begin]), address(squares[motions[item], begin]), across[item], along[item],
                    shares[item] * heights[item], address(precisions[2 if powers[item] > 0 else 0, begin]),
                    address(precisions[powers[item], begin]), n, address(room[0, 0]),
                )  # fmt: skip
                for row in range(n):
                    room[1, row] += room[0, row]
                if powers[item] > 0:
                    for row in range(n):
                        probabilities[begin + row, structures[item]] += room[0, row]
            for row in range(n):
                for item in range(probabilities.shape[1]):
                    probabilities[begin + row, item] /= room[1, row]


def write_likelihoods(
    squared: double[:, ::1], weights: double[::1], widest: double, codimension: Py_ssize_t, n_steps: Py_ssize_t,
    prior: double,
    near: Py_ssize_t[::1], terms: double[:, ::1], likelihoods: double[::1],
):  # fmt: skip
    """Write log-likelihoods (m,) of models with three noise scales, whose shares EM estimates for each model.

    `squared` (m, n) are residuals, `widest` is the largest scale. Overwrites `near` (n,) and `terms` (n, 3).
    """
    at: Py_ssize_t
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
