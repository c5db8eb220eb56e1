"""Essential matrices through five pairs of rays (Nister, "An efficient solution to the five-point relative pose problem", PAMI 2004).

E = x A + y B + z C + D of the null space of the five equations, where E E' E = tr(E E') E / 2 and det E = 0 are ten cubics. Elimination
of what is of second degree in x and y leaves three equations that are linear in these, with polynomials of z. Their determinant is one
of the tenth degree, whose real roots lie between those of its derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.models.linear import unit_norm

#: Real solutions of a sample, at most.
_MOST = 10
#: Exponents (20, 3) of the monomials of x, y, z up to the third degree: first those that are eliminated.
_EXPONENTS = np.array(
    [[3, 0, 0], [0, 3, 0], [2, 1, 0], [1, 2, 0], [2, 0, 1], [2, 0, 0], [0, 2, 1], [0, 2, 0], [1, 1, 1], [1, 1, 0]]
    + [[1, 0, 2], [1, 0, 1], [1, 0, 0], [0, 1, 2], [0, 1, 1], [0, 1, 0], [0, 0, 3], [0, 0, 2], [0, 0, 1], [0, 0, 0]]
)
#: Points (20, 4) of (x, y, z, 1), and what makes a cubic's coefficients of its values there.
_NODES = np.column_stack([np.random.default_rng(5).normal(size=(20, 3)), np.ones(20)])
_FROM_VALUES = np.linalg.inv((_NODES[:, None, :3] ** _EXPONENTS).prod(axis=2))
#: Newton steps of a root, at most, and the last of them.
_ROOT_STEPS, _ROOT_EXACT = 60, 1e-10


def through_five(first: Array, second: Array) -> tuple[Array, Rows]:
    """Return up to ten essential matrices (k, 9), of unit norm, of each sample of unit rays (s, 5, 3), and the sample (k,) of each."""
    equations = (second[:, :, :, None] * first[:, :, None, :]).reshape(-1, 5, 9)
    with np.errstate(all="ignore"):
        basis = np.linalg.qr(equations.swapaxes(1, 2), mode="complete")[0][:, :, 5:].swapaxes(1, 2)
        cubics = _cubics(basis)
        usable = np.flatnonzero(np.abs(np.linalg.det(cubics[:, :, :10])) > 0.0)
        linear = _linear(np.asarray(np.linalg.solve(cubics[usable, :, :10], cubics[usable, :, 10:]), np.float64))
        solutions, counts = np.ones((len(usable), _MOST, 4)), np.zeros(len(usable), np.int64)
        _solve_kernel(linear, solutions, counts)
        sample, number = np.nonzero(np.arange(_MOST) < counts[:, None])
        models = unit_norm(np.einsum("ki,kij->kj", solutions[sample, number], basis[usable[sample]]))
    finite = np.isfinite(models).all(axis=1)
    return models[finite], usable[sample[finite]]


def _cubics(basis: Array) -> Array:
    """Return the coefficients (s, 10, 20) of E E' E - tr(E E') E / 2 and of det E, from their values at the nodes."""
    matrices = (_NODES @ basis).reshape(-1, 20, 3, 3)
    squares = matrices @ matrices.swapaxes(2, 3)
    halves = 0.5 * np.trace(squares, axis1=2, axis2=3)[:, :, None, None]
    cubes = (squares @ matrices - halves * matrices).reshape(-1, 20, 9)
    values = np.concatenate([cubes, np.linalg.det(matrices)[:, :, None]], axis=2)
    return np.asarray((_FROM_VALUES @ values).swapaxes(1, 2))


def _linear(reduced: Array) -> Array:
    """Return three equations (s, 3, 3, 5) in (x, y, 1), polynomials of z: the row of x^2 z minus z times that of x^2, and so on."""
    linear = np.zeros((len(reduced), 3, 3, 5))
    for unknown, powers in enumerate((slice(2, None, -1), slice(5, 2, -1), slice(9, 5, -1))):
        high, low = reduced[:, 4::2, powers], reduced[:, 5::2, powers]
        n = high.shape[2]
        linear[:, :, unknown, :n] += high
        linear[:, :, unknown, 1 : n + 1] -= low
    return linear


@jit
def _solve_kernel(linear: Any, solutions: Any, counts: Any) -> None:
    determinant, roots = np.empty(11), np.empty(2 * _MOST)
    for sample in range(len(linear)):
        _write_determinant(linear[sample], determinant)
        for root in range(_roots_of(determinant, roots)):
            if counts[sample] < _MOST and _solved(linear[sample], roots[root], solutions[sample, counts[sample]]):
                counts[sample] += 1


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
    largest = np.abs(polynomial).max()
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
    """Write (x, y, z): x and y by the two equations that determine them best."""
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
