"""Essential matrices through five pairs of rays (Nister, "An efficient solution to the five-point relative pose problem", PAMI 2004).

E = x A + y B + z C + D of the null space of the five equations, where E E' E = tr(E E') E / 2 and det E = 0 are ten cubics. Elimination
of what is of second degree in x and y leaves three equations that are linear in these, with polynomials of z. Their determinant is one
of the tenth degree, whose real roots lie between those of its derivative.
"""

from __future__ import annotations

import numpy as np

from ruzhash_cv.core.kernels.five_points import solve_five
from ruzhash_cv.foundation.arrays import Array, Rows

#: Real solutions of a sample, at most.
_MOST = 10
#: Exponents (20, 3) of the monomials of x, y, z up to the third degree: first those that are eliminated.
_EXPONENTS = np.array(
    [[3, 0, 0], [0, 3, 0], [2, 1, 0], [1, 2, 0], [2, 0, 1], [2, 0, 0], [0, 2, 1], [0, 2, 0], [1, 1, 1], [1, 1, 0]]
    + [[1, 0, 2], [1, 0, 1], [1, 0, 0], [0, 1, 2], [0, 1, 1], [0, 1, 0], [0, 0, 3], [0, 0, 2], [0, 0, 1], [0, 0, 0]]
)
#: Exponents of x, y, z, 1, and of their products (10, 3); where the products of both (10, 4) are among the monomials.
_LINEAR = np.eye(4, 3, dtype=int)
_SQUARES = (_LINEAR[:, None] + _LINEAR)[np.triu_indices(4)]
_PLACES = ((_SQUARES[:, None, None] + _LINEAR[:, None]) == _EXPONENTS).all(axis=3).argmax(axis=2)


def through_five(rays: Array) -> tuple[Array, Rows]:
    """Return up to ten essential matrices (k, 9) of unit norm of each sample of pairs of rays (s, 5, 6), and their samples (k,)."""
    most = _MOST * len(rays)
    models, owners = np.empty((most, 9)), np.empty(most, np.int64)
    n = solve_five(np.ascontiguousarray(rays), _PLACES, models, owners)
    return models[:n], owners[:n]
