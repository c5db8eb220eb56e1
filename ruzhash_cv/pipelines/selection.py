"""Choose which kept matches to write for COLMAP and hloc, and the model that goes with them."""

from __future__ import annotations

import numpy as np

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv.result import FilterResult, Structure

#: Evidence from which a pair counts as showing one scene. Unrelated images reach far less; fronts that look alike reach it too.
LEAST_EVIDENCE = 50.0
#: Share of the kept matches that one plane or rotation must hold to count as dominant.
NEARLY_ALL = 0.9


def evidence_of(false_alarms: float) -> float:
    """Return the evidence that at most a share `false_alarms` of unrelated pairs reaches.

    Evidence is -ln of the number of structures as strong that chance makes. benchmarks/evaluate_false_alarms.py measures the share.
    """
    return float(-np.log(false_alarms))


def prepare(result: FilterResult) -> None:
    """Search for motions if there are several structures. It takes as long as the filter, so workers do it."""
    if len(result.models) > 1:
        _ = result.motions  # the result keeps them


def prepare_pages(result: FilterResult) -> None:
    """Search for motions, which pages show in colours, however few structures there are."""
    _ = result.motions


def strongest_motion(result: FilterResult) -> tuple[Mask, Array | None]:
    """Return the mask (n,) of the matches of the strongest rigid motion, and its fundamental matrix.

    None where only a plane or a rotation is seen. What stood still while the rest moved is no motion of the scene.
    """
    motions, index = _motions(result), index_of_strongest(result)
    if index is None:
        return np.zeros(len(result.inlier_mask), bool), None
    mask = result.motion_labels == index if len(result.models) > 1 else result.inlier_mask
    return mask, motions[index].fundamental


def index_of_strongest(result: FilterResult) -> int | None:
    """Return the index of the strongest rigid motion, None where there is none."""
    return next((index for index, motion in enumerate(_motions(result)) if not motion.stationary), None)


def _motions(result: FilterResult) -> tuple[Structure, ...]:
    """Return the motions, without a search where there is at most one structure."""
    return result.motions if len(result.models) > 1 else result.models


def n_motions(result: FilterResult) -> int:
    """Return how many motions there are."""
    return len(_motions(result))


def is_calibrated(result: FilterResult) -> bool:
    """Tell whether the strongest rigid motion has an essential matrix."""
    index = index_of_strongest(result)
    return index is not None and _motions(result)[index].kind == "essential"


def dominant_plane(result: FilterResult, kept: Mask) -> Array | None:
    """Return the homography that holds nearly all of the matches that are `kept`, None where there is none."""
    for index, model in enumerate(result.models):
        if model.kind == "homography" and np.sum(result.labels[kept] == index) >= NEARLY_ALL * kept.sum():
            return model.matrix
    return None
