"""
Replacing RANSAC
================

The lines that replace RANSAC in a pipeline: homography and fundamental matrix, before and after. For one model, change one word. For
all models, use the mask of `ruzhash_cv.filter_matches`.
``python examples/start/replace_ransac.py NAME`` takes one of the bundled pairs: facade, desk, rigid or plane.
"""

# sphinx_gallery_thumbnail_path = 'images/desk_magsac.jpg'

from __future__ import annotations

import sys

import cv2
import numpy as np

from ruzhash_cv import filter_matches, filter_points, find_fundamental_matrix, find_homography
from ruzhash_cv.datasets import PAIR_NAMES, load_pair

name = sys.argv[1] if len(sys.argv) > 1 else "desk"
if name not in PAIR_NAMES:
    sys.exit(f"there is no pair {name!r}; the bundled ones are {', '.join(PAIR_NAMES)}")
pair = load_pair(name)

# Common to both: keypoints, matches, ratio test.
sift = cv2.SIFT.create()
kp1, des1 = sift.detectAndCompute(pair.img1, None)
kp2, des2 = sift.detectAndCompute(pair.img2, None)
rows = cv2.BFMatcher(cv2.NORM_L2).knnMatch(des1, des2, k=2)
matches = [best for best, second in rows if best.distance < 0.8 * second.distance]
points1 = np.array([kp1[m.queryIdx].pt for m in matches])  # (n, 2) float64, pixels
points2 = np.array([kp2[m.trainIdx].pt for m in matches])

# Before: one homography; the matches of every other plane are lost.
H, mask = cv2.findHomography(points1, points2, cv2.RANSAC, 3.0)
before_h = mask.ravel() > 0

# After, with one word changed: one homography and its inliers, in OpenCV's form.
model, mask = find_homography(points1, points2, cv2.RANSAC, 3.0)
single_h = mask.ravel() > 0

# After: every plane. The mask is (n,) bool and indexes `matches` and the points directly.
after_h = filter_matches(kp1, kp2, matches, model="homography")

# Before: one fundamental matrix; the matches of moving objects are lost.
F, mask = cv2.findFundamentalMat(points1, points2, cv2.FM_RANSAC, 3.0)
before_f = mask.ravel() > 0

# After, with one word changed: one fundamental matrix and its inliers.
model, mask = find_fundamental_matrix(points1, points2, cv2.FM_RANSAC, 3.0)
single_f = mask.ravel() > 0

# After: every motion and its refitted matrix, the motion with the most matches first.
result = filter_points(points1, points2, model="fundamental")
after_f = result.inlier_mask
matrices = [motion.matrix for motion in result.motions]

true = pair.labels(points1, points2) >= 0
print(f"{name}: {len(matches)} matches, {true.sum()} of them true")
rows_of_table = (
    ("cv2.findHomography, RANSAC", before_h),
    ("find_homography", single_h),
    ('filter_matches, model="homography"', after_h),
    ("cv2.findFundamentalMat, FM_RANSAC", before_f),
    ("find_fundamental_matrix", single_f),
    ('filter_points, model="fundamental"', after_f),
)
for label, keep in rows_of_table:
    found = int((keep & true).sum())
    print(f"{label:36} kept {keep.sum():5}  true among them {found:5}  true ones lost {true.sum() - found:5}")
print(f"fundamental matrices found: {len(matrices)}")
