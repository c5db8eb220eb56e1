"""Essential matrices through five pairs of rays, as one kernel (Nister, "An efficient solution to the five-point relative pose
problem", PAMI 2004).

E = x A + y B + z C + D of the null space of the five equations, where E E' E = tr(E E') E / 2 and det E = 0 are ten cubics. Elimination
of what is of second degree in x and y leaves three equations that are linear in these, with polynomials of z. Their determinant is one
of the tenth degree, whose real roots lie between those of its derivative. Each solution takes a few Gauss-Newton steps of the ten
cubics at the end, because roots of so high a degree are not exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._kernels import jit

#: Real solutions of a sample, at most.
_MOST = 10
#: Exponents (20, 3) of the monomials of x, y, z up to the third degree: first those that are eliminated.
_EXPONENTS = np.array(
    [[3, 0, 0], [0, 3, 0], [2, 1, 0], [1, 2, 0], [2, 0, 1], [2, 0, 0], [0, 2, 1], [0, 2, 0], [1, 1, 1], [1, 1, 0]]
    + [[1, 0, 2], [1, 0, 1], [1, 0, 0], [0, 1, 2], [0, 1, 1], [0, 1, 0], [0, 0, 3], [0, 0, 2], [0, 0, 1], [0, 0, 0]]
)
#: Points (20, 4) of (x, y, z, 1), and what makes a cubic's coefficients of its values there.
_NODES = np.column_stack([np.random.default_rng(5).normal(size=(20, 3)), np.ones(20)])
_FROM_VALUES = np.linalg.inv((_NODES[:, None, :3] ** _EXPONENTS).prod(axis=2)).T.copy()
#: Newton steps of a root, at most, and the last of them; those of a solution, and the last of them, as a share.
_ROOT_STEPS, _ROOT_EXACT = 60, 1e-10
_POLISHING_STEPS, _EXACT = 3, 1e-4


def through_five(first: Array, second: Array) -> tuple[Array, Rows]:
    """Return up to ten essential matrices (k, 9), of unit norm, of each sample of unit rays (s, 5, 3), and the sample (k,) of each."""
    models, counts = np.empty((len(first), _MOST, 9)), np.zeros(len(first), np.int64)
    _solve_kernel(np.ascontiguousarray(first), np.ascontiguousarray(second), models, counts)
    owner = np.repeat(np.arange(len(first)), counts)
    return models[np.arange(_MOST) < counts[:, None]], owner


@jit
def _solve_kernel(first: Any, second: Any, models: Any, counts: Any) -> None:
    equations, basis, tried = np.empty((9, 5)), np.empty((4, 9)), np.empty(9)
    cubics, reduced, linear = np.empty((20, 10)), np.empty((10, 20)), np.empty((3, 3, 5))
    determinant, roots, solution = np.empty(11), np.empty(2 * _MOST), np.empty(3)
    for sample in range(len(first)):
        for pair in range(5):
            for i in range(3):
                for j in range(3):
                    equations[3 * i + j, pair] = second[sample, pair, i] * first[sample, pair, j]
        _null_space(equations, basis)
        _write_cubics(basis, cubics)
        reduced[:] = cubics.T
        if not _eliminate(reduced):
            continue
        _write_linear(reduced, linear)
        _write_determinant(linear, determinant)
        for root in range(_roots_of(determinant, roots)):
            if counts[sample] < _MOST and _solved(linear, roots[root], solution) and _polished(cubics, solution):
                total = 0.0
                for k in range(9):
                    tried[k] = (
                        solution[0] * basis[0, k] + solution[1] * basis[1, k] + solution[2] * basis[2, k] + basis[3, k]
                    )
                    total += tried[k] * tried[k]
                if 0.0 < total < np.inf:
                    models[sample, counts[sample]] = tried / np.sqrt(total)
                    counts[sample] += 1


@jit
def _null_space(equations: Any, basis: Any) -> None:
    """Write an orthonormal basis (4, 9) of what is orthogonal to the columns (9, 5), which are overwritten: Householder's QR."""
    for column in range(5):
        norm = 0.0
        for i in range(column, 9):
            norm += equations[i, column] * equations[i, column]
        norm = np.sqrt(norm)
        equations[column, column] += norm if equations[column, column] >= 0.0 else -norm
        for other in range(column + 1, 5):
            _reflect(equations, column, equations[:, other])
    for vector in range(4):
        basis[vector] = 0.0
        basis[vector, 5 + vector] = 1.0
        for back in range(5):
            _reflect(equations, 4 - back, basis[vector])


@jit
def _reflect(equations: Any, column: int, vector: Any) -> None:
    along = square = 0.0
    for i in range(column, 9):
        along += equations[i, column] * vector[i]
        square += equations[i, column] * equations[i, column]
    for i in range(column, 9):
        vector[i] -= 2.0 * along / (square + 1e-300) * equations[i, column]


@jit
def _write_cubics(basis: Any, cubics: Any) -> None:
    """Write the coefficients of E E' E - tr(E E') E / 2 and of det E, from their values at the nodes."""
    E, square, values = np.empty((3, 3)), np.empty((3, 3)), np.empty(10)
    cubics[:] = 0.0
    for node in range(20):
        for k in range(9):
            E[k // 3, k % 3] = (
                _NODES[node, 0] * basis[0, k]
                + _NODES[node, 1] * basis[1, k]
                + _NODES[node, 2] * basis[2, k]
                + basis[3, k]
            )
        for i in range(3):
            for j in range(3):
                square[i, j] = E[i, 0] * E[j, 0] + E[i, 1] * E[j, 1] + E[i, 2] * E[j, 2]
        half = 0.5 * (square[0, 0] + square[1, 1] + square[2, 2])
        for i in range(3):
            for j in range(3):
                values[3 * i + j] = (
                    square[i, 0] * E[0, j] + square[i, 1] * E[1, j] + square[i, 2] * E[2, j] - half * E[i, j]
                )
        values[9] = (
            E[0, 0] * (E[1, 1] * E[2, 2] - E[1, 2] * E[2, 1])
            + E[0, 1] * (E[1, 2] * E[2, 0] - E[1, 0] * E[2, 2])
            + E[0, 2] * (E[1, 0] * E[2, 1] - E[1, 1] * E[2, 0])
        )
        for monomial in range(20):
            for equation in range(10):
                cubics[monomial, equation] += _FROM_VALUES[node, monomial] * values[equation]


@jit
def _eliminate(rows: Any) -> bool:
    """Make the first ten columns of rows (10, 20) the identity, by Gauss and Jordan with pivots; tell whether that could be."""
    for column in range(10):
        pivot = column
        for row in range(column + 1, 10):
            if abs(rows[row, column]) > abs(rows[pivot, column]):
                pivot = row
        if not abs(rows[pivot, column]) > 0.0:
            return False
        for k in range(column, 20):
            value = rows[pivot, k]
            rows[pivot, k] = rows[column, k]
            rows[column, k] = value
        scale = 1.0 / rows[column, column]
        for k in range(column, 20):
            rows[column, k] *= scale
        for row in range(10):
            factor = rows[row, column]
            if row != column and factor != 0.0:
                for k in range(column, 20):
                    rows[row, k] -= factor * rows[column, k]
    return True


@jit
def _write_linear(reduced: Any, linear: Any) -> None:
    """Write the three equations in (x, y, 1), each a polynomial of z: the row of x^2 z minus z times that of x^2, and so on."""
    linear[:] = 0.0
    for equation in range(3):
        high, low = reduced[4 + 2 * equation], reduced[5 + 2 * equation]
        for unknown in range(3):
            begin, n = 10 + 3 * unknown, 3 if unknown < 2 else 4
            for k in range(n):
                power = n - 1 - k
                linear[equation, unknown, power] += high[begin + k]
                linear[equation, unknown, power + 1] -= low[begin + k]


@jit
def _write_determinant(linear: Any, determinant: Any) -> None:
    determinant[:] = 0.0
    for third in range(3):
        one, other = (third + 1) % 3, (third + 2) % 3
        for i in range(4):
            for j in range(4):
                minor = linear[one, 0, i] * linear[other, 1, j] - linear[other, 0, i] * linear[one, 1, j]
                for k in range(5):
                    determinant[i + j + k] += minor * linear[third, 2, k]


@jit
def _roots_of(polynomial: Any, roots: Any) -> int:
    """Write the real roots of a polynomial: those within 1, and the inverses of those of the reversed one."""
    largest = 0.0
    for k in range(len(polynomial)):
        largest = max(largest, abs(polynomial[k]))
    if not 0.0 < largest < np.inf:
        return 0
    n_within = _roots_within_one(polynomial / largest, roots)
    n = n_within + _roots_within_one(polynomial[::-1] / largest, roots[n_within:])
    for k in range(n_within, n):
        roots[k] = 1.0 / roots[k] if abs(roots[k]) < 1.0 else np.inf
    return n


@jit
def _roots_within_one(polynomial: Any, roots: Any) -> int:
    """Write the roots from -1 to 1: between two neighbouring roots of a derivative, or an end, there is at most one."""
    degree = len(polynomial) - 1
    derivatives, ends = np.zeros((degree, degree + 1)), np.empty(degree + 2)
    derivatives[0] = polynomial
    for order in range(1, degree):
        for k in range(degree + 1 - order):
            # By their factorials, lest they grow.
            derivatives[order, k] = derivatives[order - 1, k + 1] * (k + 1.0) / order
    n = 0
    for back in range(degree):
        order = degree - 1 - back
        ends[0] = -1.0
        ends[1 : 1 + n] = roots[:n]
        ends[1 + n] = 1.0
        n_ends, n = n + 2, 0
        own = derivatives[order, : back + 2]
        before = _value(own, ends[0])
        for k in range(1, n_ends):
            after = _value(own, ends[k])
            if (before < 0.0) != (after < 0.0):
                roots[n] = _root_between(own, ends[k - 1], ends[k], before < 0.0)
                n += 1
            before = after
    return n


@jit
def _value(polynomial: Any, x: float) -> float:
    value = 0.0
    for k in range(len(polynomial) - 1, -1, -1):
        value = value * x + polynomial[k]
    return value


@jit
def _root_between(polynomial: Any, low: float, high: float, rises: bool) -> float:
    """Return the root between two places by Newton's steps, halving the interval where one would leave it."""
    x = 0.5 * (low + high)
    for _ in range(_ROOT_STEPS):
        value = slope = 0.0
        for k in range(len(polynomial) - 1, -1, -1):
            slope = slope * x + value
            value = value * x + polynomial[k]
        if (value < 0.0) == rises:
            low = x
        else:
            high = x
        moved = x - value / slope
        if not low < moved < high:
            moved = 0.5 * (low + high)
        if abs(moved - x) <= _ROOT_EXACT:
            return moved
        x = moved
    return x


@jit
def _solved(linear: Any, z: float, solution: Any) -> bool:
    """Write (x, y, z): x and y by the two of the three equations that tell most."""
    rows, best = np.empty((3, 3)), 0.0
    for equation in range(3):
        for unknown in range(3):
            rows[equation, unknown] = _value(linear[equation, unknown], z)
    for third in range(3):
        a, b = rows[(third + 1) % 3], rows[(third + 2) % 3]
        x, y, w = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
        if abs(w) > best:
            best = abs(w)
            solution[0], solution[1], solution[2] = x / w, y / w, z
    return 0.0 < best < np.inf


@jit
def _polished(cubics: Any, solution: Any) -> bool:
    """Take Gauss-Newton steps to where all ten cubics are 0; tell whether these become small."""
    powers, errors, gram, slope, share = np.ones((3, 4)), np.empty((4, 10)), np.empty((3, 3)), np.empty(3), np.inf
    for _ in range(_POLISHING_STEPS):
        for variable in range(3):
            for k in range(1, 4):
                powers[variable, k] = powers[variable, k - 1] * solution[variable]
        errors[:] = 0.0
        for monomial in range(20):
            i, j, k = _EXPONENTS[monomial]
            x, y, z = powers[0, i], powers[1, j], powers[2, k]
            value = x * y * z
            along_x = i * powers[0, max(i - 1, 0)] * y * z
            along_y = j * powers[1, max(j - 1, 0)] * x * z
            along_z = k * powers[2, max(k - 1, 0)] * x * y
            for equation in range(10):
                errors[0, equation] += cubics[monomial, equation] * value
                errors[1, equation] += cubics[monomial, equation] * along_x
                errors[2, equation] += cubics[monomial, equation] * along_y
                errors[3, equation] += cubics[monomial, equation] * along_z
        for i in range(3):
            slope[i] = 0.0
            for equation in range(10):
                slope[i] += errors[1 + i, equation] * errors[0, equation]
            for j in range(i, 3):
                gram[i, j] = 0.0
                for equation in range(10):
                    gram[i, j] += errors[1 + i, equation] * errors[1 + j, equation]
        share = _step_of_three(gram, slope, solution)
    return share <= _EXACT


@jit
def _step_of_three(gram: Any, slope: Any, solution: Any) -> float:
    """Subtract the solution of a symmetric system of three, of which the upper triangle is given; return the step's share."""
    a, b, c, d, e, f = gram[0, 0], gram[0, 1], gram[0, 2], gram[1, 1], gram[1, 2], gram[2, 2]
    p, q, r = d * f - e * e, c * e - b * f, b * e - c * d
    s, t, u = a * f - c * c, b * c - a * e, a * d - b * b
    scale = 1.0 / (a * p + b * q + c * r)
    x = scale * (p * slope[0] + q * slope[1] + r * slope[2])
    y = scale * (q * slope[0] + s * slope[1] + t * slope[2])
    z = scale * (r * slope[0] + t * slope[1] + u * slope[2])
    solution[0] -= x
    solution[1] -= y
    solution[2] -= z
    size = 1.0 + abs(solution[0]) + abs(solution[1]) + abs(solution[2])
    return float((abs(x) + abs(y) + abs(z)) / size)
