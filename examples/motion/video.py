"""
Camera motion and movers in a clip
==================================

Between two frames of a video everything moves: the picture because the camera does, some things by themselves. One call per pair of
frames tells them apart: the largest motion is the camera's, the others are movers.
"""

import itertools

import cv2
import matplotlib.pyplot as plt
import numpy as np

from ruzhash_cv import filter_points
from ruzhash_cv.datasets import data_folder

# The clip: a desk, past which the camera slides, and two things that are pushed and turned on it.
frames = [np.asarray(cv2.imread(str(data_folder() / f"clip{number}.jpg"))) for number in (1, 2, 3, 4)]

# %%
# Corners are followed from frame to frame, and each step is filtered. Corners that the optical flow does not lead back to where they
# were are left out: along an edge they slide, all in one direction, and look like a mover of their own.
figure, axes = plt.subplots(1, len(frames) - 1, figsize=(12, 3.5), layout="constrained")
for number, (before, after) in enumerate(itertools.pairwise(frames)):
    grey1, grey2 = (cv2.cvtColor(frame, cv2.COLOR_BGR2GRAY) for frame in (before, after))
    corners = cv2.goodFeaturesToTrack(grey1, 1500, 0.005, 5)
    followed, found = cv2.calcOpticalFlowPyrLK(grey1, grey2, corners, corners.copy())[:2]
    back, again = cv2.calcOpticalFlowPyrLK(grey2, grey1, followed, followed.copy())[:2]
    found &= again & (np.abs(back - corners).max(axis=2) < 0.5)
    points1, points2 = (points[found.ravel() > 0].reshape(-1, 2) for points in (corners, followed))  # (n, 2), pixels
    result = filter_points(points1, points2)
    sizes = [int(motion.mask.sum()) for motion in result.motions]
    print(f"frames {number}-{number + 1}: {len(points1)} corners, camera {sizes[0]}, movers {sizes[1:]}")
    axes[number].imshow(after[:, :, ::-1])
    for motion, colour in zip(result.motions, ("silver", "orange", "lime", "cyan"), strict=False):
        lines = np.stack([points1, points2])[:, motion.mask]
        axes[number].plot(*lines.transpose(2, 0, 1), color=colour, linewidth=1)
    axes[number].set(
        title=f"frame {number + 1}", xticks=[], yticks=[], xlim=(0, after.shape[1]), ylim=(after.shape[0], 0)
    )
plt.show()
