"""Homographies and fundamental matrices with the paper's algebraic residuals."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ruzhash_cv.core.families.linear import unit_norm
from ruzhash_cv.foundation.arrays import Array
from ruzhash_cv.models import FundamentalMatrices, Homographies


class _Algebraic(ABC):
    """The residual is the norm of equations that are linear in a matrix of unit norm."""

    @abstractmethod
    def equations(self, data: Array) -> Array:
        """Return the coefficients (e, n, 9) of the equations that correspondences (n, 4) satisfy."""

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return sums of squared equations (m, n) of correspondences (n, 4) and models (m, 9)."""
        squared: Array = np.sum((models @ self.equations(data).transpose(0, 2, 1)) ** 2, axis=0)
        return squared

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return models (m, 9) of least weighted squared residuals, `weights` (m, n)."""
        equations = self.equations(data)
        grams = np.einsum("mn,eni,enj->mij", weights, equations, equations, optimize=True)
        fitted: Array = np.linalg.eigh(grams)[1][:, :, 0]
        return fitted


@dataclass(frozen=True)
class AlgebraicHomographies(_Algebraic, Homographies):
    """Homographies with the two equations that make x2 ~ H x1 linear in H (Hartley and Zisserman, equation 4.3).

    Examples
    --------
    >>> identity = np.eye(3).reshape(1, 9)
    >>> AlgebraicHomographies().squared_residuals(np.array([[0.0, 0.0, 3.0, 4.0]]), identity)
    array([[25.]])
    """

    def equations(self, data: Array) -> Array:
        """Return x - u w and y - v w, where H x1 = (x, y, w) and x2 = (u, v)."""
        first, nothing = _homogeneous(data[:, :2]), np.zeros((len(data), 3))
        x, y = [first, nothing, -data[:, 2:3] * first], [nothing, first, -data[:, 3:] * first]
        return np.stack([np.hstack(x), np.hstack(y)])


@dataclass(frozen=True)
class AlgebraicFundamentalMatrices(_Algebraic, FundamentalMatrices):
    """Fundamental matrices with the equation x2^T F x1 = 0.

    Examples
    --------
    >>> sideways = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0]])
    >>> AlgebraicFundamentalMatrices().squared_residuals(np.array([[0.0, 0.0, 5.0, 2.0]]), sideways)
    array([[4.]])
    """

    def equations(self, data: Array) -> Array:
        """Return x2^T F x1."""
        second, first = _homogeneous(data[:, 2:]), _homogeneous(data[:, :2])
        return (second[:, :, None] * first[:, None, :]).reshape(1, -1, 9)

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return matrices (m, 9) of least weighted squared residuals, brought to rank 2."""
        left, values, right = np.linalg.svd(super().fit(data, weights).reshape(-1, 3, 3))
        values[:, 2] = 0.0
        return unit_norm((left * values[:, None] @ right).reshape(-1, 9))


def _homogeneous(points: Array) -> Array:
    return np.hstack([points, np.ones((len(points), 1))])
