"""Fits of pixels by weights: homographies and fundamental matrices, and the weights by residuals."""

import cython
from cython import Py_ssize_t, address, double, p_double, p_Py_ssize_t
from cython.cimports.libc.math import INFINITY, fabs, sqrt
from cython.cimports.ruzhash_cv.core.kernels import residuals

#: What a fit is: of a homography; of the equations x2' F x1 = 0, of these divided by gradients, or a step of Gauss and Newton.
TRANSFORM = cython.declare(Py_ssize_t, 0)
EQUATIONS = cython.declare(Py_ssize_t, 1)
DISTANCES = cython.declare(Py_ssize_t, 2)
STEP = cython.declare(Py_ssize_t, 3)
#: Inverse iteration stops here at the latest; on degenerate data any vector of a null space will do.
MOST_ITERATIONS = cython.declare(Py_ssize_t, 40)
#: Noise that is less, in units or tolerances, is the rounding of exact matches.
EXACT = cython.declare(double, 1e-6)


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


# Linear algebra of fits


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
        noise = sqrt(residuals.nth_smallest(work, n, n // 2) / median)
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
