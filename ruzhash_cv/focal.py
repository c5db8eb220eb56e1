"""The focal length of the one camera that took both images: the likeliest of a scan, together with the pose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ruzhash_cv.cameras import Camera
from ruzhash_cv.method.estimate import Estimate
from ruzhash_cv.pose import best_pose, essentials_of, weights_of, with_rays

#: Focal lengths that are tried, in diagonals of the image, and their number.
_SHORTEST, _LONGEST, _N_TRIED = 0.4, 4.0, 16
#: Standard deviation of the logarithm of a focal length about COLMAP's guess: it decides if the matches do not.
_SPREAD = 0.5


def camera_of_motion(estimate: Estimate, motion: int, image_size: Any) -> Camera:
    """Return the camera without distortion, its principal point in the middle of the image, that explains a motion of the scene best.

    At each of a row of focal lengths the likeliest pose is found as `pose.best_pose` does, from the pose before as well. A parabola
    through the highest likelihood and its neighbours has its peak at the focal length that is returned.
    """
    guess = Camera.from_focal_length(None, image_size)
    tried = float(np.hypot(*(2.0 * guess.matrix[:2, 2] + 1.0))) * np.geomspace(_SHORTEST, _LONGEST, _N_TRIED)
    likelihoods = -0.5 * np.square(np.log(tried / guess.matrix[0, 0]) / _SPREAD)
    matches, scene = estimate.matches, estimate.scene
    members, others = np.flatnonzero(scene.owners == motion), np.flatnonzero(scene.owners >= motion)
    others = others[~scene.stationary[others] | (scene.owners[others] == motion)]
    weights, before = weights_of(estimate, others), np.zeros((0, 9))
    for number, focal_length in enumerate(tried.tolist()):
        camera = Camera.from_focal_length(focal_length, image_size)
        data, into = with_rays(matches, (camera, camera))
        given = np.vstack([before, essentials_of(estimate, members, into)])
        weighted = replace(matches, data=data, weights=weights)
        placed = best_pose(given, weighted, float(scene.noise[motion]), estimate, others)
        likelihoods[number] += placed.likelihood
        before = placed.essential
    best = int(np.clip(likelihoods.argmax(), 1, _N_TRIED - 2))
    left, middle, right = likelihoods[best - 1 : best + 2]
    bend = left - 2.0 * middle + right
    offset = np.clip(0.5 * (left - right) / bend, -1.0, 1.0) if bend < 0.0 else 0.0
    return Camera.from_focal_length(float(tried[best] * (tried[1] / tried[0]) ** offset), image_size)
