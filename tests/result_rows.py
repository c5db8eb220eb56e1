"""Motions and planes of a result in one list, as its table has them."""

import numpy as np

from ruzhash_cv.results.printing import row_labels, table
from ruzhash_cv.results.result import FilterResult, Motion, Plane


def structures(result: FilterResult) -> list[Motion | Plane]:
    """Return each motion before its planes."""
    return [row.structure for row in table(result)]


def kinds(result: FilterResult) -> list[str]:
    """Return the kind of each of the `structures`."""
    return [row.kind for row in table(result)]


def labels(result: FilterResult) -> np.ndarray:
    """Return the index into `structures` of each match (n,): a plane, or the motion if it is on none of the planes; -1 for none."""
    return row_labels(table(result), len(result.inlier_mask))
