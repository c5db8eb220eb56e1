"""Choose which kept matches to write for COLMAP and hloc: the strongest motion's, of pairs that show one scene."""

from __future__ import annotations

import numpy as np

from ruzhash_cv._arrays import Mask
from ruzhash_cv.result import FilterResult

#: Evidence from which a pair counts as showing one scene. Unrelated images reach far less; fronts that look alike reach it too.
LEAST_EVIDENCE = 50.0


def evidence_of(false_alarms: float) -> float:
    """Return the evidence that at most a share `false_alarms` of unrelated pairs reaches.

    Evidence is -ln of the number of structures as strong that chance makes. `benchmarks/evaluate.py pairs` measures the share.
    """
    return float(-np.log(false_alarms))


def strongest_motion(result: FilterResult) -> int | None:
    """Return the index into `motions` of the motion of most matches, None if there is none; stationary matches are no motion."""
    return next((index for index, motion in enumerate(result.motions) if not motion.stationary), None)


def matches_of_strongest(result: FilterResult) -> Mask:
    """Return the mask (n,) of the matches of the strongest motion."""
    index = strongest_motion(result)
    return np.asarray(result.motion_labels == (-2 if index is None else index))
