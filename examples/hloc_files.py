"""
hloc's matches, filtered
========================

hloc keeps keypoints in one file and matches in another. `ruzhash_cv.pipelines.hloc.filter_matches` writes a third, of the same
layout as the second, which hloc's reconstruction reads in its place; ``ruzhash-cv hloc`` does it from a shell. Needs the extra
``hloc``. hloc itself is not needed: here SIFT writes its files.
"""

import sys
import tempfile
from pathlib import Path

import cv2
import matplotlib.pyplot as plt
import numpy as np

try:
    import h5py
except ImportError:
    sys.exit('h5py is missing: pip install "ruzhash-cv[hloc]"')
from ruzhash_cv import draw_matches
from ruzhash_cv.datasets import load_pair
from ruzhash_cv.pipelines.hloc import filter_matches

pair = load_pair("facade")
sift = cv2.SIFT.create()
kp1, des1 = sift.detectAndCompute(pair.img1, None)
kp2, des2 = sift.detectAndCompute(pair.img2, None)
points1, points2 = cv2.KeyPoint.convert(kp1), cv2.KeyPoint.convert(kp2)  # (n, 2), pixels
partners = np.full(len(points1), -1)  # of each keypoint of the first picture: one of the second, or -1
for match in cv2.BFMatcher(crossCheck=True).match(des1, des2):
    partners[match.queryIdx] = match.trainIdx

folder = tempfile.TemporaryDirectory()
features, matches, filtered = (Path(folder.name) / name for name in ("features.h5", "matches.h5", "filtered.h5"))
with h5py.File(features, "w") as file:
    file["left.jpg/keypoints"], file["right.jpg/keypoints"] = points1, points2
with h5py.File(matches, "w") as file:
    file["left.jpg/right.jpg/matches0"] = partners
    file["left.jpg/right.jpg/matching_scores0"] = np.ones(len(partners), np.float16)

# %%
# A pair that is done has the partners of its rejected keypoints set to -1.
done = filter_matches(features, matches, [("left.jpg", "right.jpg")], filtered, n_jobs=1)
print(f"pairs: {done.pairs}, matches kept: {done.inliers} of {done.matches}")

# %%
# What the new file holds, on the pictures:

with h5py.File(filtered) as file:
    left = file["left.jpg/right.jpg/matches0"][()]
numbers = np.flatnonzero(partners >= 0)
indices, kept = np.stack([numbers, partners[numbers]], axis=1), left[numbers] >= 0
picture = draw_matches(pair.img1, points1, pair.img2, points2, indices, kept)
plt.figure(figsize=(10, 4.2), layout="constrained")
plt.imshow(picture[:, :, ::-1])
plt.axis("off")
plt.show()
