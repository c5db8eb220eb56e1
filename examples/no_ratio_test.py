"""
No ratio test
=============

Lowe's ratio test throws away a match whose second-best candidate is nearly as good: mismatches, and with them true matches on
repeated or plain texture. A filter that stands many mismatches can do without it. Here all nearest neighbours go in.
"""

import cv2
import matplotlib.pyplot as plt
import numpy as np

from ruzhash_cv import draw_matches, filter_points, select_matches
from ruzhash_cv.datasets import load_pair

pair = load_pair("rigid")
sift = cv2.SIFT.create()
kp1, des1 = sift.detectAndCompute(pair.img1, None)
kp2, des2 = sift.detectAndCompute(pair.img2, None)
rows = cv2.BFMatcher().knnMatch(des1, des2, k=2)
every = [best for best, second in rows]
passed = [best for best, second in rows if best.distance < 0.8 * second.distance]

for name, matches in (("ratio test 0.8", passed), ("no ratio test", every)):
    points1 = np.array([kp1[match.queryIdx].pt for match in matches])
    points2 = np.array([kp2[match.trainIdx].pt for match in matches])
    result = filter_points(points1, points2)
    keep, true = result.inlier_mask, pair.labels(points1, points2) > 0
    print(f"{name}: {len(matches)} matches, {(~true).mean():.0%} of them mismatches")
    print(f"    kept {keep.sum()}, true {(keep & true).sum()}, precision {(keep & true).sum() / keep.sum():.3f}")

# %%
# What is kept of all nearest neighbours:

kept = select_matches(every, keep)
picture = draw_matches(pair.img1, kp1, pair.img2, kp2, kept, np.ones(len(kept), bool))
plt.figure(figsize=(10, 4.2), layout="constrained")
plt.imshow(picture[:, :, ::-1])
plt.axis("off")
plt.show()
