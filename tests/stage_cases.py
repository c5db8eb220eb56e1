"""Matches and preferences for tests of single stages."""

import numpy as np

from ruzhash_cv.core.families.base import GIVEN, CheckedFamily, Residuals
from ruzhash_cv.core.kernels import draw
from ruzhash_cv.core.method.matches import Frame, MatchSet
from ruzhash_cv.core.method.parameters import PARAMETERS

Array = np.ndarray


def matches_of(data: Array, unit: float = PARAMETERS.unit) -> MatchSet:
    """Return matches (n, 4) as a set."""
    return MatchSet.of(data[:, :2], data[:, 2:], unit)


def in_pixels(data: Array, weights: Array | None = None, keypoints: Array | None = None) -> MatchSet:
    """Return matches (n, 4) as they are: in no frame, in their order, each in a separate group."""
    n = len(data)
    rows, weights = np.arange(n), np.ones(n) if weights is None else weights
    frame, keypoints = Frame(np.zeros(2), np.zeros(2), 1.0), np.tile(rows, (2, 1)) if keypoints is None else keypoints
    known = frame, PARAMETERS.unit, np.ones(n, bool), rows, frame.transforms()
    return MatchSet(data, rows, keypoints, weights, np.ones(n), *known)


def mismatches(n: int, seed: int = 0) -> Array:
    """Return matches (n, 4) of points that have nothing to do with each other."""
    return np.random.default_rng(seed).uniform(0, [1280, 960, 1280, 960], (n, 4))


def given_residuals(squared: Array) -> Residuals:
    """Return squared residuals (m, n) as kernels take them."""
    return np.full(len(squared), GIVEN), squared, np.zeros((len(squared), 9))


class Tabled(CheckedFamily):
    """A family whose squared residuals of all data are a table (m, n), and of the last of them its last columns."""

    codimension, sample_size = 2, 4

    def squared_residuals(self, data: Array, models: Array) -> Array:
        return self.family[:, len(self.family.T) - len(data) :]


def clusters(seed: int = 0, n: int = 120, m: int = 40, alone: int = 20) -> Array:
    """Return rows of four groups that prefer the same models, then `alone` rows that prefer some at random or none."""
    rng = np.random.default_rng(seed)
    rows, group = np.zeros((n, m)), np.arange(n - alone) * 4 // (n - alone)
    rows[: n - alone] = (np.arange(m) * 4 // m == group[:, None]) * rng.uniform(0.3, 1, (n - alone, m))
    rows[n - alone :] = (rng.random((alone, m)) < 0.04) * rng.random((alone, m))
    return rows.astype(np.float32)


def branches_of(rows: Array, key: int, n_branches: int) -> Array:
    """Return the branches that rows take at a node; that of the sink is the last."""
    (n, m), space = rows.shape, np.tile(np.arange(len(rows)), (3, 1))
    draw.write_branches(rows, np.uint64(key), n_branches, 0, n, np.empty(m, "f4"), np.empty(m, "u4"), space)
    return space[2]
