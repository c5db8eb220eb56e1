"""
No ratio test
=============

Lowe's ratio test throws away a match whose second-best candidate is nearly as good: mismatches, and with them true matches on
repeated or plain texture. A filter that stands many mismatches can do without it. Here all nearest neighbours go in.
On harder pairs that finds nothing: there use a mutual check, ``cv2.BFMatcher(crossCheck=True)``, in place of the ratio test.
"""

import cv2
import matplotlib.pyplot as plt

from ruzhash_cv import as_correspondences, draw_matches, filter_points
from ruzhash_cv.datasets import load_pair

pair = load_pair("rigid")
sift = cv2.SIFT.create()
kp1, des1 = sift.detectAndCompute(pair.img1, None)
kp2, des2 = sift.detectAndCompute(pair.img2, None)
rows = cv2.BFMatcher().knnMatch(des1, des2, k=2)
pairs = as_correspondences(kp1, kp2, rows)
true = pair.labels(pairs.points1, pairs.points2) >= 0  # one entry for each row, as of the results

for ratio in (0.8, None):
    result = filter_points(kp1, kp2, rows, ratio=ratio)
    keep, n = result.inlier_mask, result.has_match.sum()
    print(f"ratio {ratio}: {n} matches, {(~true[result.has_match]).mean():.0%} of them mismatches")
    print(f"    kept {keep.sum()}, true {(keep & true).sum()}, precision {(keep & true).sum() / keep.sum():.3f}")

# %%
# What is kept of all nearest neighbours:

picture = draw_matches(pair.img1, kp1, pair.img2, kp2, rows, result, show="kept")
plt.figure(figsize=(10, 4.2), layout="constrained")
plt.imshow(picture[:, :, ::-1])
plt.axis("off")
plt.show()
