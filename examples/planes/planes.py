"""
Planes and their homographies
=============================

With ``model="homography"`` each plane of a scene is a motion with a homography: here the planes of a desk and of books that
moved on it. ``threshold=3.0`` keeps the matches within 3 px of a plane; without it, matches are kept by their probability.
"""

import cv2
import matplotlib.pyplot as plt

from ruzhash_cv import as_correspondences, filter_points
from ruzhash_cv.datasets import load_pair

pair = load_pair("desk")
sift = cv2.SIFT.create()
kp1, des1 = sift.detectAndCompute(pair.img1, None)
kp2, des2 = sift.detectAndCompute(pair.img2, None)
rows = cv2.BFMatcher().knnMatch(des1, des2, k=2)
pairs = as_correspondences(kp1, kp2, rows, ratio=0.8)

result = filter_points(pairs.points1, pairs.points2, model="homography", threshold=3.0)
print([int(plane.mask.sum()) for plane in result.motions])  # matches of each plane, the largest plane first

# %%
# ``motions[i].mask`` are the matches on plane ``i``.

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for axis, image, points in zip(axes, (pair.img1, pair.img2), (pairs.points1, pairs.points2), strict=True):
    axis.imshow(image[:, :, ::-1], alpha=0.5)
    for plane in result.motions:
        own = points[plane.mask]
        axis.plot(own[:, 0], own[:, 1], ".", ms=4)
    axis.axis("off")
axes[0].set_title("kept matches, a colour for each plane", loc="left")

# %%
# ``motions[i].matrix`` is a homography as OpenCV's are: x2 ~ H x1. What the strongest plane carries over fits the second picture,
# and what stands off that plane does not.

height, width = pair.img2.shape[:2]
carried = cv2.warpPerspective(pair.img1, result.motions[0].matrix, (width, height))
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
axes[0].imshow(carried[:, :, ::-1])
axes[0].set_title("first picture, carried over", loc="left")
axes[1].imshow(cv2.absdiff(carried, pair.img2)[:, :, ::-1])
axes[1].set_title("difference from the second", loc="left")
for axis in axes:
    axis.axis("off")
plt.show()
