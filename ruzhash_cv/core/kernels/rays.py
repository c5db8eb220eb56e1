"""Rays of known cameras: fits of homographies, of fundamental and of essential matrices, and poses; rounds of reweighted fits;
which rows lie beyond an epipole, of pixels as well.
"""

import cython
from cython import Py_ssize_t, address, double, p_double, p_Py_ssize_t, uchar
from cython.cimports.libc.math import INFINITY, fabs, sqrt
from cython.cimports.ruzhash_cv.core.kernels import fit, residuals

#: What a fit is, beside those of `fit.py`: a step of an essential matrix.
TURNS = cython.declare(Py_ssize_t, 4)
#: Largest angle of a step, and its damping as a share of the mean eigenvalue.
LARGEST_TURN = cython.declare(double, 0.5)
DAMPING = cython.declare(double, 1e-9)


def solve_four(rays: double[:, :, ::1], models: double[:, ::1]):
    """Write the homographies (s, 9) of unit norm of samples (s, 4, 6), NaN if there is none.

    H = sum of w_i q_i l_i' over three rays p_i and their partners q_i: l_i is the line through the other two, so that p_i goes to q_i.
    The fourth p goes to the fourth q if w_i is the ratio of what such lines in the second and in the first image are there.
    """
    sample: Py_ssize_t
    lines: double[3][3]
    first: double[3]
    second: double[3]
    with cython.nogil:
        for sample in range(rays.shape[0]):
            p = address(rays[sample, 0, 0])
            for i in range(3):
                a, b = p + 6 * ((i + 1) % 3), p + 6 * ((i + 2) % 3)
                x, y, z = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
                lines[i][0], lines[i][1], lines[i][2] = x, y, z
                first[i] = x * p[18] + y * p[19] + z * p[20]
                x, y, z = a[4] * b[5] - a[5] * b[4], a[5] * b[3] - a[3] * b[5], a[3] * b[4] - a[4] * b[3]
                second[i] = x * p[21] + y * p[22] + z * p[23]
            norm = 0.0
            for k in range(9):
                total = 0.0
                for i in range(3):
                    weight = second[i] * first[(i + 1) % 3] * first[(i + 2) % 3]
                    total += weight * p[6 * i + 3 + k // 3] * lines[i][k % 3]
                models[sample, k] = total
                norm += total * total
            for k in range(9):
                models[sample, k] /= sqrt(norm)


# Rounds of reweighted least squares


def fit_in_rounds(
    kind: Py_ssize_t, points: double[:, ::1], given: double[:, ::1], excluded: uchar[:, ::1], limits: double[::1],
    width: double, median: double, floor: double, n_rounds: Py_ssize_t, least: double,
    rows: Py_ssize_t[::1], space: double[:, ::1], room: double[:, :, ::1], models: double[:, ::1], noise: double[::1],
):  # fmt: skip
    """Overwrite models of points (4, n) or rays (6, n) with fits by a law's weights, round by round; write noise scales (m,).

    Weights `given` are (1, n), or (m, n) for each model; residuals of `excluded` (m, n), or (0, 0), are infinite, and no
    squared one is below the `floor`. If a fit by residuals fails, the model stays.
    Overwrites `rows` (n,), `space` (3, n) and `room` (2, 10, 9).
    """
    scale: double
    fitted: double[9]
    has_rays: cython.bint = points.shape[0] == 6
    of_plane: Py_ssize_t = residuals.RAYS_OF_PLANE if has_rays else residuals.OF_PLANE
    of_model: Py_ssize_t = of_plane if kind == fit.TRANSFORM else of_plane + residuals.OF_MOTION
    places: p_Py_ssize_t = address(rows[0])
    squared: p_double = address(space[0, 0])
    weights: p_double = address(space[1, 0])
    work: p_double = address(space[2, 0])
    with cython.nogil:
        for item in range(models.shape[0]):
            model = address(models[item, 0])
            own = address(given[item if given.shape[0] > 1 else 0, 0])
            accepted = False
            for number in range(n_rounds + 1):
                if width >= 0.0 and not accepted:
                    residuals.write_residuals(of_model, points, models, item, squared)
                for row in range(excluded.shape[1]):
                    if excluded[item, row]:
                        squared[row] = INFINITY
                n, support, scale = fit.weigh(
                    squared, own, points.shape[1], limits[item], width, median, floor, places, weights, work
                )
                noise[item] = scale
                if number == n_rounds or not support > least:
                    break
                if kind == TURNS:
                    # The residuals after a step are those before the next one.
                    accepted = turn(points, places, weights, n, model, work, fitted)
                    if accepted:
                        squared, work = work, squared
                elif has_rays:
                    write_ray_fit(kind, points, places, weights, n, model, room, fitted)
                elif kind == fit.TRANSFORM:
                    fit.write_transform(points, places, weights, n, model, room, fitted)
                else:
                    fit.write_matrix(kind, points, places, weights, n, model, room, fitted)
                total = 0.0
                for k in range(9):
                    total += fitted[k]
                if width >= 0.0 and not fabs(total) < INFINITY:
                    break
                for k in range(9):
                    model[k] = fitted[k]
                if width <= 0.0:
                    break


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_ray_fit(
    kind: Py_ssize_t, rays: double[:, ::1], rows: p_Py_ssize_t, weights: p_double, n: Py_ssize_t, model: p_double,
    room: double[:, :, ::1], fitted: p_double,
) -> cython.void:  # fmt: skip
    """Write a homography, or a matrix of rank 2, of least weighted squares of equations, divided by gradients of a model.

    The quadratic form of either is made of sums of products of two coordinates of the second ray times two of the first, xx, xy, yy,
    xz, yz, zz. It is of coordinates in which both of its parts have equal moments in every direction.
    """
    row: Py_ssize_t
    first: double[6]
    second: double[6]
    into1: double[9]
    into2: double[9]
    start: double[9]
    sums: double[6][6]
    lifted1: double[6][6]
    lifted2: double[6][6]
    gram = room[0]
    a, b, c, d, e, f, g, h = model[0], model[1], model[2], model[3], model[4], model[5], model[6], model[7]
    last: double = model[8]
    for i in range(6):
        for j in range(6):
            sums[i][j] = 0.0
    for at in range(n):
        row, weight = rows[at], weights[at]
        x1, y1, z1, x2, y2, z2 = rays[0, row], rays[1, row], rays[2, row], rays[3, row], rays[4, row], rays[5, row]
        if kind != fit.EQUATIONS:
            p, q, r = a * x1 + b * y1 + c * z1, d * x1 + e * y1 + f * z1, g * x1 + h * y1 + last * z1
            square = p * p + q * q + r * r
            if kind != fit.TRANSFORM:
                p, q, r = a * x2 + d * y2 + g * z2, b * x2 + e * y2 + h * z2, c * x2 + f * y2 + last * z2
                square += p * p + q * q + r * r
            weight /= square
        if fabs(weight) < INFINITY:
            first[0], first[1], first[2] = x1 * x1, x1 * y1, y1 * y1
            first[3], first[4], first[5] = x1 * z1, y1 * z1, z1 * z1
            second[0], second[1], second[2] = weight * x2 * x2, weight * x2 * y2, weight * y2 * y2
            second[3], second[4], second[5] = weight * x2 * z2, weight * y2 * z2, weight * z2 * z2
            for i in range(6):
                for j in range(6):
                    sums[i][j] += second[i] * first[j]
    if kind == fit.TRANSFORM:
        # |X2 x Y|^2 = |X2|^2 |Y|^2 - (X2' Y)^2
        for j in range(6):
            total = sums[0][j] + sums[2][j] + sums[5][j]
            for i in range(6):
                sums[i][j] = (total if i == 0 or i == 2 or i == 5 else 0.0) - sums[i][j]
    for k in range(6):
        first[k], second[k] = sums[0][k] + sums[2][k] + sums[5][k], sums[k][0] + sums[k][2] + sums[k][5]
    whiten(first, into1, lifted1)
    whiten(second, into2, lifted2)
    lift(sums, lifted1, lifted2)
    for i in range(9):
        start[i] = 0.0
        for j in range(9):
            gram[i, j] = sums[product(i // 3, j // 3)][product(i % 3, j % 3)]
    fit.solve(gram, start, fitted, room[1], 9, fit.MOST_ITERATIONS)
    if kind != fit.TRANSFORM:
        fit.make_rank_two(fitted, gram, room[1])
    carry_rays(fitted, into1, into2)


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def lift(sums: double[6][6], lifted1: double[6][6], lifted2: double[6][6]) -> cython.void:
    """Overwrite sums S of products of coordinates with L2 S L1'."""
    between: double[6][6]
    for i in range(6):
        for j in range(6):
            between[i][j] = 0.0
            for k in range(6):
                between[i][j] += lifted2[i][k] * sums[k][j]
    for i in range(6):
        for j in range(6):
            sums[i][j] = 0.0
            for k in range(6):
                sums[i][j] += between[i][k] * lifted1[j][k]


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def product(i: Py_ssize_t, j: Py_ssize_t) -> Py_ssize_t:
    """Return where the product of two coordinates stands."""
    return j * (j + 1) // 2 + i if i < j else i * (i + 1) // 2 + j


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def whiten(moments: p_double, into: p_double, lifted: double[6][6]) -> cython.void:
    """Write the inverse (3, 3) of Cholesky's factor of moments, and what it makes of products of two coordinates."""
    xx, xy, yy, xz, yz, zz = moments[0], moments[1], moments[2], moments[3], moments[4], moments[5]
    shift = 1e-13 * (xx + yy + zz) + 1e-100
    a = sqrt(xx + shift if xx > 0.0 else shift)
    b, c = xy / a, xz / a
    left = yy - b * b
    d = sqrt(left + shift if left > 0.0 else shift)
    e = (yz - b * c) / d
    left = zz - c * c - e * e
    f = sqrt(left + shift if left > 0.0 else shift)
    into[0], into[1], into[2] = 1.0 / a, 0.0, 0.0
    into[3], into[4], into[5] = -b / (a * d), 1.0 / d, 0.0
    into[6], into[7], into[8] = (b * e - c * d) / (a * d * f), -e / (d * f), 1.0 / f
    for i in range(3):
        for j in range(i + 1):
            for k in range(3):
                for m in range(k + 1):
                    both = into[3 * i + k] * into[3 * j + m]
                    lifted[product(i, j)][product(k, m)] = both if k == m else both + into[3 * i + m] * into[3 * j + k]


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def carry_rays(model: p_double, into1: p_double, into2: p_double) -> cython.void:
    """Overwrite M with A2' M A1, of unit norm."""
    between: double[9]
    for i in range(3):
        for j in range(3):
            between[3 * i + j] = 0.0
            for k in range(3):
                between[3 * i + j] += into2[3 * k + i] * model[3 * k + j]
    for i in range(3):
        for j in range(3):
            total = 0.0
            for k in range(3):
                total += between[3 * i + k] * into1[3 * k + j]
            model[3 * i + j] = total
    fit.divide_by_norm(model, model)


# Essential matrices


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def turn(
    rays: double[:, ::1], rows: p_Py_ssize_t, weights: p_double, n: Py_ssize_t, model: p_double, squared: p_double,
    turned: p_double,
) -> cython.bint:  # fmt: skip
    """Write an essential matrix after a Levenberg-Marquardt step to the least weighted squares of Sampson distances, and all of these.

    E becomes exp([a]) E exp([b]), which keeps its singular values. Of the six numbers a, b one is free: both turn about the baseline.
    Returns False if there is no such step.
    """
    gram: double[6][6]
    slope: double[6]
    step: double[6]
    trace, damping = 0.0, DAMPING
    cost = linearise_essential(rays, rows, weights, n, model, gram, slope)
    for k in range(6):
        trace += gram[k][k]
    if 0.0 < trace < INFINITY:
        for _ in range(4):
            solve_six(gram, slope, damping * trace / 6.0 + 1e-12 * trace, step)
            turn_both(model, step, turned)
            residuals.write_squared_ray_distances(rays, turned, squared)
            total = 0.0
            for at in range(n):
                if weights[at] != 0.0:
                    total += weights[at] * squared[rows[at]]
            if total < cost:
                return True
            damping *= 100.0
    for k in range(9):
        turned[k] = model[k]
    return False


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def linearise_essential(
    rays: double[:, ::1], rows: p_Py_ssize_t, weights: p_double, n: Py_ssize_t, model: p_double, gram: double[6][6],
    slope: p_double,
) -> double:  # fmt: skip
    """Write sums over gradients J of Sampson distances by a, b: J J' and J d; return the sum of squares.

    With y = E X1, z = E' X2, g^2 = |y|^2 + |z|^2 and the error k = X2' y: dk = a (y x X2) + b (X1 x z), and of g dg
    a (E z x X2) + b (X1 x E' y).
    """
    near: double[8][7]
    # Those of an error are the gradient and itself.
    gradients: double[8][7]
    scaled: double[8]
    sums: double[8][28]
    a, b, c, d, e, f, g, h, i = model[0], model[1], model[2], model[3], model[4], model[5], model[6], model[7], model[8]
    for k in range(28):
        for lane in range(8):
            sums[k][lane] = 0.0
    for begin in range(0, n, 8):
        gather(rays, rows, weights, begin, n, near)
        for lane in range(8):
            x1, y1, z1 = near[0][lane], near[1][lane], near[2][lane]
            x2, y2, z2 = near[3][lane], near[4][lane], near[5][lane]
            p, q, r = a * x1 + b * y1 + c * z1, d * x1 + e * y1 + f * z1, g * x1 + h * y1 + i * z1
            s, t, u = a * x2 + d * y2 + g * z2, b * x2 + e * y2 + h * z2, c * x2 + f * y2 + i * z2
            error = x2 * p + y2 * q + z2 * r
            square = p * p + q * q + r * r + s * s + t * t + u * u + 1e-300
            share = error / square
            # y - share E z and z - share E' y take the change of g along.
            along_x = p - share * (a * s + b * t + c * u)
            along_y = q - share * (d * s + e * t + f * u)
            along_z = r - share * (g * s + h * t + i * u)
            back_x = s - share * (a * p + d * q + g * r)
            back_y = t - share * (b * p + e * q + h * r)
            back_z = u - share * (c * p + f * q + i * r)
            gradients[0][lane] = along_y * z2 - along_z * y2
            gradients[1][lane] = along_z * x2 - along_x * z2
            gradients[2][lane] = along_x * y2 - along_y * x2
            gradients[3][lane] = y1 * back_z - z1 * back_y
            gradients[4][lane] = z1 * back_x - x1 * back_z
            gradients[5][lane] = x1 * back_y - y1 * back_x
            gradients[6][lane] = error
            near[6][lane] /= square
        k = 0
        for one in range(7):
            for lane in range(8):
                scaled[lane] = near[6][lane] * gradients[one][lane]
            for other in range(one + 1):
                for lane in range(8):
                    sums[k][lane] += scaled[lane] * gradients[other][lane]
                k += 1
    k = 0
    for one in range(7):
        for other in range(one + 1):
            total = 0.0
            for lane in range(8):
                total += sums[k][lane]
            k += 1
            if one < 6:
                gram[one][other] = total
            elif other < 6:
                slope[other] = total
    return total


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def gather(
    rays: double[:, ::1], rows: p_Py_ssize_t, weights: p_double, begin: Py_ssize_t, n: Py_ssize_t, near: double[8][7]
) -> cython.void:
    """Write rays of eight of n rows and their weights side by side, so that sums become vectors; beyond n weights are 0."""
    for lane in range(8):
        at = begin + lane if begin + lane < n else n - 1
        near[6][lane] = weights[at] if begin + lane < n else 0.0
        for k in range(6):
            near[k][lane] = rays[k, rows[at]]


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def solve_six(gram: double[6][6], slope: p_double, damping: double, step: p_double) -> cython.void:
    """Write the solution of (gram + damping I) step = -slope by Cholesky; only the lower triangle is read."""
    lower: double[6][6]
    for i in range(6):
        for j in range(i + 1):
            total = gram[i][j] + (damping if i == j else 0.0)
            for k in range(j):
                total -= lower[i][k] * lower[j][k]
            lower[i][j] = sqrt(total if total > 1e-300 else 1e-300) if i == j else total / lower[j][j]
    for i in range(6):
        total = -slope[i]
        for k in range(i):
            total -= lower[i][k] * step[k]
        step[i] = total / lower[i][i]
    largest = 0.0
    for i in range(5, -1, -1):
        total = step[i]
        for k in range(i + 1, 6):
            total -= lower[k][i] * step[k]
        step[i] = total / lower[i][i]
        largest = largest if largest > fabs(step[i]) else fabs(step[i])
    if largest > LARGEST_TURN:
        for i in range(6):
            step[i] *= LARGEST_TURN / largest


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def turn_both(model: p_double, step: p_double, turned: p_double) -> cython.void:
    """Write exp([a]) E exp([b]): rotations by Cayley's formula, which is the exponential to second order."""
    r: double[9][2]
    between: double[3][3]
    for side in range(2):
        # The rotation of the quaternion (1, x, y, z).
        x, y, z = 0.5 * step[3 * side], 0.5 * step[3 * side + 1], 0.5 * step[3 * side + 2]
        n = 2.0 / (1.0 + x * x + y * y + z * z)
        r[side][0], r[side][1], r[side][2] = 1.0 - n * (y * y + z * z), n * (x * y - z), n * (x * z + y)
        r[side][3], r[side][4], r[side][5] = n * (x * y + z), 1.0 - n * (x * x + z * z), n * (y * z - x)
        r[side][6], r[side][7], r[side][8] = n * (x * z - y), n * (y * z + x), 1.0 - n * (x * x + y * y)
    for i in range(3):
        for j in range(3):
            between[i][j] = r[0][3 * i] * model[j] + r[0][3 * i + 1] * model[3 + j] + r[0][3 * i + 2] * model[6 + j]
    for i in range(3):
        for j in range(3):
            turned[3 * i + j] = between[i][0] * r[1][j] + between[i][1] * r[1][3 + j] + between[i][2] * r[1][6 + j]


# Poses and epipoles


def place(
    rays: double[:, ::1], weights: double[::1], squared: double[:, ::1], bound: double, models: double[:, ::1],
    far: double, space: double[:, ::1], rotations: double[:, ::1], translations: double[:, ::1], seen: double[:, ::1],
):  # fmt: skip
    """Write the rotation (m, 9) and translation (m, 3) of the best of four poses, and squared residuals (m, n) of what both see.

    Of an essential matrix of unit norm it is the pose of the largest sum of weights times 1 - r^2 / b over those rows it sees whose
    squared residuals r^2 are below the bound b. The residuals of rows behind a camera become infinite, unless the squared distance to
    where they would be infinitely far is below `far`: on which side of infinity they are, noise decides. Overwrites `space` (7, n).
    """
    n: Py_ssize_t = rays.shape[1]
    both: double[18]
    t: double[3]
    gains: double[4]
    with cython.nogil:
        for row in range(n):
            x1, y1, z1, x2, y2, z2 = rays[0, row], rays[1, row], rays[2, row], rays[3, row], rays[4, row], rays[5, row]
            space[0, row], space[1, row] = x1 * x1 + y1 * y1 + z1 * z1, x2 * x2 + y2 * y2 + z2 * z2
        for item in range(models.shape[0]):
            write_poses(address(models[item, 0]), t, both)
            for side in range(2):
                r = address(both[9 * side])
                for row in range(n):
                    x1, y1, z1 = rays[0, row], rays[1, row], rays[2, row]
                    x2, y2, z2 = rays[3, row], rays[4, row], rays[5, row]
                    x, y = r[0] * x1 + r[1] * y1 + r[2] * z1, r[3] * x1 + r[4] * y1 + r[5] * z1
                    z = r[6] * x1 + r[7] * y1 + r[8] * z1
                    along1, along2 = x * t[0] + y * t[1] + z * t[2], x2 * t[0] + y2 * t[1] + z2 * t[2]
                    cosine = x * x2 + y * y2 + z * z2
                    # Depths along both rays, but for positive factors.
                    depth1 = along2 * cosine - along1 * space[1, row]
                    depth2 = along2 * space[0, row] - along1 * cosine
                    # |x1 x x2|^2 of the turned ray, and of the angle each ray has its share, as in a Sampson distance.
                    crossed = space[0, row] * space[1, row] - cosine * cosine
                    both_far = far * (space[0, row] + space[1, row])
                    behind = squared[item, row] if (cosine > 0.0) & (fabs(crossed) < both_far) else INFINITY
                    space[3 + 2 * side, row] = squared[item, row] if (depth1 > 0.0) & (depth2 > 0.0) else behind
                    space[4 + 2 * side, row] = squared[item, row] if (depth1 < 0.0) & (depth2 < 0.0) else behind
            for k in range(4):
                gains[k] = 0.0
            for row in range(n):
                for k in range(4):
                    if space[3 + k, row] < bound:
                        gains[k] += weights[row] * (1.0 - space[3 + k, row] / bound)
            best = 0
            for k in range(4):
                if gains[k] > gains[best]:
                    best = k
            for k in range(9):
                rotations[item, k] = both[9 * (best // 2) + k]
            for k in range(3):
                translations[item, k] = t[k] if best % 2 == 0 else -t[k]
            for row in range(n):
                seen[item, row] = space[3 + best, row]


def remove_beyond(
    points: double[:, ::1], weights: double[::1], voting: double[:, ::1], bound: double, models: double[:, ::1],
    image: double[:, ::1], others: double[:, ::1], squared: double[:, ::1],
):  # fmt: skip
    """Overwrite squared residuals (m, N) of `others` (6, N) with infinity where these lie beyond the epipole of matrices (m, 9).

    The right side is that of the larger sum of weights times 1 - r^2 / b over points (6, n) whose squared residuals r^2, `voting`, are
    below the bound b. `voting` may be `squared`. Nothing is beyond an epipole whose place in the second image is outside of `image`,
    the least and the largest coordinates (2, 2).
    """
    item: Py_ssize_t
    row: Py_ssize_t
    epipole: double[3]
    with cython.nogil:
        for item in range(models.shape[0]):
            write_epipole(address(models[item, 0]), epipole)
            x, y = epipole[0] / epipole[2], epipole[1] / epipole[2]
            if not ((x >= image[0, 0]) & (x <= image[1, 0]) & (y >= image[0, 1]) & (y <= image[1, 1])):
                continue
            votes = 0.0
            for row in range(points.shape[1]):
                if voting[item, row] < bound:
                    gain = weights[row] * (1.0 - voting[item, row] / bound)
                    votes += gain * side_of(points, row, address(models[item, 0]), epipole)
            right = -1.0 if votes < 0.0 else 1.0
            for row in range(others.shape[1]):
                if right * side_of(others, row, address(models[item, 0]), epipole) < 0.0:
                    squared[item, row] = INFINITY


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_epipole(model: p_double, epipole: p_double) -> cython.void:
    """Write the epipole in the second image, which is across all columns: the longest product of two of them."""
    longest, epipole[0], epipole[1], epipole[2] = 0.0, 0.0, 0.0, 0.0
    for j in range(3):
        k = (j + 1) % 3
        x = model[3 + j] * model[6 + k] - model[6 + j] * model[3 + k]
        y = model[6 + j] * model[k] - model[j] * model[6 + k]
        z = model[j] * model[3 + k] - model[3 + j] * model[k]
        square = x * x + y * y + z * z
        if square > longest:
            longest, epipole[0], epipole[1], epipole[2] = square, x, y, z


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def side_of(points: double[:, ::1], row: Py_ssize_t, model: p_double, epipole: p_double) -> double:
    """Return on which side of the epipole a row lies, the sign of (e x x2) . F x1, or 0 if these lines are 60 degrees apart or more.

    So near the epipole noise decides, and a row far off its line is a mismatch anyway.
    """
    x1, y1, z1 = points[0, row], points[1, row], points[2, row]
    x2, y2, z2 = points[3, row], points[4, row], points[5, row]
    p, q = model[0] * x1 + model[1] * y1 + model[2] * z1, model[3] * x1 + model[4] * y1 + model[5] * z1
    r = model[6] * x1 + model[7] * y1 + model[8] * z1
    a, b = epipole[1] * z2 - epipole[2] * y2, epipole[2] * x2 - epipole[0] * z2
    c = epipole[0] * y2 - epipole[1] * x2
    cosine = p * a + q * b + r * c
    if 4.0 * cosine * cosine <= (p * p + q * q + r * r) * (a * a + b * b + c * c):
        return 0.0
    return 1.0 if cosine > 0.0 else -1.0


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_poses(model: p_double, t: p_double, rotations: p_double) -> cython.void:
    """Write the unit baseline t and the rotations of E = [t]x R: R = cof(E) - [t]x E, and with -t, cof(E) + [t]x E (Horn 1990)."""
    best: Py_ssize_t = 0
    cofactors: double[9]
    for k in range(9):
        i, j = k // 3, k % 3
        a, b = 3 * ((i + 1) % 3), 3 * ((i + 2) % 3)
        # E is of unit norm, and [t]x R is longer by the square root of 2.
        cofactors[k] = 2.0 * (
            model[a + (j + 1) % 3] * model[b + (j + 2) % 3] - model[a + (j + 2) % 3] * model[b + (j + 1) % 3]
        )
    # The cofactors are t t' R: the longest column is the best multiple of t.
    square = 0.0
    for k in range(3):
        length = cofactors[k] * cofactors[k] + cofactors[3 + k] * cofactors[3 + k] + cofactors[6 + k] * cofactors[6 + k]
        if length > square:
            best, square = k, length
    for i in range(3):
        t[i] = cofactors[3 * i + best] / sqrt(square)
    for j in range(3):
        x, y, z = sqrt(2.0) * model[j], sqrt(2.0) * model[3 + j], sqrt(2.0) * model[6 + j]
        rotations[j] = t[1] * z - t[2] * y
        rotations[3 + j] = t[2] * x - t[0] * z
        rotations[6 + j] = t[0] * y - t[1] * x
    for k in range(9):
        crossed = rotations[k]
        rotations[k], rotations[9 + k] = cofactors[k] - crossed, cofactors[k] + crossed
