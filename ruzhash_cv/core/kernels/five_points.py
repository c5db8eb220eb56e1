"""Essential matrices through five pairs of rays: one sample after the other, see `models.five_points`."""

import cython
from cython import Py_ssize_t, address, double, p_double
from cython.cimports.libc.math import INFINITY, fabs, sqrt

#: Newton steps of a root, at most, and the last of them, whose square is less than rounding; the last to a root of a derivative, which
#: only lies between roots; real solutions of a sample, at most.
ROOT_STEPS = cython.declare(Py_ssize_t, 60)
ROOT_EXACT = cython.declare(double, 1e-8)
END_EXACT = cython.declare(double, 1e-4)
MOST = cython.declare(Py_ssize_t, 10)


def solve_five(
    rays: double[:, :, ::1], places: Py_ssize_t[:, ::1], models: double[:, ::1], owners: Py_ssize_t[::1]
) -> Py_ssize_t:
    """Write essential matrices of unit norm of samples (s, 5, 6), at most ten of each, and their samples; return how many there are.

    `places` (10, 4) are those of products of second degree times (x, y, z, 1) among products of the third degree.
    """
    k: Py_ssize_t
    n: Py_ssize_t = 0
    basis: double[9][4]
    cubics: double[20][10]
    linear: double[45]
    determinant: double[11]
    roots: double[20]
    solution: double[3]
    with cython.nogil:
        for sample in range(rays.shape[0]):
            write_null_space(address(rays[sample, 0, 0]), basis)
            write_cubics(basis, places, cubics)
            if not eliminated(cubics, linear):
                continue
            write_determinant(linear, determinant)
            first = n
            for root in range(roots_of(determinant, roots)):
                if n - first < MOST and solved(linear, roots[root], solution):
                    x, y, z, square = solution[0], solution[1], solution[2], 0.0
                    for k in range(9):
                        models[n, k] = x * basis[0][k] + y * basis[1][k] + z * basis[2][k] + basis[3][k]
                        square += models[n, k] * models[n, k]
                    for k in range(9):
                        models[n, k] /= sqrt(square)
                    owners[n] = sample
                    n += square < INFINITY
    return n


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_null_space(rays: p_double, basis: double[9][4]) -> cython.void:
    """Write unit vectors orthogonal to the five equations x2 x1' and to each other, by Householder's reflections."""
    equations: double[9][5]
    for row in range(5):
        for k in range(9):
            equations[row][k] = rays[6 * row + 3 + k // 3] * rays[6 * row + k % 3]
    for row in range(5):
        square = 0.0
        for k in range(row, 9):
            square += equations[row][k] * equations[row][k]
        length = sqrt(square)
        equations[row][row] += length if equations[row][row] > 0.0 else -length
        for k in range(row):
            equations[row][k] = 0.0
        for other in range(row + 1, 5):
            reflect(equations[row], equations[other])
    for row in range(4):
        for k in range(9):
            basis[row][k] = 1.0 if k == row + 5 else 0.0
        for other in range(4, -1, -1):
            reflect(equations[other], basis[row])


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def reflect(normal: p_double, vector: p_double) -> cython.void:
    """Overwrite a vector with its reflection across the plane of a normal."""
    square = along = 0.0
    for k in range(9):
        square += normal[k] * normal[k]
        along += normal[k] * vector[k]
    if square != 0.0:  # of NaN too
        for k in range(9):
            vector[k] -= 2.0 * along / square * normal[k]


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_cubics(basis: double[9][4], places: Py_ssize_t[:, ::1], cubics: double[20][10]) -> cython.void:
    """Write the coefficients of (E E' - tr(E E') / 2) E and of det E."""
    entries: double[4][9]
    squares: double[10][6]
    minor: double[10]
    for i in range(9):
        for k in range(4):
            entries[i][k] = basis[k][i]
    for i in range(10):
        for k in range(20):
            cubics[i][k] = 0.0
    for i in range(3):
        for j in range(i, 3):
            at = i * (5 - i) // 2 + j
            for k in range(10):
                squares[at][k] = 0.0
            for k in range(3):
                add_product(entries[3 * i + k], entries[3 * j + k], 1.0, squares[at])
    for k in range(10):
        half = 0.5 * (squares[0][k] + squares[3][k] + squares[5][k])
        squares[0][k] -= half
        squares[3][k] -= half
        squares[5][k] -= half
    for i in range(3):
        for k in range(3):
            at = i * (5 - i) // 2 + k if i < k else k * (5 - k) // 2 + i
            for j in range(3):
                add_cubic(squares[at], entries[3 * k + j], places, cubics[3 * i + j])
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        for at in range(10):
            minor[at] = 0.0
        add_product(entries[3 + j], entries[6 + k], 1.0, minor)
        add_product(entries[3 + k], entries[6 + j], -1.0, minor)
        add_cubic(minor, entries[i], places, cubics[9])


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def add_product(one: p_double, other: p_double, sign: double, sums: p_double) -> cython.void:
    """Add the product of two polynomials of the first degree: the place of x_i x_j, i <= j, is i (7 - i) / 2 + j."""
    for i in range(4):
        sums[i * (9 - i) // 2] += sign * (one[i] * other[i])
        for j in range(i + 1, 4):
            sums[i * (7 - i) // 2 + j] += sign * (one[i] * other[j] + one[j] * other[i])


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
@cython.inline
def add_cubic(square: p_double, linear: p_double, places: Py_ssize_t[:, ::1], sums: p_double) -> cython.void:
    """Add the product of a square (10,) and a linear polynomial (4,) to the sums (20,) of cubic terms."""
    for i in range(10):
        for j in range(4):
            sums[places[i, j]] += square[i] * linear[j]


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def eliminated(cubics: double[20][10], linear: p_double) -> cython.bint:
    """Write three equations (3, 3, 5) in (x, y, 1), polynomials of z, by elimination with pivots; return whether there are any.

    An equation is the row of x^2 z minus z times that of x^2, and so on. Only the last six rows are solved for.
    """
    for column in range(10):
        best = column
        for row in range(column + 1, 10):
            if fabs(cubics[row][column]) > fabs(cubics[best][column]):
                best = row
        pivot = cubics[best][column]
        if not fabs(pivot) > 0.0:
            return False
        for k in range(column, 20):
            cubics[best][k], cubics[column][k] = cubics[column][k], cubics[best][k] / pivot
        for row in range(column + 1, 10):
            factor = cubics[row][column]
            for k in range(column, 20):
                cubics[row][k] -= factor * cubics[column][k]
    for column in range(9, 4, -1):
        for row in range(4, column):
            factor = cubics[row][column]
            for k in range(10, 20):
                cubics[row][k] -= factor * cubics[column][k]
    for k in range(45):
        linear[k] = 0.0
    for row in range(3):
        for unknown in range(3):
            last = 12 + 3 * unknown if unknown < 2 else 19
            for k in range(3 if unknown < 2 else 4):
                linear[15 * row + 5 * unknown + k] += cubics[4 + 2 * row][last - k]
                linear[15 * row + 5 * unknown + k + 1] -= cubics[5 + 2 * row][last - k]
    return True


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def write_determinant(linear: p_double, determinant: p_double) -> cython.void:
    """Write the determinant (11,) of a matrix of polynomials."""
    for k in range(11):
        determinant[k] = 0.0
    for third in range(3):
        one, other = linear + 15 * ((third + 1) % 3), linear + 15 * ((third + 2) % 3)
        for i in range(4):
            for j in range(4):
                minor = one[i] * other[5 + j] - other[i] * one[5 + j]
                for k in range(5):
                    determinant[i + j + k] += minor * linear[15 * third + 10 + k]


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def roots_of(polynomial: p_double, roots: p_double) -> Py_ssize_t:
    """Write the real roots of a polynomial: those within 1, and the inverses of those of the reversed one."""
    scaled: double[11]
    largest = 0.0
    for k in range(11):
        if not fabs(polynomial[k]) <= largest:
            largest = fabs(polynomial[k])
    if not 0.0 < largest < INFINITY:
        return 0
    for k in range(11):
        scaled[k] = polynomial[k] / largest
    n_within = roots_within_one(scaled, roots)
    for k in range(11):
        scaled[k] = polynomial[10 - k] / largest
    n = n_within + roots_within_one(scaled, roots + n_within)
    for k in range(n_within, n):
        # Roots of 1 and -1 have been written.
        roots[k] = 1.0 / roots[k] if fabs(roots[k]) < 1.0 else INFINITY
    return n


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def roots_within_one(polynomial: p_double, roots: p_double) -> Py_ssize_t:
    """Write the roots from -1 to 1: between two neighbouring roots of a derivative, or an end, there is at most one."""
    n: Py_ssize_t = 0
    derivatives: double[11][10]
    ends: double[12]
    for k in range(11):
        derivatives[0][k] = polynomial[k]
    for order in range(1, 10):
        for k in range(11 - order):
            # By their factorials, lest they grow.
            derivatives[order][k] = derivatives[order - 1][k + 1] * (k + 1.0) / order
    for back in range(10):
        own, exact = derivatives[9 - back], ROOT_EXACT if back == 9 else END_EXACT
        ends[0] = -1.0
        for k in range(n):
            ends[1 + k] = roots[k]
        ends[1 + n] = 1.0
        n_ends, n = n + 2, 0
        before = value_of(own, back + 2, ends[0])
        for k in range(1, n_ends):
            after = value_of(own, back + 2, ends[k])
            if (before < 0.0) != (after < 0.0):
                roots[n] = root_between(own, back + 2, ends[k - 1], ends[k], before, after, exact)
                n += 1
            before = after
    return n


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def value_of(polynomial: p_double, n: Py_ssize_t, x: double) -> double:
    """Return a polynomial's value at x, by Horner's rule."""
    value = 0.0
    for k in range(n - 1, -1, -1):
        value = value * x + polynomial[k]
    return value


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def root_between(
    polynomial: p_double, n: Py_ssize_t, low: double, high: double, before: double, after: double, exact: double
) -> double:
    """Return the root between two places and values by Newton's steps, halving the interval where one would leave it.

    At most places the slope is 0. A cubic with slopes of 0 at both has a root at 1/2 - sin(asin(w) / 3), w = (a + b) / (a - b) for
    values b and a; steps begin nearby.
    """
    rises: cython.bint = before < 0.0
    w = (after + before) / (after - before)
    w2 = w * w
    x = low + (high - low) * (0.5 - w * (1.0 / 3.0 + 0.05 * w2 + 0.08 * (w2 * w2) * (w2 * w2)))
    for _ in range(ROOT_STEPS):
        value = slope = 0.0
        for k in range(n - 1, -1, -1):
            slope = slope * x + value
            value = value * x + polynomial[k]
        if (value < 0.0) == rises:
            low = x
        else:
            high = x
        moved = x - value / slope
        if not low < moved < high:
            moved = 0.5 * (low + high)
        if fabs(moved - x) <= exact:
            return moved
        x = moved
    return x


@cython.cfunc
@cython.exceptval(check=False)
@cython.nogil
def solved(linear: p_double, z: double, solution: p_double) -> cython.bint:
    """Write (x, y, z): x and y by the two equations that determine them best."""
    rows: double[3][3]
    best = 0.0
    for equation in range(3):
        for unknown in range(3):
            rows[equation][unknown] = value_of(linear + 15 * equation + 5 * unknown, 5, z)
    for third in range(3):
        a, b = rows[(third + 1) % 3], rows[(third + 2) % 3]
        x, y, w = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
        if fabs(w) > best:
            best = fabs(w)
            solution[0], solution[1], solution[2] = x / w, y / w, z
    return 0.0 < best < INFINITY
