"""Essential matrices through five pairs of rays (Nister, "An efficient solution to the five-point relative pose problem", PAMI 2004).

E = x A + y B + z C + D of the null space of the five equations, where E E' E = tr(E E') E / 2 and det E = 0 are ten cubics. Elimination
of what is of second degree in x and y leaves three equations that are linear in these, with polynomials of z. Their determinant is one
of the tenth degree, whose real roots lie between those of its derivative.
"""

from __future__ import annotations

import numpy as np

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv.kernels.fit import solve_five
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


def through_five(first: Array, second: Array) -> tuple[Array, Rows]:
    """Return up to ten essential matrices (k, 9), of unit norm, of each sample of unit rays (s, 5, 3), and the sample (k,) of each."""
    equations = (second[:, :, :, None] * first[:, :, None, :]).reshape(-1, 5, 9)
    with np.errstate(all="ignore"):
        basis = np.linalg.qr(equations.swapaxes(1, 2), mode="complete")[0][:, :, 5:].swapaxes(1, 2)
        cubics = _cubics(basis)
        usable = np.flatnonzero(np.abs(np.linalg.det(cubics[:, :, :10])) > 0.0)
        linear = _linear(np.asarray(np.linalg.solve(cubics[usable, :, :10], cubics[usable, :, 10:]), np.float64))
        solutions, counts = np.ones((len(usable), _MOST, 4)), np.zeros(len(usable), np.int64)
        solve_five(linear, solutions, counts)
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
