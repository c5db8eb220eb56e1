"""What is drawn: random numbers, samples of matches, and isolation forests.

Random numbers are keyed 64-bit hashes, the same on every platform and for any number of threads. The mixing function is the finaliser
of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014, "Fast splittable pseudorandom number generators"). A stream is a counter added to a
key, so that any draw can be made without those before it.
"""

import cython
from cython import Py_ssize_t, address, cast, double, p_double, p_Py_ssize_t, uchar, ulonglong
from cython.cimports.libc.math import INFINITY, fabs, sqrt

#: A guard on the time: degenerate draws after which a sample is given up.
MOST_DEGENERATE = cython.declare(Py_ssize_t, 20)
# What the kernels' workspace holds: rows sorted by node, those of a node before they are sorted and their branches, how many rows
# take each branch, where nodes begin and end in the order, and how deep they are.
ORDER = cython.declare(Py_ssize_t, 0)
BEFORE = cython.declare(Py_ssize_t, 1)
BRANCH = cython.declare(Py_ssize_t, 2)
COUNT = cython.declare(Py_ssize_t, 3)
BEGIN = cython.declare(Py_ssize_t, 4)
END = cython.declare(Py_ssize_t, 5)
DEPTH = cython.declare(Py_ssize_t, 6)
#: Numbers that a tree's key gives the keys of its root, and of the draw of its rows.
OF_ROOT = cython.declare(ulonglong, 0)
OF_ROWS = cython.declare(ulonglong, 1)
# Streams of a node's key: for drawing centres, and for breaking ties of training rows and of new ones.
CENTRES = cython.declare(ulonglong, 1 << 40)
OLD_TIES = cython.declare(ulonglong, 2 << 40)
NEW_TIES = cython.declare(ulonglong, 3 << 40)
TANIMOTO = cython.declare(Py_ssize_t, 0)
PRECOMPUTED = cython.declare(Py_ssize_t, 3)

Rank = cython.fused_type(cython.uint, ulonglong)


@cython.ccall
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def mix(key: ulonglong, counter: ulonglong) -> ulonglong:
    """Return 64 pseudorandom bits for the pair (key, counter)."""
    z: ulonglong = key + (counter + 1) * cast(ulonglong, 0x9E3779B97F4A7C15)
    z = (z ^ (z >> 30)) * cast(ulonglong, 0xBF58476D1CE4E5B9)
    z = (z ^ (z >> 27)) * cast(ulonglong, 0x94D049BB133111EB)
    return z ^ (z >> 31)


@cython.ccall
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def uniform(key: ulonglong, counter: ulonglong) -> double:
    """Return a number in [0, 1) for the pair (key, counter); n times it, rounded too, is less than n."""
    return (mix(key, counter) >> 11) * (1.0 / 9007199254740992.0)


# Decoys and samples


def pair_up(
    data: double[:, ::1], pairs: cython.longlong[:, ::1], distance: double, decoys: double[:, ::1]
) -> Py_ssize_t:
    """Write rows of the first point of one correspondence and the second of another, and return how many.

    Correspondences (n, d) are (x1, y1, x2, y2), after which rays of three numbers may follow. Pairs (2, k) make a row if their points
    are at least `distance` apart along an axis in both images, and are no match, as long as there is room. Matches are sorted: those of
    the same first point follow each other.
    """
    wrong: cython.bint
    step: Py_ssize_t
    row: Py_ssize_t
    n_made: Py_ssize_t = 0
    with cython.nogil:
        for at in range(pairs.shape[1]):
            if n_made == decoys.shape[0]:
                break
            one, other = pairs[0, at], pairs[1, at]
            dx, dy = fabs(data[one, 0] - data[other, 0]), fabs(data[one, 1] - data[other, 1])
            du, dv = fabs(data[one, 2] - data[other, 2]), fabs(data[one, 3] - data[other, 3])
            wrong = ((dx >= distance) | (dy >= distance)) & ((du >= distance) | (dv >= distance))
            for step in range(-1, 2, 2):
                row = one
                while (
                    wrong and 0 <= row < data.shape[0] and data[row, 0] == data[one, 0] and data[row, 1] == data[one, 1]
                ):
                    wrong = data[row, 2] != data[other, 2] or data[row, 3] != data[other, 3]
                    row += step
            if wrong:
                for column in range(data.shape[1]):
                    decoys[n_made, column] = data[one, column]
                    if (column == 2) | (column == 3) | (column > 6):
                        decoys[n_made, column] = data[other, column]
                n_made += 1
    return n_made


def draw(
    data: double[:, ::1], weights: double[::1], offsets: double[::1], wanted: Py_ssize_t[::1], min_spread: double,
    height: double, n_candidates: Py_ssize_t, affine: cython.bint, key: ulonglong,
    places: Py_ssize_t[:, ::1], room: double[:, ::1], coordinates: double[:, ::1], nearest: Py_ssize_t[:, ::1],
    samples: Py_ssize_t[:, ::1], verdicts: Py_ssize_t[::1],
) -> Py_ssize_t:  # fmt: skip
    """Write samples of rows of data (n, d) that have weight, count verdicts, and return how many samples there are.

    As many are drawn from each size of neighbourhood, `wanted`. Seeds are as many as `offsets` in [0, 1), from as many equal parts of
    the weights. Each is used with all sizes, and the next one where a draw fails. Overwrites `places` (3, n), `room` (3, n + k),
    `coordinates` (n, 4) and `nearest` (n_seeds, k), k being the largest neighbourhood and one more.
    """
    n: Py_ssize_t = 0
    n_seeds: Py_ssize_t = offsets.shape[0]
    # Rows that have weight, where to look for a share of their cumulative weight, and this.
    rows: p_Py_ssize_t = address(places[0, 0])
    starts: p_Py_ssize_t = address(places[1, 0])
    shares: p_double = address(room[0, 0])
    cumulative: p_double = address(room[1, 0])
    with cython.nogil:
        total = 0.0
        for row in range(weights.shape[0]):
            if weights[row] > 0.0:
                total += weights[row]
                rows[n], shares[n], cumulative[n] = row, weights[row], total
                for part in range(4):
                    coordinates[n, part] = data[row, part]
                n += 1
        row = 0
        for item in range(n):
            while row < n - 1 and cumulative[row] <= item * (total / n):
                row += 1
            starts[item] = row
        k = nearest.shape[1] if nearest.shape[1] < n else n
        row, reach = 0, 0.0
        for seed in range(n_seeds):
            while row < n - 1 and cumulative[row] <= (seed + offsets[seed]) / n_seeds * total:
                row += 1
            reach = write_nearest(
                coordinates, n, row, k, reach, address(room[2, 0]), address(places[2, 0]), address(nearest[seed, 0])
            )
        n_drawn = draw_among(
            coordinates, n, shares, cumulative, starts, address(places[2, 0]), nearest, k - 1, wanted, min_spread,
            height, n_candidates, affine, key, samples, verdicts,
        )  # fmt: skip
        for item in range(n_drawn):
            for part in range(samples.shape[1]):
                samples[item, part] = rows[samples[item, part]]
    return n_drawn


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def draw_among(
    coordinates: double[:, ::1], n: Py_ssize_t, weights: p_double, cumulative: p_double, starts: p_Py_ssize_t,
    taken: p_Py_ssize_t, nearest: Py_ssize_t[:, ::1], most: Py_ssize_t, wanted: Py_ssize_t[::1], min_spread: double,
    height: double, n_candidates: Py_ssize_t, affine: cython.bint, key: ulonglong, samples: Py_ssize_t[:, ::1],
    verdicts: Py_ssize_t[::1],
) -> Py_ssize_t:  # fmt: skip
    """Write samples of n rows, each from at most so many of the nearest rows of a seed. Overwrites `taken` (size,)."""
    counter: ulonglong
    size: Py_ssize_t = samples.shape[1]
    n_drawn: Py_ssize_t = 0
    for slot in range(samples.shape[0]):
        stream = mix(key, slot)
        counter = 0
        k = wanted[slot % wanted.shape[0]] if wanted[slot % wanted.shape[0]] < most else most
        n_good, n_failed, least = 0, 0, INFINITY
        while n_good < n_candidates and n_failed < MOST_DEGENERATE:
            around = address(nearest[(slot // wanted.shape[0] + n_failed) % nearest.shape[0], 0])
            counter, filled = take_rows(
                taken, size, around, k, n, weights, cumulative, starts, coordinates, min_spread, stream, counter
            )  # fmt: skip
            deviation = -1.0
            if filled == size:
                deviation = deviation_of(coordinates, taken, size, affine, height)
            if deviation < 0.0:
                verdicts[cast(Py_ssize_t, -1.0 - deviation)] += 1
                n_failed += 1
                continue
            verdicts[3] += 1
            n_good += 1
            if n_good == 1 or deviation < least:
                least = deviation
                for item in range(size):
                    samples[n_drawn, item] = taken[item]
        if n_good > 0:
            n_drawn += 1
    return n_drawn


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.returns((ulonglong, Py_ssize_t))
def take_rows(
    taken: p_Py_ssize_t, size: Py_ssize_t, around: p_Py_ssize_t, k: Py_ssize_t, n: Py_ssize_t, weights: p_double,
    cumulative: p_double, starts: p_Py_ssize_t, coordinates: double[:, ::1], min_spread: double, stream: ulonglong,
    counter: ulonglong,
):  # fmt: skip
    """Write rows of different points by weight, of all, or a seed and some of its k neighbours; return the counter and their number."""
    accept: cython.bint
    filled: Py_ssize_t = 0
    last: Py_ssize_t = n - 1
    largest = 0.0
    if k > 0:
        taken[0], filled = around[0], 1
        for item in range(1, k + 1):
            if weights[around[item]] > largest:
                largest = weights[around[item]]
    for _ in range(8 * size):
        if filled == size:
            break
        accept = True
        if k > 0:
            row = around[1 + cast(Py_ssize_t, uniform(stream, counter) * k)]
            # Of the largest weight any is accepted, whatever is drawn.
            accept = weights[row] == largest or uniform(stream, counter + 1) * largest < weights[row]
        else:
            drawn = uniform(stream, counter)
            reached = drawn * cumulative[last]
            row = starts[cast(Py_ssize_t, drawn * n)]
            while row > 0 and cumulative[row - 1] > reached:
                row -= 1
            while row < last and cumulative[row] <= reached:
                row += 1
        counter += 2
        earlier = 0
        while accept and earlier < filled:
            accept = taken[earlier] != row and not are_close(coordinates, taken[earlier], row, min_spread)
            earlier += 1
        if accept:
            taken[filled] = row
            filled += 1
    return counter, filled


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def are_close(points: double[:, ::1], one: Py_ssize_t, other: Py_ssize_t, distance: double) -> cython.bint:
    """Return whether two rows are less than a distance apart along both axes of an image."""
    dx, dy = fabs(points[one, 0] - points[other, 0]), fabs(points[one, 1] - points[other, 1])
    du, dv = fabs(points[one, 2] - points[other, 2]), fabs(points[one, 3] - points[other, 3])
    return ((dx < distance) & (dy < distance)) | ((du < distance) & (dv < distance))


def nearest_of_rows(
    data: double[:, ::1],
    rows: Py_ssize_t[::1],
    squares: double[::1],
    within: Py_ssize_t[::1],
    nearest: Py_ssize_t[:, ::1],
):
    """Write the nearest rows of data (n, d) to some of them, nearest first: (len(rows), k).

    Overwrites `squares` (n + k,) and `within` (n,).
    """
    n: Py_ssize_t = data.shape[0]
    k: Py_ssize_t = nearest.shape[1]
    with cython.nogil:
        reach = 0.0
        for item in range(rows.shape[0]):
            reach = write_nearest(
                data, n, rows[item], k, reach, address(squares[0]), address(within[0]), address(nearest[item, 0])
            )


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_nearest(
    data: double[:, ::1], n: Py_ssize_t, own: Py_ssize_t, k: Py_ssize_t, reach: double, squares: p_double,
    within: p_Py_ssize_t, nearest: p_Py_ssize_t,
) -> double:  # fmt: skip
    """Write the k of the first n rows that are nearest to a row, nearest first, and return the square of the largest distance.

    Rows are looked for within a little more than the `reach` of a row before, then anywhere. Of rows that are as near, itself comes
    first. A row whose squared distance overflows is as far as any. Overwrites `squares` (n + k,) and `within` (n,).
    """
    row: Py_ssize_t
    n_within: Py_ssize_t = 0
    kept: Py_ssize_t = 0
    bound: double = 1.6 * reach
    for row in range(n):
        squares[row] = 0.0
    for part in range(data.shape[1]):
        place = data[own, part]
        for row in range(n):
            difference = data[row, part] - place
            squares[row] += difference * difference
    while n_within < k:
        n_within = 0
        # From the row itself on, then those before it.
        for row in range(own, n):
            within[n_within] = row
            n_within += not squares[row] > bound
        for row in range(own - 1, -1, -1):
            within[n_within] = row
            n_within += not squares[row] > bound
        bound = INFINITY
    for seen in range(n_within):
        row = within[seen]
        square = squares[row] if squares[row] < INFINITY else INFINITY
        if kept == k and square >= squares[n + k - 1]:
            continue
        at = kept if kept < k else k - 1
        while at > 0 and squares[n + at - 1] > square:
            squares[n + at], nearest[at] = squares[n + at - 1], nearest[at - 1]
            at -= 1
        squares[n + at], nearest[at] = square, row
        kept = kept + 1 if kept < k else k
    return squares[n + k - 1]


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def double_area(a: p_double, b: p_double, c: p_double) -> double:
    """Return twice the signed area of a triangle."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def is_low(a: p_double, b: p_double, c: p_double, area: double, height: double) -> cython.bint:
    """Return whether a triangle, of twice such an area, is lower than a height."""
    ux, uy, vx, vy = b[0] - a[0], b[1] - a[1], c[0] - a[0], c[1] - a[1]
    longest, other = ux * ux + uy * uy, vx * vx + vy * vy
    longest = longest if longest > other else other
    other = (ux - vx) * (ux - vx) + (uy - vy) * (uy - vy)
    longest = longest if longest > other else other
    return area * area < height * height * longest or area == 0.0


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def deviation_of(
    points: double[:, ::1], rows: p_Py_ssize_t, size: Py_ssize_t, affine: cython.bint, height: double
) -> double:
    """Return how far a sample of rows is from affine, 1 if it need not be, or a verdict v as -1 - v: 1 collinear, 2 flipped.

    It is the largest ratio of a triangle's areas in both images over the smallest. Then every triangle turns the same way in both
    images, or every one the other way, and none may be lower than `height`. How they turn comes first: of mismatches few samples pass.
    More than four points may not all be near a line.
    """
    i: Py_ssize_t
    j: Py_ssize_t
    k: Py_ssize_t
    n: Py_ssize_t = 0
    n_turned: Py_ssize_t = 0
    if size > 4 and (are_on_a_line(points, rows, size, 0, height) or are_on_a_line(points, rows, size, 2, height)):
        return -2.0
    if not affine:
        return 1.0
    for i in range(size):
        for j in range(i):
            for k in range(j):
                a, b, c = address(points[rows[i], 0]), address(points[rows[j], 0]), address(points[rows[k], 0])
                n += 1
                n_turned += double_area(a, b, c) * double_area(a + 2, b + 2, c + 2) < 0.0
    if 0 < n_turned < n:
        return -3.0
    smallest, largest = INFINITY, 0.0
    for i in range(size):
        for j in range(i):
            for k in range(j):
                a, b, c = address(points[rows[i], 0]), address(points[rows[j], 0]), address(points[rows[k], 0])
                area, other = double_area(a, b, c), double_area(a + 2, b + 2, c + 2)
                if is_low(a, b, c, area, height) or is_low(a + 2, b + 2, c + 2, other, height):
                    return -2.0
                ratio = fabs(area / other)
                smallest = ratio if ratio < smallest else smallest
                largest = ratio if ratio > largest else largest
    return largest / smallest


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def are_on_a_line(
    points: double[:, ::1], rows: p_Py_ssize_t, size: Py_ssize_t, image: Py_ssize_t, height: double
) -> cython.bint:
    """Return whether the root mean square distance of an image's points from a line is less than a height."""
    i: Py_ssize_t
    mx = my = xx = xy = yy = 0.0
    for i in range(size):
        mx += points[rows[i], image] / size
        my += points[rows[i], image + 1] / size
    for i in range(size):
        dx, dy = points[rows[i], image] - mx, points[rows[i], image + 1] - my
        xx += dx * dx / size
        xy += dx * dy / size
        yy += dy * dy / size
    return 0.5 * (xx + yy) - sqrt(0.25 * (xx - yy) * (xx - yy) + xy * xy) < height * height


# Forests


@cython.ccall
@cython.exceptval(check=False)
@cython.nogil
def draw_rows(key: ulonglong, rows: Py_ssize_t[::1], psi: Py_ssize_t) -> cython.void:
    """Write all row numbers (n,); the first psi are drawn without replacement (the first steps of a Fisher-Yates shuffle)."""
    n: Py_ssize_t = rows.shape[0]
    for row in range(n):
        rows[row] = row
    for at in range(psi):
        other = at + cast(Py_ssize_t, uniform(key, at) * (n - at))
        rows[at], rows[other] = rows[other], rows[at]


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def plant(
    tree: Py_ssize_t, key: ulonglong, n: Py_ssize_t, psi: Py_ssize_t,
    space: Py_ssize_t[:, ::1], keys: ulonglong[:, ::1], trained: uchar[:, ::1],
) -> cython.void:  # fmt: skip
    """Write the key of a tree's root, and draw the psi of n rows that train it."""
    keys[tree, 0] = mix(key, OF_ROOT)
    draw_rows(mix(key, OF_ROWS), space[ORDER, :n], psi)
    for at in range(psi):
        trained[tree, space[ORDER, at]] = True
    space[BEGIN, 0], space[END, 0], space[DEPTH, 0] = 0, psi, 0


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def sort_rows(space: Py_ssize_t[:, ::1], node: Py_ssize_t, child: Py_ssize_t, n_children: Py_ssize_t) -> cython.void:
    """Sort a node's rows by branch, and write where its children, from `child` on, begin and end."""
    begin, end = space[BEGIN, node], space[END, node]
    for branch in range(n_children + 1):
        space[COUNT, branch] = 0
    for at in range(begin, end):
        space[BEFORE, at] = space[ORDER, at]
        space[COUNT, space[BRANCH, at] + 1] += 1
    space[COUNT, 0] = begin
    for branch in range(n_children):
        space[COUNT, branch + 1] += space[COUNT, branch]
        space[BEGIN, child + branch], space[END, child + branch] = space[COUNT, branch], space[COUNT, branch + 1]
    for at in range(begin, end):
        taken = space[BRANCH, at]
        space[ORDER, space[COUNT, taken]] = space[BEFORE, at]
        space[COUNT, taken] += 1


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def add_children(
    tree: Py_ssize_t, node: Py_ssize_t, child: Py_ssize_t, n_branches: Py_ssize_t, n_children: Py_ssize_t,
    limit: Py_ssize_t, sink_credit: cython.bint, credit: cython.const[double][::1],
    space: Py_ssize_t[:, ::1], keys: ulonglong[:, ::1], children: cython.int[:, ::1], lengths: double[:, :, ::1],
) -> cython.void:  # fmt: skip
    """Write the children of a node of a tree, from `child` on."""
    ended: cython.bint
    is_sink: cython.bint
    children[tree, node] = child
    # For rows that trained it a node of b rows has one less, and ends there.
    ended = space[END, node] - space[BEGIN, node] == n_branches
    for branch in range(n_children):
        at, is_sink = child + branch, branch == n_branches
        held = 0 if is_sink and not sink_credit else space[END, at] - space[BEGIN, at]
        reached = space[DEPTH, node] + (0 if is_sink else 1)
        keys[tree, at] = mix(keys[tree, node], branch)
        space[DEPTH, at] = limit if is_sink else reached
        lengths[tree, at, 0] = reached + credit[held]
        lengths[tree, at, 1] = lengths[tree, node, 1] if ended else reached + credit[held - 1 if held > 0 else 0]


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def smallest_rank(
    row: cython.p_float, thresholds: cython.p_float, ranks: cython.pointer[Rank], n: Py_ssize_t, nothing: Rank
) -> Rank:
    """Return the smallest rank among a row's components above their thresholds, or `nothing`.

    That has all bits. The compiler makes vectors of this loop: it has no branch, and the least of integers may be taken in any order.
    """
    none: Rank
    rank: Rank
    best: Rank = nothing
    for i in range(n):
        below = not row[i] > thresholds[i]
        none = -below
        rank = ranks[i] | none
        best = rank if rank < best else best
    return best


def hash_rows(
    rows: cython.float[:, ::1], keys: ulonglong[::1],
    thresholds: cython.float[::1], ranks: ulonglong[::1], hashes: cython.longlong[:, ::1],
):  # fmt: skip
    """Write hashes (n, k) of rows (n, m) by keys (k,): 24 bits are a threshold, 32 a rank; of equal ranks the lower component wins."""
    n: Py_ssize_t = thresholds.shape[0]
    low: ulonglong = 0xFFFFFFFF
    nothing: ulonglong = 0xFFFFFFFFFFFFFFFF
    unit: cython.float = 2.0**-24
    with cython.nogil:
        for item in range(keys.shape[0]):
            for i in range(n):
                bits = mix(keys[item], i)
                thresholds[i] = cast(cython.float, bits >> 40) * unit
                ranks[i] = (bits << 32) | i
            for row in range(rows.shape[0]):
                best = smallest_rank(address(rows[row, 0]), address(thresholds[0]), address(ranks[0]), n, nothing)
                hashes[row, item] = -1 if best == nothing else cast(cython.longlong, best & low)


@cython.ccall
@cython.exceptval(check=False)
@cython.nogil
def write_branches(
    rows: cython.float[:, ::1], key: ulonglong, n_branches: Py_ssize_t, begin: Py_ssize_t, end: Py_ssize_t,
    thresholds: cython.float[::1], ranks: cython.uint[::1], space: Py_ssize_t[:, ::1],
) -> cython.void:  # fmt: skip
    """Write the branches that rows from `begin` to `end` take at a node; the sink's is the last. Overwrites `thresholds`, `ranks` (m,).

    Of a component's 64 bits 24 are its threshold. A number below 2^32 times b is the branch, drawn evenly, in its high half, and in its
    low half what remains. In the rank, which this is, the last bits are the branch.
    """
    at: Py_ssize_t
    n: Py_ssize_t = thresholds.shape[0]
    drawn: cython.p_float = address(thresholds[0])
    ranked: cython.p_uint = address(ranks[0])
    low: ulonglong = 0xFFFFFFFF
    nothing: cython.uint = 0xFFFFFFFF
    unit: cython.float = 2.0**-24
    mask: Py_ssize_t = 1
    # No branch has the mask's number, unless it is the sink's.
    while mask < n_branches:
        mask = 2 * mask + 1
    for i in range(n):
        bits = mix(key, i)
        product = (bits & low) * cast(ulonglong, n_branches)
        drawn[i] = cast(cython.float, bits >> 40) * unit
        ranked[i] = cast(cython.uint, (product & (low ^ cast(ulonglong, mask))) | (product >> 32))
    for at in range(begin, end):
        branch = smallest_rank(address(rows[space[ORDER, at], 0]), drawn, ranked, n, nothing) & mask
        space[BRANCH, at] = branch if branch < n_branches else n_branches


def grow_or_route(
    rows: cython.float[:, ::1], tree_keys: ulonglong[::1], in_order: Py_ssize_t[::1], n_occupied: Py_ssize_t,
    psi: Py_ssize_t, n_branches: Py_ssize_t, n_children: Py_ssize_t, limit: Py_ssize_t,
    credit: cython.const[double][::1], sink_credit: cython.bint,
    thresholds: cython.float[::1], ranks: cython.uint[::1], space: Py_ssize_t[:, ::1], keys: ulonglong[:, ::1],
    children: cython.int[:, ::1], lengths: double[:, :, ::1], trained: uchar[:, ::1], sums: double[::1],
):  # fmt: skip
    """Grow trees breadth first, one for each of `tree_keys`; without any, add up the path lengths of rows (n, m) over the trees.

    Rows are routed `in_order`: those of nothing but zeros come last, after `n_occupied` others. A row that trained a tree does not
    count itself there.
    """
    child: Py_ssize_t
    grows: cython.bint = tree_keys.shape[0] > 0
    trained_it: cython.bint
    with cython.nogil:
        for tree in range(keys.shape[0]):
            if grows:
                plant(tree, tree_keys[tree], rows.shape[0], psi, space, keys, trained)
            else:
                for at in range(in_order.shape[0]):
                    space[ORDER, at] = in_order[at]
                space[BEGIN, 0], space[END, 0], space[DEPTH, 0] = 0, n_occupied, 0
            node, n_nodes = 0, 1
            while node < n_nodes:
                begin, end = space[BEGIN, node], space[END, node]
                child = children[tree, node]
                if grows and space[DEPTH, node] < limit and end - begin >= n_branches:
                    child = n_nodes
                if child >= 0:
                    if begin < end:
                        write_branches(rows, keys[tree, node], n_branches, begin, end, thresholds, ranks, space)
                    sort_rows(space, node, child, n_children)
                    n_nodes = child + n_children
                if grows and child >= 0:
                    add_children(
                        tree, node, child, n_branches, n_children, limit, sink_credit, credit, space, keys, children,
                        lengths,
                    )  # fmt: skip
                if node == 0 and not grows:
                    space[END, n_nodes - 1] = rows.shape[0]  # empty rows are in the first sink without any hash
                if child < 0 and not grows:
                    for at in range(space[BEGIN, node], space[END, node]):
                        row = space[ORDER, at]
                        trained_it = trained.shape[1] > 0 and trained[tree, row]
                        sums[row] += lengths[tree, node, 1 if trained_it else 0]
                node += 1


# PI-Forest


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def shared(
    metric: Py_ssize_t, dense: cython.p_float, columns: cython.int[::1], values: cython.float[::1], begin: Py_ssize_t,
    end: Py_ssize_t,
) -> double:  # fmt: skip
    """Return the sum of minima, of products for Tanimoto, of a dense row and a sparse training row."""
    total: cython.float = 0.0
    for at in range(begin, end):
        x, y = dense[columns[at]], values[at]
        if metric == TANIMOTO:
            total += x * y
        else:
            total += x if x < y else y
    return total


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def nearest_centre(
    metric: Py_ssize_t, table: cython.float[:, ::1], sizes: double[::1], row: Py_ssize_t, indptr: cython.int[::1],
    columns: cython.int[::1], values: cython.float[::1], of_training: double[::1], centres: cython.p_int,
    n_centres: Py_ssize_t, ties: ulonglong,
) -> Py_ssize_t:  # fmt: skip
    """Return the number of the centre nearest to a row. Ties are drawn with the key `ties`."""
    chosen: Py_ssize_t = 0
    n_equal: Py_ssize_t = 1
    best: double = -INFINITY
    for branch in range(n_centres):
        centre = centres[branch]
        if metric == PRECOMPUTED:
            likeness = -table[row, centre]
        else:
            both = shared(metric, address(table[row, 0]), columns, values, indptr[centre], indptr[centre + 1])
            # Rows that share nothing are at distance 1, two rows of zeros too.
            likeness = both / (sizes[row] + of_training[centre] - both) if both > 0.0 else 0.0
        if likeness > best:
            best, chosen, n_equal = likeness, branch, 1
        elif likeness == best:
            n_equal += 1
            if uniform(ties, n_equal) * n_equal < 1.0:
                chosen = branch
    return chosen


def grow_cells(
    table: cython.float[:, ::1], indptr: cython.int[::1], columns: cython.int[::1], values: cython.float[::1],
    sizes: double[::1], metric: Py_ssize_t, tree_keys: ulonglong[::1], psi: Py_ssize_t, n_branches: Py_ssize_t,
    n_children: Py_ssize_t, limit: Py_ssize_t, credit: cython.const[double][::1], sink_credit: cython.bint,
    space: Py_ssize_t[:, ::1], keys: ulonglong[:, ::1], children: cython.int[:, ::1], lengths: double[:, :, ::1],
    trained: uchar[:, ::1], centres: cython.int[:, ::1], room: Py_ssize_t[::1],
):  # fmt: skip
    """Grow trees breadth first, one for each of `tree_keys`, of training rows as a dense table (n, m) and in sparse form.

    Overwrites `space`, as named above, and `room` (n,). Writes keys, first children, path lengths and centres of nodes (trees, nodes),
    and which rows trained which tree (trees, n).
    """
    with cython.nogil:
        for tree in range(tree_keys.shape[0]):
            plant(tree, tree_keys[tree], trained.shape[1], psi, space, keys, trained)
            node, n_nodes = 0, 1
            while node < n_nodes:
                begin, end = space[BEGIN, node], space[END, node]
                if space[DEPTH, node] < limit and end - begin >= n_branches:
                    key, drawn = keys[tree, node], address(centres[tree, n_nodes])
                    draw_rows(mix(key, CENTRES), room[: end - begin], n_branches)
                    for branch in range(n_branches):
                        drawn[branch] = space[ORDER, begin + room[branch]]
                    for at in range(begin, end):
                        row = space[ORDER, at]
                        ties = mix(mix(key, OLD_TIES), row)
                        space[BRANCH, at] = nearest_centre(
                            metric, table, sizes, row, indptr, columns, values, sizes, drawn, n_branches, ties
                        )
                    sort_rows(space, node, n_nodes, n_branches)
                    add_children(
                        tree, node, n_nodes, n_branches, n_children, limit, sink_credit, credit, space, keys, children,
                        lengths,
                    )  # fmt: skip
                    n_nodes += n_children
                node += 1


def route_cells(
    table: cython.float[:, ::1], sizes: double[::1], indptr: cython.int[::1], columns: cython.int[::1],
    values: cython.float[::1], of_training: double[::1], metric: Py_ssize_t, n_branches: Py_ssize_t, start: Py_ssize_t,
    stop: Py_ssize_t, keys: ulonglong[:, ::1], children: cython.int[:, ::1], lengths: double[:, :, ::1],
    trained: uchar[:, ::1], centres: cython.int[:, ::1],
    sums: double[::1],
):  # fmt: skip
    """Add path lengths of rows start .. stop over the trees; `trained` (trees, n) marks rows that do not count themselves.

    Rows are a dense table (n, m), training rows are in sparse form; `sizes` of both are the sums that distances need.
    """
    child: Py_ssize_t
    own: cython.bint
    with cython.nogil:
        for row in range(start, stop):
            for tree in range(keys.shape[0]):
                own = trained.shape[1] > 0 and trained[tree, row]
                # A training row that does not count itself goes the way it went in training.
                stream = OLD_TIES if own else NEW_TIES
                node = 0
                while children[tree, node] >= 0:
                    ties = mix(mix(keys[tree, node], stream), row)
                    child = children[tree, node]
                    node = child + nearest_centre(
                        metric, table, sizes, row, indptr, columns, values, of_training, address(centres[tree, child]),
                        n_branches, ties,
                    )  # fmt: skip
                sums[row - start] += lengths[tree, node, 1 if own else 0]
