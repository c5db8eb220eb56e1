"""The focal length of the one camera that took both images: the likeliest of a scan, together with the pose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ruzhash_cv.core.method.estimate import Estimate
from ruzhash_cv.foundation.arrays import Array
from ruzhash_cv.input.cameras import Camera
from ruzhash_cv.results.pose import best_pose, essentials_of, none_stronger, weights_of, with_rays
from ruzhash_cv.results.uncertainty import redundancy

#: Focal lengths that are tried, in diagonals of the image, and their number. Then steps are halved about the best so many times.
_SHORTEST, _LONGEST, _N_TRIED, _N_HALVED = 0.4, 4.0, 16, 3
#: Standard deviation of the logarithm of a focal length about COLMAP's guess: it decides if the matches do not.
_SPREAD = 0.5


def camera_of_motion(estimate: Estimate, motion: int, image_size: Any) -> tuple[Camera, float]:
    """Return the camera without distortion, its principal point in the middle of the image, that explains a motion of the scene best.

    At each of a row of focal lengths the likeliest pose is found as `pose.best_pose` does, from the pose before as well. Then it is
    found on both sides of the best one, nearer and nearer. A parabola through the highest likelihood and its neighbours has its peak
    at the focal length that is returned, with the standard deviation of its logarithm.
    """
    guess = Camera.from_focal_length(None, image_size)
    middle = float(np.log(guess.matrix[0, 0]))
    diagonal = float(np.hypot(*(2.0 * guess.matrix[:2, 2] + 1.0)))
    matches, scene = estimate.matches, estimate.scene
    members, others = np.flatnonzero(scene.owners == motion), none_stronger(estimate, motion)
    weights = weights_of(estimate, others)

    def tried(logarithm: float, before: Array) -> tuple[float, float, Array]:
        """Return the logarithm of a focal length, its log-likelihood and its pose's essential matrix (1, 9)."""
        camera = Camera.from_focal_length(float(np.exp(logarithm)), image_size)
        data, into = with_rays(matches, (camera, camera))
        weighted = replace(matches, data=data, weights=weights)
        given = np.vstack([before, essentials_of(estimate, members, into)])
        placed = best_pose(
            given, weighted, float(scene.noise[motion]), estimate, others, estimate.parameters.last_samples
        )
        return logarithm, placed.likelihood - 0.5 * ((logarithm - middle) / _SPREAD) ** 2, placed.essential

    row, before = list[tuple[float, float, Array]](), np.zeros((0, 9))
    for logarithm in np.log(diagonal * np.geomspace(_SHORTEST, _LONGEST, _N_TRIED)).tolist():
        row.append(tried(logarithm, before))
        before = row[-1][2]
    scanned = list(row)
    for halved in range(_N_HALVED + 1):
        best = int(np.clip(np.argmax([likelihood for _, likelihood, _ in row]), 1, len(row) - 2))
        left, top, right = row = row[best - 1 : best + 2]
        if halved < _N_HALVED:
            between = [tried(0.5 * (side[0] + top[0]), np.vstack([side[2], top[2]])) for side in (left, right)]
            row = [left, between[0], top, between[1], right]
            scanned += between
    bend = left[1] - 2.0 * top[1] + right[1]
    offset = float(np.clip(0.5 * (left[1] - right[1]) / bend, -1.0, 1.0)) if bend < 0.0 else 0.0
    camera = Camera.from_focal_length(float(np.exp(top[0] + offset * (right[0] - top[0]))), image_size)
    logarithms, likelihoods = np.array([(logarithm, likelihood) for logarithm, likelihood, _ in scanned]).T
    times, step = redundancy(float(weights.sum())), right[0] - top[0]
    spread = spread_of(logarithms, likelihoods / times)
    # The sum over a scan does not see a peak that is narrower than its last steps.
    narrow = step * float(np.sqrt(times / -bend)) if bend < 0.0 else np.inf
    return camera, max(spread, narrow) if narrow < step else spread


def spread_of(logarithms: Array, likelihoods: Array) -> float:
    """Return the standard deviation of the logarithm of a focal length, from log-likelihoods (m,) at some logarithms, in any order."""
    order = np.argsort(logarithms)
    logarithms, densities = logarithms[order], np.exp(likelihoods[order] - likelihoods.max())
    steps = np.diff(logarithms)
    weights = densities * (np.append(steps, 0.0) + np.append(0.0, steps))
    mean = weights @ logarithms / weights.sum()
    return float(np.sqrt(weights @ np.square(logarithms - mean) / weights.sum()))
