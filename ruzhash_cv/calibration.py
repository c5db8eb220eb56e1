"""Whether matches contradict the cameras that are said to have seen them."""

from __future__ import annotations

import numpy as np

from ruzhash_cv.fits import fits_as_well, refine
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.models.base import Families, Models
from ruzhash_cv.models.distances import RAY_FAMILIES
from ruzhash_cv.parameters import Parameters


def contradicted(structures: Models, matches: MatchSet, families: Families, parameters: Parameters) -> bool:
    """Return whether a fundamental matrix fits an essential one's matches, of the strongest motion, with less than half the noise.

    By the same rule a motion holds a structure. A focal length that is wrong by a third hardly shows so. Its essential matrix is wrong
    then, but tells the same matches from mismatches.
    """
    rigid, uncalibrated = np.flatnonzero(~families.is_plane(structures)), RAY_FAMILIES["fundamental"]
    known = families.motion_id is not None and families[families.motion_id] is RAY_FAMILIES["essential"]
    if len(rigid) == 0 or not known:
        return False
    motion = structures.take(rigid[[np.argmax(structures.support[rigid])]])
    within = (families.squared_residuals(motion, matches.data) <= motion.tolerances[:, None] ** 2) * matches.weights
    start = np.vstack([motion.matrices, uncalibrated.fit(matches.data, within, motion.matrices)])
    own, tolerances = Families((uncalibrated,), (True,)), np.repeat(motion.tolerances, len(start))
    _, noise = refine(Models.of_family(start, 0), matches, tolerances, own, parameters)
    return not fits_as_well(motion.noise, noise.min(), matches.unit, parameters).any()
